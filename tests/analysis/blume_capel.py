"""The Blume-Capel model in mean field: a magnet of spins -1, 0, 1, whose transitions turn from
continuous to first order.

m = 2 sinh(m/T) / (exp(D/T) + 2 cosh(m/T)), free energy m^2/2 - T ln(1 + 2 exp(-D/T) cosh(m/T)).
Continuous at D = T ln(2 (1 - T)/T) down to the tricritical point T = 1/3, D = (2/3) ln 2 (Blume,
Emery, Griffiths 1971).
"""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import orderparam as op


class Magnet(op.System):
    """Spins -1, 0, 1 that all couple."""

    temperature: float = op.parameter("temperature", above=0)
    anisotropy: float = op.parameter("cost D of a spin that is not 0", default=0.0)
    field: float = op.parameter("field", default=0.0)


class State(op.Result):
    """Magnetisation and free energy of one solution."""

    magnetisation: Float[Array, ""]
    free_energy: Float[Array, ""]
    converged: Bool[Array, ""]


class Stable(op.Result):
    """Magnetisation of the state of least free energy."""

    magnetisation: Float[Array, ""]


def _slope(system, m):
    """Of the free energy."""
    x = (m + system.field) / system.temperature
    # Divided by cosh, so that nothing overflows.
    return m - 2 * jnp.tanh(x) / (jnp.exp(system.anisotropy / system.temperature) / jnp.cosh(x) + 2)


def _free_energy(system, m):
    x = (m + system.field) / system.temperature
    return m**2 / 2 - system.temperature * jnp.log(
        1 + 2 * jnp.exp(-system.anisotropy / system.temperature) * jnp.cosh(x)
    )


@op.theory
def state(system: Magnet, *, branch: Literal["ordered", "disordered"] = "ordered") -> State:
    """The solution with the largest magnetisation, or none: the zero of the slope that comes first
    from above, by bisection in that interval of a grid in which the slope changes sign."""
    if branch == "disordered":
        return State(
            magnetisation=jnp.zeros(()),
            free_energy=_free_energy(system, 0.0),
            converged=jnp.asarray(True),
        )
    # Finer towards 0, where the magnetisation vanishes as a square root; slope / m does not vanish
    # there.
    grid = jnp.linspace(1.0, 0.0, 1001)[:-1] ** 2
    ratio = jax.vmap(lambda m: _slope(system, m) / m)(grid)
    below = ratio < 0
    first = jnp.argmax(below)
    low, high = grid[first], jnp.where(first > 0, grid[first - 1], 1.0)

    def halve(_, ends):
        low, high = ends
        middle = (low + high) / 2
        inside = _slope(system, middle) < 0
        return jnp.where(inside, middle, low), jnp.where(inside, high, middle)

    low, high = jax.lax.fori_loop(0, 60, halve, (low, high))
    m = jnp.where(below.any(), (low + high) / 2, 0.0)
    return State(magnetisation=m, free_energy=_free_energy(system, m), converged=jnp.asarray(True))


@op.theory
def stable(system: Magnet) -> Stable:
    """In a field too."""
    ordered = state(system, branch="ordered")
    return Stable(
        magnetisation=jnp.where(
            ordered.free_energy < _free_energy(system, 0.0), ordered.magnetisation, 0.0
        )
    )


@op.theory
def in_a_field(system: Magnet) -> Stable:
    """The magnetisation in a field of any sign, no spins 0 (Curie-Weiss): m = tanh((m + field)/T),
    the solution of its sign."""
    sign = jnp.where(system.field < 0, -1.0, 1.0)

    def step(_, m):
        x = (m + jnp.abs(system.field)) / system.temperature
        return m - (m - jnp.tanh(x)) / (1 - (1 - jnp.tanh(x) ** 2) / system.temperature)

    m = jax.lax.fori_loop(0, 100, step, jnp.asarray(1.0))
    return Stable(
        magnetisation=sign
        * jnp.where((system.temperature >= 1) & (system.field == 0), 0.0, jnp.abs(m))
    )
