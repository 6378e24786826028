"""Averages that a simulation of spins reports, with errors that take correlations in time into
account.

Each series is cut into blocks, and every derived quantity is jackknifed over the blocks of all
replicas, which removes the bias of order 1/blocks of variances and ratios (Quenouille 1956). Its
standard error follows from the effective sample size of its series: see `blocked_jackknife`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result, with_errors
from orderparam.sampling import estimate
from orderparam.sampling.jackknife import blocked_jackknife


class Series(NamedTuple):
    """Values after each sweep: energy per spin, m = (1/N) sum s, |m|, and estimates of m^2 and
    m^4.
    """

    energy: Float[Array, "replica sweep"]
    magnetisation: Float[Array, "replica sweep"]
    absolute: Float[Array, "replica sweep"]
    second: Float[Array, "replica sweep"]
    fourth: Float[Array, "replica sweep"]


class MeasuredSpins(Result):
    """Measured equilibrium averages per spin over all replicas and sweeps, in the conventions of
    `Thermodynamics`.

    Every field NAME_error is the standard error of NAME.

    Fields:
        energy, energy_error: mean energy per spin <e>.
        heat_capacity, heat_capacity_error: N (<e^2> - <e>^2)/T^2.
        magnetisation, magnetisation_error: <m>, with m = (1/N) sum s.
        absolute_magnetisation, absolute_magnetisation_error: <|m|>.
        squared_magnetisation, squared_magnetisation_error: <m^2>.
        susceptibility, susceptibility_error: N (<m^2> - <|m|>^2)/T.
        binder, binder_error: Binder's ratio 1 - <m^4>/(3 <m^2>^2).
        autocorrelation_time: integrated autocorrelation time tau of |m| in sweeps. The squared
            error of the mean of |m| is 2 tau Var(|m|)/sweeps.
        effective_samples: number of independent values of |m| that the run is worth.
        converged: whether R-hat of |m| is below 1.05 and `effective_samples` is at least 100.
    """

    energy: Float[Array, ""]
    energy_error: Float[Array, ""]
    heat_capacity: Float[Array, ""]
    heat_capacity_error: Float[Array, ""]
    magnetisation: Float[Array, ""]
    magnetisation_error: Float[Array, ""]
    absolute_magnetisation: Float[Array, ""]
    absolute_magnetisation_error: Float[Array, ""]
    squared_magnetisation: Float[Array, ""]
    squared_magnetisation_error: Float[Array, ""]
    susceptibility: Float[Array, ""]
    susceptibility_error: Float[Array, ""]
    binder: Float[Array, ""]
    binder_error: Float[Array, ""]
    autocorrelation_time: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


_DERIVED = (
    "energy",
    "heat_capacity",
    "magnetisation",
    "absolute_magnetisation",
    "squared_magnetisation",
    "susceptibility",
    "binder",
)


@jax.jit
def measured(
    series: Series, temperature: Float[Array, ""], spins: Float[Array, ""]
) -> MeasuredSpins:
    """Averages of the series with their standard errors.

    Args:
        series: values after each sweep; at least 8 sweeps.
        temperature: temperature T in units of the coupling.
        spins: number N of spins.

    Returns:
        the averages of all replicas together, one `MeasuredSpins`.
    """

    def derived(means: Float[Array, "moment"]) -> Float[Array, "observable"]:
        energy, energy_squared, m, absolute, second, fourth = means
        heat_capacity = spins * (energy_squared - energy**2) / temperature**2
        susceptibility = spins * (second - absolute**2) / temperature
        return jnp.stack(
            [
                energy,
                heat_capacity,
                m,
                absolute,
                second,
                susceptibility,
                1 - fourth / (3 * second**2),
            ]
        )

    # Energies are measured from their mean, so that rounding does not swamp the variance of a
    # nearly frozen system.
    centre = jnp.mean(series.energy)
    moments = jnp.stack(
        [series.energy - centre, (series.energy - centre) ** 2, *series[1:]], axis=-1
    )
    value, error = blocked_jackknife(derived, moments)
    value = value.at[0].add(centre)
    found = estimate(series.absolute)
    draws = series.absolute.size
    scatter = jnp.var(series.absolute, ddof=1)
    per_sample = jnp.where(
        found.constant, 1.0, found.standard_error**2 / jnp.where(found.constant, 1.0, scatter)
    )
    autocorrelation_time = jnp.where(found.constant, 0.0, draws * per_sample / 2)
    return MeasuredSpins(
        **with_errors(**dict(zip(_DERIVED, zip(value, error)))),
        autocorrelation_time=autocorrelation_time,
        effective_samples=1 / per_sample,
        converged=found.reliable | found.constant,
    )
