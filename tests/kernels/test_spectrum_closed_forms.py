"""Spectra in closed form against brute force, sum rules and independently computed values."""

import itertools
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import eval_legendre

from orderparam.gaussian.activations import activation
from orderparam.kernels.spectra import (
    finite_rank,
    gaussian_rbf,
    hypercube,
    lattice_shells,
    power_law,
    sphere,
    torus,
)

ERF, RELU = activation("erf"), activation("relu")


def erf_kernel(t):
    return ERF.two_point(1.0, t, 1.0)


def relu_kernel(t):
    return RELU.two_point(1.0, t, 1.0)


def printed(text):
    """Equality with a number to all the digits it is printed with."""
    return pytest.approx(float(text), rel=0, abs=0.501 * 10.0 ** Decimal(text).as_tuple().exponent)


# Independent values: degree -> eigenvalue, with as many digits as are known
SPHERE = [
    (erf_kernel, 3, {1: "0.1489056950", 3: "0.0023370866", 5: "1.2103307e-4"}),
    (erf_kernel, 10, {1: "0.0432911116", 3: "1.28976651e-4", 5: "2.13611337e-6"}),
    (erf_kernel, 20, {1: "0.0214446471", 3: "1.93921172e-5", 5: "1.20086e-7"}),
    (erf_kernel, 50, {1: "0.00852523334", 3: "1.39393521e-6"}),
    (relu_kernel, 10, {1: "0.025", 0: "0.1673012117", 2: "0.00138265464", 4: "8.18138841e-6"}),
    (relu_kernel, 50, {0: "0.1607543697", 1: "0.005", 2: "6.18048327e-5"}),
]


@pytest.mark.parametrize(("kernel", "dim", "values"), SPHERE)
def test_sphere(kernel, dim, values):
    eigenvalues = sphere(dim, kernel, [1.0]).eigenvalues
    for degree, value in values.items():
        assert float(eigenvalues[degree]) == printed(value)


def test_arc_cosine_kernel_on_the_two_sphere():
    eigenvalues = sphere(3, relu_kernel, [1.0], 4).eigenvalues
    np.testing.assert_allclose(
        eigenvalues, [3 / 16, 1 / 12, 3 / 256, 0, 3.25520833e-4], rtol=2e-9, atol=1e-14
    )


@pytest.mark.parametrize("dim", [2, 3, 7, 30, 400])
@pytest.mark.parametrize("kernel", [erf_kernel, relu_kernel])
def test_the_eigenvalues_and_the_tail_sum_to_the_kernel_at_one_point(dim, kernel):
    spectrum = sphere(dim, kernel, [1.0], 12)
    peak = float(kernel(np.ones(1))[0])
    assert float(spectrum.total) == pytest.approx(peak, rel=1e-12)
    assert 0 <= spectrum.tail < 0.02 * peak


def test_a_polynomial_kernel_on_the_sphere_has_exactly_its_own_harmonics():
    spectrum = sphere(3, lambda t: 0.5 + 0.25 * t + 2 * eval_legendre(3, t), [0.0], 8)
    np.testing.assert_allclose(
        spectrum.eigenvalues, [0.5, 0.25 / 3, 0, 2 / 7, 0, 0, 0, 0, 0], rtol=1e-12
    )
    assert spectrum.multiplicities.tolist() == [1, 3, 5, 7, 9, 11, 13, 15, 17]


def test_in_high_dimension_unresolvable_harmonics_are_left_to_the_tail():
    # c_l^2 of relu's Hermite expansion: the eigenvalue sums per degree tend to them for d ->
    # infinity
    spectrum = sphere(1000, relu_kernel, [0.0])
    sums = np.asarray(spectrum.eigenvalues * spectrum.multiplicities)
    np.testing.assert_allclose(
        sums[[0, 1, 2, 4]], [1 / (2 * np.pi), 1 / 4, 1 / (4 * np.pi), 1 / (48 * np.pi)], rtol=0.005
    )
    assert float(spectrum.total) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize(("dim", "cut"), [(1, 7.5), (2, 6), (3, 4), (4, 3)])
def test_shells_of_a_lattice_count_its_vectors(dim, cut):
    side = np.arange(-8, 9)
    squares = sum(np.meshgrid(*[side**2] * dim)).ravel()
    counted = np.bincount(squares[squares <= cut**2], minlength=int(cut**2) + 1)
    assert lattice_shells(dim, cut).tolist() == counted.tolist()


def test_a_torus_has_normalised_power_laws_and_a_target_of_few_coordinates():
    spectrum = torus(3, 0.7, 1.2, 6, 1)
    assert float(spectrum.total) == pytest.approx(1, rel=1e-13)
    assert float(spectrum.total_power) == pytest.approx(1, rel=1e-13)
    # |k|^2 = 0, 1, 2, 3, 4: the first coordinate alone reaches 0, 1 and 4
    ratios = np.asarray(spectrum.eigenvalues[:5] / spectrum.eigenvalues[0])
    np.testing.assert_allclose(ratios, [1, 2**-2.2, 3**-2.2, 4**-2.2, 5**-2.2], rtol=1e-13)
    power = np.asarray(spectrum.target_power[:5] / spectrum.target_power[0])
    np.testing.assert_allclose(power, [1, 2 * 2**-1.7, 0, 0, 2 * 5**-1.7], rtol=1e-13)


HYPERCUBE = {1: "0.0434125862", 3: "2.27191884e-4", 5: "1.17616995e-5"}


def test_hypercube():
    eigenvalues = hypercube(10, erf_kernel, [1.0]).eigenvalues
    for degree, value in HYPERCUBE.items():
        assert float(eigenvalues[degree]) == printed(value)


@pytest.mark.parametrize("dim", [1, 2, 5, 6])
def test_hypercube_against_the_eigenvalues_of_the_whole_kernel_matrix(dim):
    corners = np.array(list(itertools.product([-1, 1], repeat=dim)))
    brute = np.linalg.eigvalsh(relu_kernel(corners @ corners.T / dim)) / 2**dim
    spectrum = hypercube(dim, relu_kernel, [1.0])
    levels = np.repeat(
        np.asarray(spectrum.eigenvalues), np.asarray(spectrum.multiplicities).astype(int)
    )
    np.testing.assert_allclose(np.sort(levels), brute, atol=1e-14)
    assert float(spectrum.tail) == pytest.approx(0, abs=1e-14)


def test_hypercube_truncated_at_a_degree_keeps_the_rest_as_tail():
    whole, part = hypercube(12, erf_kernel, [1.0]), hypercube(12, erf_kernel, [1.0], 3)
    rest = whole.eigenvalues[4:] @ whole.multiplicities[4:]
    assert float(part.tail) == pytest.approx(float(rest), rel=1e-10)


def test_gaussian_inputs_with_unit_scales_have_golden_ratio_eigenvalues():
    golden = (np.sqrt(5) - 1) / 2
    spectrum = gaussian_rbf(1, [1.0], max_degree=10)
    np.testing.assert_allclose(spectrum.eigenvalues, golden ** (1 + 2 * np.arange(11)), rtol=1e-14)
    assert float(spectrum.total) == pytest.approx(1, rel=1e-14)


def test_gaussian_inputs_against_the_kernel_matrix_of_a_quadrature():
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = np.sqrt(weights / weights.sum())
    points = 0.7 * points
    matrix = np.exp(-((points[:, None] - points) ** 2) / (2 * 1.3**2)) * weights[:, None] * weights
    brute = np.linalg.eigvalsh(matrix)[::-1][:8]
    np.testing.assert_allclose(gaussian_rbf(1, [1.0], 1.3, 0.7).eigenvalues[:8], brute, atol=1e-13)


def test_gaussian_inputs_in_several_dimensions_are_products():
    spectrum = gaussian_rbf(4, [1.0], max_degree=60)
    assert spectrum.multiplicities[:4].tolist() == [1, 4, 10, 20]
    assert float(spectrum.eigenvalues @ spectrum.multiplicities) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("modes", [1, 100, 128, 129, 140, 1000, 50_000])
def test_levels_of_a_power_law_sum_exactly_as_its_modes(modes):
    spectrum = power_law(1.5, 0.4, modes, infinite=False)
    k = np.arange(1.0, modes + 1)
    eigenvalues, power = k**-1.5, k**-2.2
    levels, weights = np.asarray(spectrum.eigenvalues), np.asarray(spectrum.multiplicities)
    assert weights.sum() == pytest.approx(modes, rel=1e-13)
    for kappa in (1e-9, 1e-5, 0.1):
        learned, exact = levels / (levels + kappa), eigenvalues / (eigenvalues + kappa)
        assert weights @ learned == pytest.approx(exact.sum(), rel=1e-13)
        assert weights @ learned**2 == pytest.approx((exact**2).sum(), rel=1e-13)
        assert spectrum.target_power @ (1 - learned) ** 2 == pytest.approx(
            power @ (1 - exact) ** 2, rel=1e-13
        )


def test_an_infinite_power_law_sums_to_the_zeta_function():
    spectrum = power_law(2.0, 0.5)
    assert float(spectrum.total) == pytest.approx(np.pi**2 / 6, rel=1e-13)
    assert float(spectrum.total_power) == pytest.approx(1.2020569031595942, rel=1e-13)  # zeta(3)
    assert spectrum.eigenvalues.size < 1000


def test_finite_rank_is_one_level():
    spectrum = finite_rank(50, 1 / 50, tail=0.5)
    assert (float(spectrum.rank), float(spectrum.total), float(spectrum.total_power)) == (
        50,
        1.5,
        1.0,
    )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: sphere(1, erf_kernel, [1.0]), "input_dim = 1: must be an integer >= 2"),
        (
            lambda: sphere(3, erf_kernel, np.ones(30)),
            r"target_power has shape \(30,\): must be .* at most 21 entries",
        ),
        (lambda: sphere(3, lambda t: t[:3], [1.0]), "kernel_function returned"),
        (
            lambda: sphere(3, lambda t: 1 - t, [1.0]),
            "eigenvalue -0.333333 at degree 1: must be >= 0",
        ),
        (
            lambda: hypercube(5, erf_kernel, [1.0], 6),
            "max_degree = 6: must be at most input_dim = 5",
        ),
        (lambda: hypercube(2.5, erf_kernel, [1.0]), "input_dim = 2.5: must be an integer >= 1"),
        (
            lambda: gaussian_rbf(2, [1.0], length_scale=0.0),
            "length_scale = 0.0: must be finite and > 0",
        ),
        (lambda: power_law(1.0, 0.5), "capacity = 1.0: must be finite and > 1"),
        (lambda: power_law(1.5, 0.0), "source = 0.0: must be finite and > 0"),
        (lambda: power_law(1.5, 0.5, 0), "modes = 0: must be an integer from 1 to 1e15"),
        (lambda: torus(2, 0.0, 1.0, 5), "smoothness = 0.0: must be finite and > 0"),
        (lambda: torus(2, 1.0, 1.0, 5, 3), "target_dim = 3: must be at most input_dim = 2"),
        (lambda: torus(0, 1.0, 1.0, 5), "input_dim = 0: must be an integer >= 1"),
        (lambda: finite_rank(0, 1.0), "rank = 0: must be finite and > 0"),
        (lambda: finite_rank(5, -1.0), "eigenvalues = -1.0: must be >= 0"),
    ],
)
def test_bad_input_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@settings(max_examples=30, deadline=None)
@given(st.floats(1.05, 4.0), st.floats(0.05, 3.0))
def test_power_laws_are_positive_and_decreasing(capacity, source):
    spectrum = power_law(capacity, source)
    assert np.all(np.diff(spectrum.eigenvalues) < 0)
    assert np.all(np.asarray(spectrum.multiplicities) > 0)
    assert spectrum.tail > 0
