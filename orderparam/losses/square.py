"""The square loss."""

from typing import ClassVar

import jax.numpy as jnp

from orderparam.losses.base import Field, Label, Loss, Values


class Square(Loss):
    """l(y, f) = (y - f)^2 / 2:  prox = (w + V y)/(1 + V)."""

    name: ClassVar[str] = "square"
    binary: ClassVar[bool] = False
    smooth: ClassVar[bool] = True

    def __call__(self, label: Label, field: Field) -> Values:
        return (jnp.asarray(label) - field) ** 2 / 2

    def slope(self, label: Label, field: Field) -> Values:
        return field - jnp.asarray(label)

    def curvature(self, label: Label, field: Field) -> Values:
        return jnp.ones_like(jnp.asarray(label) - field)

    def denoiser(self, label: Label, field: Field, variance: Field) -> Values:
        return (jnp.asarray(label) - field) / (1 + variance)

    def denoiser_slope(self, label: Label, field: Field, variance: Field) -> Values:
        return -1 / (1 + variance) * jnp.ones_like(jnp.asarray(label) - field)
