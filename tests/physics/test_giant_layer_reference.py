"""Giant steps of a layer against numbers computed elsewhere, with another program."""

import numpy as np
import pytest

from orderparam.systems.several_steps import GiantLayer, hidden_power, layer_error

# by loss: test error, M of the first neuron, Q_00 and Q_01, after 0, 1, ... steps; errors .003 to
# .023
REFERENCE = {
    "correlation": (
        [2.238, 1.538, 1.391, 1.264, 1.167],
        [0.006, 0.013, 0.023, 0.012, 0.004],
        [[0.323, 0, 0], [0.643, 0.067, 0], [0.969, 0.190, 0.007], [1.264, 0.328, 0.018]],
        [1.149, 1.519, 2.098, 2.780],
        [-0.151, -0.522, -1.073, -1.688],
    ),
    "square": (
        [2.238, 1.500, 1.389, 1.296, 1.200],
        [0.006, 0.011, 0.022, 0.014, 0.005],
        [[0.323, 0, 0], [0.285, 0.066, 0], [0.286, 0.130, 0.008], [0.306, 0.186, 0.016]],
        [1.192, 1.236, 1.300, 1.362],
        [-0.122, -0.073, -0.055, -0.046],
    ),
}


@pytest.mark.parametrize("loss", REFERENCE)
def test_a_layer_of_sixteen_neurons(loss):
    errors, spreads, first, own, pair = REFERENCE[loss]
    step, bias = np.resize([1.0, -1.0, 2.0, -2.0], 16), np.linspace(-1.5, 1.5, 16)
    found = layer_error(GiantLayer(step, bias, loss=loss), samples=40_000, runs=8)
    assert found.converged
    spread = np.hypot(found.test_error_uncertainty, spreads)
    assert np.all(np.abs(found.test_error - np.array(errors)) < 3.5 * spread)
    assert np.all(spread < 0.03)
    # the reference says of these numbers only that their errors are between .003 and .015
    other = 0.009
    spread = np.hypot(found.overlap_uncertainty[1:, 0], other)
    assert np.all(np.abs(found.overlap[1:, 0] - np.array(first)) < 3 * spread)
    for column, expected in ((0, own), (1, pair)):
        spread = np.hypot(found.self_overlap_uncertainty[1:, 0, column], other)
        assert np.all(np.abs(found.self_overlap[1:, 0, column] - np.array(expected)) < 3 * spread)


def test_the_first_step_is_exact_in_closed_form():
    """M = s E[y z] E sigma'(h + b): 0.321466 for the first neuron, on the correlation loss."""
    found = layer_error(GiantLayer([1.0, 2.0], [-1.5, 0.0], steps=1), samples=40_000, runs=16)
    expected = np.array([0.321466, 2 / np.sqrt(np.pi)])
    away = found.overlap[1, :, 0] - expected
    assert np.all(np.abs(away) < 3.5 * found.overlap_uncertainty[1, :, 0])
    assert np.all(found.overlap_uncertainty[1, :, 0] < 0.006)


BOUNDS = {
    "z1 + z1*z2 + z2*z3/2": ([2.25, 1.25, 0.25, 0.0], [1.25, 0.25, 0.0, 0.0]),
    "z1 + z1*z2 + z1*z2*z3": ([3.0, 2.0, 1.0, 0.0], [2.0, 1.0, 0.0, 0.0]),
}


@pytest.mark.parametrize("target", BOUNDS)
def test_the_lower_bound_after_each_step(target):
    found = hidden_power(GiantLayer([1.0], [0.5], target=target, steps=3))
    bound, nonlinear = BOUNDS[target]
    np.testing.assert_allclose(found.bound, bound, atol=1e-12)
    np.testing.assert_allclose(found.nonlinear_bound, nonlinear, atol=1e-12)
    np.testing.assert_array_equal(found.revealed, [0, 1, 2, 3])
