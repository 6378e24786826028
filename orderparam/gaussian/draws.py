"""Standard normal numbers for experiments that are swept over sizes, and random directions."""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


@partial(jax.jit, static_argnums=1)
def _stream(key: PRNGKeyArray, size: int) -> Float[Array, "size"]:
    return jax.random.normal(key, (size,))


def normal(key: PRNGKeyArray, *shape: int) -> Float[Array, "..."]:
    """Standard normal numbers of any shape, cut from a stream whose length is the next power of
    two. In a sweep over sizes most of the compilation is that of random generators, and this keeps
    their number small."""
    size = math.prod(shape)
    return _stream(key, 1 << (size - 1).bit_length())[:size].reshape(shape)


@jax.jit
def unit(rows: Float[Array, "row input"]) -> Float[Array, "row input"]:
    """Rows scaled to length one; standard normal rows become uniform on the sphere."""
    return rows / jnp.linalg.norm(rows, axis=1, keepdims=True)
