"""Learning in time against numbers computed elsewhere, with other programs."""

import numpy as np
import pytest

from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.training_in_time import (
    FeatureTraining,
    gradient_flow_error,
    gradient_flow_train_error,
    stopping_time,
)

K = np.arange(1, 401)
SIGMA = K**-1.2
THETA = K**-0.6 / np.sum(K**-1.8)
POWER_LAW = Spectrum(SIGMA, SIGMA * THETA)

# time: test error, bias and training error of 400 modes k^-1.2, 300 examples, noise 0.2, to ten
# digits
IN_TIME = {
    1.0: (0.3844939954, 0.3840397564, 0.5690511274),
    10.0: (0.08744248588, 0.08246329832, 0.2456474356),
    100.0: (0.05155440964, 0.01998497039, 0.1228463858),
    1000.0: (0.1566095553, 0.006971708147, 0.03448778596),
    1e5: (0.6884257911, 0.004167194657, 7.187603e-8),
}


# time: test and training error of isotropic features, 1.25 to an example, from |w_0|^2 = 25, decay
# 1e-3
GROKKING = {
    1.0: (11.3593956, 1.93423312),
    10.0: (5.99719637, 0.0510942911),
    100.0: (4.29937294, 1.17203e-4),
    1000.0: (0.876736099, 3.0785e-6),
}


@pytest.mark.parametrize("time", GROKKING)
def test_errors_of_a_large_start_that_decays(time):
    modes = 1000
    system = FeatureTraining(
        Spectrum([1.0], [1.0], [modes]), 800, time, 0.0, weight_decay=1e-3, start=25 / modes
    )
    test_error, train_error = GROKKING[time]
    np.testing.assert_allclose(gradient_flow_error(system).test_error, test_error, rtol=1e-7)
    np.testing.assert_allclose(
        gradient_flow_train_error(system).train_error, train_error, rtol=2e-5
    )


@pytest.mark.parametrize("time", IN_TIME)
def test_errors_of_power_law_features_in_time(time):
    system = FeatureTraining(POWER_LAW, 300, time, 0.2)
    found, train = gradient_flow_error(system), gradient_flow_train_error(system)
    assert found.converged
    assert train.converged
    test_error, bias, train_error = IN_TIME[time]
    np.testing.assert_allclose(found.test_error, test_error, rtol=5e-10)
    np.testing.assert_allclose(found.bias, bias, rtol=5e-10)
    np.testing.assert_allclose(train.train_error, train_error, rtol=2e-9, atol=1e-14)


def test_weight_decay_and_a_random_start():
    for time, expected in ((10.0, 0.7356226465), (1000.0, 0.06738579521)):
        system = FeatureTraining(POWER_LAW, 300, time, 0.2, 0.003, 0.5)
        np.testing.assert_allclose(gradient_flow_error(system).test_error, expected, rtol=1e-9)


def test_the_best_time_on_the_power_law():
    found = stopping_time(FeatureTraining(POWER_LAW, 300, 1.0, 0.2))
    assert found.converged
    np.testing.assert_allclose(found.time, 58.24445, rtol=2e-6)
    np.testing.assert_allclose(found.test_error, 0.04824272690, rtol=1e-9)


# d/n, noise: best time, its error, error of the best ridge, for isotropic features and |theta| = 1
ISOTROPIC = {
    (0.5, 0.1): (8.00037, 0.087369657, 0.084428877),
    (1.0, 0.1): (6.082084, 0.277661649, 0.270156212),
    (2.0, 0.1): (2.393523, 0.577035658, 0.574165739),
    (0.9, 0.01): (61.02159, 0.058469146, 0.056350284),
    (2.0, 1.0): (0.348255, 0.783589565, 0.780776406),
}


@pytest.mark.parametrize(("aspect", "noise"), ISOTROPIC)
def test_the_best_time_of_isotropic_features(aspect, noise):
    time, error, ridge_error = ISOTROPIC[aspect, noise]
    system = FeatureTraining(Spectrum([1.0], [1.0], [500.0]), 500 / aspect, 1.0, noise)
    found = stopping_time(system)
    np.testing.assert_allclose(found.time, time, rtol=2e-6)
    np.testing.assert_allclose(found.test_error, error, rtol=1e-8)
    np.testing.assert_allclose(found.ridge_error, ridge_error, rtol=1e-8)
    # The best ridge is the noise of an example over the signal of a feature: Bayes' rule.
    np.testing.assert_allclose(found.ridge, noise * aspect, rtol=1e-5)
