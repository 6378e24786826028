"""The interface of every convex loss l(y, f): its value, its slope, and its proximal map.

In a large convex problem the effect of the other examples on one training example is summarised by
two numbers: its field w, the value of the predictor when it is trained without the example, and the
response variance V. The predictor at the example then has the proximal value

    prox(y, w) = argmin_x l(y, x) + (x - w)^2 / (2 V),
    g(y, w) = (prox(y, w) - w) / V = -l'(y, prox(y, w)).
"""

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

Label = Float[Array, "*#batch"] | float
Field = Float[Array, "*#batch"] | float
Values = Float[Array, "*batch"]


class Loss(eqx.Module):
    """A loss l(y, f), convex in f. All functions are elementwise and broadcast; V > 0 throughout.

    binary: True if labels must be -1 or +1. smooth: True if l'' exists everywhere.
    """

    name: ClassVar[str]
    binary: ClassVar[bool]
    smooth: ClassVar[bool]

    @abc.abstractmethod
    def __call__(self, label: Label, field: Field) -> Values:
        """l(y, f)."""

    @abc.abstractmethod
    def slope(self, label: Label, field: Field) -> Values:
        """l'(y, f), the derivative with respect to f; at a kink the right-hand derivative in y
        f."""

    @abc.abstractmethod
    def curvature(self, label: Label, field: Field) -> Values:
        """l''(y, f) where it exists."""

    @abc.abstractmethod
    def denoiser(self, label: Label, field: Field, variance: Field) -> Values:
        """g(y, w) = (prox - w) / V, accurate also where prox and w agree in many digits."""

    @abc.abstractmethod
    def denoiser_slope(self, label: Label, field: Field, variance: Field) -> Values:
        """dg/dw = -l'' / (1 + V l'') at prox; between -1/V and 0."""

    def prox(self, label: Label, field: Field, variance: Field) -> Values:
        """argmin_x l(y, x) + (x - w)^2 / (2 V) = w + V g(y, w)."""
        return jnp.asarray(field) + variance * self.denoiser(label, field, variance)

    def cuts(self, variance: Field) -> tuple[Field, ...]:
        """Margins y w at which g is not smooth, or changes within a distance small against their
        spread."""
        return ()

    def poles(self, variance: Field) -> Array | None:
        """The complex margins y w nearest to the real axis at which g is not analytic; None where
        they are unknown."""
        return None

    def ends(self, variance: Field) -> Field:
        """The margin y w above which g is zero."""
        return jnp.inf
