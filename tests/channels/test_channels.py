"""Evidence, denoisers and information of every law of labels: derivatives, adaptive quadrature,
limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from orderparam.channels import (
    DensityLabels,
    LogisticLabels,
    ProbitLabels,
    RealLabels,
    SignLabels,
    channel,
)
from orderparam.channels.base import Likelihood

# made in the tests, and not by every worker that imports this file
LIKELIHOODS = {
    "sign": lambda: SignLabels(),
    "flipped sign": lambda: SignLabels(0.1),
    "probit": lambda: ProbitLabels(0.05, 0.5),
    "logistic": lambda: LogisticLabels(2.0),
    "abs": lambda: RealLabels("abs"),
    "noisy abs": lambda: RealLabels("abs", 0.3),
    "relu": lambda: RealLabels("relu"),
    "noisy leaky relu": lambda: RealLabels("leaky_relu(0.2)", 0.1),
    "linear": lambda: RealLabels("linear", 0.2),
    "tanh": lambda: RealLabels("tanh", 0.2),
    "own": lambda: DensityLabels(
        lambda y, z: -jnp.abs(y - z), [-1.0, 0.0, 2.0], places=(-1.0, 0.0, 2.0)
    ),
}
LABELS = {"own": (-1.0, 0.0, 2.0), "abs": (0.3, 2.5)}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_denoisers_are_derivatives_of_the_evidence(name):
    law = LIKELIHOODS[name]()
    labels = LABELS.get(name, (-1.0, 1.0) if law.binary else (0.4, 1.9))
    cases = jnp.asarray(
        [(y, w, v) for y in labels for w, v in ((0.3, 0.6), (-1.7, 0.05), (2.0, 3.0))]
    ).T

    @jax.jit
    @jax.vmap
    def four(y, w, v):
        slope = jax.grad(law.log_evidence, argnums=1)
        return (
            slope(y, w, v),
            jax.grad(slope, argnums=1)(y, w, v),
            law.denoiser(y, w, v),
            law.denoiser_slope(y, w, v),
        )

    slope, bend, g, change = four(*cases)
    np.testing.assert_allclose(g, slope, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(change, bend, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_labels_and_their_evidence_belong_together(name):
    """The weights of labels add up to one, and E y, E y^2 are those of `moments`; so are the
    draws."""
    law, field, variance = LIKELIHOODS[name](), 0.4, 0.7
    y, weight = law.label_rule(jnp.asarray(field), jnp.asarray(variance))
    np.testing.assert_allclose(jnp.sum(weight), 1.0, rtol=1e-10)
    moments = law.moments(jnp.asarray(field), jnp.asarray(variance))
    np.testing.assert_allclose(
        [jnp.sum(weight * y), jnp.sum(weight * y**2)], [moments.mean, moments.power], rtol=1e-9
    )
    nu = field + np.sqrt(variance) * jax.random.normal(jax.random.key(0), (100_000,))
    drawn = law.draw(nu, jax.random.key(1))
    assert abs(jnp.mean(drawn) - moments.mean) < 4.5 * jnp.std(drawn) / np.sqrt(drawn.size)
    np.testing.assert_allclose(jnp.mean(drawn * (nu - field)) / variance, moments.slope, atol=0.03)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_information_is_minus_the_mean_slope(name):
    """E g^2 = -E dg/dw, with the average over labels done by drawing them."""
    law, q, variance = LIKELIHOODS[name](), 0.5, 0.5
    # there every label is an integral of its own
    count = 20_000 if name in ("tanh", "own") else 400_000
    w, x = (
        np.sqrt(q) * jax.random.normal(jax.random.key(2), (count,)),
        jax.random.normal(jax.random.key(3), (count,)),
    )
    label = law.draw(w + np.sqrt(variance) * x, jax.random.key(4))
    g, slope = law.denoiser(label, w, variance), law.denoiser_slope(label, w, variance)
    found = float(jax.jit(lambda q, v: law.averages(q, v).information)(q, variance))
    for sample in (g**2, -slope):
        assert abs(np.mean(sample) - found) < 4.5 * np.std(sample) / np.sqrt(sample.size) + 1e-12


def test_information_of_signs_agrees_with_adaptive_quadrature():
    for q in (0.3, 0.9, 1 - 1e-4):
        steep = np.sqrt(q / (1 - q))

        def inside(z, u=steep):
            return norm.pdf(z) * np.exp(2 * norm.logpdf(u * z) - norm.logcdf(u * z))

        edge = 40 * np.sqrt((1 - q) / q)
        exact = (
            2
            * quad(
                inside,
                -min(edge, 9),
                min(edge, 9),
                points=[0.0],
                epsabs=1e-13,
                epsrel=1e-12,
                limit=400,
            )[0]
            / (1 - q)
        )
        np.testing.assert_allclose(SignLabels().averages(q, 1 - q).information, exact, rtol=1e-8)


def test_closed_evidence_of_a_kinked_link_agrees_with_quadrature():
    for slopes, name in (((1.0, -1.0), "noisy abs"), ((1.0, 0.2), "noisy leaky relu")):
        law = LIKELIHOODS[name]()
        for label, field, variance in ((0.3, 0.2, 0.5), (-0.4, 0.9, 1.4), (1.5, -1.0, 0.7)):
            noise = float(law.noise)

            def both(x, y, w, v, noise=noise, slopes=slopes):
                return norm.pdf(y, x * slopes[x <= 0], np.sqrt(noise)) * norm.pdf(x, w, np.sqrt(v))

            exact = quad(both, -9, 9, (label, field, variance), points=[0.0], epsabs=1e-13)[0]
            np.testing.assert_allclose(
                law.log_evidence(label, field, variance), np.log(exact), rtol=1e-9
            )


def test_information_of_a_magnitude_by_two_integrals():
    """Without noise: g = (y tanh(y w / V) - w) / V, averaged over w and the field in equal
    steps."""
    q, v = 0.6, 0.4
    w, x = (np.linspace(-9, 9, 2001)[:, None] * np.sqrt(part) for part in (q, v))
    field = w + x.T
    g = (np.abs(field) * np.tanh(np.abs(field) * w / v) - w) / v
    step = 18 / 2000 / np.sqrt(2 * np.pi)
    density = step**2 * np.exp(-(w**2) / (2 * q) - x.T**2 / (2 * v))
    exact = np.sum(density * g**2)
    np.testing.assert_allclose(RealLabels("abs").averages(q, v).information, exact, rtol=1e-9)


def test_linear_labels_tell_what_a_measurement_tells():
    found = LIKELIHOODS["linear"]().averages(jnp.asarray([0.3, 1 - 1e-6]), jnp.asarray([0.7, 1e-6]))
    np.testing.assert_allclose(found.information, 1 / (np.asarray([0.7, 1e-6]) + 0.2), rtol=1e-10)


def test_a_person_s_own_law_is_the_one_it_names():
    own = DensityLabels(lambda y, z: -jax.nn.softplus(-2 * y * z), [-1.0, 1.0])
    first, second = own.averages(0.4, 0.6), LIKELIHOODS["logistic"]().averages(0.4, 0.6)
    np.testing.assert_allclose(
        [first.information, first.free_entropy],
        [second.information, second.free_entropy],
        rtol=1e-10,
    )


def test_a_person_s_own_density_is_the_one_it_names():
    real = DensityLabels.on_interval(lambda y, z: -((y - z) ** 2) / 0.4, -9.0, 9.0)
    np.testing.assert_allclose(real.averages(0.4, 0.6).information, 1 / 0.8, rtol=1e-8)


def test_sharp_signs_keep_their_digits():
    g = SignLabels().denoiser(1.0, jnp.asarray([-1e3, -1e6]), 1.0)
    np.testing.assert_allclose(g, [1e3 + 1e-3 - 2e-9, 1e6 + 1e-6], rtol=1e-15)
    slope = SignLabels().denoiser_slope(1.0, jnp.asarray([-1e3]), 1.0)
    np.testing.assert_allclose(slope, [-(1 - 1e-6)], rtol=1e-11)


def test_bad_laws_are_refused_by_name():
    with pytest.raises(ValueError, match=r"ProbitLabels\.noise = -1"):
        ProbitLabels(0.0, -1)
    with pytest.raises(ValueError, match=r"there is no channel 'sgn'.*sign"):
        channel("sgn")
    with pytest.raises(ValueError, match="low = 2"):
        DensityLabels.on_interval(lambda y, z: y * z, 2.0, 1.0)


@pytest.mark.parametrize("flip", [0.0, 1e-3, 0.2])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_signs_agree_with_the_quadrature_of_any_law(flip, noise):
    variance = jnp.geomspace(1e-6, 0.99, 9)
    labels = ProbitLabels(noise=noise, flip=flip)
    closed = labels.averages(1 - variance, variance)
    fine = type("Fine", (ProbitLabels,), {"field_nodes": 2000})(noise=noise, flip=flip)
    any_law = Likelihood.averages(fine, 1 - variance, variance)
    np.testing.assert_allclose(closed.information, any_law.information, rtol=1e-12)
    np.testing.assert_allclose(closed.free_entropy, any_law.free_entropy, rtol=1e-12, atol=1e-14)
