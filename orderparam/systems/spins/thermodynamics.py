"""Exact averages of a finite magnet from its density of states: how many configurations have which
energy.
"""

import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Float

from orderparam.core.result import Result


class Thermodynamics(Result):
    """Averages of N spins, per spin, with m = (1/N) sum s and the energy e per spin.

    free_energy -(T/N) ln Z, energy <e>, heat_capacity N (<e^2> - <e>^2)/T^2, magnetisation <m>,
    absolute_magnetisation <|m|>, squared_magnetisation <m^2>, susceptibility N (<m^2> - <|m|>^2)/T,
    and Binder's ratio binder 1 - <m^4>/(3 <m^2>^2).
    """

    free_energy: Float[Array, ""]
    energy: Float[Array, ""]
    heat_capacity: Float[Array, ""]
    magnetisation: Float[Array, ""]
    absolute_magnetisation: Float[Array, ""]
    squared_magnetisation: Float[Array, ""]
    susceptibility: Float[Array, ""]
    binder: Float[Array, ""]


def averages(
    log_count: Float[Array, "state"],
    energy: Float[Array, "state"],
    magnetisation: Float[Array, "state"],
    temperature: Float[Array, ""] | float,
    spins: float,
    moments: tuple[Float[Array, "state"], ...] | None = None,
) -> Thermodynamics:
    """Averages over states of the given energy and magnetisation per spin, exp(log_count)
    configurations each.

    moments: what |m|, m^2 and m^4 are, where they are not those of the magnetisation.
    """
    size, square, power = moments or (jnp.abs(magnetisation), magnetisation**2, magnetisation**4)
    logs = log_count - spins * energy / temperature
    log_sum = logsumexp(logs)
    weights = jnp.exp(logs - log_sum)
    mean, m, absolute, second, fourth = (
        jnp.sum(weights * x) for x in (energy, magnetisation, size, square, power)
    )
    spread = jnp.sum(weights * ((size - absolute) ** 2 + square - size**2))
    energy_variance = jnp.sum(weights * (energy - mean) ** 2)
    return Thermodynamics(
        free_energy=-temperature * log_sum / spins,
        energy=mean,
        heat_capacity=spins * energy_variance / temperature**2,
        magnetisation=m,
        absolute_magnetisation=absolute,
        squared_magnetisation=second,
        susceptibility=spins * spread / temperature,
        binder=1 - fourth / (3 * second**2),
    )
