"""Functions of one variable with kinks and jumps, whose derivatives have delta functions."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


@dataclasses.dataclass(frozen=True)
class _Slope:
    """The derivative of a function of one variable, elementwise."""

    function: Callable[[Array], Array]

    def __call__(self, u: Array) -> Array:
        return jax.jvp(self.function, (u,), (jnp.ones_like(u),))[1]


@dataclasses.dataclass(frozen=True)
class _TimesArgument:
    """The function u f(u)."""

    function: Callable[[Array], Array]

    def __call__(self, u: Array) -> Array:
        return u * self.function(u)


@dataclasses.dataclass(frozen=True)
class Generalised:
    """A function of one variable, smooth between its kinks, plus delta functions: regular(u) +
    sum_k weight_k delta(u - place_k).

    Hashable, compared by value: the functions are static.
    """

    regular: Callable[[Array], Array]
    kinks: tuple[float, ...] = ()
    deltas: tuple[tuple[float, float], ...] = ()

    def derivative(self) -> "Generalised":
        """The derivative, with a delta function at every jump. Raises `ValueError` where it would
        contain the derivative of a delta function."""
        if self.deltas:
            raise ValueError(
                "a derivative of this order does not exist for an activation with kinks at "
                f"{self.kinks}: use one without kinks"
            )
        return Generalised(_Slope(self.regular), self.kinks, self._jumps())

    def times_argument(self) -> "Generalised":
        """The function u f(u)."""
        deltas = tuple((place, place * weight) for place, weight in self.deltas if place != 0)
        return Generalised(_TimesArgument(self.regular), self.kinks, deltas)

    def _jumps(self) -> tuple[tuple[float, float], ...]:
        """Place and height of every jump, from the values just beside the kinks."""
        if not self.kinks:
            return ()
        places = np.array(self.kinks)
        beside = 1e-13 * np.maximum(np.abs(places), 1.0)
        with jax.ensure_compile_time_eval():
            heights = np.asarray(
                self.regular(jnp.asarray(places + beside))
                - self.regular(jnp.asarray(places - beside))
            )
        return tuple((float(k), float(h)) for k, h in zip(places, heights) if abs(h) > 1e-10)
