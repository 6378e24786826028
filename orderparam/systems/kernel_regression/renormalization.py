"""Learning curves after renormalisation: modes too small to be learned are integrated out into a
ridge and a noise, which are uniform or depend on the input.
"""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.system import is_number
from orderparam.core.verb import theory
from orderparam.kernels.decimation import decimate, learnable
from orderparam.kernels.effective_ridge import effective_ridge, ratio
from orderparam.systems.kernel_regression.learning_curve import LearningCurve
from orderparam.systems.kernel_regression.pool.model import PoolRegression
from orderparam.systems.kernel_regression.pool.theory import (
    CavityCurve,
    self_consistent_on_pool,
    site_dependent_cavity,
)
from orderparam.systems.kernel_regression.spectrum.equivalent_kernel import equivalent_kernel
from orderparam.systems.kernel_regression.spectrum.model import KernelRegression
from orderparam.systems.kernel_regression.spectrum.theory import self_consistent

# ------------------------------------------------------------------------------------------------
# Learning curves after renormalisation: modes too small to be learned are integrated out, and a
# theory is solved for the remaining modes.
#
# The flow itself is in the topic `renormalization`; the ridge and noise that a mode leaves are in
# `orderparam.kernels.decimation`.

_RESIDUALS = {
    "self_consistent": self_consistent,
    "self_consistent_on_pool": self_consistent_on_pool,
    "equivalent_kernel": equivalent_kernel,
}


class RenormalizedCurve(LearningCurve):
    """One point of a learning curve after modes of small learnability were integrated out.

    Fields:
        mode_count: number of modes that were kept.
        renormalized_ridge: T' = T + sum of the eigenvalues of the modes that were integrated out.
        renormalized_noise: s' = s + target power on these modes.
        found_cutoff: whether any mode was below the threshold; if not, nothing was integrated out.
    """

    mode_count: Float[Array, ""]
    renormalized_ridge: Float[Array, ""]
    renormalized_noise: Float[Array, ""]
    found_cutoff: Bool[Array, ""]


def check_threshold(
    system: KernelRegression, threshold: float = 0.01, residual: str = "", **options: str
) -> None:
    """Raise an error for a threshold that is not between 0 and 1 (unless it is traced), and for a
    theory of the remaining modes that is meant for another kind of system.

    Raises:
        ValueError: for such a threshold or theory.
    """
    if is_number(threshold) and not 0 < threshold < 1:
        raise ValueError(f"threshold = {threshold}: must be between 0 and 1")
    if residual and not isinstance(system, _RESIDUALS[residual].systems):
        wanted = " or ".join(kind.__name__ for kind in _RESIDUALS[residual].systems)
        raise ValueError(f"residual = {residual}: takes a {wanted}, not a {type(system).__name__}")


@theory(check=check_threshold)
def renormalization_group(
    system: KernelRegression,
    *,
    threshold: float = 0.01,
    cutoff: Literal["self_consistent", "bare"] = "self_consistent",
    residual: Literal[
        "self_consistent", "self_consistent_on_pool", "equivalent_kernel"
    ] = "self_consistent",
) -> RenormalizedCurve:
    r"""Learning curve of the modes that remain after all modes of small learnability are integrated
    out.

    $$ T' = T + \sum_{k > n} m_k \lambda_k, \qquad s' = s + \sum_{k > n} Y_k $$

    with T the `temperature`, s the label `noise`, and the levels k ordered by falling eigenvalue:
    the first n are kept. An integrated mode adds its eigenvalue to the ridge and its target power
    to the noise. The theory `residual` is then solved for the remaining modes. The modes of a level
    are kept together or integrated out together.

    Args:
        threshold: learnability below which a mode is integrated out, between 0 and 1. Default 0.01.
        cutoff: how the learnability of mode n is found. "self_consistent" (default) is lambda_n /
            (lambda_n + kappa), with kappa of the self-consistent theory of all modes. "bare" is
            lambda_n / (lambda_n + T'/P), with T' the ridge after mode n is integrated out; the
            cutoff is at the largest eigenvalue whose learnability is below the threshold. If the
            spectrum is finite and T small there may be none, and `found_cutoff` is False.
        residual: theory of the remaining modes: "self_consistent" (default),
            "self_consistent_on_pool" or "equivalent_kernel". "self_consistent_on_pool" needs a
            pool, and is better there when the pool is not much larger than n_train.
            "equivalent_kernel" needs a large T', because modes slightly above the threshold still
            renormalise the ridge.

    Raises:
        ValueError: for a threshold that is not between 0 and 1; for a theory of the remaining modes
            that takes another system.

    Accuracy: leading order in lambda P / T' of the modes integrated out.

    Source: Howard, Jefferson, Maiti, Ringel (2024), for Gaussian features.

    >>> from orderparam.kernels import power_law
    >>> curve = renormalization_group(KernelRegression(power_law(1.5, 0.5), 100, temperature=0.1))
    >>> bool(curve.found_cutoff), round(float(curve.test_error), 6)
    (True, 0.004666)
    """
    spectrum = system.spectrum
    if cutoff == "self_consistent":
        learned = effective_ridge(spectrum, system.n_train, system.temperature).learnability
        kept = learned >= threshold
    else:
        kept = learnable(spectrum, system.n_train, system.temperature, threshold)

    # The modes that are not kept leave their variance as a ridge and their target as noise.
    reduced = decimate(spectrum, kept)
    curve = _RESIDUALS[residual](eqx.tree_at(lambda s: s.spectrum, system, reduced))
    return RenormalizedCurve(
        **{name: getattr(curve, name) for name in LearningCurve.dims()},
        mode_count=jnp.sum(jnp.where(kept, spectrum.multiplicities, 0.0)),
        renormalized_ridge=jnp.asarray(system.temperature + reduced.tail),
        renormalized_noise=jnp.asarray(system.noise + reduced.tail_power),
        found_cutoff=~jnp.all(kept),
    )


# ------------------------------------------------------------------------------------------------
# Renormalisation with a ridge that depends on the position of the input, because the variance of
# the modes that are integrated out depends on it.
#
# On inputs that are not Gaussian the variance of the decimated modes differs from point to point,
# so they leave a ridge T(x), which reweighs the loss over the input space (Howard, Jefferson, Maiti
# and Ringel 2024).

# Relative change at the next order up to which a curve counts as valid.
_VALID = 0.05


class LocallyRenormalizedCurve(CavityCurve):
    """One point of a learning curve on a pool after decimation with a local ridge.

    Fields:
        mode_count: number of modes kept.
        local_ridge: T'(x) = T + sum of lambda_k phi_k(x)^2 over the modes integrated out, at every
            point of the pool.
        local_noise: s'(x) = s + y_>(x)^2 at every point, with y_> the part of the target on these
            modes.
        ridge_variation: standard deviation of T'(x) over the pool, divided by the mean effective
            ridge; a theory with a uniform ridge neglects it.
        neglected: estimate of the relative change at the next order, due to the small learnability
            of the modes integrated out: that of the ridge, sum of lambda_k L_k / (P kappa), plus
            that of the error, sum of L_k (2 - L_k) Y_k / error. It is not a bound: where the error
            depends strongly on the ridge, it changes more.
        valid: whether `neglected` is below 0.05.
        point_error: as in `CavityCurve`.
        point_variance: as in `CavityCurve`.
    """

    mode_count: Float[Array, ""]
    local_ridge: Float[Array, "pool"]
    local_noise: Float[Array, "pool"]
    ridge_variation: Float[Array, ""]
    neglected: Float[Array, ""]
    valid: Bool[Array, ""]


@theory(check=check_threshold)
def local_renormalization(
    system: PoolRegression, *, threshold: float = 0.01
) -> LocallyRenormalizedCurve:
    r"""Learning curve on a pool after modes of small learnability are integrated out into a ridge
    and a noise that depend on the input.

    $$ T'(x) = T + \sum_{k > n} \lambda_k \phi_k(x)^2, \qquad
       s'(x) = s + \Big( \sum_{k > n} y_k \phi_k(x) \Big)^2 $$

    with T the `temperature` and s the label `noise`. The remaining modes are solved by the
    equations of `cavity` with the ridge T'(x) and the actual targets; the square of their part on
    the integrated modes is s'(x) - s. The error at a held-out point includes this part. The mode of
    largest eigenvalue is always kept.

    Args:
        threshold: self-consistent learnability below which a mode is integrated out, between 0 and
            1. Default 0.01.

    Raises:
        ValueError: for a threshold that is not between 0 and 1.

    Accuracy: `neglected` estimates the next order. There are no derivatives with respect to a
    kernel with equal eigenvalues.

    Cost: that of `cavity` and one eigendecomposition of the kernel.

    Source: the flow of T'(x) is that of Howard, Jefferson, Maiti, Ringel (2024); its solution on a
    pool is derived here.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(12, 3))
    >>> pool = PoolRegression.from_kernel(np.exp(x @ x.T / 3), x[:, 0], n_train=6, temperature=0.5)
    >>> curve = local_renormalization(pool)
    >>> curve.local_ridge.shape, bool(curve.converged)
    ((12,), True)
    """
    size, temperature = system.pool_size, system.temperature
    eigenvalues, vectors = jnp.linalg.eigh(system.kernel / size)
    # largest first, as in the spectrum
    eigenvalues, vectors = jnp.maximum(eigenvalues, 0.0)[::-1], vectors[:, ::-1]
    full = effective_ridge(system.spectrum, system.n_train, temperature)
    kept = (full.learnability >= threshold).at[0].set(True)

    # The variance of the integrated modes at every point: the ridge that they leave there.
    local = vectors**2 @ jnp.where(kept, 0.0, size * eigenvalues)
    targets = system.columns
    # The part of the target on the integrated modes, which is not learned from any training set.
    missed = vectors @ (jnp.where(kept, 0.0, 1.0)[:, None] * (vectors.T @ targets))
    kernel = (vectors * jnp.where(kept, size * eigenvalues, 0.0)) @ vectors.T
    curve = site_dependent_cavity(system, decimate(system.spectrum, kept), kernel, local)

    lost = jnp.where(kept, 0.0, full.learnability)
    neglected_ridge = ratio(eigenvalues @ lost, system.n_train * full.threshold)
    neglected_target = ratio(
        (lost * (2 - lost)) @ system.spectrum.target_power, curve.population_error
    )
    total = temperature + curve.point_variance
    return LocallyRenormalizedCurve(
        **{name: getattr(curve, name) for name in CavityCurve.dims()},
        mode_count=jnp.sum(jnp.where(kept, 1.0, 0.0)),
        local_ridge=temperature + local,
        local_noise=system.noise + jnp.sum(missed**2, axis=1),
        ridge_variation=ratio(jnp.std(local), jnp.mean(total)),
        neglected=neglected_ridge + neglected_target,
        valid=neglected_ridge + neglected_target < _VALID,
    )
