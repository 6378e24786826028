"""Theory of a perceptron at a temperature of its errors, replica symmetric and with replica
symmetry broken in k steps.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.needs import between
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import standard_normal_rule
from orderparam.gaussian.tail import hazard, log_cdf
from orderparam.solve.minimum import lbfgs_minimum
from orderparam.solve.newton import newton_fixed_point
from orderparam.solve.parisi import OverlapSteps, cascade, field_grid, overlaps_of
from orderparam.systems.storage_capacity.beyond_capacity import volume_term
from orderparam.systems.storage_capacity.model import ThermalPatterns

Number = Float[Array, ""]
Vector = Float[Array, "unknown"]

_MOST = 6
_REACH = 7.0


class ErrorsAtTemperature(Result):
    """Errors and free energy of a perceptron at a temperature: the fields that all theories share.

    Fields:
        error_fraction: mean fraction of patterns that are not stored.
        free_energy: f per input.
    """

    error_fraction: Number
    free_energy: Number


class ThermalErrors(ErrorsAtTemperature):
    """Replica-symmetric errors of a perceptron at a temperature.

    Fields:
        overlap: overlap q of two replicas of the couplings.
        stability: 1 - alpha (1 - q)^2 E (d^2 ln Z/dh^2)^2; replica symmetry is unstable where it is
            negative.
        residual: residual of the equation for q.
        converged: whether it was solved.
    """

    overlap: Number
    stability: Number
    residual: Number
    converged: Bool[Array, ""]


class BrokenThermalErrors(ErrorsAtTemperature):
    """Errors of a perceptron at a temperature, with replica symmetry broken in k steps.

    Fields:
        mean_overlap: <q> of two replicas of the couplings.
        largest_overlap: q_k, the overlap of two replicas in the same pure state.
        residual: largest entry of the gradient.
        converged: whether the residual is below 1e-8.
    """

    mean_overlap: Number
    largest_overlap: Number
    residual: Number
    converged: Bool[Array, ""]


@theory
def thermal_errors(system: ThermalPatterns) -> ThermalErrors:
    r"""Replica-symmetric mean fraction of errors of a perceptron at a temperature.

    With $\beta = 1/T$ (`temperature`), $Z(h) = e^{-\beta} + (1 - e^{-\beta})
    \Phi\big(\frac{h - \kappa}{\sqrt{1 - q}}\big)$, $\alpha$ = `load` and $\kappa$ = `margin`,

    $$ \frac{q}{(1 - q)^2} = \alpha \int Dz\, [(\ln Z)'(\sqrt q z)]^2, \qquad -\beta f = \frac12
       \Big[ \ln(1 - q) + \frac{q}{1 - q} \Big] + \alpha \int Dz \ln Z(\sqrt q z) $$

    The fraction of errors is $\alpha^{-1} \partial (\beta f)/\partial \beta$.

    Accuracy: 1e-9 for T >= 0.1.

    Source: Gardner, Derrida (1988).

    >>> found = thermal_errors(ThermalPatterns(load=4.0, temperature=0.5))
    >>> round(float(found.error_fraction), 8), round(float(found.overlap), 8)
    (0.21686861, 0.54259913)
    """
    load, margin = jnp.asarray(system.load), jnp.asarray(system.margin)
    beta = 1 / jnp.asarray(system.temperature)

    def pattern(q: Number) -> tuple[Array, Array, Array, Array]:
        """Weights, ln Z and its first two derivatives."""
        scale = jnp.sqrt(1 - q)
        root = jnp.sqrt(q)
        z, weight = standard_normal_rule((margin / jnp.maximum(root, 1e-3),), refine=2)
        u = (root * z - margin) / scale
        log_z = _log_z(u, beta)
        slope = -jnp.expm1(-beta) * hazard(u) * jnp.exp(log_cdf(u) - log_z) / scale
        return weight, log_z, slope, -slope * (u / scale + slope)

    def following(q: Number, _args: tuple) -> Number:
        weight, _, slope, _ = pattern(q)
        strength = load * jnp.sum(weight * slope**2)
        # the root below 1 of q = strength (1 - q)^2
        return 2 * strength / (1 + 2 * strength + jnp.sqrt(1 + 4 * strength))

    solved = newton_fixed_point(following, jnp.asarray(0.5), (load, margin, beta))
    q = solved.value
    weight, log_z, _, curvature = pattern(q)
    free = (jnp.log1p(-q) + q / (1 - q)) / 2 + load * jnp.sum(weight * log_z)
    # the share e^-beta Phi(-u)/Z, with Phi(-u) = (1 - Z)/(1 - e^-beta)
    wrong = -jnp.expm1(log_z) * jnp.exp(-beta - log_z) / -jnp.expm1(-beta)
    return ThermalErrors(
        error_fraction=jnp.sum(weight * wrong),
        free_energy=-free / beta,
        overlap=q,
        stability=1 - load * (1 - q) ** 2 * jnp.sum(weight * curvature**2),
        residual=solved.residual,
        converged=solved.converged,
    )


@theory(needs={"steps": between(1, _MOST)})
def broken_thermal_errors(system: ThermalPatterns, *, steps: int = 2) -> BrokenThermalErrors:
    r"""Mean fraction of errors of a perceptron at a temperature, with replica symmetry broken in k
    steps.

    With Z, $\beta$, $\alpha$ and $\kappa$ as in `thermal_errors` (with $q_k$ in place of q),
    $\Lambda(q) = 1 - q_k + \int_q^{q_k} x$ and the cascade $\phi$ of $\ln Z$ over overlaps $q_0 <
    \dots < q_k < 1$ and $0 < x_1 < \dots < x_k < 1$,

    $$ -\beta f = \min_{q, x} \Big\{ \frac12 \Big[ \ln(1 - q_k) + \int_0^{q_k}
       \frac{dq}{\Lambda(q)} \Big] + \alpha \phi \Big\} $$

    Where the replica-symmetric state is stable, it is returned, and both overlaps equal its q.

    Args:
        steps: number k of steps, from 1 to 6.

    Raises:
        ValueError: for fewer than 1 or more than 6 steps.

    Accuracy: 1e-8 for the given number of steps, at temperatures of 0.15 or more.

    Source: Györgyi, Reimann (1997); the form of the functional is derived here.

    >>> found = broken_thermal_errors(ThermalPatterns(load=4.0, temperature=0.2), steps=1)
    >>> bool(0.1225 < found.error_fraction < 0.1235)
    True
    """
    load, margin = jnp.asarray(system.load), jnp.asarray(system.margin)
    grid = field_grid(_REACH)

    def steps_at(unknowns: Vector) -> OverlapSteps:
        largest = jax.nn.sigmoid(unknowns[0])
        shares = jnp.append(overlaps_of(unknowns[1 : steps + 1]), 1.0)
        # a height of zero would divide rounding errors by itself
        shifts = jax.nn.softmax(jnp.append(unknowns[steps + 1 :], 0.0))
        heights = 1e-5 + (1 - 1e-5) * jnp.cumsum(shifts)[:-1]
        return OverlapSteps(largest * shares, heights)

    def functional(unknowns: Vector, beta: Number) -> Number:
        tried = steps_at(unknowns)
        rest = 1 - tried.overlaps[-1]
        log_z = _log_z((grid - margin) / jnp.sqrt(rest), beta)
        return jnp.log(rest) / 2 + volume_term(rest, tried) + load * cascade(log_z, grid, tried)

    beta = 1 / jnp.asarray(system.temperature)
    whole = thermal_errors(system)
    symmetric = whole.overlap
    level = jnp.arange(1, steps + 1) / (steps + 1)
    # the first overlap stays close to the symmetric one, the others lie above it
    shares = 1 - 0.15 * (1 - (level - level[0])) ** 2
    widths = jnp.diff(shares, prepend=0.0, append=1.0)
    heights = jnp.diff(0.6 * level, prepend=0.0)
    largest = symmetric + 0.3 * (1 - symmetric)
    start = jnp.concatenate(
        [
            jnp.log(largest / (1 - largest))[None],
            jnp.log(widths[:-1] / widths[-1]),
            jnp.log(heights / (1 - jnp.sum(heights))),
        ]
    )
    found = lbfgs_minimum(lambda u: functional(u, beta), start)
    value, slope = jax.value_and_grad(functional, argnums=1)(found.value, beta)
    solved = steps_at(found.value)
    weights = jnp.diff(solved.heights, prepend=0.0, append=1.0)
    broken = BrokenThermalErrors(
        error_fraction=-slope / load,
        free_energy=-value / beta,
        mean_overlap=weights @ solved.overlaps,
        largest_overlap=solved.overlaps[-1],
        residual=found.residual,
        converged=found.converged,
    )
    unbroken = BrokenThermalErrors(
        error_fraction=whole.error_fraction,
        free_energy=whole.free_energy,
        mean_overlap=whole.overlap,
        largest_overlap=whole.overlap,
        residual=whole.residual,
        converged=whole.converged,
    )
    # Steps of zero width would lower the functional by a discretisation error of the field grid.
    stable = whole.stability > 0
    return jax.tree.map(lambda one, other: jnp.where(stable, one, other), unbroken, broken)


def _log_z(u: Array, beta: Number) -> Array:
    """ln[e^-beta + (1 - e^-beta) Phi(u)]."""
    return jnp.logaddexp(-beta, jnp.log(-jnp.expm1(-beta)) + log_cdf(u))
