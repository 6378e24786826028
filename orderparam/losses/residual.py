"""Losses that depend only on the residual r = y - f and are linear far from zero: the Huber loss
and the quantile loss."""

import abc
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array

from orderparam.core.system import Record, parameter
from orderparam.losses.base import Field, Label, Loss, Values


class Residual(Record, Loss):
    """A loss whose g = clip(r / width, low, high), r = y - w, width = V or 1 + V."""

    binary: ClassVar[bool] = False

    @abc.abstractmethod
    def limits(self, variance: Field) -> tuple[Array | float, Array | float, Array | float]:
        """width, low and high."""

    def denoiser(self, label: Label, field: Field, variance: Field) -> Values:
        width, low, high = self.limits(variance)
        return jnp.clip((jnp.asarray(label) - field) / width, low, high)

    def denoiser_slope(self, label: Label, field: Field, variance: Field) -> Values:
        width, low, high = self.limits(variance)
        r = jnp.asarray(label) - field
        return jnp.where((r > low * width) & (r < high * width), -1 / width, 0.0)

    def turns(self, variance: Field) -> tuple[Array | float, ...]:
        """Residuals y - w at which g has a kink."""
        width, low, high = self.limits(variance)
        return low * width, high * width


class Huber(Residual):
    """l = r^2/2 for |r| <= delta, delta |r| - delta^2/2 beyond."""

    name: ClassVar[str] = "huber"
    smooth: ClassVar[bool] = True

    delta: float = parameter("residual from which the loss is linear", above=0, default=1.0)

    def __call__(self, label: Label, field: Field) -> Values:
        r = jnp.abs(jnp.asarray(label) - field)
        return jnp.where(r <= self.delta, r**2 / 2, self.delta * r - self.delta**2 / 2)

    def slope(self, label: Label, field: Field) -> Values:
        return jnp.clip(field - jnp.asarray(label), -self.delta, self.delta)

    def curvature(self, label: Label, field: Field) -> Values:
        return jnp.where(jnp.abs(jnp.asarray(label) - field) < self.delta, 1.0, 0.0)

    def limits(self, variance: Field) -> tuple[Array | float, Array | float, Array | float]:
        return 1 + jnp.asarray(variance), -self.delta, self.delta


class Quantile(Residual):
    """l = level r for r > 0, (level - 1) r for r < 0: the predictor of least loss is the quantile
    of that level."""

    name: ClassVar[str] = "quantile"
    smooth: ClassVar[bool] = False

    level: float = parameter("the quantile", above=0, below=1, default=0.5)

    def __call__(self, label: Label, field: Field) -> Values:
        r = jnp.asarray(label) - field
        return jnp.maximum(self.level * r, (self.level - 1) * r)

    def slope(self, label: Label, field: Field) -> Values:
        return jnp.where(jnp.asarray(label) - field > 0, -self.level, 1 - self.level)

    def curvature(self, label: Label, field: Field) -> Values:
        return jnp.zeros_like(jnp.asarray(label, jnp.float64) * field)

    def limits(self, variance: Field) -> tuple[Array | float, Array | float, Array | float]:
        return jnp.asarray(variance), self.level - 1, jnp.asarray(self.level)
