"""Exponents of the lowest risk at a given compute everywhere in the plane (alpha, beta), from the deterministic risk itself."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import System, parameter
from orderparam.core.verb import theory
from orderparam.kernels.spectra import power_law_levels
from orderparam.systems.scaling_laws.one_pass.theory import EARLY, late_risk, limits

_NARROWEST = 6.0
_SCAN = 16
_NEAR = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
_FINER = np.array([1.0, 0.25, 0.0625])  # how far the five widths reach, in steps of the scan


class ComputeFrontier(System):
    """f = d t multiplications, one sample a step, for features of v = inputs_per_feature d inputs, and the learning rate
    share / sum_j lambda_j, which falls as d^(2 alpha - 1) where alpha < 1/2.

    Raises `ValueError` unless 2 (alpha + beta) > 1: the risk is no power law there.
    """

    compute: float = parameter("number f of multiplications by features", minimum=1e4)
    spectral_exponent: float = parameter("alpha: eigenvalue j of the inputs is j^(-2 alpha)", above=0, default=1.0)
    target_exponent: float = parameter("beta: coefficient j of the target is j^(-beta)", default=0.3)
    inputs_per_feature: float = parameter("inputs over features v/d", minimum=1, default=4.0)
    share: float = parameter("learning rate times the summed eigenvalues of the inputs", above=0, default=0.5)

    def __check_init__(self) -> None:
        numbers = (self.spectral_exponent, self.target_exponent)
        if any(isinstance(number, jax.core.Tracer) for number in numbers):
            return
        alpha, beta = (np.asarray(number) for number in numbers)
        if np.any(2 * (alpha + beta) <= 1):
            raise ValueError(f"ComputeFrontier.target_exponent = {beta}: must be > 1/2 - spectral_exponent")


class FrontierExponents(Result):
    """width, risk: the optimum at compute f. width_exponent = d ln d* / d ln f and risk_exponent = -d ln R* / d ln f over the
    decade around f. converged: the minima lie inside the widths that were tried, all of them stable."""

    width: Float[Array, ""]
    risk: Float[Array, ""]
    width_exponent: Float[Array, ""]
    risk_exponent: Float[Array, ""]
    converged: Bool[Array, ""]


@theory(differentiable=False)
def frontier_exponents(system: ComputeFrontier) -> FrontierExponents:
    """min over d of the deterministic R(t = f/d; d) at 10^(-1/2) f, f and 10^(1/2) f: a scan over the widths with at least 30
    steps, then three times the minimum of the quartic through log R at five values of log d around the lowest, each time four
    times as near. Against one round more: width and its exponent to 1e-4, risk to 1e-6.

    v = inputs_per_feature d is a real number here: sums over the inputs are continued between whole numbers. `compute_optimal`
    is the same for infinitely many inputs and a given learning rate, which alpha > 1/2 allows.
    """
    alpha, power = system.spectral_exponent, 2 * (system.spectral_exponent + system.target_exponent)

    def log_risk(log_width: Float[Array, ""], compute: Float[Array, ""]) -> Float[Array, ""]:
        width = jnp.exp(log_width)
        spectrum = power_law_levels(2 * alpha, power, system.inputs_per_feature * width)
        rate = system.share / spectrum.total
        risk = late_risk(spectrum, width, rate, 1.0, compute / width)
        return jnp.where(limits(spectrum, width, rate, 1.0)[2], jnp.log(risk), jnp.inf)

    def lowest(compute: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""], Bool[Array, ""]]:
        widths = jnp.linspace(jnp.log(_NARROWEST), jnp.log(compute / EARLY), _SCAN)
        best = jnp.argmin(jax.lax.map(lambda u: log_risk(u, compute), widths))
        inside = (best > 0) & (best < _SCAN - 1)

        def nearer(centre: Float[Array, ""], reach: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
            values = jax.lax.map(lambda u: log_risk(u, compute), centre + reach * _NEAR)
            quartic = jnp.linalg.solve(jnp.vander(jnp.asarray(_NEAR)), values)
            turning = jnp.roots(jnp.polyder(quartic), strip_zeros=False).real
            places = jnp.clip(jnp.concatenate([turning, jnp.array([-1.0, 1.0])]), -1.0, 1.0)
            here = jnp.polyval(quartic, places)
            return centre + reach * places[jnp.argmin(here)], jnp.min(here)

        start = widths[jnp.clip(best, 1, _SCAN - 2)]
        place, lowest_risk = jax.lax.scan(nearer, start, (widths[1] - widths[0]) * _FINER)
        return place, lowest_risk[-1], inside & jnp.isfinite(lowest_risk[-1])

    width, risk, found = jax.lax.map(lowest, system.compute * 10.0 ** jnp.array([-0.5, 0.0, 0.5]))
    return FrontierExponents(
        width=jnp.exp(width[1]),
        risk=jnp.exp(risk[1]),
        width_exponent=(width[2] - width[0]) / jnp.log(10.0),
        risk_exponent=-(risk[2] - risk[0]) / jnp.log(10.0),
        converged=jnp.all(found),
    )
