"""Symmetric matrices over pairs of student units, a few pairs at a time: what a pair needs fits into the processor's cache."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


def over_pairs(
    average: Callable[[Int[Array, ""], Int[Array, ""]], Float[Array, ""]], units: int, at_once: int = 1
) -> Float[Array, "unit unit"]:
    """average(j, l) for j, l < units; symmetric, so that it is computed for j <= l alone."""
    j, l = (jnp.asarray(x) for x in np.triu_indices(units))
    upper = jax.lax.map(lambda index: average(*index), (j, l), batch_size=at_once)
    square = jnp.zeros((units, units)).at[j, l].set(upper)
    return square + jnp.triu(square, 1).T
