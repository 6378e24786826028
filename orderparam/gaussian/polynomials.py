"""Polynomial activations: their averages are finite sums (Isserlis 1918; Mehler 1866)."""

import abc
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from orderparam.core.fields import check_integer, is_number, structure
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
from orderparam.gaussian.covariance import as_covariance
from orderparam.gaussian.hermite import hermite
from orderparam.gaussian.quadrature import safe_sqrt


def _known_zero(coefficient: Any) -> bool:
    return is_number(coefficient) and float(coefficient) == 0


def _power_series(x: Array, coefficients: Sequence[Any]) -> Array:
    """sum_k coefficients[k] x^k, leaving out the terms known to vanish."""
    total = jnp.zeros_like(x)
    for k, coefficient in enumerate(coefficients):
        if not _known_zero(coefficient):
            total = total + coefficient * x**k
    return total


class _PowerSeries(Activation):
    """phi(z) = sum_k p_k z^k.

    With A_n(a) = E phi^(n)(u) / n!, u ~ N(0, a), a polynomial in a,

        F(a, c, b) = sum_n n! A_n(a) A_n(b) c^n,    c_n = sqrt(n!) a^(n/2) A_n(a).
    """

    @property
    @abc.abstractmethod
    def powers(self) -> tuple[Any, ...]:
        """(p_0, p_1, ...)."""

    @property
    def parity(self) -> Parity:
        even, odd = (all(_known_zero(p) for p in self.powers[start::2]) for start in (1, 0))
        return "even" if even else "odd" if odd else None

    def __call__(self, z: Points) -> Values:
        return _power_series(jnp.asarray(z, jnp.float64), self.powers)

    def _average(self, n: int, variance: Array) -> Array:
        """A_n: E u^(2i) = (2i-1)!! variance^i gives sum_i p_(n+2i) binomial(n+2i, n) (2i-1)!!
        variance^i."""
        weights = [
            p if _known_zero(p) else p * math.comb(n + 2 * i, n) * math.prod(range(1, 2 * i, 2))
            for i, p in enumerate(self.powers[n::2])
        ]
        return _power_series(variance, weights)

    def two_point(self, a: Entry, c: Entry, b: Entry) -> Average:
        a, c, b = as_covariance(a, c, b)
        total = jnp.zeros_like(c)
        for n in range(len(self.powers)):
            if not all(_known_zero(p) for p in self.powers[n::2]):
                total = total + math.factorial(n) * self._average(n, a) * self._average(n, b) * c**n
        return total

    def hermite_coefficients(self, count: int, variance: Variance = 1.0) -> Coefficients:
        check_integer("count", count, 1)
        variance = jnp.asarray(variance, jnp.float64)
        deviation = safe_sqrt(variance)
        return jnp.stack(
            [
                math.sqrt(math.factorial(n)) * deviation**n * self._average(n, variance)
                for n in range(count)
            ],
            axis=-1,
        )


class Linear(_PowerSeries):
    """phi(z) = z:  F = c."""

    family: ClassVar[str] = "linear"
    powers: ClassVar[tuple[float, ...]] = (0.0, 1.0)


class Monomial(_PowerSeries):
    """phi(z) = z^degree:  F = ab + 2c^2 for z^2, 9abc + 6c^3 for z^3. The degree is static.

    Raises `ValueError` unless the degree is an integer >= 1.
    """

    family: ClassVar[str] = "monomial"
    degree: int = structure("degree of the polynomial", minimum=1)

    @property
    def powers(self) -> tuple[Any, ...]:
        return (*(0.0 for _ in range(self.degree)), 1.0)


def _finite(field: str, value: Any) -> None:
    """Raises `ValueError` naming the field unless the value is a finite number or an array."""
    if (is_number(value) and not np.isfinite(value)) or not (
        is_number(value) or isinstance(value, np.ndarray | jax.Array)
    ):
        raise ValueError(f"{field} = {value!r}: must be a finite number")


def _sequence(coefficients: Any) -> tuple[Any, ...]:
    if not hasattr(coefficients, "__iter__"):
        raise ValueError(
            f"coefficients = {coefficients!r}: must be a sequence of numbers (of 1, z, z^2, ...)"
        )
    return tuple(coefficients)


class Polynomial(_PowerSeries):
    """phi(z) = sum_k coefficients[k] z^k. The coefficients are leaves, their number is static.

    Raises `ValueError` when there is no coefficient, or one that is not a finite number.
    """

    family: ClassVar[str] = "polynomial"
    coefficients: tuple[Any, ...] = eqx.field(converter=_sequence)

    def __check_init__(self) -> None:
        if not self.coefficients:
            raise ValueError("coefficients = (): must be at least one number (of 1, z, z^2, ...)")
        for k, coefficient in enumerate(self.coefficients):
            _finite(f"coefficients[{k}]", coefficient)

    @property
    def powers(self) -> tuple[Any, ...]:
        return self.coefficients


class Hermite(Activation):
    """phi(z) = h_k(z) = He_k(z) / sqrt(k!), k = degree, static:  F = c^k at a = b = 1, and at other
    variances

    F = sum_j k! / ((2^j j!)^2 (k-2j)!) ((a-1)(b-1))^j c^(k-2j).

    Raises `ValueError` unless the degree is >= 1.
    """

    family: ClassVar[str] = "hermite"
    degree: int = structure("degree of the polynomial", minimum=1)

    @property
    def parity(self) -> Parity:
        return "odd" if self.degree % 2 else "even"

    def __call__(self, z: Points) -> Values:
        return hermite(self.degree, z)

    def derivative(self, z: Points) -> Values:
        return np.sqrt(self.degree) * hermite(self.degree - 1, z)

    def two_point(self, a: Entry, c: Entry, b: Entry) -> Average:
        # He_k(sqrt(a) z) = sum_j k! / (2^j j! (k-2j)!) (a-1)^j a^((k-2j)/2) He_(k-2j)(z)
        a, c, b = as_covariance(a, c, b)
        k, excess = self.degree, (a - 1) * (b - 1)
        total = jnp.zeros_like(c)
        for j in range(k // 2 + 1):
            weight = math.factorial(k) / (
                (2**j * math.factorial(j)) ** 2 * math.factorial(k - 2 * j)
            )
            total = total + weight * excess**j * c ** (k - 2 * j)
        return total

    def hermite_coefficients(self, count: int, variance: Variance = 1.0) -> Coefficients:
        check_integer("count", count, 1)
        variance = jnp.asarray(variance, jnp.float64)
        deviation, k = safe_sqrt(variance), self.degree
        columns = []
        for n in range(count):
            j, odd = divmod(k - n, 2)
            if odd or j < 0:
                columns.append(jnp.zeros_like(variance))
                continue
            weight = math.sqrt(math.factorial(k) / math.factorial(n)) / (2**j * math.factorial(j))
            columns.append(weight * (variance - 1) ** j * deviation**n)
        return jnp.stack(columns, axis=-1)
