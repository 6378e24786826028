"""Similarity matrices of the hidden layer before and after learning.

Given the read-out, the hidden units are Gaussian processes with means m_i and covariances C_ij = K_ij - m_i m_j^T at patches i, j
(a fully connected network has one patch), and the targets are sums of them. Averaged over the read-out, to first order in 1/N,

    <(1/N_c) sum_c phi_ci phi_ci^T> = K_ii + (r / (N_c N_p)) sum_kl [ Q_kl C_ik W C_li + kappa_kl (m_i m_k^T W C_li + transpose) ]

with W = a a^T - A^{-1}, a = A^{-1} y, A = T + KR: a spike along the fitted targets, and less weight everywhere else (derived for
this package, not in the cited papers).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.result import Result
from orderparam.systems.proportional.model import FullyConnected, LocallyConnected, PatchNetwork
from orderparam.systems.proportional.theory.evidence import inverse
from orderparam.systems.proportional.theory.fully_connected import input_kernels, kernels
from orderparam.systems.proportional.theory.local import infinite_width_kernel
from orderparam.systems.proportional.theory.local_kernels import patch_means, unpacked_kernels


class Similarity(Result):
    """Kernels of the hidden layer over the training set, K_emp(x, x') = (r/N) sum_i phi_i(x) phi_i(x'), r the read-out variance.

    The sum is over the features that the read-out sees: units, (patch, channel), or channels under average pooling.
    prior: its average over the prior (the kernel of infinite width). posterior: its average over the posterior.
    renormalised: KR, with which the network predicts; Q K at depth one.
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


def pull(
    kernel: Float[Array, "train train"], targets: Float[Array, "train"], temperature: Float[Array, ""]
) -> Float[Array, "train train"]:
    """W = a a^T - A^{-1}, A = T + KR."""
    inverted = inverse(kernel + temperature * jnp.eye(targets.size))
    dual = inverted @ targets
    return jnp.outer(dual, dual) - inverted


def correction(
    left: Float[Array, "patch first train"],
    weight: Float[Array, "train train"],
    right: Float[Array, "patch second train"],
    scale: Float[Array, "patch patch"],
) -> Float[Array, "first second"]:
    """sum_kl s_kl C_k W C_l^T."""
    return jnp.einsum("lam,mn,lbn->ab", jnp.einsum("kl,kam->lam", scale, left), weight, right)


def _features(
    system: FullyConnected | PatchNetwork,
) -> tuple[Float[Array, "patch other train train"], Float[Array, "patch train"]]:
    """K_ij and m_i of what the read-out sees."""
    if isinstance(system, FullyConnected):
        kernel = kernels(system.with_(readout_variance=1.0), jnp.ones(1), "common")[0]
        return kernel[None, None], system.phi.mean(input_kernels(system)[0].first)[None]
    means = patch_means(system, system.train[0])
    if system.pooled:
        return infinite_width_kernel(system)[0][None, None], jnp.mean(means, axis=0)[None]
    found = unpacked_kernels(system)
    if isinstance(system, LocallyConnected):  # units of different patches have nothing in common
        same = jnp.eye(system.patch_count)
        return found * same[:, :, None, None], means
    return found, means


def similarity(
    system: FullyConnected | PatchNetwork,
    scale: Float[Array, "patch patch"],
    kappa: Float[Array, "patch patch"],
) -> Similarity:
    """At the order parameters of one hidden layer and one output; fully connected or pooled: one patch."""
    temperature, y = jnp.asarray(system.temperature, float), system.train[1]
    units = system.widths[0] if isinstance(system, FullyConnected) else jnp.asarray(system.channels, float)
    found, means = _features(system)
    variance = jnp.asarray(system.readout_variance, float) / found.shape[0]
    if system.phi.parity == "odd":
        means = jnp.zeros_like(means)
    together = jnp.einsum("im,jn->ijmn", means, means)
    if isinstance(system, LocallyConnected):
        together = together * jnp.eye(found.shape[0])[:, :, None, None]
    centred = found - together
    renormalised = variance * (jnp.einsum("kl,klmn->mn", scale, centred) + means.T @ kappa @ means)
    weight = pull(renormalised, y, temperature)

    def change(patch: tuple[Array, Array]) -> Float[Array, "train train"]:
        """Of the similarity at one patch, C_ik for all k and m_i."""
        own, mean = patch
        along = jnp.einsum("kl,kn,lbn->b", kappa, means @ weight, own)
        return correction(own, weight, own, scale) + jnp.outer(mean, along) + jnp.outer(along, mean)

    prior = variance * jnp.einsum("iimn->mn", found)
    after = prior + variance**2 / units * jnp.sum(jax.lax.map(change, (centred, means)), axis=0)
    return Similarity(prior, after, renormalised, alignment(prior, y), alignment(after, y))
