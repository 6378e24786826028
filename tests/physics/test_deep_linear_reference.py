"""Deep linear networks against numbers computed elsewhere, with other programs."""

import numpy as np

from orderparam.systems.deep_linear import (
    DeepModes,
    LinearModes,
    LinearNetwork,
    balanced_flow,
    deep_modes,
    lazy_to_rich_modes,
)


def test_the_sigmoid_of_two_layers():
    found = lazy_to_rich_modes(LinearModes([2.0], 0.0, 2.0, 0.01, records=4))
    exact = [0.071603177, 0.430587921, 1.874841114]
    np.testing.assert_allclose(found.output[[0, 1, 3], 0], exact, rtol=1e-8)


def test_three_layers():
    found = deep_modes(DeepModes([2.0], 0.01, 3.0, depth=3, records=3))
    exact = [0.052802118, 1.067968605, 1.998823298]
    np.testing.assert_allclose(found.output[:, 0], exact, rtol=1e-8)


def test_balanced_matrices():
    first = np.hstack([0.3 * np.eye(2), np.zeros((2, 2))])
    readout = 0.3 * np.array([[np.cos(0.4), np.sin(0.4)], [-np.sin(0.4), np.cos(0.4)]])
    i, j = np.meshgrid(np.arange(2), np.arange(4), indexing="ij")
    target = 1.5 * np.cos(i + 2 * j + 0.5 * i * j)
    found = balanced_flow(LinearNetwork(target, first, readout, 2.0, records=4))
    exact = [(0.397683192, -0.047999440), (1.141506383, -0.293835697), (1.492048004, -0.565356608)]
    assert found.converged
    np.testing.assert_allclose(found.product[np.array([0, 1, 3]), 0, :2], exact, atol=1e-9)
