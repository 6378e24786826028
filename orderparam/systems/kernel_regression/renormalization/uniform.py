"""Wilsonian renormalisation of kernel regression: modes too small to be learned are integrated out, smallest first.

A decimated mode leaves two traces: its variance is a ridge for the remaining modes, and its share of the target is label noise
(Howard, Jefferson, Maiti and Ringel 2024).
"""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import is_number
from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import effective_ridge, learnability
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.kernel_regression.learning_curve import LearningCurve, ratio
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


class DecimationFlow(Result):
    """Couplings along the flow, levels in decreasing order of eigenvalue: entry n is after integrating out all levels after n.

    mode_count:   (level,) modes still present.
    ridge, noise: (level,) T'(n) = T + sum_{k>n} m lambda and s2'(n) = s2 + sum_{k>n} Y (leading order).
    exact_ridge:  (level,) T*(n) = T + kappa sum_{k>n} m L, which leaves kappa unchanged.
    exact_noise:  (level,) s2*(n) = s2 + sum_{k>n} [(1 - L)^2 Y + m (L^2/P) E_noisy], which leaves E_noisy unchanged.
    """

    mode_count: Float[Array, "level"]
    ridge: Float[Array, "level"]
    noise: Float[Array, "level"]
    exact_ridge: Float[Array, "level"]
    exact_noise: Float[Array, "level"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


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
        self-consistent theory of all modes. "bare": lambda_n / (lambda_n + T'(n)/P), taking the largest eigenvalue that falls
        below the threshold; when the spectrum is finite and T small there may be none, and `found_cutoff` is False.
    residual: theory of the remaining modes ("self_consistent_on_pool" needs a pool, and is better there when the pool is not
        much larger than n_train). The equivalent kernel is far too optimistic unless T' is large, because modes
        slightly above the threshold still renormalise the ridge.
    """
    spectrum = system.spectrum
    if cutoff == "self_consistent":
        learned = effective_ridge(spectrum, system.n_train, system.temperature).learnability
        kept = learned >= threshold
    else:
        order = jnp.argsort(-spectrum.eigenvalues)
        eigenvalues = spectrum.eigenvalues[order]
        removed = _above(spectrum.multiplicities[order] * eigenvalues)
        ridge = system.temperature + spectrum.tail + removed
        unlearnable = learnability(eigenvalues, ridge / system.n_train) < threshold
        first = jnp.where(jnp.any(unlearnable), jnp.argmax(unlearnable), unlearnable.size)
        kept = jnp.argsort(order) < first

    reduced = decimate(spectrum, kept)
    curve = _RESIDUALS[residual](eqx.tree_at(lambda s: s.spectrum, system, reduced))
    return RenormalizedCurve(
        **{name: getattr(curve, name) for name in LearningCurve.dims()},
        mode_count=jnp.sum(jnp.where(kept, spectrum.multiplicities, 0.0)),
        renormalized_ridge=jnp.asarray(system.temperature + reduced.tail),
        renormalized_noise=jnp.asarray(system.noise + reduced.tail_power),
        found_cutoff=~jnp.all(kept),
    )


def decimate(spectrum: Spectrum, kept: Bool[Array, "level"]) -> Spectrum:
    """The spectrum with all levels not in `kept` moved into its tail."""
    gone = jnp.where(kept, 0.0, 1.0)
    return eqx.tree_at(
        lambda s: (s.eigenvalues, s.target_power, s.tail, s.tail_power),
        spectrum,
        (
            jnp.where(kept, spectrum.eigenvalues, 0.0),
            jnp.where(kept, spectrum.target_power, 0.0),
            spectrum.tail + gone @ (spectrum.multiplicities * spectrum.eigenvalues),
            spectrum.tail_power + gone @ spectrum.target_power,
        ),
    )


@theory
def decimation_flow(system: KernelRegression) -> DecimationFlow:
    """Ridge and noise along the decimation, to leading order and exactly within the self-consistent theory.

    The leading order is that of Howard et al. (2024). The exact flow, T <- T + lambda kappa / (lambda + kappa) per mode, was
    derived for this package and is not in the cited papers.
    """
    spectrum = system.spectrum
    solved = effective_ridge(spectrum, system.n_train, system.temperature)
    bias = (1 - solved.learnability) ** 2 * spectrum.target_power
    noisy = ratio(jnp.sum(bias) + spectrum.tail_power + system.noise, solved.complement)
    per_level = {
        "ridge": spectrum.multiplicities * spectrum.eigenvalues,
        "noise": spectrum.target_power,
        "exact_ridge": solved.threshold * spectrum.multiplicities * solved.learnability,
        "exact_noise": bias + spectrum.multiplicities * solved.learnability**2 * noisy / system.n_train,
    }
    start = {
        "ridge": system.temperature + spectrum.tail,
        "noise": system.noise + spectrum.tail_power,
    }
    order = jnp.argsort(-spectrum.eigenvalues)
    return DecimationFlow(
        mode_count=jnp.cumsum(spectrum.multiplicities[order]),
        **{name: start[name.removeprefix("exact_")] + _above(values[order]) for name, values in per_level.items()},
        residual=solved.residual,
        converged=solved.converged,
    )


def _above(values: Float[Array, "level"]) -> Float[Array, "level"]:
    """Entry n is the sum of all entries after n, added from the small end."""
    return jnp.cumsum(jnp.roll(values, -1).at[-1].set(0.0)[::-1])[::-1]
