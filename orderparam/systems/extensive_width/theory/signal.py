"""What one hidden unit can tell about its weights: the signal function g of an activation.

g(q) = sum_{l >= 3} c_l^2 q^l is the part of E sigma(z_1) sigma(z_2) at correlation q that is not learned from O(d) samples
(c_0, c_1) or collectively from the quadratic component (c_2). It is tabulated along u = -ln(1 - q), so that q close to 1
keeps its digits. Nguyen and Barbier 2026, appendix A (g_sigma).
"""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.gaussian import Activation, hermite_coefficients

# tanh(2z) has poles at ±i pi/4, so that c_l^2 falls as exp(-const sqrt(l)): beyond 400 terms 1e-8 of g'(1) is missing.
SERIES = 400

_LEGENDRE = np.polynomial.legendre.leggauss(24)


class Signal:
    """g of one activation: g(1) - g(q), g'(q) and g''(q) at q = 1 - exp(-u).

    A smooth activation has its Hermite series; one with kinks or jumps has its closed two-point function, since its series falls
    only as a power.

    coefficients: c_0, c_1, c_2.   total: g(1).   reach: largest u at which the functions below are accurate.
    """

    def __init__(self, activation: Activation) -> None:
        self.activation = activation
        found = np.asarray(hermite_coefficients(activation, 3 if activation.kinks else SERIES, 1.0, activation.kinks))
        self.coefficients = found[:3]
        self.closed = bool(activation.kinks)
        self.reach = 20.0 if self.closed else 45.0
        degrees = np.arange(3, max(len(found), 4))
        self._degrees = degrees
        self._squares = np.zeros(1) if self.closed else found[3:] ** 2
        if not self.closed:  # what lies below rounding of the coefficients is not signal
            kept = self._squares > 1e-28 * np.sum(found**2)
            self._degrees, self._squares = degrees[kept], self._squares[kept]
        self.total = float(self.deficit(np.array([30.0 if self.closed else 700.0]), from_zero=True)[0])

    def deficit(self, u: np.ndarray, from_zero: bool = False) -> np.ndarray:
        """g(1) - g(q); with `from_zero` g(q) itself."""
        if not self.closed:
            if from_zero:
                return np.exp(np.multiply.outer(np.log1p(-np.exp(-u)), self._degrees)) @ self._squares
            return -np.expm1(np.multiply.outer(np.log1p(-np.exp(-u)), self._degrees)) @ self._squares
        # int g' over [q, 1] with 1 - q' = (1 - q) x^2, or over [0, q] with 1 - q' = 1 - q x: no difference of close numbers.
        x, w = 0.5 * (1 + _LEGENDRE[0]), 0.5 * _LEGENDRE[1]
        if from_zero:
            gap = np.multiply.outer(np.expm1(-u), 1 - (1 - x**2) ** 2) + 1
            return np.sum(self._closed_slope(gap) * 4 * x * (1 - x**2) * w, axis=-1) * -np.expm1(-u)
        gap = np.multiply.outer(np.exp(-u), x**2)
        return np.sum(self._closed_slope(gap) * 2 * x * w, axis=-1) * np.exp(-u)

    def slope(self, u: np.ndarray) -> np.ndarray:
        """g'(q)."""
        if self.closed:
            return self._closed_slope(np.exp(-u))
        return np.exp(np.multiply.outer(np.log1p(-np.exp(-u)), self._degrees - 1)) @ (self._degrees * self._squares)

    def curvature(self, u: np.ndarray) -> np.ndarray:
        """g''(q)."""
        if self.closed:
            correlation = jnp.asarray(-np.expm1(-u))
            one = jnp.ones_like(correlation)

            def slope(q: Any) -> Any:
                return self.activation.two_point_derivative(one, q, one)

            return np.asarray(jax.jvp(slope, (correlation,), (one,))[1]) - 2 * self.coefficients[2] ** 2
        weights = self._degrees * (self._degrees - 1) * self._squares
        return np.exp(np.multiply.outer(np.log1p(-np.exp(-u)), self._degrees - 2)) @ weights

    def at(self, q: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """g(q) and g'(q), traceable; absolute accuracy 1e-14."""
        if not self.closed:
            powers = jnp.asarray(self._squares) * q ** jnp.asarray(self._degrees)
            slopes = jnp.asarray(self._squares * self._degrees) * q ** jnp.asarray(self._degrees - 1)
            return jnp.sum(powers), jnp.sum(slopes)
        a, b, c = self.coefficients**2
        one = jnp.ones_like(q)
        value = self.activation.two_point(one, q, one) - a - b * q - c * q**2
        return value, self.activation.two_point_derivative(one, q, one) - b - 2 * c * q

    def _closed_slope(self, gap: np.ndarray) -> np.ndarray:
        """g'(1 - gap) from the two-point function."""
        q = 1 - np.asarray(gap)
        one = np.ones_like(q)
        full = np.asarray(self.activation.two_point_derivative(one, q, one))
        return full - self.coefficients[1] ** 2 - 2 * self.coefficients[2] ** 2 * q


@lru_cache(maxsize=64)
def signal(activation: Activation) -> Signal:
    """The signal function of an activation, computed once."""
    with jax.ensure_compile_time_eval():
        return Signal(activation)
