"""Features in time against numbers computed elsewhere, with other programs."""

import numpy as np
import pytest

from orderparam.systems.features_in_time import (
    FeatureDescent,
    LinearLayersDescent,
    best_rate,
    linear_layers_dynamics,
    linear_recursion,
    particle_dynamics,
)


def inputs(examples, dim=20):
    i, j = np.arange(1, examples + 1)[:, None], np.arange(1, dim + 1)
    return np.sqrt(2) * np.cos(0.7 * i * j + i + 0.3 * j)


def descent(targets, **fields):
    x, y = inputs(len(targets)), np.asarray(targets, float)
    return FeatureDescent(x, y, x[:1], y[:1], **fields)


# richness: half the summed error after 5, 10, 20, 40 steps with its standard error, and the drift
RICH = {
    0.5: ((1.559, 4e-3), (0.5398, 2.5e-3), (0.1404, 7e-4), (0.02464, 1.4e-4), (0.593, 3e-3)),
    2.0: ((0.5771, 2.3e-3), (0.0767, 4e-4), (0.01234, 4e-5), (0.00223, 1e-5), (1.960, 8e-3)),
}


@pytest.mark.parametrize("richness", RICH)
def test_particles_of_erf_units(richness):
    system = descent(
        [1, -1, 1, 1, -1, -1, 1, -1, 1, -1], richness=richness, activation="erf_scaled"
    )
    found = particle_dynamics(system, samples=8192)
    ours = [5 * float(found.train_error[step]) for step in (5, 10, 20, 40)]
    doubt = [5 * float(found.train_error_uncertainty[step]) for step in (5, 10, 20, 40)]
    ours.append(float(found.kernel_drift))
    doubt.append(float(found.kernel_drift_uncertainty))
    for value, own, (other, error) in zip(ours, doubt, RICH[richness], strict=True):
        assert abs(value - other) < 4 * np.hypot(own, error)
        assert own < 0.01 * value


def test_linear_units():
    system = descent([1, -0.5, 0.3], learning_rate=0.05, activation="linear", steps=5)
    output = np.array([0.403435256, -0.210864070, 0.108670146])
    exact = np.mean((np.array([1, -0.5, 0.3]) - output) ** 2)
    np.testing.assert_allclose(linear_recursion(system).train_error[5], exact, rtol=1e-8)


def test_the_best_rate_of_linear_units():
    system = descent([1, -1, 1, 1, -1, -1, 1, -1], activation="linear", steps=5)
    found = best_rate(system, samples=2)
    np.testing.assert_allclose(found.best_rate, 0.3037772, rtol=2e-4)
    np.testing.assert_allclose(4 * found.best_error, 0.014425406, rtol=1e-6)


@pytest.mark.parametrize(
    ("width", "rate"),
    [(64, 0.0125002), (256, 0.00381354), (1024, 0.00100845), (4096, 0.000255793)],
)
def test_the_best_rate_of_the_standard_parametrisation(width, rate):
    system = descent(
        [1, -0.5, 0.3],
        width=width,
        activation="linear",
        parametrisation="standard",
        steps=6,
    )
    np.testing.assert_allclose(best_rate(system, samples=2).best_rate, rate, rtol=2e-4)


# richness: learning rate, half the summed error after 5 steps, |h^1|^2/N of a training input and
# |w|^2/N after 20, with two hidden layers of linear units
TWO_LAYERS = {
    1.0: (0.05, 0.1190335147, 1.064592143, 1.304089776),
    2.0: (0.03, 0.2281968239, 1.218669321, 1.788564358),
}


@pytest.mark.parametrize("richness", TWO_LAYERS)
def test_two_hidden_layers_of_linear_units(richness):
    rate, loss, first, readout = TWO_LAYERS[richness]
    x, y = inputs(3), np.array([1, -0.5, 0.3])
    system = LinearLayersDescent(x, y, x[:1], y[:1], richness, rate, depth=2, steps=20)
    found = linear_layers_dynamics(system)
    np.testing.assert_allclose(1.5 * found.train_error[5], loss, rtol=1e-9)
    np.testing.assert_allclose(found.layer_power[0], first, rtol=1e-9)
    np.testing.assert_allclose(found.readout_power, readout, rtol=1e-9)
