"""Anderson's acceleration."""

import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.solve.anderson import anderson_correction, ridge_weights, truncated_weights


@pytest.mark.parametrize("weights", [truncated_weights, ridge_weights])
def test_a_linear_map_of_three_unknowns_is_solved_by_four_iterates(weights):
    rng = np.random.default_rng(0)
    matrix, offset = rng.normal(size=(3, 3)) / 4, rng.normal(size=3)
    fixed = np.linalg.solve(np.eye(3) - matrix, offset)
    iterates = rng.normal(size=(4, 3))
    steps = iterates @ matrix.T + offset - iterates
    moves, changes = np.diff(iterates, axis=0), np.diff(steps, axis=0)
    kind = jnp.asarray if weights is ridge_weights else np.asarray
    correction = anderson_correction(kind(moves), kind(changes), kind(steps[-1]), weights)
    np.testing.assert_allclose(iterates[-1] + steps[-1] - correction, fixed, atol=1e-9)
    assert np.max(np.abs(iterates[-1] + steps[-1] - fixed)) > 0.1  # the plain step does not


@pytest.mark.parametrize("weights", [truncated_weights, ridge_weights])
def test_rows_of_zeros_change_nothing(weights):
    rng = np.random.default_rng(1)
    moves, changes, step = rng.normal(size=(2, 5)), rng.normal(size=(2, 5)), rng.normal(size=5)
    empty = np.zeros((3, 5))
    kind = jnp.asarray if weights is ridge_weights else np.asarray
    short, long = (
        anderson_correction(kind(m), kind(c), kind(step), weights)
        for m, c in ((moves, changes), (np.vstack([moves, empty]), np.vstack([changes, empty])))
    )
    np.testing.assert_allclose(short, long, atol=1e-12)
