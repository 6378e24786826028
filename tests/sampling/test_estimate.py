"""Averages along Markov chains: error bars, R-hat and effective sample size against processes where
all are known."""

import re

import numpy as np
import pytest
import scipy.stats

from orderparam.sampling import estimate

CHAINS, DRAWS, REPLICAS = 4, 1000, 64


def autoregression(memory, seed):
    """x_{t+1} = memory x_t + sqrt(1 - memory^2) xi, stationary with unit variance: (chain, draw,
    replica)."""
    rng = np.random.default_rng(seed)
    x = np.empty((CHAINS, DRAWS, REPLICAS))
    x[:, 0] = rng.standard_normal((CHAINS, REPLICAS))
    for t in range(1, DRAWS):
        x[:, t] = memory * x[:, t - 1] + np.sqrt(1 - memory**2) * rng.standard_normal(
            (CHAINS, REPLICAS)
        )
    return x


def split_r_hat(x):
    """Gelman et al. 2013, equation 11.4, for chains of shape (chain, draw)."""
    draws = x.shape[1]
    within = x.var(axis=1, ddof=1).mean()
    between = draws * x.mean(axis=1).var(ddof=1)
    return np.sqrt(((draws - 1) / draws * within + between / draws) / within)


def rank_normalised_r_hat(x):
    """Vehtari et al. 2021, equations 14 and section 4.2, for chains of shape (chain, draw)."""
    half = x.shape[1] // 2
    halves = np.concatenate([x[:, :half], x[:, half : 2 * half]])

    def normal_scores(values):
        ranks = scipy.stats.rankdata(values).reshape(values.shape)
        return scipy.stats.norm.ppf((ranks - 3 / 8) / (values.size + 1 / 4))

    folded = np.abs(halves - np.median(halves))
    return max(split_r_hat(normal_scores(halves)), split_r_hat(normal_scores(folded)))


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9, -0.5])
def test_effective_sample_size_of_an_autoregression(memory):
    found = estimate(autoregression(memory, seed=1))
    exact = CHAINS * DRAWS * (1 - memory) / (1 + memory)
    assert np.mean(found.effective_samples) == pytest.approx(exact, rel=0.06)
    assert np.std(found.effective_samples) < 0.2 * exact
    # a limit on a fluctuating number: false alarms are rare, not impossible
    assert np.mean(found.reliable) > 0.95


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_error_bars_cover_the_true_mean(memory):
    found = estimate(autoregression(memory, seed=2))
    z = np.asarray(found.mean / found.standard_error)
    # 64 independent replicas: the mean square of z is 1 +- sqrt(2/64).
    assert np.mean(z**2) == pytest.approx(1, abs=4 * np.sqrt(2 / REPLICAS))
    assert np.abs(np.mean(z)) < 4 / np.sqrt(REPLICAS)


def test_r_hat_is_that_of_vehtari_et_al():
    x = autoregression(0.5, seed=3)
    x[1, :, 0] += 0.3  # one chain elsewhere
    x[2, :, 1] *= 1.5  # one chain broader
    x[:, :, 2] = np.round(x[:, :, 2])  # ties
    found = estimate(x)
    for replica in range(5):
        assert found.r_hat[replica] == pytest.approx(
            rank_normalised_r_hat(x[:, :, replica]), rel=1e-10
        )


def test_chains_in_different_places_or_of_different_width_are_detected():
    x = autoregression(0.0, seed=4)
    x[0, :, 0] += 1.5
    x[0, :, 1] *= 4.0  # same mean: only the folded ranks see it
    x[:, DRAWS // 2 :, 2] += 1.5  # all chains drift together: only the halves see it
    found = estimate(x)
    assert np.all(found.r_hat[:3] > 1.05)
    assert not np.any(found.reliable[:3])
    assert np.all(found.reliable[3:])
    assert found.effective_samples[0] < 50


def test_what_cannot_fluctuate_or_is_not_a_number_says_so():
    x = autoregression(0.0, seed=5)
    x[:, :, 0] = 0.1
    x[2, 7, 1] = np.nan
    x[:, :, 2] = np.arange(CHAINS)[:, None]  # chains stuck at different values
    found = estimate(x)
    assert found.constant[:4].tolist() == [True, False, False, False]
    assert found.mean[0] == pytest.approx(0.1)
    assert found.standard_error[0] == 0
    assert np.isnan(found.r_hat[0])
    assert np.isnan(found.r_hat[1])
    assert np.isnan(found.standard_error[1])
    assert np.isinf(found.standard_error[2])
    assert not np.any(found.reliable[:3])
    assert np.all(found.reliable[3:])


def test_shapes_of_values_are_kept():
    x = autoregression(0.0, seed=6)
    joint = estimate(x)
    square = estimate(x.reshape(CHAINS, DRAWS, 8, 8))
    assert square.effective_samples.shape == (8, 8)
    np.testing.assert_array_equal(square.effective_samples.ravel(), joint.effective_samples)
    indicator = estimate(x > 0)
    assert np.all(np.abs(indicator.mean - 0.5) < 4 * indicator.standard_error)


def test_one_value_and_one_chain():
    x = autoregression(0.0, seed=7)
    single = estimate(x[:1, :, 0])
    assert single.mean == pytest.approx(np.mean(x[0, :, 0]), rel=1e-12)
    assert single.r_hat == pytest.approx(rank_normalised_r_hat(x[:1, :, 0]), rel=1e-10)
    assert single.reliable
    text = repr(single)
    assert re.match(r"-?0\.\d+\(\d\d\) \[", text)
    assert "[R-hat 1.00, ESS " in text
    assert repr(estimate(x)).startswith("array (64,) [R-hat up to 1.0")


@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 0, 2)])
def test_too_few_draws_are_refused(shape):
    with pytest.raises(ValueError, match="values has shape"):
        estimate(np.zeros(shape))
