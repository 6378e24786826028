"""Learning from models against numbers computed elsewhere, with other programs."""

import numpy as np
import pytest

from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.learning_from_models import ModelChain, best_labels, generation_errors

I = np.arange(1, 501)
SPECTRUM = Spectrum(I**-2.0, I**-1.5)

# numbers of the chain: errors of the generations, six decimals
CHAINS = {
    "teacher and student": (
        {"n_train": 200, "ridge": 0.01, "teacher_noise": 0.01},
        (0.140929, 0.182204),
    ),
    "weak to strong": (
        {
            "n_train": 400,
            "ridge": 1.0,
            "teacher_n_train": 50,
            "teacher_ridge": 0.01,
            "teacher_noise": 0.1,
        },
        (0.471683, 0.490152),
    ),
    "five generations": (
        {"n_train": 200, "ridge": 0.1, "noise": 0.05, "generations": 5},
        (0.221038, 0.299291, 0.348476, 0.385714, 0.416226),
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_errors_of_generations(name):
    numbers, errors = CHAINS[name]
    found = generation_errors(ModelChain(SPECTRUM, **numbers))
    assert found.converged
    np.testing.assert_allclose(found.test_error, errors, rtol=0, atol=6e-7)


def test_a_shift_of_the_covariates():
    chain = ModelChain(SPECTRUM, I**-1.2, n_train=200, ridge=0.01, noise=0.01, generations=1)
    np.testing.assert_allclose(generation_errors(chain).test_error, [7.687299], atol=6e-7)


def test_the_best_labels_and_the_best_mask():
    found = best_labels(ModelChain(SPECTRUM, n_train=200, ridge=0.0, noise=0.01))
    errors = found.truth_error, found.optimal_error, found.mask_error
    np.testing.assert_allclose(errors, (0.135206, 0.099090, 0.105501), rtol=0, atol=6e-7)
    assert found.kept == 203
    np.testing.assert_allclose(found.threshold, 0.377895, atol=6e-7)
    np.testing.assert_allclose(np.max(found.gain), 1.14, atol=5e-3)
    assert int(np.argmin(found.error_by_kept)) == 203
