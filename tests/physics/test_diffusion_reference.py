"""Diffusion models: values computed once by other programs."""

import numpy as np
import pytest

from orderparam.data import load
from orderparam.systems.diffusion import (
    StoredData,
    StoredGaussians,
    TwoClasses,
    data_times,
    own_weight,
    speciation,
)

# what is left of the classes' distance -> probability that clones end in one class
CLONES = {
    1.0: 0.775200,
    np.exp(-1.4): 0.600874,
    np.exp(1.4): 0.966791,
    0.1: 0.545670,
    3.0: 0.937841,
}


@pytest.mark.parametrize("signal", CLONES)
def test_clones(signal):
    system = TwoClasses([np.sqrt(signal) * np.e], [1.0], 1.0)  # of variance 1 at all times
    found = speciation(system)
    np.testing.assert_allclose(found.class_signal, signal, rtol=1e-12)
    np.testing.assert_allclose(found.same_class, CLONES[signal], rtol=0, atol=6e-7)


# (d, n, t_C) -> weights measured on drawn examples at 0.6, 1 and 1.5 t_C, with standard errors
DRAWN = {
    (20, 500, 0.385186): ((0.910, 0.562, 0.226), (0.006, 0.010, 0.007)),
    (40, 2000, 0.575738): ((0.962, 0.581, 0.134), (0.007, 0.017, 0.010)),
}


@pytest.mark.parametrize("case", DRAWN)
def test_own_weights(case):
    dimension, stored, time = case
    found = [own_weight(StoredGaussians(dimension, stored, f * time)) for f in (0.6, 1.0, 1.5)]
    np.testing.assert_allclose(found[0].collapse_time, time, rtol=0, atol=6e-7)
    weights = np.array([one.own_weight for one in found])
    means, errors = map(np.array, DRAWN[case])
    assert np.max(np.abs(weights - means) / errors) < 3


def test_times_of_digits():
    """Pixels scaled such that their mean variance over all 64, three of which never change, is 1;
    the covariance divided by the number of images less one."""
    digits = load("digits")
    pool = StoredData.from_pool(digits.inputs, digits.labels, 100, 0.5)
    assert pool.examples.shape == (1797, 61)
    scaled = pool.with_(examples=pool.examples * np.sqrt(64 / 61 * 1797 / 1796))
    collapse, isotropic = (0.907, 0.769, 0.661), (0.983, 0.862, 0.769)
    for count, one, two in zip((100, 400, 1600), collapse, isotropic):
        found = data_times(scaled.with_(n_train=count))
        np.testing.assert_allclose(found.collapse_time, one, rtol=0, atol=6e-4)
        # the isotropic ones at the mean variance 1 of the pixels that change
        found = data_times(pool.with_(n_train=count))
        np.testing.assert_allclose(found.isotropic_time, two, rtol=0, atol=6e-4)
    largest = np.exp(2 * float(data_times(scaled).speciation_time))
    np.testing.assert_allclose(largest, 9.535, rtol=0, atol=6e-4)
