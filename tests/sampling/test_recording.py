"""A process that is recorded at few of its steps."""

import jax
import jax.numpy as jnp
import numpy as np

from orderparam.sampling.recording import geometric_steps, record

BLOCK = 4


def test_a_recorded_walk_is_the_plain_one():
    """Steps in blocks of four, the last of each stretch shorter: each block has a key of its
    own."""

    def advance(position, key, count):
        return position + jnp.sum(
            jnp.where(jnp.arange(BLOCK) < count, jax.random.normal(key, (BLOCK,)), 0.0)
        )

    key, steps = jax.random.key(0), np.array([0, 1, 4, 11])
    found = jax.jit(
        lambda key: record(advance, lambda x: x, jnp.zeros(()), key, jnp.asarray(steps), BLOCK)
    )(key)
    expected, position, block = [], 0.0, 0
    for length in np.diff(steps, prepend=0):
        for start in range(0, length, BLOCK):
            draws = jax.random.normal(jax.random.fold_in(key, block), (BLOCK,))
            position += float(jnp.sum(draws[: length - start]))
            block += 1
        expected.append(position)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_steps_are_whole_and_geometric_in_time():
    np.testing.assert_array_equal(
        geometric_steps(0.01, 100.0, 5, 1000.0), [10, 100, 1000, 10_000, 100_000]
    )
    np.testing.assert_array_equal(geometric_steps(0.1, 10.0, 3, 3.0), [0, 3, 30])
