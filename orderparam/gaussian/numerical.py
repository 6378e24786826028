"""Activations without a closed two-point function (tanh, sigmoid, swish, any Python function):
their averages by quadrature."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from orderparam.core.system import is_number
from orderparam.gaussian.base import Activation, Average, Entry, Parity, Points, Values
from orderparam.gaussian.covariance import as_covariance
from orderparam.gaussian.generalised import Generalised
from orderparam.gaussian.two_point import coincidences, pair_expectation


class Numerical(Activation):
    """phi = `function`: any elementwise function that JAX can trace, smooth except at `kinks`
    (where it may also jump).

    Everything in it is static; two objects are equal when they hold the same function object.
    Accuracy, time and memory of `two_point`: see `two_point.pair_expectation`. Where phi jumps,
    dF/dc is infinite on c = ±sqrt(ab): `two_point_derivative` returns inf there, and the gradient
    of `two_point` sets it to 0. Derivatives of a higher order than the kinks allow raise
    `ValueError`.

    function: applied to float64 arrays. name: defaults to that of the function. kinks: kinks,
    jumps, and places away from the origin around which phi varies quickly. parity: "even" or "odd",
    when known. Raises `ValueError` for anything else.
    """

    function: Callable[[Array], Array] = eqx.field(static=True)
    name: str = eqx.field(static=True, default="")
    kinks: tuple[float, ...] = eqx.field(static=True, default=())
    parity: Parity = eqx.field(static=True, default=None)

    def __init__(
        self,
        function: Callable[[Array], Array],
        name: str | None = None,
        kinks: Sequence[float] = (),
        parity: Parity = None,
    ) -> None:
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        if not isinstance(kinks, list | tuple) or not all(
            is_number(k) and np.isfinite(k) for k in kinks
        ):
            raise ValueError(
                f"kinks = {kinks!r}: must be a list of finite numbers (points where {self.name} is "
                "not smooth)"
            )
        if parity not in ("even", "odd", None):
            raise ValueError(
                f"parity = {parity!r}: must be 'even', 'odd' or None (symmetry of {self.name})"
            )
        self.kinks = tuple(sorted({float(k) for k in kinks}))
        self.parity = parity
        probe = jax.ShapeDtypeStruct((2, 3), jnp.float64)
        try:
            outcome = jax.eval_shape(function, probe)
        except Exception as error:
            raise ValueError(
                f"activation {self.name}: JAX cannot trace it ({type(error).__name__}): use "
                "jax.numpy"
            ) from error
        if getattr(outcome, "shape", None) != probe.shape or not jnp.issubdtype(
            outcome.dtype, jnp.floating
        ):
            raise ValueError(
                f"activation {self.name}: must map an array of reals to an array of reals of the "
                "same shape"
            )

    def __call__(self, z: Points) -> Values:
        return self.function(jnp.asarray(z, jnp.float64))

    def two_point(self, a: Entry, c: Entry, b: Entry) -> Average:
        return pair_expectation(self._generalised, self._generalised, a, c, b)

    def two_point_derivative(self, a: Entry, c: Entry, b: Entry) -> Average:
        slope = self._generalised.derivative()
        return pair_expectation(slope, slope, a, c, b) + coincidences(
            slope, slope, *as_covariance(a, c, b)
        )

    @property
    def _generalised(self) -> Generalised:
        return Generalised(self.function, self.kinks)


# Plain functions of this module, so that an activation can be sent to another process.
def tanh(z: Array) -> Array:
    """tanh(z)."""
    return jnp.tanh(z)


def sigmoid(z: Array) -> Array:
    """1 / (1 + exp(-z))."""
    return jax.nn.sigmoid(z)


def swish(z: Array) -> Array:
    """z / (1 + exp(-z))  (Ramachandran, Zoph and Le 2017)."""
    return jax.nn.silu(z)
