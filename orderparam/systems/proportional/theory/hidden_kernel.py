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
    rows: Float[Array, "test train"],
    diagonal: Float[Array, "test"],
    targets: Float[Array, "train"],
    scale: Float[Array, ""],
    temperature: Float[Array, ""],
    width: Float[Array, ""],
) -> tuple[Float[Array, "train train"], Float[Array, "test train"], Float[Array, "test"]]:
    """<K_emp(x, x')> = K + (Q/N) [ (k(x) . a)(k(x') . a) - k(x)^T A^{-1} k(x') ] with a = A^{-1} y, A = T + Q K: to first order
    in 1/N a spike along the fitted targets, and less weight everywhere else (derived for this package from the dependence of the
    action on K). On the training set, of test points against it, and of every test point with itself."""
    noisy = scale * kernel + temperature * jnp.eye(targets.size)
    solved = jnp.linalg.solve(noisy, jnp.column_stack([kernel, rows.T, targets]))
    train, test, dual = solved[:, : targets.size], solved[:, targets.size : -1], solved[:, -1]
    spike, test_spike = kernel @ dual, rows @ dual
    return (
        kernel + scale / width * (jnp.outer(spike, spike) - kernel @ train),
        rows + scale / width * (jnp.outer(test_spike, spike) - rows @ train),
        diagonal + scale / width * (test_spike**2 - jnp.sum(rows.T * test, axis=0)),
    )
