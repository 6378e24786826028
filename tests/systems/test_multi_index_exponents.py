"""Exponents: right at every scale, refused where they mean nothing, and in bounded time whatever
the formula."""

import math
import time

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special

from orderparam.gaussian.target import target
from orderparam.systems.multi_index import exponents, threshold
from orderparam.systems.multi_index.label import binned, power_product, powers_of_product


@pytest.mark.parametrize(
    ("formula", "information", "leap"),
    [
        ("z1*1e160", 1, 1),
        ("He3(z1)*1e200", 3, 3),
        ("z1*1e-13", 1, 1),
        ("He2(z1*1)*1e-200", 2, 2),
        ("He4(z1) + 1e-9*z1", 1, 1),
        ("z1*z2*1e-9 + z1*1e-12", 1, 1),
        ("z1 + 1000000", 1, 1),
        ("log(abs(z1 - 0.3))", 1, 1),
        ("1/abs(z1)**0.4", 2, 2),
        ("exp(0.2*z1**2)", 2, 2),
    ],
)
def test_what_counts_as_zero_is_measured_against_the_spread(formula, information, leap):
    found = exponents(formula, highest=4)
    assert (found.information, found.leap) == (information, leap)


def test_a_weak_coefficient_of_a_product_of_four_is_seen():
    """One part in a thousand of the norm."""
    assert exponents("z1*z2*z3*z4*1e-9 + z1*1e-12", highest=4).information == 1


def test_coefficients_of_a_large_target_are_those_of_a_small_one():
    large, small = exponents("He3(z1)*1e200 + z1*1e200"), exponents("He3(z1) + z1")
    assert np.array(large.hermite) / 1e200 == pytest.approx(np.array(small.hermite), rel=1e-12)
    assert large.label_power == pytest.approx(small.label_power, abs=1e-10)


@pytest.mark.parametrize(
    "formula",
    ["1/z1", "1/(z1 - 0.37)", "z1 + 1e-6/(z1 - 0.37)", "1/sqrt(abs(z1))", "1/(z1 - 0.3)**2",
    "tan(z1)", "exp(1/z1)", "z1/z2",
     "1/(z1**2 + z2**2)", "1/(z1*z2)"],
)  # fmt: skip
def test_a_pole_without_second_moment_is_refused(formula):
    with pytest.raises(ValueError, match="poles too steep"):
        exponents(formula)


def test_a_pole_with_second_moment_is_not_refused():
    """|z|^-0.4: c_2 from the moments of |z|, E |z|^q = 2^(q/2) Gamma((q + 1)/2) / sqrt(pi)."""

    def moment(q):
        return 2 ** (q / 2) * math.gamma((q + 1) / 2) / math.sqrt(math.pi)

    second = (moment(1.6) - moment(-0.4)) / math.sqrt(2)
    assert exponents("1/abs(z1)**0.4").hermite[2] == pytest.approx(abs(second), rel=1e-7)
    assert exponents("1/(z1**2 + z2**2)**0.4", highest=4).information == 2


def test_a_pole_of_a_python_function_is_found():
    with pytest.raises(ValueError, match="poles too steep"):
        exponents(lambda z: 1 / (z[..., 0] - 0.2))
    with pytest.raises(ValueError, match="poles too steep"):
        exponents(lambda z: z[..., 0] / z[..., 1], 2)


@pytest.mark.parametrize(
    "formula", ["exp(z1**2)", "exp(0.3*z1**2)", "exp(z1*z2)", "exp(exp(z1))", "z1**64"]
)
def test_growth_without_second_moment_is_refused(formula):
    with pytest.raises(ValueError, match="grows too fast"):
        exponents(formula)


@pytest.mark.parametrize("formula", ["sin(z1)**2 + cos(z1)**2", "z1 + 1e14", "z1 - z1"])
def test_a_constant_is_refused(formula):
    with pytest.raises(ValueError, match="constant"):
        exponents(formula)


@pytest.mark.parametrize("formula", ["sqrt(z1 + 5)", "log(z1 + 6)"])
def test_a_formula_that_is_no_number_far_out_is_refused(formula):
    with pytest.raises(ValueError, match="finite number for every z"):
        exponents(formula)


@pytest.mark.parametrize(
    ("formula", "limit"),
    [
        ("sin(1000*z1)", "oscillates"),
        ("sin(1000*z1)*z2", "oscillates"),
        ("sin(50*z1)", "at most 128"),
        ("sin(6283*z1)", "oscillates"),
    ],
)
def test_work_is_bounded_and_the_limit_is_named(formula, limit):
    begin = time.perf_counter()
    with pytest.raises(ValueError, match=limit):
        exponents(formula)
    assert time.perf_counter() - begin < 20


def test_nesting_costs_no_more_than_its_length():
    begin = time.perf_counter()
    assert exponents("abs(" * 79 + "z1" + ")" * 79).information == 2
    assert exponents("He1(" * 79 + "z1" + ")" * 79).degree == 1
    assert time.perf_counter() - begin < 20


def test_a_function_with_many_preimages_near_a_pole_ends():
    assert exponents("sin(1/z1)").information == 1


def test_label_powers_have_one_normalisation():
    """lambda_k^2 = E_y E[h_k | y]^2 of orders 1 .. 8 for y = |z + 1/2|, by an independent integral
    over y."""

    def hermite(k, z):
        return np.polynomial.hermite_e.hermeval(z, [0] * k + [1]) / math.sqrt(math.factorial(k))

    def integrand(y, k):
        places = np.array([y - 0.5, -y - 0.5])
        density = np.exp(-(places**2) / 2) / math.sqrt(2 * math.pi)
        return float(np.sum(density * hermite(k, places)) ** 2 / np.sum(density))

    found = exponents("abs(z + 0.5)")
    for k in range(1, 9):
        value, _ = integrate.quad(integrand, 0, 12, args=(k,), epsabs=1e-13, limit=400)
        assert found.label_power[k - 1] == pytest.approx(value, abs=1e-9)
    assert found.label_eigenvalues == pytest.approx(
        (found.label_power[0], 2 * found.label_power[1]), rel=1e-14
    )


@pytest.mark.parametrize("frequency", [2, 3, 5])
def test_threshold_of_a_cosine(frequency):
    """y = cos(f z) has the preimages (± t + 2 pi k) / f, all with one |slope|: lambda_2^2 is an
    integral over t."""

    def integrand(t):
        places = (np.array([[t], [-t]]) + 2 * np.pi * np.arange(-40, 41)) / frequency
        density = np.exp(-(places**2) / 2) / math.sqrt(2 * math.pi)
        return np.sum(density * (places**2 - 1)) ** 2 / 2 / np.sum(density) / frequency

    value, _ = integrate.quad(integrand, 0, np.pi, epsabs=1e-16, epsrel=1e-13)
    found = exponents(f"cos({frequency}*z)")
    assert found.label_power[1] == pytest.approx(value, abs=1e-10)
    assert found.label_tolerance < 1e-9
    if frequency == 3:
        assert found.threshold == pytest.approx(1 / (2 * value), rel=2e-9)


def test_label_powers_of_a_product_in_all_orders():
    """Orders 2 and 4 of y = z1 z2 by integrals over z1 at given y; sum over |a| = k of E[h_a |
    y]^2."""
    y = np.exp(np.linspace(-24, 4.2, 1200))
    u = np.linspace(-18, 18, 6001)  # z1 = sqrt(y) e^u, z2 = sqrt(y) e^-u
    first = np.sqrt(y)[:, None] * np.exp(u)
    second = np.sqrt(y)[:, None] * np.exp(-u)
    weight = np.exp(-(first**2 + second**2) / 2) / math.pi

    def average(a, b):
        h = np.polynomial.hermite_e.hermeval(
            first, [0] * a + [1]
        ) * np.polynomial.hermite_e.hermeval(second, [0] * b + [1])
        values = np.where(weight > 0, weight * h, 0.0) / math.sqrt(
            math.factorial(a) * math.factorial(b)
        )
        return np.trapezoid(values, u, axis=1)

    density = average(0, 0)
    found = exponents("z1*z2")
    for order in (2, 4):
        square = sum(average(a, order - a) ** 2 / density for a in range(order + 1))
        assert found.label_power[order - 1] == pytest.approx(
            2 * np.trapezoid(square * y, np.log(y)), rel=1e-4
        )


def test_exponents_of_a_kinked_function_at_any_scale():
    told = exponents(lambda z: 1e30 * jnp.abs(z[..., 0] - 0.5), kinks=(0.5,))
    assert np.array(told.hermite) / 1e30 == pytest.approx(
        exponents("abs(z - 0.5)").hermite, abs=1e-11
    )


def test_thresholds_from_samples_hold_within_their_error():
    rng = np.random.default_rng(0)
    z = rng.standard_normal((100_000, 2))
    signs = threshold(z, labels=np.sign(z[:, 0] * z[:, 1]))
    assert signs.kind == "easy"
    assert abs(signs.sample_ratio - np.pi**2 / 4) < signs.error < 0.3
    assert len(signs.stairs[0].directions) == 2
    turned = z @ np.array([[0.6, 0.8], [-0.8, 0.6]])
    one = threshold(turned, labels=z[:, 0] + rng.standard_normal(len(z)))
    assert one.kind == "trivial"
    np.testing.assert_allclose(np.abs(one.stairs[0].directions), [[0.6, 0.8]], atol=0.02)
    assert threshold(z, labels=rng.standard_normal(len(z))).kind == "hard"


def test_noise_raises_the_threshold_of_samples():
    """y = z^2 + noise, against the law in quantile bins of the same label without noise."""
    rng = np.random.default_rng(1)
    z = rng.standard_normal(200_000)
    plain, noisy = (threshold(z, labels=z**2 + s * rng.standard_normal(z.size)) for s in (0.0, 1.0))
    assert abs(plain.sample_ratio - 0.5) < plain.error < 0.05
    assert noisy.sample_ratio > plain.sample_ratio + 0.1


def test_bad_samples_are_refused_by_name():
    z = np.random.default_rng(0).standard_normal((3000, 2))
    for fields, labels, said in (
        (z[:100], z[:100, 0], "100 samples"),
        (2 * z, z[:, 0], "standard normal"),
        (z, z[1:, 0], "shape"),
        (z, np.full(3000, np.nan), "finite"),
    ):
        with pytest.raises(ValueError, match=said):
            threshold(fields, labels=labels)
    with pytest.raises(ValueError, match="beyond z4"):
        threshold("z9")


@pytest.mark.parametrize(
    ("formula", "ratio"),
    [
        ("z1*z2", 0.5937510982),
        ("-3*(z1*z2)**3", 0.5937510982),  # the label's cube root is that of z1 z2
        ("z1**2*z2**2", 1.4615451159),
        ("z1*z2*z3", 2.5651804019),
        ("z1**2*z2**2*z3**2", 2.5651804019),
    ],
)
def test_products_of_powers_are_exact(formula, ratio):
    """E[z_i^2 | y] alone shows the even powers: 1 / E a^2, a = |y| K1(|y|) / K0(|y|) - 1 for two
    factors; with odd ones y itself is E[z1 z2 | y], and adds E y^2 = 1.
    """
    found = threshold(formula)
    assert found.method == "convolution of ln|z|"
    assert found.kind == "easy"
    assert abs(found.sample_ratio - ratio) < 1e-8
    assert found.error < 1e-5


def test_the_sum_behind_the_squares_is_an_integral_of_bessel_functions():
    """The density of y = z1 z2 is K0(|y|) / pi."""

    def integrand(y):
        excess = y * special.k1(y) / special.k0(y) - 1
        return 2 * special.k0(y) / np.pi * excess**2

    share = integrate.quad(integrand, 0, 1, limit=200, epsabs=1e-12)[0]
    share += integrate.quad(integrand, 1, 60, epsabs=1e-12)[0]
    assert abs(threshold("z1**2*z2**2").sample_ratio - 1 / share) < 1e-8


def test_products_of_unequal_powers_agree_with_bins():
    """And a function is looked at as a formula is."""
    exact = power_product((1, 3), 3)
    assert powers_of_product(target("2*z1*z2**3")) == (1, 3)
    assert powers_of_product(target(lambda z: z[..., 0] ** 2 * z[..., 1], 2)) == (2, 1)
    assert powers_of_product(target("z1*z2 + 1e-9*z1")) == ()
    assert powers_of_product(target("abs(z1)*z2")) == ()
    rough = binned(target("z1*z2**3"), 3, log2_points=16, pairs=2, bins=256)
    np.testing.assert_allclose(rough.operator, exact.operator, atol=0.03)
    np.testing.assert_allclose(rough.grams[1], exact.grams[1], atol=0.06)
