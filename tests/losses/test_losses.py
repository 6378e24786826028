"""Proximal maps and Gaussian averages of the losses: what defines them, limits, and independent
quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from orderparam.losses import Channel, Fields, Hinge, Logistic, RealLabels, SignLabels, Square, loss

W = jnp.asarray(np.concatenate([np.linspace(-60, 60, 241), [-1e4, 1e4, 1e-9]]))
VARIANCES = jnp.asarray([1e-8, 1e-3, 0.7, 12.0, 1e4, 1e10])[:, None]


@pytest.mark.parametrize("label", [-1.0, 1.0])
@pytest.mark.parametrize("name", ["square", "logistic", "hinge"])
def test_the_proximal_map_is_the_minimum_and_its_slope_the_derivative(name, label):
    chosen = loss(name)
    x = chosen.prox(label, W, VARIANCES)
    g = chosen.denoiser(label, W, VARIANCES)
    if chosen.smooth:  # stationary: l'(prox) + g = 0
        assert np.all(
            np.abs(chosen.slope(label, x) + g) <= 4e-16 * (1 + np.abs(W) + VARIANCES * np.abs(g))
        )
    height = lambda x: chosen(label, x) + (x - W) ** 2 / (2 * VARIANCES)  # noqa: E731
    for change in (-1e-3, 1e-3, -1.0, 1.0):
        assert np.all(height(x + change) >= height(x) * (1 - 1e-12) - 1e-12)
    slope = jax.vmap(
        jax.vmap(jax.grad(lambda w, v: chosen.denoiser(label, w, v)), (0, None)), (None, 0)
    )(W, VARIANCES[:, 0])
    expected = chosen.denoiser_slope(label, W, VARIANCES)
    kinked = (
        np.isclose(label * W, 1) | np.isclose(label * W, 1 - VARIANCES)
        if name == "hinge"
        else np.zeros(x.shape, bool)
    )
    np.testing.assert_allclose(
        np.where(kinked, 0, slope), np.where(kinked, 0, expected), rtol=1e-9, atol=3e-16
    )


def test_the_logistic_margin_solves_its_equation_to_rounding():
    v = VARIANCES
    g = np.asarray(Logistic().denoiser(1.0, W, v))
    t = np.asarray(W) + np.asarray(v) * g
    scale = np.abs(W) + np.asarray(v) * g + 1
    np.testing.assert_allclose(
        np.asarray(v) * g / scale, np.asarray(v) * expit(-t) / scale, atol=4e-15
    )


FIELDS = Fields(2.0, 1.3, 1.1, student_mean=0.4, teacher_mean=-0.3)


def brute_force(chosen, flip, variance, fields):
    """E g, E g^2, E prox-loss and the derivative of E g along the teacher's mean, by adaptive
    quadrature in scipy."""

    def average(function, shift=0.0):
        q, m = fields.student_variance, fields.covariance
        rest = np.sqrt(fields.teacher_variance - m**2 / q)

        def integrand(w, y):
            centre = fields.teacher_mean + shift + m / q * (w - fields.student_mean)
            z = flip + (1 - 2 * flip) * norm.cdf(y * centre / rest)
            return norm.pdf(w, fields.student_mean, np.sqrt(q)) * z * function(y, w)

        ends = (fields.student_mean - 13, fields.student_mean + 13)
        cuts = sorted(
            {y * float(cut) for y in (-1, 1) for cut in chosen.cuts(jnp.asarray(variance))} | {0.0}
        )
        return sum(
            quad(integrand, *ends, args=(y,), points=cuts, epsabs=1e-12, limit=400)[0]
            for y in (-1.0, 1.0)
        )

    def g(y, w):
        if chosen.name == "hinge":
            return y * np.clip((1 - y * w) / variance, 0, 1)
        low, high = y * w, y * w + variance
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if middle - y * w < variance * expit(-middle) else (low, middle)
            )
        return y * expit(-low)

    step = 1e-4
    change = (average(g, step) - average(g, -step)) / (2 * step)
    return average(g), average(lambda y, w: g(y, w) ** 2), change


@pytest.mark.parametrize("name", ["logistic", "hinge"])
def test_averages_over_shifted_fields_agree_with_adaptive_quadrature(name):
    chosen = loss(name)
    averages = Channel(chosen, SignLabels(0.1)).averages(jnp.asarray(1.7), FIELDS)
    mean, power, change = brute_force(chosen, 0.1, 1.7, FIELDS)
    assert float(averages.mean) == pytest.approx(mean, abs=1e-9)
    assert float(averages.power) == pytest.approx(power, abs=1e-9)
    assert float(averages.alignment) == pytest.approx(change, abs=1e-7)


def test_stiffness_is_minus_the_derivative_of_the_mean_force():
    # For labels independent of the teacher (flip 1/2) shifting the student's mean shifts w alone.
    channel = Channel(Hinge(), SignLabels(0.5))

    def shifted(mean):
        fields = Fields(1.5, 1.0, 0.2, student_mean=mean)
        return channel.averages(jnp.asarray(0.8), fields).mean

    stiffness = channel.averages(
        jnp.asarray(0.8), Fields(1.5, 1.0, 0.2, student_mean=jnp.asarray(0.3))
    ).stiffness
    assert float(stiffness) == pytest.approx(-float(jax.grad(shifted)(jnp.asarray(0.3))), rel=1e-10)


def test_square_loss_closes_for_any_labels():
    # Labels sign(nu) through the quadrature of a real link and through the closed form for signs.
    real, signs = (Channel(Square(), labels) for labels in (RealLabels("sign"), SignLabels()))
    for one, other in zip(
        jax.tree.leaves(real.averages(0.9, FIELDS)), jax.tree.leaves(signs.averages(0.9, FIELDS))
    ):
        assert float(one) == pytest.approx(float(other), abs=1e-12)


def test_classification_error_of_centred_fields_is_an_angle():
    channel = Channel(Logistic(), SignLabels(0.05))
    angle = channel.errors(jnp.asarray(1.0), Fields(2.0, 1.3, 1.1)).classification_error
    general = channel.errors(
        jnp.asarray(1.0), Fields(2.0, 1.3, 1.1, teacher_mean=jnp.asarray(0.0))
    ).classification_error
    assert float(angle) == pytest.approx(
        0.05 + 0.9 * np.arccos(1.1 / np.sqrt(2.6)) / np.pi, rel=1e-14
    )
    assert float(general) == pytest.approx(float(angle), abs=1e-11)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="labels -1 and"):
        Channel(Logistic(), RealLabels())
    with pytest.raises(ValueError, match=r"logstic.*did you mean 'logistic'"):
        loss("logstic")
    with pytest.raises(ValueError, match="flip"):
        SignLabels(0.7)


@pytest.mark.parametrize("name", ["hinge", "logistic"])
@pytest.mark.parametrize(
    ("power", "cosine", "variance"), [(0.1, 0.3, 0.05), (3.0, 0.8, 2.0), (40.0, 0.85, 120.0)]
)
def test_few_nodes_agree_with_those_of_each_label(name, power, cosine, variance):
    both = Channel(loss(name), SignLabels(0.02))
    fields = Fields(power, 1.0, cosine * np.sqrt(power))
    found, expected = both.averages(variance, fields), both._of_labels(variance, fields)
    for field in ("power", "stiffness", "alignment"):
        assert float(getattr(found, field)) == pytest.approx(
            float(getattr(expected, field)), rel=1e-11
        )


@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_the_smooth_hinge_is_the_envelope_of_the_hinge(label):
    from orderparam.losses import SmoothHinge

    width, fields = 0.4, jnp.linspace(-3, 3, 41) + 1e-3
    smooth = SmoothHinge(width)
    x = jnp.linspace(-5, 5, 200_001)
    envelope = [jnp.min(Hinge()(label, x) + (x - f) ** 2 / (2 * width)) for f in fields]
    np.testing.assert_allclose(smooth(label, fields), envelope, atol=1e-8)
    slopes = jax.vmap(jax.grad(lambda f: smooth(label, f)))(fields)
    np.testing.assert_allclose(smooth.slope(label, fields), slopes, atol=1e-14)
    bends = jax.vmap(jax.grad(lambda f: smooth.slope(label, f)))(fields)
    np.testing.assert_allclose(smooth.curvature(label, fields), bends, atol=1e-14)
    for variance in (0.1, 2.0):  # stationary: l'(prox) + g = 0
        g = smooth.denoiser(label, fields, variance)
        np.testing.assert_allclose(
            smooth.slope(label, smooth.prox(label, fields, variance)), -g, atol=1e-14
        )
