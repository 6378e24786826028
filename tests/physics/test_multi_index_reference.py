"""Reference values of weak learnability: exponents, thresholds, exit times, and the table of sample
complexities."""

import math

import jax
import numpy as np
import pytest
from scipy import integrate, special

from orderparam.systems.multi_index import (
    LearnedTarget,
    SphericalSGD,
    exit_chain,
    exit_time,
    exponents,
    grand_staircase,
    threshold,
)

# target: information, leap, generative, threshold
KNOWN = {
    "z": (1, 1, 1, 0.0),
    "z**2": (2, 2, 2, 0.5),
    "abs(z)": (2, 2, 2, 0.5),
    "He3(z)": (3, 3, 1, 0.0),
    "He4(z)": (4, 4, 2, 1 / (2 * 0.7753735530)),
    "cos(2*z)": (2, 2, 2, 1 / (2 * 0.3092632528)),
    "sign(z)": (1, 1, 1, 0.0),
    "relu(z)": (1, 1, 1, 0.0),
    "tanh(z)": (1, 1, 1, 0.0),
    "sign(He3(z))": (1, 1, 1, 0.0),
    "z**2*exp(-z**2)": (4, 4, 4, math.inf),
    "z1*z2": (2, 2, 2, 0.5937510982),
    "z1*z2*z3": (3, 3, 2, 2.56518040),
    "z1*z2*z3*z4": (4, 4, 2, 3.72507742),
    "sign(z1*z2)": (2, 2, 2, math.pi**2 / 4),
    "sign(z1*z2*z3)": (3, 3, 3, math.inf),
}


@pytest.mark.parametrize("formula", KNOWN)
def test_exponents_and_threshold(formula):
    information, leap, generative, threshold = KNOWN[formula]
    found = exponents(formula)
    assert (found.information, found.leap, found.generative) == (information, leap, generative)
    assert found.threshold == pytest.approx(threshold, rel=2e-8)


def test_label_powers_of_one_index():
    for formula, values in {
        "He3(z)": (0.6678316716, 2 * 0.6230459462),
        "sign(z)": (2 / math.pi, 0.0),
        "relu(z)": (1 / math.pi + 0.5, 1.0),
        "sign(He3(z))": (0.19520521, 0.0),
    }.items():
        assert exponents(formula).label_eigenvalues[:2] == pytest.approx(values, abs=1e-8)


def test_hermite_norms():
    assert exponents("abs(z)").hermite[1:5] == pytest.approx((0, 0.564190, 0, 0.162868), abs=5e-7)
    assert exponents("relu(z)").hermite[1:5] == pytest.approx(
        (0.5, 0.282095, 0, 0.081434), abs=5e-7
    )
    assert exponents("cos(2*z)").hermite[2] == pytest.approx(0.382786, abs=5e-7)
    assert exponents("z**2*exp(-z**2)").hermite[4] == pytest.approx(0.052378, abs=5e-7)
    assert exponents("sign(z1*z2*z3)").hermite[3] == pytest.approx((2 / math.pi) ** 1.5, rel=1e-12)


def test_fourth_label_moment_by_another_route():
    """y = z^2 exp(-z^2) has two values of z^2 = u for each y, on both sides of u = 1; the fourth
    moment as an integral over ln y."""

    def roots(y):
        return -special.lambertw(-y, 0).real, -special.lambertw(-y, -1).real

    def integrand(log_y):
        y = math.exp(log_y)
        parts = [
            (math.exp(-u / 2) / math.sqrt(2 * math.pi * u) / abs(math.exp(-u) * (1 - u)), u)
            for u in roots(y)
        ]
        density = sum(w for w, _ in parts)
        moment = sum(w * (u**2 - 6 * u + 3) for w, u in parts) / math.sqrt(24)
        return y * moment**2 / density

    value, _ = integrate.quad(
        integrand, -40, -1, points=[-1.001, -1.1, -2, -5, -10, -20], limit=400
    )
    assert exponents("z**2*exp(-z**2)").label_power[3] == pytest.approx(value, rel=1e-5)


def test_two_products_by_bessel_functions():
    """E (|y| K1 / K0 - 1)^2 for y = z1 z2, whose density is K0(|y|) / pi."""
    value, _ = integrate.quad(
        lambda y: 2 / math.pi * special.k0(y) * (y * special.k1(y) / special.k0(y) - 1) ** 2,
        0,
        60,
        limit=400,
    )
    assert value == pytest.approx(0.6842074111, rel=1e-7)
    assert exponents("z1*z2").label_eigenvalues[1] == pytest.approx(1 + value, rel=1e-7)


def test_table_of_sample_complexities():
    expected = {
        "z": ("d", "d", "d"),
        "z**2": ("d^2", "d log d", "d"),
        "He3(z)": ("d^3", "d^2", "d"),
        "z1*z2": ("d^2", "d log d", "d"),
        "z1*z2*z3": ("d^3", "d^2", "d"),
        "sign(z1*z2*z3)": ("e^d", "d^2", "d^(3/2)"),
    }
    for formula, row in expected.items():
        assert tuple(exponents(formula).row().values())[1:] == row


def test_targets_without_closed_form_are_good_to_their_tolerance():
    """z1^2 + z2^2 has threshold 1, z1^2 + sign(z1 z2 z3) 0.5751663526."""
    for formula, signal in {
        "z1**2 + z2**2": 1.0,
        "z1**2 + sign(z1*z2*z3)": 1 / 0.5751663526,
    }.items():
        found = exponents(formula, highest=4)
        assert found.generative == 2
        assert abs(found.label_eigenvalues[1] - signal) < found.label_tolerance
        assert found.label_tolerance < 0.03


def test_exit_times_of_quadratic_target():
    """l = 2, gamma = 0.1: means over 64 runs of an independent simulation at d = 128 were 1665; n /
    (d ln d) tends to 1 / (2 mu)."""
    formula = "He2(z)/sqrt(2)"
    system = SphericalSGD(
        input_dim=128, target=formula, student=formula, learning_rate=0.1, start="signed"
    )
    theory = exit_time
    predicted = float(theory(system).exit_samples)
    runs = np.asarray(
        jax.vmap(lambda k: exit_chain(system, k).exit_samples)(
            jax.random.split(jax.random.key(3), 256)
        )
    )
    assert abs(runs.mean() - predicted) < 3 * runs.std(ddof=1) / 16
    assert predicted == pytest.approx(1665, rel=0.06)
    mu = 2 * 0.1 - 0.1**2
    far = [
        float(theory(system.with_(input_dim=d, horizon=1e4)).exit_samples) / d for d in (1e6, 1e8)
    ]
    assert (far[1] - far[0]) / math.log(100) == pytest.approx(1 / (2 * mu), rel=1e-3)


@pytest.mark.parametrize(
    ("formula", "kind", "ratio"),
    [
        ("He3(z)", "trivial", 0.0),
        ("abs(z)", "easy", 0.5),
        ("z1*z2", "easy", 0.5937510982),
        ("z1*z2*z3", "easy", 2.56518040),
        ("z1*z2*z3*z4", "easy", 3.72507742),
        ("sign(z1*z2)", "easy", np.pi**2 / 4),
        ("sign(z1*z2*z3)", "hard", np.inf),
    ],
)
def test_weak_recovery_is_trivial_easy_or_hard(formula, kind, ratio):
    found = threshold(formula)
    assert found.kind == kind
    assert found.sample_ratio == pytest.approx(ratio, rel=1e-8)


def test_the_grand_staircase():
    found = threshold("z1**2 + sign(z1*z2*z3)")
    assert [len(stair.directions) for stair in found.stairs] == [1, 2]
    assert abs(found.sample_ratio - 0.5751663526) < found.error < 0.005
    assert found.stairs[1].threshold == pytest.approx(np.pi**2 / 4, rel=1e-9)
    assert found.complete


@pytest.mark.parametrize(("overlap", "ratio"), [(0.95, 3.267), (0.99, 2.695), (1.0, 2.4674)])
def test_the_stair_after_a_direction_known_in_part(overlap, ratio):
    found = threshold("z1**2 + sign(z1*z2*z3)", overlap=[overlap, 0, 0])
    assert abs(found.sample_ratio - ratio) < min(found.error, 0.01 * ratio)


@pytest.mark.parametrize(
    ("formula", "sample_ratio", "overlap"),
    [
        ("abs(z)", 0.8, 0.21622749),
        ("abs(z)", 1.0, 0.47626359),
        ("sign(z1*z2)", 2.4, 0.0),
        ("sign(z1*z2)", 3.0, 0.24270621),
        ("sign(z1*z2)", 4.0, 0.64384102),
    ],
)
def test_overlaps_after_the_first_stair(formula, sample_ratio, overlap):
    """By sampling: as if the number of samples were off by less than a per cent."""
    found = grand_staircase(LearnedTarget(sample_ratio, formula))
    assert found.converged
    np.testing.assert_allclose(found.overlap, overlap, atol=0.006)


def test_the_first_direction_of_the_staircase_is_known_beyond_a_fold():
    """At n/d = 1.39, which is known to two digits."""
    below, above = (
        grand_staircase(LearnedTarget(ratio, "z1**2 + sign(z1*z2*z3)")) for ratio in (1.35, 1.43)
    )
    assert below.overlap[0] < 0.9
    assert above.overlap[0] == 1.0


def test_a_square_and_a_product_of_three():
    """Known by Monte Carlo to one per cent."""
    found = threshold("z1**2 + z1*z2*z3")
    assert found.kind == "easy"
    np.testing.assert_allclose(found.sample_ratio, 0.668, rtol=0.015)
