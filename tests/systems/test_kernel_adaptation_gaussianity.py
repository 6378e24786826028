"""The Gaussianity test: right on independent and on correlated samples, and it finds what is not
Gaussian."""

import numpy as np
import pytest
from scipy import stats

from orderparam.systems.kernel_adaptation import gaussianity


def correlated(memory: float, random: np.random.Generator) -> np.ndarray:
    """(2, 100, 10) Gaussian values of variance 1, an autoregression along the draws."""
    x = random.standard_normal((2, 100, 10))
    for draw in range(1, 100):
        x[:, draw] = memory * x[:, draw - 1] + np.sqrt(1 - memory**2) * x[:, draw]
    return x


@pytest.mark.parametrize("variance", [None, 1.0])
def test_gaussian_samples_pass(variance):
    """p-values of independent samples are uniform; those of correlated ones are not too small."""
    random = np.random.default_rng(0)
    uniform = [
        float(gaussianity(random.standard_normal((2, 30, 4)), variance).p_value) for _ in range(120)
    ]
    assert stats.kstest(uniform, "uniform").pvalue > 1e-3
    found = [gaussianity(correlated(0.8, random), variance) for _ in range(60)]
    assert np.mean([float(one.p_value) < 0.1 for one in found]) < 0.25
    assert np.mean([float(one.effective_samples) for one in found]) < 2000 / 2
    scores = [float(one.excess_kurtosis / one.kurtosis_error) for one in found]
    assert 0.6 < np.std(scores) < 1.6


def test_specialised_neurons_and_wrong_variances_are_found():
    random = np.random.default_rng(1)
    x = random.standard_normal((2, 100, 10))
    assert float(gaussianity(x, 1.4).p_value) < 1e-3 < 0.01 < float(gaussianity(x).p_value)
    x[..., 0] = 4 * np.sign(x[..., 0]) + 0.5 * x[..., 0]
    mixed = gaussianity(x)
    assert float(mixed.p_value) < 1e-3
    assert float(mixed.excess_kurtosis) > 4 * float(mixed.kurtosis_error)


@pytest.mark.parametrize(
    ("values", "variance", "message"),
    [(np.ones((4, 5)), None, "shape"), (np.ones((1, 5, 2)), -1.0, "variance")],
)
def test_bad_input_is_refused(values, variance, message):
    with pytest.raises(ValueError, match=message):
        gaussianity(values, variance)
