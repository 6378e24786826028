"""The hinge loss of support vector machines."""

from typing import ClassVar

import jax.numpy as jnp

from orderparam.core.system import Record, parameter
from orderparam.losses.base import Field, Label, Loss, Values


class Hinge(Loss):
    """l(y, f) = max(0, 1 - y f), y = ±1 (not squared).

    With the margin u = y w:  g = y where u < 1 - V (prox = w + y V), y (1 - u)/V where 1 - V <= u <
    1 (prox sits on the kink, y prox = 1), 0 where u >= 1.
    """

    name: ClassVar[str] = "hinge"
    binary: ClassVar[bool] = True
    smooth: ClassVar[bool] = False

    def __call__(self, label: Label, field: Field) -> Values:
        return jnp.maximum(0.0, 1 - jnp.asarray(label) * field)

    def slope(self, label: Label, field: Field) -> Values:
        label = jnp.asarray(label)
        return jnp.where(label * field < 1, -label, 0.0)

    def curvature(self, label: Label, field: Field) -> Values:
        return jnp.zeros_like(jnp.asarray(label, jnp.float64) * field)

    def denoiser(self, label: Label, field: Field, variance: Field) -> Values:
        label = jnp.asarray(label)
        return label * jnp.clip((1 - label * field) / variance, 0.0, 1.0)

    def denoiser_slope(self, label: Label, field: Field, variance: Field) -> Values:
        margin = jnp.asarray(label) * field
        return jnp.where((margin < 1) & (margin >= 1 - variance), -1 / variance, 0.0)

    def cuts(self, variance: Field) -> tuple[Field, ...]:
        return (1 - variance, jnp.ones_like(variance))

    def ends(self, variance: Field) -> Field:
        return 1.0


class SmoothHinge(Record, Loss):
    r"""The hinge loss with its kink rounded over a width: a parabola between the margins 1 - width
    and 1.

    It is the envelope of the hinge, $\min_x \max(0, 1 - y x) + (x - f)^2 / (2\,\mathrm{width})$, so
    that its slope is minus the denoiser of the hinge at V = width, and its denoiser is that of the
    hinge at V + width.
    """

    name: ClassVar[str] = "smooth hinge"
    binary: ClassVar[bool] = True
    smooth: ClassVar[bool] = True

    width: float = parameter("width over which the kink is rounded", above=0, default=0.5)

    def __call__(self, label: Label, field: Field) -> Values:
        short = jnp.maximum(0.0, 1 - jnp.asarray(label) * field)
        return jnp.where(short < self.width, short**2 / (2 * self.width), short - self.width / 2)

    def slope(self, label: Label, field: Field) -> Values:
        return -Hinge().denoiser(label, field, self.width)

    def curvature(self, label: Label, field: Field) -> Values:
        return -Hinge().denoiser_slope(label, field, self.width)

    def denoiser(self, label: Label, field: Field, variance: Field) -> Values:
        return Hinge().denoiser(label, field, variance + self.width)

    def denoiser_slope(self, label: Label, field: Field, variance: Field) -> Values:
        return Hinge().denoiser_slope(label, field, variance + self.width)

    def cuts(self, variance: Field) -> tuple[Field, ...]:
        return Hinge().cuts(variance + self.width)

    def ends(self, variance: Field) -> Field:
        return 1.0
