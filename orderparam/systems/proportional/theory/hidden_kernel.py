"""Similarity matrices of the hidden layer before and after learning."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.result import Result


class Similarity(Result):
    """Kernels of the hidden layer over the training set, K_emp(x, x') = (r/N) sum_i phi_i(x) phi_i(x'), r the read-out variance.

    prior: its average over the prior (the kernel of infinite width). posterior: its average over the posterior.
    renormalised: Q K, with which the network predicts.
    prior_alignment, posterior_alignment: y^T K y P / (|y|^2 tr K), which is 1 for the kernel 1 and P for y y^T.
    """

    prior: Float[Array, "train other"]
    posterior: Float[Array, "train other"]
    renormalised: Float[Array, "train other"]
    prior_alignment: Float[Array, ""]
    posterior_alignment: Float[Array, ""]


def alignment(kernel: Float[Array, "train train"], targets: Float[Array, "train"]) -> Float[Array, ""]:
    """y^T K y P / (|y|^2 tr K)."""
    return targets @ kernel @ targets * targets.size / (targets @ targets * jnp.trace(kernel))


def posterior_mean(
    kernel: Float[Array, "train train"],
    targets: Float[Array, "train"],
    scale: Float[Array, ""],
    temperature: Float[Array, ""],
    width: Float[Array, ""],
) -> Float[Array, "train train"]:
    """<K_emp> = K + (Q/N) [ K a a^T K - K A^{-1} K ], a = A^{-1} y, A = T + Q K: to first order in 1/N a spike along the fitted
    targets, and less weight everywhere else (derived for this package from the dependence of the action on K)."""
    fitted = jnp.linalg.solve(scale * kernel + temperature * jnp.eye(targets.size), jnp.column_stack([kernel, kernel @ targets]))
    spike = fitted[:, -1]  # K A^{-1} y, as K and A commute
    return kernel + scale / width * (jnp.outer(spike, spike) - kernel @ fitted[:, :-1])
