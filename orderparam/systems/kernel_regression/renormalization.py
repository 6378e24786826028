"""Modes too small to be learned are integrated out: into a ridge and a noise, the same everywhere
or where the modes live.
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
from orderparam.systems.kernel_regression.spectrum.model import KernelRegression
from orderparam.systems.kernel_regression.spectrum.theory import equivalent_kernel, self_consistent

# ------------------------------------------------------------------------------------------------
# Learning curves after renormalisation: modes too small to be learned are integrated out, the rest is solved.
#
# The flow itself is drawn in the room `renormalization`; what a mode leaves behind is told in
# `orderparam.kernels.decimation`.

_RESIDUALS = {
    "self_consistent": self_consistent,
    "self_consistent_on_pool": self_consistent_on_pool,
    "equivalent_kernel": equivalent_kernel,
}


class RenormalizedCurve(LearningCurve):
    """Learning curve of the theory that is left after decimation.

    mode_count:           number of modes kept.
    renormalized_ridge:   T' = T + sum of the eigenvalues of the modes integrated out.
    renormalized_noise:   s2' = s2 + target power on the modes integrated out.
    found_cutoff:         whether any mode was unlearnable; otherwise nothing was integrated out.
    """

    mode_count: Float[Array, ""]
    renormalized_ridge: Float[Array, ""]
    renormalized_noise: Float[Array, ""]
    found_cutoff: Bool[Array, ""]


def check_threshold(
    system: KernelRegression, threshold: float = 0.01, residual: str = "", **options: str
) -> None:
    """`ValueError` unless it is a share, where a traced value passes; and for a theory of the
    remaining modes that takes another system.
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
    """Integrates out all modes with learnability below `threshold`, then solves the theory of those
    that are left.

        T' = T + sum_{k>n} m_k lambda_k,   s2' = s2 + sum_{k>n} Y_k

    (Howard, Jefferson, Maiti and Ringel 2024, for Gaussian features, to leading order in lambda P /
    T'.) Whole levels are kept or integrated out.

    cutoff: how the learnability of mode n is judged. "self_consistent": lambda_n / (lambda_n +
    kappa), with kappa of the
        self-consistent theory of all modes. "bare": lambda_n / (lambda_n + T'/P) with T' the ridge
        after n is integrated out, taking the largest eigenvalue that falls below the threshold;
        when the spectrum is finite and T small there may be none, and `found_cutoff` is False.
    residual: theory of the remaining modes ("self_consistent_on_pool" needs a pool, and is better
    there when the pool is not
        much larger than n_train). The equivalent kernel is far too optimistic unless T' is large,
        because modes slightly above the threshold still renormalise the ridge.
    """
    spectrum = system.spectrum
    if cutoff == "self_consistent":
        learned = effective_ridge(spectrum, system.n_train, system.temperature).learnability
        kept = learned >= threshold
    else:
        kept = learnable(spectrum, system.n_train, system.temperature, threshold)

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
# Renormalisation with a ridge that depends on position: decimated modes act where they live.
#
# On inputs that are not Gaussian the variance of the decimated modes differs from point to point,
# so they leave a ridge T(x), which reweighs the loss over the input space (Howard, Jefferson, Maiti
# and Ringel 2024).

# Relative change at the next order up to which a curve counts as valid.
_VALID = 0.05


class LocallyRenormalizedCurve(CavityCurve):
    """Learning curve of the theory that is left after decimation on a pool.

    mode_count:      number of modes kept.
    local_ridge:     (pool,) T'(x) = T + sum of lambda_k phi_k(x)^2 over the modes integrated out.
    local_noise:     (pool,) s2'(x) = s2 + y_>(x)^2, with y_> the part of the target on these modes.
    ridge_variation: standard deviation of T'(x) over the pool, divided by the mean effective ridge: what a uniform ridge leaves
                     out.
    neglected:       relative change at the next order, because the modes integrated out are learned a little: of the ridge,
                     sum of lambda_k L_k / (P kappa), plus of the error, sum of L_k (2 - L_k) Y_k /
                     error. An estimate and not a bound: where the error is steep in the ridge it
                     changes more.
    valid:           whether `neglected` is below 0.05.
    point_error, point_variance: (pool,) as in `CavityCurve`.
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
    """Integrates out the modes of a pool whose self-consistent learnability is below `threshold`,
    keeping where they act.

        T'(x) = T + sum_{k>n} lambda_k phi_k(x)^2,   s2'(x) = s2 + (sum_{k>n} y_k phi_k(x))^2

    The modes that are left are solved by the equations of `cavity` with ridge T'(x), so that their
    variance depends on position too, and with the actual targets, whose part on the decimated modes
    then is the noise s2'(x) - s2. Errors at a held-out point include it. The largest mode is always
    kept. Cost: that of `cavity` and one eigendecomposition of the kernel.

    The flow of T'(x) is that of Howard et al. (2024, arXiv:2405.06008); its solution on a pool was
    derived for this package. No derivatives with respect to a kernel with equal eigenvalues.
    """
    size, temperature = system.pool_size, system.temperature
    eigenvalues, vectors = jnp.linalg.eigh(system.kernel / size)
    # in the order of the spectrum
    eigenvalues, vectors = jnp.maximum(eigenvalues, 0.0)[::-1], vectors[:, ::-1]
    full = effective_ridge(system.spectrum, system.n_train, temperature)
    kept = (full.learnability >= threshold).at[0].set(True)

    local = vectors**2 @ jnp.where(kept, 0.0, size * eigenvalues)
    targets = system.columns
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
