"""Errors of regression on a torus, computed independently: n = 64, 256, 1024, 4096, 16384."""

import numpy as np
import pytest

import orderparam as op
from orderparam.systems.kernel_regression import (
    TorusRegression,
    optimal_temperature,
    self_consistent,
)

SIZES = [64, 256, 1024, 4096, 16384]
# dimension, smoothness, cut -> errors at ridge = noise = 0.1
ERRORS = {
    (1, 1.0, 1000): (0.030300, 0.010893, 0.004158, 0.001625, 0.000641),
    (2, 1.0, 120): (0.163274, 0.068314, 0.030553, 0.014362, 0.006931),
    (3, 1.0, 60): (0.394316, 0.210603, 0.108446, 0.056737, 0.030454),
    (4, 1.0, 40): (0.588878, 0.393499, 0.241285, 0.142635, 0.083857),
    (4, 2.0, 40): (0.236228, 0.113454, 0.053817, 0.025987, 0.012813),
    (8, 2.0, 20): (0.351833, 0.277174, 0.209251, 0.148040, 0.099239),
}
# a target of the first coordinates, dimension, cut -> errors at the best ridge, n = 256 ... 16384
FEW = {
    (1, 4, 40): (0.141206, 0.084721, 0.051369, 0.031279),
    (2, 4, 40): (0.240249, 0.144104, 0.085783, 0.051283),
}


@pytest.mark.parametrize("problem", ERRORS)
def test_errors_of_a_target_of_all_coordinates(problem):
    dim, smoothness, cut = problem
    system = TorusRegression.from_smoothness(dim, smoothness, smoothness, 1, 0.1, 0.1, cut=cut)
    found = op.sweep(self_consistent, system, {"n_train": SIZES})["test_error"]
    np.testing.assert_allclose(found, ERRORS[problem], atol=1.1e-6)


@pytest.mark.parametrize("problem", FEW)
def test_errors_of_a_target_of_the_first_coordinates(problem):
    relevant, dim, cut = problem
    system = TorusRegression.from_smoothness(
        dim, 1.0, 1.0, 1, 0.1, 0.1, cut=cut, target_dim=relevant
    )
    found = op.sweep(optimal_temperature, system, {"n_train": SIZES[1:]})["test_error"]
    np.testing.assert_allclose(found, FEW[problem], atol=1.1e-6)
