"""Activations with a kink or a jump at the origin; their two-point functions are the arc-cosine
kernels of Cho and Saul (2009).

theta is the angle between the two pre-activations, cos(theta) = c / sqrt(ab), and S = sqrt(ab -
c^2).
"""

import abc
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from orderparam.core.fields import parameter
from orderparam.gaussian.base import Activation, Average, Entry, Parity, Points, Values
from orderparam.gaussian.covariance import angle, as_covariance, sine


def _both_positive(a: Array, c: Array, b: Array) -> Array:
    """P(u > 0, v > 0) = (pi - theta) / (2 pi)  (Sheppard 1899)."""
    return (np.pi - angle(a, c, b)) / (2 * np.pi)


@jax.custom_jvp
def _relu_two_point(a: Array, c: Array, b: Array) -> Array:
    """E max(u, 0) max(v, 0) = [S + (pi - theta) c] / (2 pi)."""
    return sine(a, c, b) / (2 * np.pi) + c * _both_positive(a, c, b)


@_relu_two_point.defjvp
def _(primals, tangents):
    # dF/dc = (pi - theta)/(2 pi), dF/da = S/(4 pi a): the infinite derivatives of S and theta
    # cancel.
    (a, c, b), (da, dc, db) = primals, tangents
    s = sine(a, c, b) / (4 * np.pi)
    safe_a, safe_b = jnp.where(a > 0, a, 1.0), jnp.where(b > 0, b, 1.0)
    return _relu_two_point(a, c, b), _both_positive(
        a, c, b
    ) * dc + s / safe_a * da + s / safe_b * db


class _PiecewiseLinear(Activation):
    """phi(z) = t z for z > 0, s z for z < 0:  F = (t - s)^2 [S + (pi - theta) c] / (2 pi) + s t
    c."""

    kinks: ClassVar[tuple[float, ...]] = (0.0,)

    @property
    @abc.abstractmethod
    def slopes(self) -> tuple[Any, Any]:
        """(s, t): the slope on the negative and on the positive side."""

    def __call__(self, z: Points) -> Values:
        s, t = self.slopes
        z = jnp.asarray(z, jnp.float64)
        return jnp.where(z > 0, t, s) * z

    def derivative(self, z: Points) -> Values:
        s, t = self.slopes
        sign = jnp.sign(jnp.asarray(z, jnp.float64))
        return (t + s) / 2 + (t - s) / 2 * sign

    def two_point(self, a: Entry, c: Entry, b: Entry) -> Average:
        s, t = self.slopes
        a, c, b = as_covariance(a, c, b)
        return (t - s) ** 2 * _relu_two_point(a, c, b) + s * t * c

    def two_point_derivative(self, a: Entry, c: Entry, b: Entry) -> Average:
        s, t = self.slopes
        a, c, b = as_covariance(a, c, b)
        return (t - s) ** 2 * _both_positive(a, c, b) + s * t


class Relu(_PiecewiseLinear):
    """phi(z) = max(z, 0):  F = [S + (pi - theta) c] / (2 pi),  dF/dc = (pi - theta) / (2 pi).

    The gradient of F with respect to a variance that vanishes is set to 0. At c = ±sqrt(ab) each
    derivative of dF/dc is infinite and is set to 0: exact along a = b = c, and for d^2 F(|x|^2,
    x.y, |y|^2) / dx dy at x = y.
    """

    family: ClassVar[str] = "relu"
    slopes: ClassVar[tuple[float, float]] = (0.0, 1.0)


class Abs(_PiecewiseLinear):
    """phi(z) = |z|:  F = [2S + (pi - 2 theta) c] / pi. Derivatives at the edges: see `Relu`."""

    family: ClassVar[str] = "abs"
    parity: ClassVar[Parity] = "even"
    slopes: ClassVar[tuple[float, float]] = (-1.0, 1.0)


class LeakyRelu(_PiecewiseLinear):
    """phi(z) = positive_slope z for z > 0, negative_slope z for z < 0. Derivatives at the edges:
    see `Relu`.

    Raises `ValueError` for a slope that is not a finite number.
    """

    family: ClassVar[str] = "leaky_relu"
    negative_slope: float = parameter("slope below zero", default=0.01)
    positive_slope: float = parameter("slope above zero", default=1.0)

    @property
    def slopes(self) -> tuple[Any, Any]:
        return self.negative_slope, self.positive_slope


class _TwoValued(Activation):
    """phi(z) = low for z < 0, high for z > 0, and half way at 0:  F = (high - low)^2 (pi -
    theta)/(2 pi) + low high."""

    kinks: ClassVar[tuple[float, ...]] = (0.0,)

    @property
    @abc.abstractmethod
    def values(self) -> tuple[float, float]:
        """(low, high)."""

    def __call__(self, z: Points) -> Values:
        low, high = self.values
        return (high + low) / 2 + (high - low) / 2 * jnp.sign(jnp.asarray(z, jnp.float64))

    def derivative(self, z: Points) -> Values:
        return jnp.zeros_like(jnp.asarray(z, jnp.float64))

    def two_point(self, a: Entry, c: Entry, b: Entry) -> Average:
        low, high = self.values
        return (high - low) ** 2 * _both_positive(*as_covariance(a, c, b)) + low * high

    def two_point_derivative(self, a: Entry, c: Entry, b: Entry) -> Average:
        low, high = self.values
        s = sine(*as_covariance(a, c, b))
        return (
            (high - low) ** 2
            / (2 * np.pi)
            * jnp.where(s > 0, 1 / jnp.where(s > 0, s, 1.0), jnp.inf)
        )


class Sign(_TwoValued):
    """phi(z) = sign(z):  F = (2/pi) asin(rho),  dF/dc = 2 / (pi S), infinite on c = ±sqrt(ab):
    `two_point_derivative` returns inf there, and the gradient of `two_point` takes it as 0, which
    is exact along a = b = c.
    """

    family: ClassVar[str] = "sign"
    parity: ClassVar[Parity] = "odd"
    values: ClassVar[tuple[float, float]] = (-1.0, 1.0)


class Step(_TwoValued):
    """phi(z) = 1 for z > 0, 0 for z < 0, 1/2 at 0:  F = (pi - theta) / (2 pi),  dF/dc = 1 / (2 pi
    S): see `Sign`."""

    family: ClassVar[str] = "step"
    values: ClassVar[tuple[float, float]] = (0.0, 1.0)
