"""The best learning rate of a training of which only the error is known."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

Scalar = Float[Array, ""]
LOWEST, HIGHEST, GRID, REFINED = 0.05, 8.0, 48, 5


def best_of_rates(
    error: Callable[[Scalar], Scalar], fastest: Scalar
) -> tuple[Scalar, Scalar, Bool[Array, ""]]:
    """The learning rate with the smallest error, that error, and whether the rate lies inside the
    range searched.

    The grid is refined five times around its lowest point; an error that is not finite counts as
    infinite.

    fastest: largest rate of relaxation for a learning rate of 1; the ends of the range are
        multiples of its inverse.
    """
    errors = jax.vmap(error)

    def at(logarithms: Array) -> tuple[Array, Array]:
        found = errors(jnp.exp(logarithms))
        found = jnp.where(jnp.isfinite(found), found, jnp.inf)
        return jnp.argmin(found), found

    grid = jnp.linspace(jnp.log(LOWEST / fastest), jnp.log(HIGHEST / fastest), GRID)
    best, found = at(grid)
    inside = (best > 0) & (best < GRID - 1)
    middle, gap, lowest = grid[best], grid[1] - grid[0], found[best]
    for _ in range(REFINED):
        near = middle + gap * jnp.linspace(-1, 1, 9)
        best, found = at(near)
        middle, gap, lowest = near[best], gap / 4, found[best]
    return jnp.exp(middle), lowest, inside
