"""Exact averages of a finite magnet from its density of states, the number of configurations at
each energy and magnetisation.
"""

import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Float

from orderparam.core.result import Result


class Thermodynamics(Result):
    """Equilibrium averages of N spins, per spin, with e the energy per spin and m = (1/N) sum s.

    Fields:
        free_energy: -(T/N) ln Z.
        energy: <e>.
        heat_capacity: N (<e^2> - <e>^2)/T^2.
        magnetisation: <m>.
        absolute_magnetisation: <|m|>.
        squared_magnetisation: <m^2>.
        susceptibility: N (<m^2> - <|m|>^2)/T.
        binder: Binder's ratio 1 - <m^4>/(3 <m^2>^2).
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
    """Boltzmann averages over states of given degeneracy, energy and magnetisation.

    Args:
        log_count: logarithm of the number of configurations of each state.
        energy: energy per spin of each state.
        magnetisation: magnetisation per spin of each state.
        temperature: temperature T in units of the coupling.
        spins: number N of spins.
        moments: |m|, m^2 and m^4 of each state, where they are not those of `magnetisation`.

    Returns:
        the averages per spin; sums are taken in logarithms.
    """
    size, square, power = moments or (jnp.abs(magnetisation), magnetisation**2, magnetisation**4)
    logs = log_count - spins * energy / temperature
    log_sum = logsumexp(logs)
    weights = jnp.exp(logs - log_sum)
    mean, m, absolute, second, fourth = (
        jnp.sum(weights * x) for x in (energy, magnetisation, size, square, power)
    )
    # <m^2> - <|m|>^2 as a sum of terms that do not cancel.
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
