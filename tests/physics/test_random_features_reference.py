"""Random features and Gaussian covariates against independently computed values, to the digits
known.

Ridge rows come from a matrix-free numerical prototype, the logistic and hinge ones from fixed-point
iterations in NumPy with adaptive or 4000-node quadrature over explicit Marchenko-Pastur spectra.
"""

from decimal import Decimal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.kernels.spectra import power_law
from orderparam.kernels.spectrum import Spectrum
from orderparam.losses import RealLabels, SignLabels
from orderparam.systems.random_features import (
    ExplicitSpectrum,
    GaussianFeatures,
    RandomFeatures,
    ScalingPath,
    SpectralFeatures,
    SphereFeatures,
    asymptotics,
    deterministic_equivalent,
    gaussian_equivalent,
    local_exponents,
    optimal_ridge,
    polynomial_regime,
    scaling_exponents,
)

DIMENSION = 200.0
THEORY = asymptotics
BEST = optimal_ridge


def random_features(activation, aspect, load, ridge, labels, loss="square"):
    """aspect = p/d, load = n/p."""
    width = aspect * DIMENSION
    return RandomFeatures(
        DIMENSION,
        width,
        n_train=load * width,
        ridge=ridge,
        activation=activation,
        labels=labels,
        loss=loss,
    )


def real(noise):
    return RealLabels(noise=jnp.asarray(float(noise)))


def signs():
    return SignLabels(jnp.asarray(0.0))


@pytest.mark.parametrize(
    ("activation", "linear", "nonlinear"),
    [
        ("erf", 0.6514700159, 0.2003643502),
        ("relu", 0.5, 0.3014051375),
        ("tanh", 0.6057055096, 0.1655757411),
    ],
)
def test_gaussian_equivalents(activation, linear, nonlinear):
    np.testing.assert_allclose(
        gaussian_equivalent(activation)[1:], (linear, nonlinear), rtol=0, atol=5.1e-11
    )


RIDGE = [  # activation, p/d, n/p, ridge, noise: test error, train error, V, q, m
    (
        "erf",
        2.0,
        1.5,
        1e-2,
        0.10,
        (0.3554511257, 0.0673028614, 1.2981225409, 1.0440453837, 0.8942971290),
    ),
    (
        "erf",
        0.5,
        4.0,
        1e-3,
        0.00,
        (0.7608079371, 0.4282904031, 0.3328103170, 0.6177900274, 0.4284910451),
    ),
    ("erf", 3.0, 0.5, 1e-4, 0.25, (0.9147320457, None, 479.5862336749, 1.4028542016, 0.8690610779)),
    (
        "relu",
        2.0,
        1.5,
        1e-2,
        0.10,
        (0.7248728402, 0.1150632994, 1.5099351597, 1.1142984663, 0.7447128130),
    ),
    ("sign", 3.0, 0.5, 1e-4, 0.25, (1.1748913929, None, 3061.5046780, None, None)),
]


@pytest.mark.parametrize(("activation", "aspect", "load", "ridge", "noise", "values"), RIDGE)
def test_least_squares_in_closed_form(activation, aspect, load, ridge, noise, values):
    curve = THEORY(random_features(activation, aspect, load, ridge, real(noise)))
    found = (
        curve.test_error,
        curve.train_error,
        curve.response,
        curve.self_overlap,
        curve.teacher_overlap,
    )
    for number, value in zip(found, values):
        if value is not None:
            assert float(number) == pytest.approx(value, rel=1e-9, abs=6e-11)
    n, dimension = load * aspect * DIMENSION, float(curve.effective_dimension)
    assert float(curve.response / (1 + curve.response)) == pytest.approx(dimension / n, rel=1e-12)
    # the GCV identity
    assert float(curve.cross_validation) == pytest.approx(float(curve.test_error), rel=1e-9)


def test_the_same_map_by_its_explicit_eigenvalues():
    """The Marchenko-Pastur averages against quadrature over its density, atom included (p > d)."""
    linear, nonlinear = (float(x) ** 2 for x in gaussian_equivalent("erf")[1:])
    aspect, nodes = 2.0, 4000
    # midpoint rule: spectrally accurate for sin^2 of a periodic function
    angle = (np.arange(nodes) + 0.5) * np.pi / nodes
    x = 1 + aspect - 2 * np.sqrt(aspect) * np.cos(angle)
    bulk = 4 * aspect * np.sin(angle) ** 2 / (2 * np.pi * x * aspect) * np.pi / nodes
    assert bulk.sum() == pytest.approx(1 / aspect, rel=1e-12)
    values, weights = np.append(x, 0.0), np.append(bulk, 1 - 1 / aspect)
    curve = THEORY(random_features("erf", aspect, 1.5, 1e-2, real(0.1)))
    omega = linear * values + nonlinear
    stiffness = 1.5 / (1 + float(curve.response))
    inverse = 1 / (1e-2 + stiffness * omega)
    pull = stiffness * aspect * linear
    m = pull * weights @ (values * inverse)
    spread = stiffness**2 / 1.5 * weights @ (omega * inverse) ** 2
    q = (spread * (1.1 - 2 * m) + stiffness * pull * weights @ (values * omega * inverse**2)) / (
        1 - spread
    )
    assert float(curve.response) == pytest.approx(weights @ (omega * inverse), rel=1e-11)
    assert (float(curve.teacher_overlap), float(curve.self_overlap)) == pytest.approx(
        (m, q), rel=1e-11
    )
    per_feature = 1.5 * 0.3554511257 / (1 + float(curve.response)) ** 2
    weight = per_feature * weights @ (omega * inverse**2) + stiffness * pull * weights @ (
        values * inverse**2
    )
    assert float(curve.weight_power) == pytest.approx(weight, rel=1e-9)


DESCENT = [  # p/n: test error at ridge 1e-4, best ridge, test error there
    (0.2, 1.04276043, 1.237099, 0.95007101),
    (0.9, 2.25953485, 0.079766, 0.53156302),
    (1.0, 3.79825269, 0.069179, 0.49796401),
    (2.0, 0.46448012, 0.038092, 0.35187760),
    (20.0, 0.24805327, 0.008963, 0.24667016),
]


@pytest.mark.parametrize(("ratio", "error", "ridge", "best"), DESCENT)
def test_double_descent_and_the_ridge_that_removes_it(ratio, error, ridge, best):
    system = random_features("erf", 1.5 * ratio, 1 / ratio, 1e-4, real(0.1))
    assert float(THEORY(system).test_error) == pytest.approx(error, abs=6e-9)
    optimum = BEST(system)
    assert bool(optimum.converged)
    assert float(optimum.test_error) == pytest.approx(best, abs=6e-9)
    assert float(optimum.ridge) == pytest.approx(ridge, abs=6e-7)


SIGNS = [  # loss, n/p, p/d, ridge: classification error, train loss, test loss, V, q, m
    (
        "logistic",
        2.0,
        1.5,
        1e-2,
        (0.209571086, 0.135152789, 0.468080831, 6.811763891, 12.776146661, 2.827258646),
    ),
    (
        "logistic",
        0.8,
        3.0,
        1e-3,
        (0.190126023, 0.0174827556, 0.530132479, 98.94965426, 38.20159399, 5.110597297),
    ),
    (
        "square",
        2.0,
        1.5,
        1e-2,
        (0.239092931, 0.113643983, 0.388770464, 0.849581228, 0.857819146, 0.676963981),
    ),
    (
        "hinge",
        2.0,
        1.5,
        1e-1,
        (0.219436937, 0.176105952, 0.511146554, 0.825145859, 2.144674521, 1.130043586),
    ),
    (
        "hinge",
        1.0,
        2.0,
        1e-2,
        (0.236176736, None, 0.551535706, 8.050310976, 3.439456690, 1.367079414),
    ),
]


@pytest.mark.parametrize(("loss", "load", "aspect", "ridge", "values"), SIGNS)
def test_classification_of_signs(loss, load, aspect, ridge, values):
    curve = THEORY(random_features("erf", aspect, load, ridge, signs(), loss))
    assert bool(curve.converged)
    found = (curve.classification_error, curve.train_loss, curve.test_loss)
    for number, value in zip(
        (*found, curve.response, curve.self_overlap, curve.teacher_overlap), values
    ):
        if value is not None:
            assert float(number) == pytest.approx(value, rel=2e-9, abs=6e-10)


K = np.arange(1.0, 101)
SIGNAL = K**-2.5 / np.sum(K**-2.5)
RHO = 1.2 * np.sum(SIGNAL * K)
COVARIATES = [  # loss, n/p, ridge: error, train error or loss, test loss, V, q, m
    ("square", 0.5, 1e-3, ".8792830389 .0041790647 - 13.5052361269 1.8529023210 1.5665358127"),
    ("square", 2.0, 1e-2, ".5193967622 .2078849207 - .5806587686 1.7831684630 1.7116120220"),
    ("logistic", 0.5, 1e-3, ".228857282 .062711690 .511081626 23.871276 11.286670 3.714923"),
    ("logistic", 2.0, 1e-2, ".180158637 .242377240 .384408233 1.809289 6.017202 3.042586"),
]


@pytest.mark.parametrize(("loss", "load", "ridge", "values"), COVARIATES)
def test_explicit_covariances(loss, load, ridge, values):
    assert pytest.approx(2.159452343216546, rel=1e-14) == RHO
    labels = signs() if loss == "logistic" else real(0.0)
    given = {
        "n_train": jnp.asarray(100 * load),
        "ridge": jnp.asarray(ridge),
        "labels": labels,
        "loss": loss,
    }
    curve = THEORY(GaussianFeatures(ExplicitSpectrum(1 / K, SIGNAL), RHO, **given))
    first = (
        (curve.classification_error, curve.train_loss)
        if loss == "logistic"
        else (curve.test_error, curve.train_error)
    )
    found = (*first, curve.test_loss, curve.response, curve.self_overlap, curve.teacher_overlap)
    for number, text in zip(found, values.split()):
        if text != "-":
            assert float(number) == pytest.approx(
                float(text), rel=0, abs=0.501 * 10.0 ** Decimal(text).as_tuple().exponent
            )


MODES = np.arange(1.0, 2001)
EQUIVALENT = eqx.filter_jit(lambda system: deterministic_equivalent(system))


@pytest.mark.parametrize(
    ("n", "p", "ridge", "bias", "variance"),
    [
        (200, 100, 1e-2, 0.04912844799, 0.08881073376),
        (200, 200, 1e-2, 0.03492034627, 0.2059254502),
        (200, 400, 1e-3, 0.01533754852, 0.1622478284),
        (400, 150, 1.0, 0.02365596347, 0.01118966066),
        (300, 300, 1e-8, 12.39140293, 190.4857271),  # the interpolation peak
        (200, 1e12, 1e-3, 0.004544957971, 0.06808706922),  # kernel regression
    ],
)
def test_deterministic_equivalent(n, p, ridge, bias, variance):
    numbers = (jnp.asarray(float(x)) for x in (n, p, ridge, 0.1))
    curve = EQUIVALENT(SpectralFeatures(Spectrum(MODES**-1.5, MODES**-2.2), *numbers))
    assert bool(curve.converged)
    assert (float(curve.bias), float(curve.variance)) == pytest.approx((bias, variance), rel=5e-10)


def test_the_equivalent_without_dimension_contains_the_proportional_limit():
    """Eigenvalues mu_1^2/d with multiplicity d, and a flat tail of mass mu_*^2: two independent
    sets of equations."""
    linear, nonlinear = (x**2 for x in gaussian_equivalent("relu")[1:])
    spectrum = Spectrum([linear / DIMENSION], [1.0], [DIMENSION], tail=nonlinear)
    curve = EQUIVALENT(SpectralFeatures(spectrum, 600.0, 400.0, 0.01, 0.1))
    expected = THEORY(random_features("relu", 2.0, 1.5, 1e-2, real(0.1)))
    assert float(curve.excess_risk) + 0.1 == pytest.approx(float(expected.test_error), rel=1e-12)
    assert float(curve.effective_dimension) == pytest.approx(
        float(expected.effective_dimension), rel=1e-12
    )


@pytest.mark.parametrize(
    ("capacity", "source", "l", "q"),
    [
        (1.5, 0.4, 0.6, 0.8),
        (2.0, 0.8, 0.6, 0.5),
        (2.0, 0.8, 1.6, 1.5),
        (1.5, 1.5, 0.5, 0.6),
        (1.5, 0.4, 3.0, 0.5),
    ],
)
def test_exponents_of_power_laws(capacity, source, l, q):
    found = local_exponents(ScalingPath(power_law(capacity, source, 1e15), l, q, 9.5))
    expected = scaling_exponents(capacity, source, l, q)
    # corrections are powers of n
    assert float(found.bias_exponent) == pytest.approx(expected.bias, abs=0.01)
    assert float(found.variance_exponent) == pytest.approx(expected.variance, abs=0.002)


SPHERICAL = eqx.filter_jit(lambda system: polynomial_regime(system))
# bias, width: excess risk at n = 24, 300, 6000; brentq on the equations, Gegenbauer coefficients
# cut at the kink
SPHERE = [
    (0.0, 1500.0, (1.073338028, 0.7467841, 0.381408403)),
    (-0.5, 1500.0, (0.961539555, 0.681073361, 0.322945524)),
    (-0.5, 1e9, (0.948221872, 0.585912768, 0.073267045)),
]


@pytest.mark.parametrize(("bias", "width", "risks"), SPHERE)
def test_polynomial_regime_on_the_sphere(bias, width, risks):
    system = SphereFeatures(24, width, 1.0, 1e-3, (0, 0.36, 0.36, 0.28), "relu", bias)
    for n, risk in zip((24.0, 300.0, 6000.0), risks):
        curve = SPHERICAL(system.with_(n_train=jnp.asarray(n), width=jnp.asarray(width)))
        assert float(curve.excess_risk) == pytest.approx(risk, abs=6e-10)


def test_degrees_are_learned_one_after_another():
    """In d = 1000 an infinitely wide map has learned degree 1 at n = d^1.5, and degree 2 at n =
    d^2.5."""
    system = SphereFeatures(1000, 1e15, 1.0, 1e-3, (0, 0.36, 0.36, 0.28), "relu", -0.5)
    for power, left in ((1.5, 0.64), (2.5, 0.28)):
        assert float(
            SPHERICAL(system.with_(n_train=jnp.asarray(1000.0**power))).excess_risk
        ) == pytest.approx(left, rel=0.1)
