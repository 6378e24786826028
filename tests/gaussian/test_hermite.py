"""Hermite polynomials and one-dimensional averages."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.gaussian import (
    activation,
    expectation,
    hermite,
    hermite_coefficients,
    standard_normal_rule,
)


def test_polynomials_are_orthonormal():
    def overlaps():
        z, w = standard_normal_rule()
        values = jnp.stack([hermite(n, z) for n in range(12)])
        return (w * values) @ values.T

    np.testing.assert_allclose(jax.jit(overlaps)(), np.eye(12), rtol=0, atol=1e-13)


def test_low_degrees():
    z = jnp.linspace(-3, 3, 7)
    np.testing.assert_allclose(hermite(3, z), (z**3 - 3 * z) / np.sqrt(6), rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        hermite(4, z), (z**4 - 6 * z**2 + 3) / np.sqrt(24), rtol=0, atol=1e-14
    )


@pytest.mark.parametrize(
    "name", ["hermite(6)", "polynomial(0.3, -1, 0.2, 0.5)", "exp", "cubic", "linear"]
)
def test_coefficients_in_closed_form(name):
    phi = activation(name)
    closed, quadrature = jax.jit(
        lambda q: (phi.hermite_coefficients(9, q), hermite_coefficients(phi, 9, q))
    )(jnp.array([0.5, 1.0]))
    np.testing.assert_allclose(closed, quadrature, rtol=0, atol=1e-13)


def test_polynomial_coefficients_end_exactly():
    assert (activation("cubic").hermite_coefficients(8, 0.7)[4:] == 0).all()
    np.testing.assert_array_equal(activation("hermite(3)").hermite_coefficients(6), np.eye(6)[3])


@pytest.mark.parametrize("name", ["relu", "step", "sign", "erf", "gaussian", "tanh"])
def test_series_resums_to_the_two_point_function(name):
    phi = activation(name)
    variance = jnp.array([0.3, 4.0])
    coefficients = np.asarray(phi.hermite_coefficients(300, variance))
    series = np.sum(coefficients**2 * 0.6 ** np.arange(300), axis=-1)
    np.testing.assert_allclose(
        series, phi.two_point(variance, 0.6 * variance, variance), rtol=1e-13
    )


def test_coefficients_of_step_and_sign():
    """c_n^2 of sign: (2/pi) asin(rho) = (2/pi) (rho + rho^3/6 + 3 rho^5/40 + ...)."""
    squares = np.asarray(activation("sign").hermite_coefficients(6)) ** 2
    np.testing.assert_allclose(
        squares, 2 / np.pi * np.array([0, 1, 0, 1 / 6, 0, 3 / 40]), rtol=0, atol=1e-14
    )


def test_kinks_scale_with_the_deviation():
    """E max(u - 1, 0) = s density(1/s) - P(z > 1/s), s = deviation."""
    from scipy.stats import norm

    variance = jnp.array([0.0, 1e-4, 0.09, 1.0, 25.0, 1e4])
    s = np.sqrt(np.asarray(variance)[1:])
    value = jax.jit(lambda q: expectation(lambda u: jnp.maximum(u - 1, 0.0), q, (1.0,)))(variance)
    assert float(value[0]) == 0.0
    np.testing.assert_allclose(
        value[1:], s * norm.pdf(1 / s) - norm.sf(1 / s), rtol=1e-12, atol=1e-15
    )


def test_derivative_of_an_average():
    """d/dq E tanh(u)^2 by moving nodes and by (z^2 - 1)/(2q); the derivative with respect to a
    threshold moves the cut."""
    q = 0.8
    moving = jax.jit(jax.grad(lambda q: expectation(lambda u: jnp.tanh(u) ** 2, q)))(q)
    still = jax.jit(
        lambda q: expectation(lambda u: jnp.tanh(u) ** 2 * (u**2 / q - 1) / (2 * q), q)
    )(q)
    assert float(moving) == pytest.approx(float(still), rel=1e-13)

    def above(threshold):
        z, w = standard_normal_rule([0.0, threshold])
        return jnp.sum(w * (z > threshold))

    assert float(jax.jit(jax.grad(above))(0.4)) == pytest.approx(
        -np.exp(-0.08) / np.sqrt(2 * np.pi), rel=1e-13
    )


def test_sharp_transitions():
    """E tanh(u)^2 at variance q -> 1 - 2 sqrt(1 / (2 pi q)) for large q: int (1 - tanh^2) = 2."""
    q = jnp.array([1e4, 1e6, 1e8])
    missing = 1 - activation("tanh").moment(2, q)
    np.testing.assert_allclose(missing * jnp.sqrt(2 * np.pi * q), 2.0, rtol=1e-4)
