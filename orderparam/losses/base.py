"""What every convex loss l(y, f) can do: its value, its slope, and its proximal map.

A training example of a large convex problem answers to the rest of the sample through one number:
its field w, which the predictor would take there without it, and the variance V by which it may be
moved. It then takes the proximal value

    prox(y, w) = argmin_x l(y, x) + (x - w)^2 / (2 V),       g(y, w) = (prox(y, w) - w) / V = -l'(y, prox(y, w)).
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

    binary: whether labels must be -1 or +1. smooth: whether l'' exists everywhere.
    """

    name: ClassVar[str]
    binary: ClassVar[bool]
    smooth: ClassVar[bool]

    @abc.abstractmethod
    def __call__(self, label: Label, field: Field) -> Values:
        """l(y, f)."""

    @abc.abstractmethod
    def slope(self, label: Label, field: Field) -> Values:
        """l'(y, f), the derivative with respect to f; at a kink that of the right-hand side of y f."""

    @abc.abstractmethod
    def curvature(self, label: Label, field: Field) -> Values:
        """l''(y, f) where it exists."""

    @abc.abstractmethod
    def denoiser(self, label: Label, field: Field, variance: Field) -> Values:
        """g(y, w) = (prox - w) / V, to full relative accuracy also where prox and w agree in many
        digits."""

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
        """Complex margins y w next to which g, smooth otherwise, is not analytic; None where that is
        not known."""
        return None

    def ends(self, variance: Field) -> Field:
        """Margin y w from which on g is zero."""
        return jnp.inf
