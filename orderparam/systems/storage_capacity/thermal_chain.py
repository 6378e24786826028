"""Couplings of a perceptron in equilibrium at a temperature of its errors, sampled by rotations of
pairs of couplings and exchange of temperatures."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.needs import at_least, equal
from orderparam.core.result import Result, with_errors
from orderparam.core.verb import experiment
from orderparam.systems.storage_capacity.model import ThermalPatterns

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

    A move rotates two couplings into one another by a random angle, $(J_i, J_j) \to (J_i \cos t -
    J_j \sin t, J_i \sin t + J_j \cos t)$, and is accepted with probability $\min(1, e^{-\Delta
    E/T})$. A sweep moves every coupling once, in random pairs. The copies start at random
    couplings. Their temperatures rise geometrically from `temperature` to 1.5, or to 1.3 times the
    temperature if that is larger, and they exchange their states after every sweep.

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
    """Mean number of errors of the coldest copy in the third and in the last quarter of the
    sweeps."""
    samples, _, n = patterns.shape
    copies = beta.size
    pairs = n // 2
    # single precision for the chains: stabilities are computed again in every sweep
    inputs = jnp.moveaxis(patterns, 2, 0).astype(jnp.float32)  # (n, sample, p)
    beta = beta.astype(jnp.float32)
    # angles at which about one pattern changes sides at T = 1, and fewer at lower temperature
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
