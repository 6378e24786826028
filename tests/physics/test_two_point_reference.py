"""Two-point functions at (a, c, b) = (1.3, 0.55, 0.8) and Hermite coefficients, against numbers
computed independently."""

import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.gaussian import activation, hermite_coefficients

COVARIANCE = (1.3, 0.55, 0.8)

# 12 digits, from a trapezoid rule in standardised variables.
TWO_POINT = {
    "erf": 0.234137024067,
    "erf_scaled": 0.174252550419,
    "relu": 0.324041364305,
    "leaky_relu(0.1)": 0.317473505087,
    "abs": 0.746165457219,
    "sign": 0.362636861515,
    "step": 0.340659215379,
    "cos": 0.404213588854,
    "sin": 0.202317070859,
    "rbf": 0.606530659713,
    "exp": 4.953032424395,
    "gaussian": 0.350284722052,
    "quadratic": 1.645,
    "cubic": 6.14625,
    "gelu": 0.245716933593,
    "tanh": 0.201827854399,
    "sigmoid": 0.273314654782,
    "swish": 0.199780425438,
}
DERIVATIVE = {
    "relu": 0.340659215379,
    "erf": 0.445996360033,
    "erf_scaled": 0.324979471993,
    "leaky_relu(0.1)": 0.375933964457,
    "gelu": 0.349460294599,
}


@pytest.mark.parametrize(("name", "value"), TWO_POINT.items())
def test_two_point(name, value):
    assert float(activation(name).two_point(*COVARIANCE)) == pytest.approx(value, abs=5.1e-13)


@pytest.mark.parametrize(("name", "value"), DERIVATIVE.items())
def test_two_point_derivative(name, value):
    assert float(activation(name).two_point_derivative(*COVARIANCE)) == pytest.approx(
        value, abs=5.1e-13
    )


def test_tanh_at_large_variance():
    assert float(activation("tanh").two_point(100.0, 50.0, 100.0)) == pytest.approx(
        0.33034702837, abs=5.1e-12
    )


def test_tanh_mehler_series():
    """F(1, rho, 1) = sum_n c_n^2 rho^n, and the first coefficients."""
    tanh = activation("tanh")
    coefficients = np.asarray(tanh.hermite_coefficients(200))
    np.testing.assert_allclose(
        coefficients[[1, 3, 5]], [0.60570551, -0.14843719, 0.06254752], rtol=0, atol=5.1e-9
    )
    assert (coefficients[::2] == 0).all()
    assert np.sum(coefficients**2 * 0.5 ** np.arange(200)) == pytest.approx(
        0.186324413203448, abs=2e-15
    )
    assert float(tanh.two_point(1.0, 0.5, 1.0)) == pytest.approx(0.186324413203448, abs=2e-15)


def test_relu_series_converges_slowly():
    """The kink leaves 1.5e-5 of E relu^2 = 1/2 beyond 200 terms: c_n^2 = (n-3)!!^2 / (2 pi n!) ~
    n^(-5/2) for even n."""
    coefficients = activation("relu").hermite_coefficients(400)
    assert float(jnp.sum(coefficients[:200] ** 2)) == pytest.approx(0.499985, abs=5.1e-7)
    assert float(jnp.sum(coefficients[3:] ** 2)) == pytest.approx(0.011262260330154, abs=1e-14)
    assert float(jnp.arange(3, 400) @ coefficients[3:] ** 2) == pytest.approx(
        0.084478432141604, abs=1e-12
    )


def test_first_coefficient_and_residual():
    """mu_1 = E z phi(z) and mu_*^2 = E phi^2 - (E phi)^2 - mu_1^2 (Gerace et al. 2020, section
    2)."""
    table = {
        "tanh": (0.6057055096, 0.1655757411),
        "erf": (0.6514700159, 0.2003643502),
        "relu": (0.5, 0.3014051375),
        "sign": (0.7978845608, 0.6028102750),
    }
    for name, (first, residual) in table.items():
        phi = activation(name)
        mean, slope = phi.hermite_coefficients(2)
        assert float(slope) == pytest.approx(first, abs=5.1e-11)
        assert float(jnp.sqrt(phi.moment(2, 1.0) - mean**2 - slope**2)) == pytest.approx(
            residual, abs=5.1e-11
        )


def test_sharp_activation_needs_many_coefficients():
    """tanh(2z), poles at ±i pi/4: c_n ~ exp(-sqrt(n) pi/4). c_1 and c_399 by a trapezoid rule in
    80-bit arithmetic."""
    coefficients = hermite_coefficients(lambda z: jnp.tanh(2 * z), 400)
    assert float(coefficients[1]) == pytest.approx(0.72947753148612016, abs=1e-15)
    assert float(coefficients[399]) == pytest.approx(-4.4414464938e-08, abs=1e-16)


def test_fourth_moments():
    """E phi^2 and E phi^4 of erf at four variances (trapezoid rule in 80-bit arithmetic); relu: E
    phi^4 = 3 q^2 / 2."""
    variance = jnp.array([0.5, 1.0, 2.0, 10.0])
    erf = activation("erf")
    second, fourth = erf.moment(2, variance), erf.moment(4, variance)
    np.testing.assert_allclose(
        second, [1 / 3, 0.464559054398, 0.590334470602, 0.802746775978], rtol=0, atol=5.1e-13
    )
    np.testing.assert_allclose(
        fourth, [0.2, 0.336636734847, 0.481760258722, 0.745389955990], rtol=0, atol=5.1e-13
    )
    np.testing.assert_allclose(
        activation("relu").moment(4, variance), 1.5 * variance**2, rtol=1e-13
    )
