"""The logistic loss (cross-entropy of two classes)."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.losses.base import Field, Label, Loss, Values

# number of steps: from the starts below two leave an error of at most 1e-5 for V from 1e-8 to 1e12,
# and a third only rounding
_HALLEY_STEPS = 3


class Logistic(Loss):
    """l(y, f) = log(1 + exp(-y f)), y = ±1. The margin t = y prox solves t - y w = V / (1 +
    exp(t)), and g = y / (1 + exp(t))."""

    name: ClassVar[str] = "logistic"
    binary: ClassVar[bool] = True
    smooth: ClassVar[bool] = True

    def __call__(self, label: Label, field: Field) -> Values:
        return jax.nn.softplus(-jnp.asarray(label) * field)

    def slope(self, label: Label, field: Field) -> Values:
        label = jnp.asarray(label)
        return -label * jax.nn.sigmoid(-label * field)

    def curvature(self, label: Label, field: Field) -> Values:
        return _bend(jnp.asarray(label) * field)

    def denoiser(self, label: Label, field: Field, variance: Field) -> Values:
        label = jnp.asarray(label)
        return label * jax.nn.sigmoid(-_margin(*_arrays(label * field, variance)))

    def denoiser_slope(self, label: Label, field: Field, variance: Field) -> Values:
        bend = _bend(_margin(*_arrays(jnp.asarray(label) * field, variance)))
        return -bend / (1 + variance * bend)

    def cuts(self, variance: Field) -> tuple[Field, ...]:
        # for V >> 1 a soft kink: prox = w + V y on one side, of order log V on the other
        return (-jnp.asarray(variance),)

    def poles(self, variance: Field) -> Array:
        """The margins where du/dt = 1 + V sigmoid(t) sigmoid(-t) = 0: t = x + i pi with sinh(x/2) =
        sqrt(V)/2."""
        root = jnp.sqrt(jnp.asarray(variance, jnp.float64))
        x = 2 * jnp.arcsinh(root / 2)
        # x + V / (exp(x) - 1), where exp(x) - 1 = 2 exp(x/2) sinh(x/2)
        right = x + root * jnp.exp(-x / 2)
        return jnp.stack([right, -jnp.asarray(variance) - right]) + 1j * np.pi


def _arrays(margin: Field, variance: Field) -> tuple[Array, Array]:
    first, second = jnp.broadcast_arrays(
        jnp.asarray(margin, jnp.float64), jnp.asarray(variance, jnp.float64)
    )
    return first, second


def _bend(margin: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    return jax.nn.sigmoid(margin) * jax.nn.sigmoid(-margin)


@jax.custom_jvp
def _margin(u: Float[Array, "*batch"], variance: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """The t with t - u = V sigmoid(-t), by Halley's method from a side from which it converges
    monotonically.

    F(t) = t - u - V sigmoid(-t) increases, is convex for t < 0 and concave for t > 0. A root t > 0
    is approached from below: sigmoid(-t) >= exp(-t)/2 gives t >= u + W(z), z = (V/2) exp(-u); a
    root t < 0 from above: t <= s - W(z), s = u + V, z = (V/2) exp(s). For the Lambert function W(z)
    >= ln z - ln ln z where z >= e.
    """
    positive = u > -variance / 2
    # the mirror image t -> -t of the second case is the first
    centre = jnp.where(positive, u, -u - variance)
    log_z = jnp.log(variance / 2) - centre
    bound = centre + jnp.where(log_z > 1, log_z - jnp.log(jnp.maximum(log_z, 1.0)), 0.0)
    start = jnp.maximum(bound, 0.0)

    def halley(_: int, t: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        # For the mirror image: t - centre = V sigmoid(-t) as well, since sigmoid(t) = 1 -
        # sigmoid(-t).
        tail = jax.nn.sigmoid(-t)
        bend = variance * tail * (1 - tail)
        excess, slope = t - centre - variance * tail, 1 + bend
        return t - 2 * excess * slope / (2 * slope**2 + excess * bend * (1 - 2 * tail))

    t = jax.lax.fori_loop(0, _HALLEY_STEPS, halley, start, unroll=True)
    return jnp.where(positive, t, -t)


@_margin.defjvp
def _(primals: tuple, tangents: tuple) -> tuple:
    t = _margin(*primals)
    change = tangents[0] + jax.nn.sigmoid(-t) * tangents[1]
    return t, change / (1 + primals[1] * _bend(t))
