"""The flow of ridge, noise and non-Gaussianity along the decimation, and the learning curve of what
is left.

Closures of the theory that is left differ, and are named:

    "effective ridge"    self-consistent equations of the modes that are left, with ridge T' and noise s2' of leading order
    "equivalent kernel"  L_k = P lambda_k / (P lambda_k + T'), error sum (1 - L)^2 Y: what a quadratic theory gives
    "exact"              self-consistent equations with the exact couplings T*, s2*: the same for every cut
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import is_number
from orderparam.core.verb import theory
from orderparam.kernels.decimation import couplings, learnable, traces
from orderparam.kernels.effective_ridge import effective_ridge, learnability, ratio
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.renormalization.decimation.model import DecimatedRegression
from orderparam.systems.renormalization.spectra import kept_levels

Closure = Literal["effective ridge", "equivalent kernel", "exact"]


class DecimationFlow(Result):
    """Couplings along the flow, levels in decreasing order of eigenvalue: entry n is after
    integrating out all levels after n.

    mode_count, eigenvalue, ridge, renormalized_noise, exact_ridge, exact_noise: see
    `orderparam.kernels.decimation.Couplings`. non_gaussianity: g(n) = q(n) / T*(n), q the posterior
    variance of the modes that are left. The quartic term of the expanded
        exponential is (3/4) g times the quadratic one: the fewer modes are left, the more Gaussian
        is their theory. Without temperature it is infinite where nothing is integrated out.
    learnability: L = lambda / (lambda + kappa), of all modes together. bare_learnability: P
    lambda_n / (P lambda_n + T'), T' the ridge after level n is integrated out: what the cut is
    chosen by. effective_ridge: P kappa, the end of the exact flow; threshold: kappa. frozen: number
    of modes with L > 1/2.
    """

    mode_count: Float[Array, "level"]
    eigenvalue: Float[Array, "level"]
    ridge: Float[Array, "level"]
    renormalized_noise: Float[Array, "level"]
    exact_ridge: Float[Array, "level"]
    exact_noise: Float[Array, "level"]
    non_gaussianity: Float[Array, "level"]
    learnability: Float[Array, "level"]
    bare_learnability: Float[Array, "level"]
    effective_ridge: Float[Array, ""]
    threshold: Float[Array, ""]
    frozen: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class RunningRidge(Result):
    """An approximation in one sweep: see `running_ridge`. ridge: (level,) entry n is after
    integrating out all levels after n; end: after all. mode_count as in `DecimationFlow`."""

    mode_count: Float[Array, "level"]
    ridge: Float[Array, "level"]
    end: Float[Array, ""]


class DecimatedCurve(Result):
    """The learning curve of the theory that is left after decimation.

    mode_count: number of modes kept. ridge, renormalized_noise: theirs, T' and s2', by the chosen
    closure. threshold: kappa; effective_ridge: P kappa. test_error: E (f - y)^2 of the posterior
    mean against targets without noise, over the input measure; of the equivalent kernel it is that
    of the mean predictor (`bias`), which leaves out the scatter over data sets. bias: E_x (E_D f -
    y)^2. found_cutoff: whether anything was integrated out.
    """

    mode_count: Float[Array, ""]
    ridge: Float[Array, ""]
    renormalized_noise: Float[Array, ""]
    threshold: Float[Array, ""]
    effective_ridge: Float[Array, ""]
    test_error: Float[Array, ""]
    bias: Float[Array, ""]
    found_cutoff: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def decimation_flow(system: DecimatedRegression) -> DecimationFlow:
    """Ridge, noise and non-Gaussianity mode by mode: to leading order, and exactly within the
    self-consistent theory.

    The leading order is that of Howard, Jefferson, Maiti, Ringel (2024, arXiv:2405.06008). Derived
    here: the exact flow, and the ratio that tells how Gaussian what is left is. The whole flow is
    shown, whatever the system's cut.
    """
    left = traces(system.spectrum, system.n_train, system.temperature, system.noise)
    found, solved = couplings(system.spectrum, left, system.temperature, system.noise), left.solved
    order = jnp.argsort(-system.spectrum.eigenvalues)
    weight = (system.spectrum.multiplicities * system.spectrum.eigenvalues)[order]
    return DecimationFlow(
        mode_count=found.mode_count,
        eigenvalue=found.eigenvalue,
        ridge=found.ridge,
        renormalized_noise=found.noise,
        exact_ridge=found.exact_ridge,
        exact_noise=found.exact_noise,
        non_gaussianity=ratio(found.variance, found.exact_ridge),
        learnability=solved.learnability[order],
        bare_learnability=learnability(found.eigenvalue, (found.ridge + weight) / system.n_train),
        effective_ridge=system.n_train * solved.threshold,
        threshold=solved.threshold,
        frozen=jnp.sum(jnp.where(solved.learnability > 0.5, system.spectrum.multiplicities, 0.0)),
        residual=solved.residual,
        converged=solved.converged,
    )


@theory
def running_ridge(system: DecimatedRegression) -> RunningRidge:
    """T <- T + lambda T / (T + P lambda), mode by mode from the smallest eigenvalue: one sweep and
    no equation to be solved.

    Derived here, as an approximation: every mode is damped by the ridge that it meets and not by
    that at the end of the flow. It stays below the exact ridge, and fails where T is small. Where
    modes are integrated out that the data do not see, it is exact.
    """
    spectrum, order = system.spectrum, jnp.argsort(-system.spectrum.eigenvalues)
    levels = (spectrum.eigenvalues[order], spectrum.multiplicities[order])

    def integrate(ridge: Float[Array, ""], level: Any) -> tuple[Float[Array, ""], Float[Array, ""]]:
        eigenvalue, multiplicity = level
        return ridge + multiplicity * eigenvalue * ratio(
            ridge, ridge + system.n_train * eigenvalue
        ), ridge

    end, ridge = jax.lax.scan(
        integrate, jnp.asarray(system.temperature + spectrum.tail), levels, reverse=True
    )
    return RunningRidge(jnp.cumsum(levels[1]), ridge, end)


def _share(system: DecimatedRegression, threshold: float | None = None, closure: str = "") -> None:
    if threshold is not None and is_number(threshold) and not 0 < threshold < 1:
        raise ValueError(
            f"decimated: threshold = {threshold}: must be between 0 and 1 (or None, for the system's cut)"
        )


@theory(check=_share)
def decimated(
    system: DecimatedRegression,
    *,
    threshold: float | None = None,
    closure: Closure = "effective ridge",
) -> DecimatedCurve:
    """All modes beyond the cut are integrated out, the theory that is left is closed as `closure`
    says.

    threshold: None keeps the system's `cut` largest modes; a number those of bare learnability
    above it (Howard et al. 2024: see `orderparam.kernels.decimation.learnable`). With the closure
    "effective ridge" the error depends on the cut by terms of the order of the threshold. The
    equivalent kernel is good only where the spectrum has a gap that T' fills.
    """
    spectrum, n_train = system.spectrum, system.n_train
    kept = (
        kept_levels(system)
        if threshold is None
        else learnable(spectrum, n_train, system.temperature, threshold)
    )
    gone = jnp.where(kept, 0.0, 1.0)
    if closure == "exact":
        left = traces(spectrum, n_train, system.temperature, system.noise)
        ridge = system.temperature + spectrum.tail + gone @ left.ridge
        noise = system.noise + spectrum.tail_power + gone @ left.noise
    else:
        ridge = (
            system.temperature
            + spectrum.tail
            + gone @ (spectrum.multiplicities * spectrum.eigenvalues)
        )
        noise = system.noise + spectrum.tail_power + gone @ spectrum.target_power
    alone = Spectrum(
        jnp.where(kept, spectrum.eigenvalues, 0.0),
        jnp.where(kept, spectrum.target_power, 0.0),
        spectrum.multiplicities,
    )
    solved = effective_ridge(alone, n_train, ridge)
    classical = closure == "equivalent kernel"
    kappa = ridge / n_train if classical else solved.threshold
    lost = (1 - learnability(alone.eigenvalues, kappa)) ** 2 @ alone.target_power
    noisy = lost + noise if classical else ratio(lost + noise, solved.complement)
    learned = jnp.where(kept | (closure == "exact"), learnability(spectrum.eigenvalues, kappa), 0.0)
    return DecimatedCurve(
        mode_count=jnp.sum(jnp.where(kept, spectrum.multiplicities, 0.0)),
        ridge=ridge,
        renormalized_noise=noise,
        threshold=kappa,
        effective_ridge=n_train * kappa,
        test_error=noisy - system.noise,
        bias=(1 - learned) ** 2 @ spectrum.target_power + spectrum.tail_power,
        found_cutoff=~jnp.all(kept),
        residual=jnp.where(classical, 0.0, solved.residual),
        converged=classical | solved.converged,
    )
