"""Renormalisation with a ridge that depends on position: decimated modes act where they live.

On inputs that are not Gaussian the variance of the decimated modes differs from point to point, so they leave a ridge T(x), which
reweighs the loss over the input space (Howard, Jefferson, Maiti and Ringel 2024).
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.verb import theory
from orderparam.kernels.decimation import decimate
from orderparam.kernels.effective_ridge import effective_ridge, ratio
from orderparam.systems.kernel_regression.pool.model import PoolRegression
from orderparam.systems.kernel_regression.pool.theory.cavity import CavityCurve, site_dependent_cavity
from orderparam.systems.kernel_regression.renormalization.uniform import check_threshold

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
                     sum of lambda_k L_k / (P kappa), plus of the error, sum of L_k (2 - L_k) Y_k / error. An estimate and not a
                     bound: where the error is steep in the ridge it changes more.
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
def local_renormalization(system: PoolRegression, *, threshold: float = 0.01) -> LocallyRenormalizedCurve:
    """Integrates out the modes of a pool whose self-consistent learnability is below `threshold`, keeping where they act.

        T'(x) = T + sum_{k>n} lambda_k phi_k(x)^2,   s2'(x) = s2 + (sum_{k>n} y_k phi_k(x))^2

    The modes that are left are solved by the equations of `cavity` with ridge T'(x), so that their variance depends on position
    too, and with the actual targets, whose part on the decimated modes then is the noise s2'(x) - s2. Errors at a held-out point
    include it. The largest mode is always kept. Cost: that of `cavity` and one eigendecomposition of the kernel.

    The flow of T'(x) is that of Howard et al. (2024, arXiv:2405.06008); its solution on a pool was derived for this package. No
    derivatives with respect to a kernel with equal eigenvalues.
    """
    size, temperature = system.pool_size, system.temperature
    eigenvalues, vectors = jnp.linalg.eigh(system.kernel / size)
    eigenvalues, vectors = jnp.maximum(eigenvalues, 0.0)[::-1], vectors[:, ::-1]  # in the order of the spectrum
    full = effective_ridge(system.spectrum, system.n_train, temperature)
    kept = (full.learnability >= threshold).at[0].set(True)

    local = vectors**2 @ jnp.where(kept, 0.0, size * eigenvalues)
    targets = system.columns
    missed = vectors @ (jnp.where(kept, 0.0, 1.0)[:, None] * (vectors.T @ targets))
    kernel = (vectors * jnp.where(kept, size * eigenvalues, 0.0)) @ vectors.T
    curve = site_dependent_cavity(system, decimate(system.spectrum, kept), kernel, local)

    lost = jnp.where(kept, 0.0, full.learnability)
    neglected_ridge = ratio(eigenvalues @ lost, system.n_train * full.threshold)
    neglected_target = ratio((lost * (2 - lost)) @ system.spectrum.target_power, curve.population_error)
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
