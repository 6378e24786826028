"""Transformers of finite width, and their limit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.networks import random_kernels, transformer


def test_without_blocks_the_mean_over_tokens_is_read():
    x = jax.random.normal(jax.random.key(0), (3, 4, 5))
    mean = x.mean(axis=1)
    np.testing.assert_allclose(transformer(0, None, None).nngp(x), mean @ mean.T / 5, rtol=1e-12)


def test_the_output_does_not_depend_on_the_order_of_tokens():
    x = jax.random.normal(jax.random.key(0), (3, 4, 5))
    network = transformer(2, 2, 6, 3, "gelu").network(jax.random.key(1), (4, 5))
    np.testing.assert_allclose(network(x), network(x[:, jnp.array([2, 0, 3, 1])]), rtol=1e-10)


def test_drawn_transformers_meet_their_limit():
    x = jax.random.normal(jax.random.key(0), (2, 2, 4))
    limit = transformer(1, None, None, normaliser="identity", scale=0.5).kernel(x)
    finite = transformer(1, 12, 48, 48, normaliser="identity", scale=0.5)
    drawn = random_kernels(finite, jax.random.key(1), x, networks=200)
    error = drawn.nngp_error + np.abs(limit.nngp).max() / 48
    assert np.all(np.abs(drawn.nngp - limit.nngp) < 4 * error)


def test_a_negative_depth_is_refused():
    with pytest.raises(ValueError, match="depth = -1"):
        transformer(-1, 1, 1, 1)
