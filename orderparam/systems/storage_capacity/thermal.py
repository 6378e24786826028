"""A perceptron in equilibrium with the number of errors as its energy: theory with replica symmetry
and with replica symmetry broken in k steps, and sampling.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.needs import at_least, between, equal
from orderparam.core.result import Result, with_errors
from orderparam.core.verb import experiment, theory
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
    """Errors and free energy of a perceptron at a temperature, the fields that both theories share.

    Fields:
        error_fraction: mean fraction of patterns that are not stored.
        free_energy: free energy f per input.
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

    Z, $\beta$, $\alpha$ and $\kappa$ are those of `thermal_errors`, with $q_k$ in place of q. With
    $\Lambda(q) = 1 - q_k + \int_q^{q_k} x$ and the cascade $\phi$ that starts from $\ln Z$, over
    overlaps $q_0 < \dots < q_k < 1$ and heights $0 < x_1 < \dots < x_k < 1$,

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
        # a height of zero would divide rounding errors by zero
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


# ------------------------------------------------------------------------------------------------
# Couplings of a perceptron in equilibrium, sampled by rotations of pairs of couplings and exchange
# of temperatures.

_HOT = 1.5  # temperature of the hottest copy, at which a chain forgets its state in a few moves


class MeasuredThermalErrors(Result):
    """Errors of couplings in equilibrium.

    Fields:
        error_fraction, error_fraction_error: mean share of patterns that are not stored in the
            second half of the sweeps, and its standard error over samples.
        drift, drift_error: mean error fraction in the third quarter of the sweeps minus that in the
            last quarter, and its standard error.
        converged: whether the drift is within four standard errors of zero, or within 1 % of the
            fraction of errors.
    """

    error_fraction: Float[Array, ""]
    error_fraction_error: Float[Array, ""]
    drift: Float[Array, ""]
    drift_error: Float[Array, ""]
    converged: Bool[Array, ""]


@experiment(
    needs={
        "margin": equal(0),
        "samples": at_least(2),
        "sweeps": at_least(4),
        "copies": at_least(2),
    }
)
def thermal_couplings(
    system: ThermalPatterns,
    key: PRNGKeyArray,
    *,
    samples: int = 16,
    sweeps: int = 1000,
    copies: int = 8,
) -> MeasuredThermalErrors:
    r"""Mean fraction of errors of couplings in equilibrium at a temperature.

    A move rotates a pair of couplings by a random angle, $(J_i, J_j) \to (J_i \cos t - J_j \sin t,
    J_i \sin t + J_j \cos t)$, and is accepted with probability $\min(1, e^{-\Delta E/T})$. A sweep
    moves every coupling once, in random pairs. The copies start at random couplings. Their
    temperatures rise geometrically from `temperature` to 1.5, or to 1.3 times the temperature if
    that is larger, and they exchange their states after every sweep.

    Args:
        samples: number of independent samples in one run.
        sweeps: number of sweeps; the first half is not measured.
        copies: number of temperatures.

    Raises:
        ValueError: for a margin, fewer than 2 samples, fewer than 4 sweeps, or fewer than 2
            temperatures.

    Source: derived here; the theory is that of Gardner, Derrida (1988) and of Györgyi, Reimann
        (1997).

    >>> import jax
    >>> found = thermal_couplings(ThermalPatterns(temperature=2.0, input_dim=5), jax.random.key(0))
    >>> bool(0.3 < found.error_fraction < 0.5)
    True
    """
    n = system.size("input_dim")
    p = round(float(system.load) * n)
    coldest = float(system.temperature)
    temperatures = np.geomspace(coldest, max(_HOT, 1.3 * coldest), copies)
    pattern_key, start_key, run_key = jax.random.split(key, 3)
    patterns = jax.random.normal(pattern_key, (samples, p, n))
    start = jax.random.normal(start_key, (samples, copies, n))
    start = start / jnp.linalg.norm(start, axis=-1, keepdims=True)
    errors = _chains(patterns, start, jnp.asarray(1 / temperatures), run_key, sweeps)
    quarters = np.asarray(errors) / p
    own, change = quarters.mean(axis=1), quarters[:, 0] - quarters[:, 1]
    root = np.sqrt(samples)
    drift, drift_error = change.mean(), change.std(ddof=1) / root
    settled = abs(drift) <= max(4 * drift_error, 0.01 * own.mean())
    return MeasuredThermalErrors(
        **with_errors(
            error_fraction=(own.mean(), own.std(ddof=1) / root), drift=(drift, drift_error)
        ),
        converged=jnp.asarray(settled),
    )


@partial(jax.jit, static_argnames=("sweeps",))
def _chains(
    patterns: Float[Array, "sample p n"],
    start: Float[Array, "sample copy n"],
    beta: Float[Array, "copy"],
    key: PRNGKeyArray,
    sweeps: int,
) -> Float[Array, "sample 2"]:
    """Mean number of errors of the coldest copy, in the third quarter and in the last quarter of
    the sweeps."""
    samples, _, n = patterns.shape
    copies = beta.size
    pairs = n // 2
    # single precision for the chains: stabilities are computed again in every sweep
    inputs = jnp.moveaxis(patterns, 2, 0).astype(jnp.float32)  # (n, sample, p)
    beta = beta.astype(jnp.float32)
    # largest angles: about one pattern changes its side at T = 1, and fewer at lower temperatures
    widest = (0.8 / jnp.sqrt(beta)).astype(jnp.float32)

    def rotate(state: tuple, move: tuple[Array, ...]) -> tuple[tuple, None]:
        couplings, stabilities, errors = state
        pair, angle, chance = move
        one, other = couplings[pair[0]], couplings[pair[1]]
        cos, sin = jnp.cos(widest * angle), jnp.sin(widest * angle)
        turned = jnp.stack([cos * one - sin * other, sin * one + cos * other])
        change = turned - couplings[pair]
        trial = stabilities + jnp.einsum("isp,isc->scp", inputs[pair], change)
        wrong = jnp.sum(trial < 0, axis=-1)
        taken = chance < jnp.exp(-beta * (wrong - errors))
        couplings = couplings.at[pair].set(jnp.where(taken, turned, couplings[pair]))
        stabilities = jnp.where(taken[..., None], trial, stabilities)
        return (couplings, stabilities, jnp.where(taken, wrong, errors)), None

    def sweep(state: tuple, step: tuple[Array, Array]) -> tuple[tuple, None]:
        couplings, sums = state
        key, number = step
        order_key, angle_key, chance_key, swap_key = jax.random.split(key, 4)
        order = jax.random.permutation(order_key, n)[: 2 * pairs].reshape(pairs, 2)
        shape = (pairs, samples, copies)
        angles = jax.random.normal(angle_key, shape, jnp.float32)
        chances = jax.random.uniform(chance_key, shape, jnp.float32)
        stabilities = jnp.einsum("nsp,nsc->scp", inputs, couplings)
        errors = jnp.sum(stabilities < 0, axis=-1)
        (couplings, _, errors), _ = lax.scan(
            rotate, (couplings, stabilities, errors), (order, angles, chances)
        )
        couplings = couplings / jnp.linalg.norm(couplings, axis=0)

        # Neighbouring temperatures exchange in the pairs (0, 1), (2, 3), ... and (1, 2), (3, 4),
        # ... in turn.
        rung = jnp.arange(copies)
        partner = jnp.where((rung + number) % 2 == 0, rung + 1, rung - 1)
        partner = jnp.where((partner < 0) | (partner >= copies), rung, partner)
        gain = (beta[partner] - beta) * (errors[:, partner] - errors)
        drawn = jnp.log(jax.random.uniform(swap_key, errors.shape, jnp.float32))
        source = jnp.where(drawn[:, jnp.minimum(rung, partner)] < gain, partner, rung)
        couplings = jnp.take_along_axis(couplings, source[None], axis=2)
        errors = jnp.take_along_axis(errors, source, axis=1)
        quarter = number // (sweeps // 4)
        return (couplings, sums + errors[:, :1] * jnp.stack([quarter == 2, quarter == 3])), None

    first = jnp.moveaxis(start, 2, 0).astype(jnp.float32)
    steps = jax.random.split(key, sweeps), jnp.arange(sweeps)
    (_, sums), _ = lax.scan(sweep, (first, jnp.zeros((samples, 2))), steps)
    return sums / (sweeps // 4)
