"""One-pass SGD with power-law random features: closed forms, published exponents, and an
independent recursion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.kernels.effective_ridge import effective_ridge
from orderparam.kernels.feature_equivalent import feature_equivalent
from orderparam.systems.scaling_laws import (
    ComputeBudget,
    ComputeFrontier,
    PowerLawFeatures,
    ScaleFreeFeatures,
    compute_exponents,
    compute_optimal,
    deterministic_risk,
    frontier_exponents,
    joint_law,
    optimal_ridge,
)
from orderparam.systems.scaling_laws.one_pass.experiment import _mean_risk
from orderparam.systems.scaling_laws.one_pass.theory import risk_at


def one_draw(inputs, width, alpha, beta, seed=0):
    """(s, theta*, R_0) of W from NumPy's generator, in the eigenbasis of K."""
    weights = np.random.default_rng(seed).normal(size=(inputs, width)) / np.sqrt(width)
    j = np.arange(1.0, inputs + 1)
    power, target = j ** (-2 * alpha), j**-beta
    correlation = weights.T @ (power * target)
    s, vectors = np.linalg.eigh(weights.T @ (power[:, None] * weights))
    best = np.linalg.solve(weights.T @ (power[:, None] * weights), correlation)
    return s, vectors.T @ best, target @ (power * target) - best @ correlation


def test_the_risk_without_a_draw():
    """Values of an independent program (n = 16 Talbot points: six to eight digits)."""
    spectrum = PowerLawFeatures(1.0, 0.3, 600, width=60, learning_rate=0.3).spectrum
    steps = np.array([30.0, 100.0, 300.0, 1000.0, 1e4, 1e5])
    risk = jax.jit(jax.vmap(lambda step: risk_at(spectrum, 60.0, 0.3, 1.0, step)))(steps)
    np.testing.assert_allclose(
        risk, [0.1064349, 0.0471016, 0.0251210, 0.0147932, 0.0091571, 0.0088261], rtol=0, atol=6e-8
    )


@pytest.mark.parametrize(
    ("alpha", "beta", "expected"),
    [
        (1.0, 0.3, 2.71309962e-3),
        (0.75, 0.8, 5.44676844e-3),
        (0.4, 0.7, 0.19280206),
        (1.0, 1.3, 2.85024905e-4),
    ],
)
def test_irreducible_risk(alpha, beta, expected):
    curve = deterministic_risk(
        PowerLawFeatures(alpha, beta, 800, width=100, learning_rate=0.01, horizon=10, records=2)
    )
    assert float(curve.irreducible_risk) == pytest.approx(expected, rel=3e-9)
    assert float(curve.limit_risk) == pytest.approx(expected / (1 - float(curve.noise)), rel=3e-9)


def test_the_floor_of_one_draw():
    s, best, irreducible = one_draw(200, 30, 0.9, 0.7)
    found = _mean_risk(s, best, irreducible, 0.2, 3.0, jnp.array([1e7]))
    assert float(found[0]) == pytest.approx(0.022040752, abs=5e-10)
    assert float(found[0]) == pytest.approx(
        irreducible / (1 - 0.1 * np.sum(s / (1 - 0.4 * s))), rel=1e-10
    )


def test_the_threshold_of_the_irreducible_risk():
    spectrum = PowerLawFeatures(1.0, 0.3, 800, width=100, learning_rate=0.01).spectrum
    assert float(effective_ridge(spectrum, 100.0, 0.0).threshold) == pytest.approx(
        2.18787012e-4, rel=3e-9
    )


@pytest.mark.parametrize(
    ("rate", "noise", "growth", "step"),
    [(0.5, 0.921395, 0.996670, 4000.0), (0.6, 2.105, 1.3539, 100.0)],
)
def test_the_stability_of_one_draw(rate, noise, growth, step):
    """(gamma/2) sum s/(1 - gamma (B + 1) s/2), and the factor by which the slowest mode changes in
    a step: both above 1 at once, while gamma (B + 1) s_max = 1.757 < 2."""
    s, best, irreducible = one_draw(200, 30, 0.9, 0.7)
    assert rate / 2 * np.sum(s / (1 - 2 * rate * s)) == pytest.approx(
        noise, abs=6e-7 if noise < 1 else 6e-4
    )
    # risks of neighbouring steps agree in ten digits, so that rounding would decide
    late = _mean_risk(s, best, irreducible, rate, 3.0, step + 100 * jnp.arange(3.0))
    assert float((late[2] - late[1]) / (late[1] - late[0])) ** 0.01 == pytest.approx(
        growth, abs=6e-7 if noise < 1 else 6e-5
    )


def test_another_draw_at_early_steps():
    s, best, irreducible = one_draw(400, 60, 0.8, 0.6, seed=3)
    found = _mean_risk(s, best, irreducible, 0.25, 2.0, jnp.array([5.0, 20.0, 100.0, 400.0]))
    np.testing.assert_allclose(
        found, [0.26719946, 0.07576958, 0.03328431, 0.02370147], rtol=0, atol=5.1e-9
    )


def test_the_mean_over_samples_of_one_draw():
    """The closed form against the recursion it solves."""
    s, best, irreducible = one_draw(200, 30, 0.9, 0.7)
    rate, batch, c, recursion = 0.2, 3.0, best**2, []
    for _ in range(101):
        risk = irreducible + s @ c
        recursion.append(risk)
        c = (
            1 - 2 * rate * batch * s + rate**2 * batch * (batch + 1) * s**2
        ) * c + rate**2 * batch * s * risk
    steps = np.array([0.0, 1.0, 2.0, 10.0, 100.0])
    np.testing.assert_allclose(
        _mean_risk(s, best, irreducible, rate, batch, steps),
        np.array(recursion)[steps.astype(int)],
        rtol=1e-11,
    )


@pytest.mark.parametrize(
    ("alpha", "beta", "expected"),
    [
        (1.0, 0.3, ("Ia", 1 / 3, 1.6 / 3)),
        (0.8, 0.65, ("II", 0.65 / 1.45, 1.9 / 2.9)),
        (0.8, 1.2, ("III", 0.5, 0.6875)),
        (0.4, 0.3, ("Ib", 0.5, 0.2)),
        (0.4, 1.0, ("IVa", 0.5, 0.4)),
    ],
)
def test_phases(alpha, beta, expected):
    assert tuple(compute_exponents(alpha, beta)) == (
        expected[0],
        pytest.approx(expected[1]),
        pytest.approx(expected[2]),
    )


@pytest.mark.parametrize("seed", range(40))
def test_exponents_are_the_best_balance_of_the_terms(seed):
    """min over d = f^xi of the largest term of the risk at r = f/d steps, each a power of f; one
    place in the plane a seed."""
    alpha, beta = np.random.default_rng(seed).uniform([0.05, 0.0], [1.2, 1.4])
    if 2 * (alpha + beta) < 1.02:
        with pytest.raises(ValueError, match="no power law"):
            compute_exponents(alpha, min(beta, 0.49 - alpha))
        return
    width = np.linspace(0.0, 1.0, 200001)
    rate = (2 * alpha - 1) * width if alpha < 0.5 else 0 * width
    learned = np.maximum(rate + 1 - width, 0)  # log of gamma r
    terms = [
        width * (-2 * alpha + max(0, 1 - 2 * beta)),
        -learned * (2 * alpha + 2 * beta - 1) / (2 * alpha),
        rate + learned * (-2 + 1 / (2 * alpha)),
    ]
    if alpha > 0.5 and beta > 0.5:
        terms.append(-width + learned * (-1 + 1 / (2 * alpha)))
    if alpha < 0.25:
        terms.pop(2)  # the noise does not add up: 2 - 1/(2 alpha) < 0
    largest = np.max(terms, axis=0)
    found = compute_exponents(alpha, beta)
    assert found.risk == pytest.approx(-largest.min(), abs=1e-5), found
    assert found.width == pytest.approx(width[largest.argmin()], abs=1e-4), found


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.3), (0.8, 0.65), (0.8, 1.2)])
def test_exponents_at_a_given_compute_approach_their_limits(alpha, beta):
    limit = compute_exponents(alpha, beta)
    off = []
    for compute in (1e5, 1e9):
        found = compute_optimal(ComputeBudget(compute, alpha, beta))
        assert bool(found.converged)
        off.append(
            (
                abs(float(found.risk_exponent) - limit.risk),
                abs(float(found.width_exponent) - limit.width),
            )
        )
    assert off[1][0] < min(off[0][0] / 2, 0.006)
    assert off[1][1] < min(off[0][1] / 1.5, 0.006)


@pytest.mark.parametrize(
    ("alpha", "beta", "compute", "risk", "width", "accuracy"),
    [
        # this compute has four digits: 2.2e-4 of the risk
        (1.0, 0.3, 1.212e6, 0.0027814, 254.7, 3e-4),
        (0.8, 0.65, 1e5, 0.00542141, 272.9, 3e-5),
        (0.8, 1.2, 1e5, 0.00182577, 417.9, 3e-5),
    ],
)
def test_the_frontier_of_three_phases(alpha, beta, compute, risk, width, accuracy):
    """Minimum over the width with v = 4 d, by a cubic through five widths; a spline of an
    independent program."""
    widths = np.round(width * np.array([0.8, 0.9, 1.0, 1.12, 1.25]))
    run = jax.jit(risk_at)
    log_risk = [
        np.log(
            float(
                run(
                    PowerLawFeatures(alpha, beta, 4 * d, width=d, learning_rate=0.3).spectrum,
                    d,
                    0.3,
                    1.0,
                    compute / d,
                )
            )
        )
        for d in widths
    ]
    cubic = np.polynomial.Polynomial.fit(np.log(widths / width), log_risk, 3)
    (best,) = (x.real for x in cubic.deriv().roots() if abs(x) < 0.2)
    assert np.exp(cubic(best)) == pytest.approx(risk, rel=accuracy)
    assert np.exp(best) == pytest.approx(1, abs=0.01)


def test_the_frontier_where_the_learning_rate_falls_with_the_width():
    """Phase Ib, alpha = 0.4, beta = 0.3: an independent program has -0.1769 and 0.5086 around this
    compute; the limits are -0.2 and 1/2."""
    found = frontier_exponents(ComputeFrontier(4e5, 0.4, 0.3))
    assert bool(found.converged)
    assert float(found.risk_exponent) == pytest.approx(0.1769, abs=0.001)
    assert float(found.width_exponent) == pytest.approx(0.5086, abs=0.002)


@pytest.mark.parametrize(
    ("alpha", "beta"), [(1.0, 0.3), (0.8, 0.65), (0.4, 0.3), (0.4, 1.0), (0.27, 0.8), (0.15, 0.9)]
)
def test_exponents_of_all_phases_approach_their_limits(alpha, beta):
    limit, off = compute_exponents(alpha, beta), []
    for compute in (1e5, 1e11):
        found = frontier_exponents(ComputeFrontier(compute, alpha, beta))
        assert bool(found.converged)
        off.append(abs(float(found.risk_exponent) - limit.risk))
    assert off[1] < min(off[0] / 2, 0.03)


def test_the_frontier_of_one_family():
    """L*(f = 1e4) = 0.0333723 at d* = 46.55 with v = 4 d, by a spline over the widths of an
    independent program: to 1e-4."""
    risks = {}
    for width in (40, 44, 46, 47, 48, 52, 58):
        system = PowerLawFeatures(1.0, 0.3, 4 * width, width=width, learning_rate=0.3)
        risks[width] = float(jax.jit(risk_at)(system.spectrum, float(width), 0.3, 1.0, 1e4 / width))
    assert min(risks, key=risks.get) in (46, 47)
    assert min(risks.values()) == pytest.approx(0.0333723, rel=1e-4)


JOINT = [  # decays a = b, noise, n, N, ridge, error: an independent program with 1000 modes
    (2.0, 0.0, 100, 50, 1e-6, 0.0927481429),
    (2.0, 0.0, 50, 100, 1e-6, 0.0927441446),
    (2.0, 0.0, 100, 100, 0.01, 0.0478166581),
    (2.0, 0.0, 200, 80, 0.1, 0.0436802133),
    (2.0, 0.0, 80, 400, 0.1, 0.0478897127),
    (1.5, 0.1, 100, 50, 1e-6, 0.953633106),
    (1.5, 0.1, 50, 100, 1e-6, 1.01385077),
    (1.5, 0.1, 100, 100, 0.01, 1.21374987),
    (1.5, 0.1, 200, 80, 0.1, 0.499152632),
    (1.5, 0.1, 80, 400, 0.1, 0.425915521),
]


@pytest.mark.parametrize(("decay", "noise", "n_train", "width", "ridge", "error"), JOINT)
def test_the_joint_law(decay, noise, n_train, width, ridge, error):
    system = ScaleFreeFeatures(
        n_train,
        width,
        spectral_decay=decay,
        target_decay=decay,
        ridge=ridge,
        noise=noise,
        modes=1000,
    )
    assert float(joint_law(system).test_error) == pytest.approx(error, rel=6e-9)


@pytest.mark.parametrize(
    ("n_train", "width", "ridge", "thresholds"),
    [
        (100, 50, 1e-6, (None, 9.2756189e-4)),
        (100, 100, 0.01, (2.5185387e-4, 6.3430373e-4)),
        (200, 80, 0.1, (None, 1.3268239e-3)),
        (80, 400, 0.1, (None, 2.2671203e-3)),
    ],
)
def test_thresholds_of_the_joint_law(n_train, width, ridge, thresholds):
    spectrum = ScaleFreeFeatures(n_train, width, ridge=ridge, modes=1000).spectrum
    found = feature_equivalent(spectrum, float(n_train), float(width), ridge, 0.0)
    for value, wanted in zip((found.sample_threshold, found.feature_threshold), thresholds):
        assert wanted is None or float(value) == pytest.approx(wanted, rel=3e-8)


@pytest.mark.parametrize(
    ("sizes", "error"),
    [((50, 200), 0.0643688172), ((200, 50), 0.0643688172), ((100, 400), 0.0324393437)],
)
def test_without_a_ridge_features_and_examples_can_be_exchanged(sizes, error):
    """Maloney, Roberts, Sully 2022: E = Delta m/(1 - m/max(N, n)), m = min(N, n), sum
    lambda/(lambda + Delta) = m."""
    assert float(
        joint_law(ScaleFreeFeatures(*sizes, ridge=1e-14, modes=20000)).test_error
    ) == pytest.approx(error, rel=1e-8)


@pytest.mark.parametrize(
    ("n_train", "width", "ridge", "error"),
    [
        # the table has ...2708: the law itself is 0.04849127280 on both sides of this ridge
        (100, 100, 0.0245232, 0.0484912728),
        (200, 200, 0.0121866, 0.0243652749),
        (400, 400, 0.00601832, 0.0121657133),
        (400, 100, 0.0244332, 0.0304056652),
        (100, 400, 0.00610829, 0.0304056652),
    ],
)
def test_the_best_ridge(n_train, width, ridge, error):
    found = optimal_ridge(ScaleFreeFeatures(n_train, width, modes=20000))
    assert (float(found.ridge), float(found.test_error)) == (
        pytest.approx(ridge, rel=5e-6),
        pytest.approx(error, rel=2e-9),
    )
