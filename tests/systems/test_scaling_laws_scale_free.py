"""Exponents of spectra known from few examples: the law of finite samples, what it corrects, and
learning curves of pictures."""

import os

import jax
import numpy as np
import pytest
from scipy.special import ndtri, zeta

from orderparam.data import centre, load, normalise, parity
from orderparam.networks import fully_connected
from orderparam.systems.scaling_laws import (
    ScaleFreeData,
    gaussian_clone,
    learned_pool,
    scale_free_fit,
    spectral_curve,
)
from orderparam.systems.scaling_laws.scale_free import theory


def sample(exponent, examples, modes=8000, seed=0):
    """Eigenvalues of the covariance of Gaussian examples with population eigenvalues k^-exponent,
    the matrix K, and the features.

    Modes beyond the last are so many and so small that they add their sum to the diagonal.
    """
    features = np.random.default_rng(seed).normal(size=(examples, modes)) * np.arange(
        1.0, modes + 1
    ) ** (-exponent / 2)
    gram = features @ features.T + zeta(exponent, modes + 1) * np.eye(examples)
    return np.linalg.eigvalsh(gram / examples)[::-1], gram, features


@pytest.mark.parametrize("exponent", [1.6, 2.0, 3.0])
def test_the_law_of_finite_samples(exponent):
    """Means of log eigenvalues over eight samples of 150: 5 % at every rank above 10, in the far
    tail as well."""
    found = np.mean([np.log(sample(exponent, 150, seed=seed)[0]) for seed in range(8)], axis=0)
    rank = np.array([12, 25, 50, 75, 100, 130, 145])
    expected = np.log(theory.sample_ratio(rank / 150, exponent)) - exponent * np.log(rank)
    np.testing.assert_allclose(found[rank - 1], expected, atol=0.05)
    assert expected[-1] + exponent * np.log(145) < -0.1 or exponent < 2  # the correction matters


@pytest.mark.parametrize("exponent", [1.5, 2.0, 3.0])
def test_corrected_spectra_have_the_exponent_of_the_population(exponent):
    values = sample(exponent, 400)[0]
    rank = theory.ranks(3, 200)
    corrected = theory.corrected(rank, values[rank - 1], 400)
    assert theory.fitted(rank, corrected, (3, 200)).exponent == pytest.approx(exponent, abs=0.03)


def test_half_samples_cover_the_exponent():
    """1.96 errors around the estimate hold the exponent of the population in at least 16 of 20
    samples (19 expected)."""
    held = 0
    for seed in range(20):
        _, gram, features = sample(2.0, 240, modes=2000, seed=seed)
        target = features @ np.arange(1.0, 2001) ** -0.5
        fit = scale_free_fit(ScaleFreeData(gram, target), tolerance=0.2)
        held += abs(float(fit.spectral_exponent) - 2.0) < 1.96 * float(fit.spectral_exponent_error)
    assert held >= 16


def test_shapes_are_told_apart():
    rank = theory.ranks(2, 300).astype(float)
    power = theory.shapes(rank, 3 * rank**-1.7, 1000)
    assert power.power < 1e-6 < power.lognormal
    cutoff = theory.shapes(rank, rank**-1.2 * np.exp(-rank / 80), 1000)
    assert cutoff.cutoff < 1e-5 < 0.1 < cutoff.power
    quantiles = np.exp(2.0 * -ndtri((rank - 0.5) / 1000))
    lognormal = theory.shapes(rank, quantiles, 1000)
    assert lognormal.lognormal < 1e-6 < 0.05 < lognormal.power


def test_the_widest_window_ends_where_the_law_does():
    rank = theory.ranks(2, 400)
    broken = np.where(rank < 60, rank**-1.5, 60**1.5 * rank**-3.0)
    found = theory.widest(rank, broken, 0.03)
    assert found.exponent == pytest.approx(1.5, abs=0.1)
    assert 45 < found.window[1] < 90


def test_slopes_of_the_principal_components_of_digits():
    """Covariance with 1/N of X/16: lambda_1, the trace, and slopes by least squares through all
    ranks (independent program)."""
    from sklearn.datasets import load_digits

    inputs = load_digits().data / 16
    inputs = inputs - inputs.mean(axis=0)
    values = np.linalg.eigvalsh(inputs.T @ inputs / len(inputs))[::-1]
    assert values[0] == pytest.approx(0.698856702, abs=5e-10)
    assert values.sum() == pytest.approx(4.69327632, abs=5e-9)
    for first, last, slope in ((2, 15, 1.133804), (5, 40, 1.665769), (1, 50, 1.566952)):
        rank = np.arange(first, last + 1)
        assert theory.fitted(rank, values[rank - 1], (first, last)).exponent == pytest.approx(
            slope, abs=6e-7
        )


MNIST = pytest.mark.skipif(
    "ORDERPARAM_DATA" not in os.environ, reason="set ORDERPARAM_DATA to a folder with MNIST"
)


@pytest.mark.slow
@MNIST
def test_slopes_of_the_principal_components_of_mnist():
    values = np.linalg.svd(centre(load("mnist", "test")).inputs, compute_uv=False) ** 2 / 10_000
    assert values[0] == pytest.approx(5.3100141, abs=5e-8)
    for first, last, slope in (
        (3, 30, 1.018766),
        (10, 100, 1.464454),
        (30, 300, 1.762168),
        (10, 400, 1.742076),
    ):
        rank = np.arange(first, last + 1)
        assert theory.fitted(rank, values[rank - 1], (first, last)).exponent == pytest.approx(
            slope, abs=6e-7
        )


def kernel_slopes(data, activation, windows):
    """Slopes through all ranks of the windows: of the eigenvalues of a layer's kernel, and of the
    target's power beyond."""
    inputs, targets = normalise(centre(data)).inputs, np.asarray(parity(data.labels).values)
    values, vectors = np.linalg.eigh(
        np.asarray(fully_connected(1, None, activation).nngp(inputs)) / len(inputs)
    )
    beyond = np.cumsum((vectors.T @ targets) ** 2)[::-1] / len(inputs)
    ranks = [np.arange(first, last + 1) for first, last in windows]
    return [
        [theory.fitted(r, curve[r - 1], (r[0], r[-1])).exponent for r in ranks]
        for curve in (values[::-1], beyond)
    ]


@pytest.mark.parametrize(
    ("activation", "spectrum", "target"),
    [
        ("relu", (1.6150, 1.6572, 1.7979), (0.577, 0.696, 1.093)),
        ("erf", (2.4365, 1.5634, 1.1935), (0.575, 0.881, 1.267)),
    ],
)
def test_slopes_of_kernels_of_digits(activation, spectrum, target):
    found = kernel_slopes(load("digits"), activation, ((10, 100), (30, 300), (100, 1000)))
    np.testing.assert_allclose(found[0], spectrum, rtol=0, atol=5.1e-5)
    np.testing.assert_allclose(found[1], target, rtol=0, atol=5.1e-4)


@pytest.mark.slow
@MNIST
@pytest.mark.parametrize(
    ("activation", "size", "slopes", "decimals"),
    [
        ("relu", 500, (1.205, 1.181), 3),
        ("relu", 1500, (1.279, 1.280), 3),
        ("erf", 500, (1.3705, 1.5707), 4),
        ("erf", 1500, (1.3896, 1.6884), 4),
    ],
)
def test_slopes_of_kernels_depend_on_the_pool(activation, size, slopes, decimals):
    found = kernel_slopes(load("mnist", "test", count=size), activation, ((10, 100), (30, 300)))[0]
    np.testing.assert_allclose(found, slopes, rtol=0, atol=0.51 * 10.0**-decimals)


@pytest.fixture(scope="module")
def digits():
    return ScaleFreeData.of("digits", 500)


def test_a_clone_follows_the_full_spectrum_and_digits_nearly(digits):
    for size in (20, 60):
        system = digits.with_(n_train=size)
        expected = spectral_curve(system)
        clones = np.array(
            [
                float(gaussian_clone(system, jax.random.key(seed)).population_error)
                for seed in range(12)
            ]
        )
        assert abs(clones.mean() - float(expected.population_error)) < 4 * clones.std(
            ddof=1
        ) / np.sqrt(12)
        real = np.mean(
            [float(learned_pool(system, jax.random.key(seed)).test_error) for seed in range(12)]
        )
        assert real == pytest.approx(float(expected.test_error), rel=0.15)


def test_what_is_learned_has_no_error(digits):
    found = learned_pool(digits.with_(n_train=100, ridge=1e-8), jax.random.key(0))
    assert float(found.population_error) == pytest.approx(float(found.test_error) * 0.8, rel=1e-5)


def test_a_fit_of_digits(digits):
    fit = scale_free_fit(digits)
    assert 1.3 < float(fit.spectral_exponent) < 2
    assert float(fit.learning_exponent) == pytest.approx(
        min(float(fit.target_exponent), 2 * float(fit.spectral_exponent))
    )
    assert float(fit.cutoff_deviation) <= float(fit.power_deviation)
    assert np.all(np.diff(np.asarray(fit.target_tail)) < 0)


@pytest.mark.parametrize("exponent", [0.7, 0.9, 1.6])
def test_sums_of_powers_have_their_exponent_from_the_first_ranks_on(exponent):
    """Modes of known power, of which the last one carries those beyond the pool; fewer modes than
    examples, so that nothing is corrected.
    """
    rank = np.arange(1.0, 401)
    power = rank ** (-1 - exponent)
    power[-1] = zeta(1 + exponent, 400)
    values, power = np.append(rank**-1.5, [0, 0]), np.append(power, [0, 0])
    fit = scale_free_fit(ScaleFreeData(np.diag(402 * values), np.sqrt(402 * power)), half_samples=2)
    assert float(fit.target_exponent) == pytest.approx(exponent, abs=0.001)


def target(features, exponent, seed):
    """Of power j^(-1 - exponent) on mode j, everything beyond the features being noise."""
    modes = features.shape[1]
    random = np.random.default_rng([1, seed])
    weights = np.arange(1.0, modes + 1) ** (-(1 + exponent) / 2) * random.choice([-1, 1], modes)
    beyond = np.sqrt(zeta(1 + exponent, modes + 1))
    return features @ weights + beyond * random.normal(size=len(features))


def test_power_of_a_target_beyond_a_rank_of_the_sample():
    """Means over 24 samples of 200 within three standard errors at every rank, where up to two
    thirds of the population's power are missing.
    """
    rank, found = np.array([10, 20, 40, 80, 120]), []
    for seed in range(24):
        _, gram, features = sample(2.0, 200, modes=1000, seed=seed)
        labels = target(features * np.arange(1.0, 1001), 0.7, seed)
        power = theory._modes(gram, labels)[1]
        found.append(np.cumsum(power[::-1])[::-1][rank - 1])
    expected = zeta(1.7, rank) * theory.tail_ratio(rank / 200, 2.0, 0.7)
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(24)
    assert np.all(np.abs(mean - expected) < 3 * error)
    assert np.all((zeta(1.7, rank) - mean > 4 * error)[2:])


@pytest.mark.parametrize(("spectrum", "exponent"), [(2.0, 0.7), (1.5, 1.6)])
def test_the_exponent_of_a_target_has_no_bias(spectrum, exponent):
    """The mean over 64 samples of 200, whose scatter is about 0.12, within two standard errors.

    A straight line through the sums of the first target is too high by more.
    """
    found, lines, rank = [], [], theory.ranks(2, 20)
    for seed in range(64):
        _, gram, features = sample(spectrum, 200, modes=1000, seed=seed)
        normal = features * np.arange(1.0, 1001) ** (spectrum / 2)
        power = theory._modes(gram, target(normal, exponent, seed))[1]
        sums = np.cumsum(power[::-1])[::-1][rank - 1]
        found.append(theory.tail_exponent(rank, sums, spectrum, 200))
        lines.append(theory.fitted(rank - 0.5, sums, (1, 20)).exponent)
    error = 2 * np.std(found, ddof=1) / 8
    assert np.mean(found) == pytest.approx(exponent, abs=error)
    assert np.mean(lines) > exponent + error or spectrum < 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ScaleFreeData(np.eye(5), np.ones(5), 5),
            "n_train = 5: must leave some of the pool of 5",
        ),
        (
            lambda: ScaleFreeData(np.triu(np.ones((5, 5))), np.ones(5), 2),
            "gram differs from its transpose",
        ),
        (lambda: scale_free_fit(ScaleFreeData(np.eye(20), np.ones(20), 2)), "at least 100"),
        (lambda: ScaleFreeData.of("digits", 50, kernel="relo", n_train=5), "relo"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
