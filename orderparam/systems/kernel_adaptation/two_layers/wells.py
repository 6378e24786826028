"""The phases of feature learning."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from orderparam.core.result import Result

# Phases of feature learning, read off the density of rho = w . w_*.
#
#     0  GFL:      one maximum, at rho = 0: all neurons adapt a little
#     1  GMFL-I:   maxima at 0 and at +-rho*: most neurons stay near 0, a few have specialised
#                  (coexistence inside one network);
#                  the central maximum may itself have split in two
#     2  GMFL-II:  maxima at +-rho* alone: all neurons have specialised
#                  (also just after a continuous split, at small rho*)
#
# (names of Rubin, Seroussi, Ringel 2024).

GFL, COEXISTENCE, SPECIALISED = 0, 1, 2


class Wells(Result):
    """Shape of an even density p(rho), and the phase of feature learning that it implies.

    Fields:
        phase: 0 (GFL), one maximum, at rho = 0; 1 (GMFL-I), maxima at 0 and at +-rho*; 2 (GMFL-II),
            maxima at +-rho* alone.
        well: rho*, the position of the highest maximum beyond the innermost one; in phase 2 that of
            the innermost one, in phase 0 it is 0.
        barrier_position: position of the minimum between the innermost maximum and rho*; 0 if there
            is none.
        side_weight: probability of |rho| beyond the barrier; 1 in phase 2, 0 in phase 0.
        free_energy_gap: log p(0) - log p(rho*), which is positive where the centre is higher.
        barrier: log p(rho*) - log p(barrier_position), the barrier that a specialised neuron has to
            cross to return to the centre.
    """

    phase: Int[Array, ""]
    well: Float[Array, ""]
    barrier_position: Float[Array, ""]
    side_weight: Float[Array, ""]
    free_energy_gap: Float[Array, ""]
    barrier: Float[Array, ""]


def wells(
    rho: Float[Array, "node"], log_density: Float[Array, "node"], weight: Float[Array, "node"]
) -> Wells:
    """The shape of an even density.

    Args:
        rho: increasing nodes from 0.
        log_density: logarithm of the density with respect to rho at the nodes.
        weight: probability of each node, both sides together.
    """
    inner = jnp.arange(1, rho.shape[0] - 1)
    left, here, right = log_density[inner - 1], log_density[inner], log_density[inner + 1]
    # A maximum far out, where the density is zero up to rounding, does not count,
    tops = (here > left) & (here >= right) & (here > jnp.max(log_density) - 200.0)
    tops &= jnp.isfinite(right)  # nor does the edge of a restricted ensemble
    side = jnp.any(tops)
    innermost = jnp.where(log_density[0] >= log_density[1], 0, inner[jnp.argmax(tops)])
    outer = tops & (inner > innermost)
    mixed = jnp.any(outer)
    best = inner[jnp.argmax(jnp.where(jnp.where(mixed, outer, tops), here, -jnp.inf))]
    position = _vertex(rho, log_density, best)
    index = jnp.arange(rho.shape[0])
    lowest = jnp.argmin(jnp.where((index >= innermost) & (index <= best), log_density, jnp.inf))
    phase = jnp.where(mixed, COEXISTENCE, jnp.where(side, SPECIALISED, GFL))
    beyond = jnp.sum(jnp.where(index > lowest, weight, 0.0)) + weight[lowest] / 2
    return Wells(
        phase=phase,
        well=jnp.where(side, position, 0.0),
        barrier_position=jnp.where(mixed, rho[lowest], 0.0),
        side_weight=jnp.where(mixed, beyond / jnp.sum(weight), jnp.where(side, 1.0, 0.0)),
        free_energy_gap=jnp.where(side, log_density[0] - log_density[best], 0.0),
        barrier=jnp.where(mixed, log_density[best] - log_density[lowest], 0.0),
    )


def _vertex(x: Array, y: Array, i: Array) -> Array:
    """The position of the maximum of the parabola through three neighbouring nodes."""
    a, b, c = x[i - 1], x[i], x[i + 1]
    up, down = (y[i] - y[i - 1]) / (b - a), (y[i + 1] - y[i]) / (c - b)
    bend = up - down
    found = (a + b) / 2 + up / jnp.where(bend == 0, 1.0, bend) * (c - a) / 2
    return jax.lax.stop_gradient(jnp.clip(found, a, c))
