"""Posteriors of every prior against adaptive quadrature, where they sharpen, and what the averages
must satisfy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from orderparam.gaussian.tail import hazard, hazard_excess, log_cdf
from orderparam.priors import (
    GaussianPrior,
    MixturePrior,
    Rademacher,
    SamplePrior,
    SparsePrior,
    prior,
)
from orderparam.priors.base import Prior
from orderparam.systems.committee import Committee
from orderparam.systems.perceptron import ThermalPerceptron

PRIORS = {
    "gaussian": GaussianPrior(1.3),
    "rademacher": Rademacher(),
    "sparse": SparsePrior(0.2, 2.0),
    "mixture": MixturePrior([0.3, 0.5, 0.2], [-1.0, 0.0, 2.0], [0.0, 0.3, 0.1]),
    "sample": SamplePrior([-1.0, 0.2, 0.5, 0.9, 1.5, -0.4]),
}


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("precision", [0.0, 0.7, 9.0])
def test_the_posterior_is_the_derivative_of_the_free_entropy(name, precision):
    chosen, b = PRIORS[name], jnp.asarray([-2.3, 0.0, 0.4, 6.0])

    def log_partition(b):
        return chosen.posterior(b, precision).log_partition

    slope, bend = jax.jit(
        jax.vmap(lambda b: (jax.grad(log_partition)(b), jax.grad(jax.grad(log_partition))(b)))
    )(b)
    found = chosen.posterior(b, precision)
    np.testing.assert_allclose(found.mean, slope, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.variance, bend, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("precision", [1e-3, 0.7, 20.0])
def test_averages_over_observations_agree_with_equal_steps(name, precision):
    """Equal steps of the noise of every component: at moderate precision exact to rounding, and cut
    nowhere."""
    chosen, root = PRIORS[name], np.sqrt(precision)
    shares, means, variances = (np.asarray(part) for part in chosen.components)
    z = np.linspace(-9, 9, 4001)
    weight = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    x = root * means[:, None] + np.sqrt(1 + precision * variances)[:, None] * z
    told = chosen.posterior(jnp.asarray(root * x), precision)
    exact = [
        float(np.sum(shares[:, None] * weight * part))
        for part in (told.mean**2, told.variance, told.log_partition)
    ]
    found = chosen.averages(precision)
    np.testing.assert_allclose(
        [found.overlap, found.error, found.free_entropy], exact, rtol=1e-11, atol=1e-14
    )


@pytest.mark.parametrize("name", PRIORS)
def test_overlap_and_error_make_up_the_power_at_every_precision(name):
    chosen, precisions = PRIORS[name], jnp.geomspace(1e-8, 1e8, 33)
    if name == "sample":
        precisions = precisions[precisions < 1e4]
    found = jax.jit(lambda a: chosen.averages(a))(precisions)
    np.testing.assert_allclose(found.overlap + found.error, chosen.power, rtol=1e-12)
    assert np.all(np.diff(found.error) <= 0)
    slope = jax.vmap(jax.grad(lambda a: chosen.averages(a).free_entropy))(precisions[8:20])
    np.testing.assert_allclose(slope, found.overlap[8:20] / 2, rtol=1e-9)


def test_what_is_nearly_known_keeps_its_digits():
    found = Rademacher().posterior(jnp.asarray([30.0, -200.0]), 1.0)
    np.testing.assert_allclose(found.variance, 1 / np.cosh([30.0, 200.0]) ** 2, rtol=1e-12)
    np.testing.assert_allclose(
        SamplePrior([-1.0, 1.0] * 4).averages(60.0).error,
        Rademacher().averages(60.0).error,
        rtol=1e-12,
    )
    exact = SparsePrior(1.0, 2.0).averages(1e10)
    np.testing.assert_allclose(exact.error, 2 / (1 + 2e10), rtol=1e-12)


def test_tails_of_the_normal_distribution():
    u = np.asarray([-1e4, -100.0, -8.0, -6.0001, -5.9999, -1.0, 0.0, 3.0])
    exact = norm.logcdf(u)
    np.testing.assert_allclose(log_cdf(jnp.asarray(u)), exact, rtol=1e-13)
    np.testing.assert_allclose(
        hazard(jnp.asarray(u))[2:], np.exp(norm.logpdf(u) - exact)[2:], rtol=1e-13
    )
    far = 1e4  # Mills' ratio: 1/u - 1/u^3 + 3/u^5 - ...
    np.testing.assert_allclose(hazard_excess(jnp.asarray(-far)), 1 / far - 2 / far**3, rtol=1e-14)


def test_draws_have_the_moments_of_the_prior():
    for chosen in PRIORS.values():
        drawn = np.asarray(chosen.draw(jax.random.key(0), (200_000,)))
        error = np.std(drawn) / np.sqrt(drawn.size)
        assert abs(drawn.mean() - chosen.mean) < 4.5 * error
        assert (
            abs(np.mean(drawn**2) - chosen.power)
            < 4.5 * np.std(drawn**2) / np.sqrt(drawn.size) + 1e-12
        )


def test_bad_priors_are_refused_by_name():
    with pytest.raises(ValueError, match=r"SparsePrior\.density = 1\.2"):
        SparsePrior(1.2)
    with pytest.raises(ValueError, match=r"MixturePrior\.means has shape"):
        MixturePrior([0.5, 0.5], [0.0], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"SamplePrior\.values"):
        SamplePrior([0.0, 0.0])
    with pytest.raises(ValueError, match=r"there is no prior 'gausian'.*gaussian"):
        prior("gausian")


def test_two_words_for_one_law_are_read_alike():
    assert isinstance(prior("binary"), Rademacher)
    assert isinstance(prior("spherical"), GaussianPrior)
    assert ThermalPerceptron(weights="rademacher") == ThermalPerceptron(weights="binary")
    assert ThermalPerceptron(weights="gaussian").weights == "spherical"
    assert Committee(weights="rademacher").weights == "binary"
    assert Committee(weights="spherical").weights == "gaussian"
    with pytest.raises(ValueError, match=r"weights = 'uniform'.*must be one of binary, spherical"):
        ThermalPerceptron(weights="uniform")


def test_signs_of_equal_probability_agree_with_the_quadrature_of_any_mixture():
    precision = jnp.geomspace(1e-6, 50.0, 25)
    closed, any_mixture = Rademacher().averages(precision), Prior.averages(Rademacher(), precision)
    for name in ("overlap", "error", "free_entropy", "information"):
        expected = getattr(any_mixture, name)
        np.testing.assert_allclose(getattr(closed, name), expected, rtol=3e-12, atol=3e-13)


def test_the_error_of_well_measured_signs_keeps_its_digits():
    """exp(-a/2) E 1/cosh(x), x ~ N(0, a), whose density is nearly flat over the width of 1/cosh."""
    a = 100.0
    flat = 1 - np.pi**2 / (8 * a) + 5 * (np.pi / 2) ** 4 / (8 * a**2)
    found = float(Rademacher().averages(a).error)
    np.testing.assert_allclose(found, np.exp(-a / 2) * np.sqrt(np.pi / (2 * a)) * flat, rtol=5e-5)
