"""Every size of a learning curve from one factorisation: the residuals of regressions that are
really done one by one."""

import numpy as np
import pytest

from orderparam.kernels.held_out import held_out


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 5))
    return x @ x.T / 5 + 0.5 * np.exp(-((x[:, None] - x[None]) ** 2).sum(-1) / 10), rng.normal(
        size=(40, 2)
    )


def test_residuals_are_those_of_each_training_set(data):
    kernel, targets = data
    order = np.random.default_rng(1).permutation(40)
    found = held_out(kernel, targets, 0.1, order, [3, 17, 39])
    for size, rows, residuals in zip(found.sizes, found.rows, found.residuals):
        train = order[:size]
        assert sorted([*train, *rows]) == list(range(40))
        dual = np.linalg.solve(kernel[np.ix_(train, train)] + 0.1 * np.eye(size), targets[train])
        assert np.allclose(
            residuals, targets[rows] - kernel[np.ix_(rows, train)] @ dual, atol=1e-11
        )


def test_equal_inputs_without_a_ridge_are_refused(data):
    kernel, targets = np.ones((4, 4)), np.zeros((4, 1))
    with pytest.raises(ValueError, match="not positive definite"):
        held_out(kernel, targets, 0.0, np.arange(4), [2])
