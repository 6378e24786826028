"""Standard normal numbers for experiments that are swept over sizes."""

import math
from functools import partial

import jax
from jaxtyping import Array, Float, PRNGKeyArray


@partial(jax.jit, static_argnums=1)
def _stream(key: PRNGKeyArray, size: int) -> Float[Array, "size"]:
    return jax.random.normal(key, (size,))


def normal(key: PRNGKeyArray, *shape: int) -> Float[Array, "..."]:
    """Of any shape, cut from a stream of the next power of two: most of the compilation of a sweep over sizes is that of random
    generators, and few are needed so."""
    size = math.prod(shape)
    return _stream(key, 1 << (size - 1).bit_length())[:size].reshape(shape)
