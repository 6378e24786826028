"""Activations made of exponentials of z or z^2, whose averages are Gaussian integrals."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from orderparam.core.fields import check_integer
from orderparam.gaussian.base import (
    Activation,
    Average,
    Coefficients,
    Entry,
    Parity,
    Points,
    Values,
    Variance,
)
from orderparam.gaussian.covariance import as_covariance, determinant


class Exp(Activation):
    """phi(z) = exp(z):  F = exp((a+b)/2 + c)."""

    family: ClassVar[str] = "exp"

    def __call__(self, z: Points) -> Values:
        return jnp.exp(jnp.asarray(z, jnp.float64))

    def two_point(self, a: Entry, c: Entry, b: Entry) -> Average:
        a, c, b = as_covariance(a, c, b)
        return jnp.exp((a + b) / 2 + c)

    def moment(self, order: int, variance: Variance) -> Average:
        check_integer("order", order, 1)
        return jnp.exp(order**2 * jnp.asarray(variance, jnp.float64) / 2)

    def hermite_coefficients(self, count: int, variance: Variance = 1.0) -> Coefficients:
        # exp(s z) = exp(s^2/2) sum_n s^n He_n(z) / n!
        check_integer("count", count, 1)
        deviation = jnp.sqrt(jnp.asarray(variance, jnp.float64))[..., None]
        ratios = jnp.concatenate(
            [jnp.ones_like(deviation), deviation / np.sqrt(np.arange(1.0, count))], axis=-1
        )
        return jnp.exp(deviation**2 / 2) * jnp.cumprod(ratios, axis=-1)


class Sin(Activation):
    """phi(z) = sin(z):  F = exp(-(a+b)/2) sinh(c)."""

    family: ClassVar[str] = "sin"
    parity: ClassVar[Parity] = "odd"

    def __call__(self, z: Points) -> Values:
        return jnp.sin(jnp.asarray(z, jnp.float64))

    def two_point(self, a: Entry, c: Entry, b: Entry) -> Average:
        # sinh overflows where the product is still finite, the difference of exponentials cancels
        # at small c
        a, c, b = as_covariance(a, c, b)
        small = jnp.exp(-(a + b) / 2) * jnp.sinh(jnp.clip(c, -1.0, 1.0))
        large = (jnp.exp(c - (a + b) / 2) - jnp.exp(-c - (a + b) / 2)) / 2
        return jnp.where(jnp.abs(c) < 1, small, large)


class Cos(Activation):
    """phi(z) = cos(z):  F = exp(-(a+b)/2) cosh(c)."""

    family: ClassVar[str] = "cos"
    parity: ClassVar[Parity] = "even"

    def __call__(self, z: Points) -> Values:
        return jnp.cos(jnp.asarray(z, jnp.float64))

    def two_point(self, a: Entry, c: Entry, b: Entry) -> Average:
        a, c, b = as_covariance(a, c, b)
        return (jnp.exp(c - (a + b) / 2) + jnp.exp(-c - (a + b) / 2)) / 2


class Rbf(Activation):
    """phi(z) = sqrt2 sin(z + pi/4):  F = exp(-(a + b - 2c)/2), the radial basis function kernel
    (Rahimi and Recht 2007)."""

    family: ClassVar[str] = "rbf"

    def __call__(self, z: Points) -> Values:
        return np.sqrt(2) * jnp.sin(jnp.asarray(z, jnp.float64) + np.pi / 4)

    def two_point(self, a: Entry, c: Entry, b: Entry) -> Average:
        a, c, b = as_covariance(a, c, b)
        return jnp.exp(c - (a + b) / 2)


class Gaussian(Activation):
    """phi(z) = exp(-z^2):  F = 1 / sqrt((1+2a)(1+2b) - 4c^2)  (Williams 1998)."""

    family: ClassVar[str] = "gaussian"
    parity: ClassVar[Parity] = "even"

    def __call__(self, z: Points) -> Values:
        return jnp.exp(-(jnp.asarray(z, jnp.float64) ** 2))

    def two_point(self, a: Entry, c: Entry, b: Entry) -> Average:
        a, c, b = as_covariance(a, c, b)
        return 1 / jnp.sqrt(1 + 2 * (a + b) + 4 * determinant(a, c, b))
