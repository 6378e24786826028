"""Learning curves after renormalisation: modes too small to be learned are integrated out, the rest is solved.

The flow itself is drawn in the room `renormalization`; what a mode leaves behind is told in `orderparam.kernels.decimation`.
"""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.system import is_number
from orderparam.core.verb import theory
from orderparam.kernels.decimation import decimate, learnable
from orderparam.kernels.effective_ridge import effective_ridge
from orderparam.systems.kernel_regression.learning_curve import LearningCurve
from orderparam.systems.kernel_regression.pool.theory.self_consistent import self_consistent_on_pool
from orderparam.systems.kernel_regression.spectrum.model import KernelRegression
from orderparam.systems.kernel_regression.spectrum.theory.equivalent_kernel import equivalent_kernel
from orderparam.systems.kernel_regression.spectrum.theory.self_consistent import self_consistent

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


def check_threshold(system: KernelRegression, threshold: float = 0.01, **options: str) -> None:
    """`ValueError` unless it is a share; a traced value passes."""
    if is_number(threshold) and not 0 < threshold < 1:
        raise ValueError(f"threshold = {threshold}: must be between 0 and 1")


@theory(check=check_threshold)
def renormalization_group(
    system: KernelRegression,
    *,
    threshold: float = 0.01,
    cutoff: Literal["self_consistent", "bare"] = "self_consistent",
    residual: Literal["self_consistent", "self_consistent_on_pool", "equivalent_kernel"] = "self_consistent",
) -> RenormalizedCurve:
    """Integrates out all modes with learnability below `threshold`, then solves the theory of those that are left.

        T' = T + sum_{k>n} m_k lambda_k,   s2' = s2 + sum_{k>n} Y_k

    (Howard, Jefferson, Maiti and Ringel 2024, for Gaussian features, to leading order in lambda P / T'.) Whole levels are kept or
    integrated out.

    cutoff: how the learnability of mode n is judged. "self_consistent": lambda_n / (lambda_n + kappa), with kappa of the
        self-consistent theory of all modes. "bare": lambda_n / (lambda_n + T'/P) with T' the ridge after n is integrated out,
        taking the largest eigenvalue that falls below the threshold; when the spectrum is finite and T small there may be none,
        and `found_cutoff` is False.
    residual: theory of the remaining modes ("self_consistent_on_pool" needs a pool, and is better there when the pool is not
        much larger than n_train). The equivalent kernel is far too optimistic unless T' is large, because modes
        slightly above the threshold still renormalise the ridge.
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
