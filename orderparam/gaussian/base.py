"""The interface of every activation function phi: its value, and its averages over Gaussian
pre-activations.

An infinitely wide layer depends on phi only through such averages: the two-point function F(a, c,
b) = E phi(u) phi(v), the Hermite coefficients, the moments.
"""

import abc
import dataclasses
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from orderparam.core.fields import check_integer, is_number
from orderparam.core.system import Record
from orderparam.gaussian.covariance import as_covariance
from orderparam.gaussian.hermite import hermite_coefficients
from orderparam.gaussian.quadrature import expectation

Parity = Literal["even", "odd"] | None
Points = Float[ArrayLike, "*shape"]  # the argument of phi
Values = Float[Array, "*shape"]
Entry = Float[ArrayLike, "*#batch"]  # one entry of the covariance: a, c or b
Average = Float[Array, "*batch"]
Variance = Float[ArrayLike, "*batch"]
Coefficients = Float[Array, "*batch count"]


class Activation(Record):
    """A nonlinearity phi with its Gaussian averages.

    Subclasses define `__call__`, `two_point`, and every other average that has a closed form.

    Real parameters (slopes, coefficients) are leaves, so that one can differentiate with respect to
    them; degrees, kinks, names and Python functions are static. Built from Python numbers an
    activation is hashable and compares by value, so that a system may also hold it as static
    structure.

    All inputs are converted to float64; all functions are elementwise and broadcast.
    """

    family: ClassVar[str]

    @property
    def name(self) -> str:
        """Text that `activation` turns back into this object, such as `leaky_relu(0.1, 1.0)`."""
        values = jax.tree.leaves([getattr(self, field.name) for field in dataclasses.fields(self)])
        if not values or not all(is_number(value) for value in values):
            return self.family
        return (
            f"{self.family}("
            f"{', '.join(str(v) if isinstance(v, int) else repr(float(v)) for v in values)})"
        )

    @property
    def kinks(self) -> tuple[float, ...]:
        """Points where phi is not smooth."""
        return ()

    @property
    def parity(self) -> Parity:
        """`"even"`, `"odd"`, or None where it is neither or unknown."""
        return None

    @abc.abstractmethod
    def __call__(self, z: Points) -> Values:
        """phi(z), elementwise."""

    def derivative(self, z: Points) -> Values:
        """phi'(z), elementwise; at a kink the mean of both sides, at a jump the regular part (no
        delta function)."""
        z = jnp.asarray(z, jnp.float64)
        return jax.jvp(self.__call__, (z,), (jnp.ones_like(z),))[1]

    @abc.abstractmethod
    def two_point(self, a: Entry, c: Entry, b: Entry) -> Average:
        """F(a, c, b) = E phi(u) phi(v) with (u, v) ~ N(0, [[a, c], [c, b]]), elementwise with
        broadcasting.

        Value and gradient are finite and right for a, b >= 0 and |c| up to sqrt(ab) (and above it
        by rounding).
        """

    def two_point_derivative(self, a: Entry, c: Entry, b: Entry) -> Average:
        """dF/dc = E phi'(u) phi'(v) (Price 1958): the factor of the neural tangent kernel at every
        layer."""
        a, c, b = as_covariance(a, c, b)
        return jax.jvp(lambda c: self.two_point(a, c, b), (c,), (jnp.ones_like(c),))[1]

    def hermite_coefficients(self, count: int, variance: Variance = 1.0) -> Coefficients:
        """c_n, n < count, of phi(sqrt(variance) z) = sum_n c_n h_n(z) with E h_n(z) h_m(z) =
        delta_nm.

        Hence F(a, c, b) = sum_n c_n(a) c_n(b) rho^n (Mehler). Raises `ValueError` if count is not a
        positive integer.
        """
        check_integer("count", count, 1)
        coefficients = _coefficients(self, count, jnp.asarray(variance, jnp.float64))
        if self.parity is None:
            return coefficients
        return jnp.where(jnp.arange(count) % 2 == (self.parity == "odd"), coefficients, 0.0)

    def moment(self, order: int, variance: Variance) -> Average:
        """E phi(u)^order, u ~ N(0, variance). Raises `ValueError` if the order is not a positive
        integer.

        Accurate to 1e-13 if phi^order grows more slowly than |z|^30. The derivative at variance 0
        is returned as 0.
        """
        check_integer("order", order, 1)
        variance = jnp.asarray(variance, jnp.float64)
        if self.parity == "odd" and order % 2:
            return jnp.zeros_like(variance)
        return _moment(self, order, variance)

    def mean(self, variance: Variance) -> Average:
        """E phi(u), u ~ N(0, variance)."""
        return self.moment(1, variance)


@eqx.filter_jit
def _coefficients(phi: Activation, count: int, variance: Array) -> Array:
    return hermite_coefficients(phi, count, variance, phi.kinks)


@eqx.filter_jit
def _moment(phi: Activation, order: int, variance: Array) -> Array:
    return expectation(lambda u: phi(u) ** order, variance, phi.kinks)
