"""Activations built from the error function; their two-point functions are arcsines (Williams 1998,
"Computation with infinite neural networks", eq. 11).

erf(z/sqrt2) is the mean of sign(z + noise) over unit Gaussian noise: its kernel is the kernel of
sign with a and b increased by one, and never degenerates.
"""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array

from orderparam.core.fields import parameter
from orderparam.gaussian.arctangent import arctan2
from orderparam.gaussian.base import Activation, Average, Entry, Parity, Points, Values
from orderparam.gaussian.covariance import as_covariance, determinant


class Erf(Activation):
    """phi(z) = erf(z):  F = (2/pi) asin( 2c / sqrt((1+2a)(1+2b)) )."""

    family: ClassVar[str] = "erf"
    parity: ClassVar[Parity] = "odd"
    gain: ClassVar[float] = 1.0  # phi(z) = erf(gain z)

    def __call__(self, z: Points) -> Values:
        return erf(self.gain * jnp.asarray(z, jnp.float64))

    def two_point(self, a: Entry, c: Entry, b: Entry) -> Average:
        # asin(x / sqrt(x^2 + D)) = atan2(x, sqrt(D)), x = sc, D = (1+sa)(1+sb) - (sc)^2 >= 1, s = 2
        # gain^2
        a, c, b = as_covariance(a, c, b)
        return 2 / np.pi * arctan2(self._s * c, jnp.sqrt(self._discriminant(a, c, b)))

    def two_point_derivative(self, a: Entry, c: Entry, b: Entry) -> Average:
        a, c, b = as_covariance(a, c, b)
        return 2 / np.pi * self._s / jnp.sqrt(self._discriminant(a, c, b))

    @property
    def _s(self) -> float:
        return 2 * self.gain**2

    def _discriminant(self, a: Array, c: Array, b: Array) -> Array:
        s = self._s
        return 1 + s * (a + b) + s**2 * determinant(a, c, b)


class ErfScaled(Erf):
    """phi(z) = erf(z/sqrt2) = 2 Phi(z) - 1:  F = (2/pi) asin( c / sqrt((1+a)(1+b)) )."""

    family: ClassVar[str] = "erf_scaled"
    gain: ClassVar[float] = float(np.sqrt(0.5))


class ErfGain(Erf):
    """phi(z) = erf(gain z):  F = (2/pi) asin( s c / sqrt((1+sa)(1+sb)) ), s = 2 gain^2. By name:
    `erf_gain(2)`."""

    family: ClassVar[str] = "erf_gain"
    gain: float = parameter("factor of the argument", default=1.0)  # type: ignore[misc]


class Gelu(Activation):
    """phi(z) = z Phi(z) with the standard normal distribution function Phi = (1 + erf(z/sqrt2))/2
    (Hendrycks and Gimpel 2016).

    F = c [1/4 + asin(r)/(2 pi)] + [ab - c^2 + c^2/(1+a) + c^2/(1+b)] / (2 pi sqrt D),
    D = (1+a)(1+b) - c^2, r = c / sqrt((1+a)(1+b))
    (Tsuchida, Pearce, van der Heide, Roosta and Gallagher 2021).
    """

    family: ClassVar[str] = "gelu"

    def __call__(self, z: Points) -> Values:
        z = jnp.asarray(z, jnp.float64)
        return z * (1 + erf(z / np.sqrt(2))) / 2

    def two_point(self, a: Entry, c: Entry, b: Entry) -> Average:
        a, c, b = as_covariance(a, c, b)
        gap = determinant(a, c, b)
        root = jnp.sqrt(1 + a + b + gap)
        numerator = gap + c * c / (1 + a) + c * c / (1 + b)
        return c * (0.25 + arctan2(c, root) / (2 * np.pi)) + numerator / (2 * np.pi * root)
