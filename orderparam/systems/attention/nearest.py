"""The fields of a trained layer of tied attention: the minimum of the cost of one sequence."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.systems.attention.model import Pairs, TiedAttention, attention_cost, own_attention

_STEPS = 14  # Newton steps; after 12 the error is 1e-9 (see the tests)
_LEAST = 0.1  # smallest curvature of a Newton step, in units of 1/V


class _Local(NamedTuple):
    """A cost of two unknowns with its gradient and Hessian.

    Fields:
        value: cost.
        slope: gradient.
        curvature: Hessian: the two diagonal entries, and the off-diagonal one.
    """

    value: Float[Array, "*batch"]
    slope: Pairs
    curvature: Float[Array, "*batch 3"]


def nearest_fields(
    system: TiedAttention,
    mean: Float[Array, "point 2"],
    variance: Float[Array, ""],
    wanted: Float[Array, "point 2"],
    teacher: Float[Array, "point 2"],
) -> Float[Array, "point 2"]:
    r"""The fields h that minimise $|h - \omega|^2/(2V) + \frac{s^2}2 |Y - S(h)|^2$, for each point.

    The cost of attention does not change under $h \to -h$, and the sum has several minima. Newton
    steps start from 0 and from both signs of the fields of the target, and the lowest minimum is
    kept. The Hessian of the two unknowns is in closed form: tens of thousands of points take
    milliseconds.
    """
    starts = jnp.stack([jnp.zeros_like(mean), teacher, -teacher])

    def step(_: int, state: tuple) -> tuple:
        trial, best, lowest, direction, scale = state
        here = _local(system, trial, mean, variance, wanted)
        accepted = here.value <= lowest
        best = jnp.where(accepted[..., None], trial, best)
        lowest = jnp.where(accepted, here.value, lowest)
        direction = jnp.where(accepted[..., None], _newton(here, _LEAST / variance), direction)
        scale = jnp.where(accepted, 1.0, scale / 4)
        return best + scale[..., None] * direction, best, lowest, direction, scale

    size = starts.shape[:-1]
    initial = (starts, starts, jnp.full(size, jnp.inf), jnp.zeros_like(starts), jnp.ones(size))
    _, ends, reached, _, _ = jax.lax.fori_loop(0, _STEPS, step, initial)
    chosen = jnp.argmin(reached, axis=0)
    return jnp.take_along_axis(ends, chosen[None, :, None], axis=0)[0]


def _local(system: TiedAttention, h: Array, mean: Array, variance: Array, wanted: Array) -> _Local:
    given = own_attention(h)
    value = jnp.sum((h - mean) ** 2, axis=-1) / (2 * variance)
    value += attention_cost(system, wanted, given)
    # S_11 = sigmoid(h1 (h1 - h2)), S_22 = sigmoid(h2 (h2 - h1))
    error, flat = given - wanted, given * (1 - given)
    scale = 2 * system.token_spread**2
    first = scale * error * flat
    second = scale * (flat**2 + error * flat * (1 - 2 * given))
    # derivative of an exponent by its own field; that by the other field is -h
    own = 2 * h - h[..., ::-1]
    slope = (h - mean) / variance + first * own - (first * h)[..., ::-1]
    diagonal = 1 / variance + second * own**2 + 2 * first + (second * h**2)[..., ::-1]
    mixed = -jnp.sum(second * own * h + first, axis=-1)
    return _Local(value, slope, jnp.concatenate([diagonal, mixed[..., None]], axis=-1))


def _newton(here: _Local, least: Array) -> Pairs:
    """Newton's step with the absolute values of the two eigenvalues, each at least `least`."""
    first, last, mixed = (here.curvature[..., place] for place in range(3))
    middle, half = (first + last) / 2, (first - last) / 2
    radius = jnp.hypot(half, mixed)
    low, high = (1 / jnp.maximum(jnp.abs(middle + sign * radius), least) for sign in (-1, 1))
    # f(H) = (f+ + f-)/2 + (f+ - f-)/(2 r) (H - middle), f = 1/|eigenvalue|
    even, odd = (high + low) / 2, (high - low) / jnp.maximum(2 * radius, 1e-300)
    one, two = here.slope[..., 0], here.slope[..., 1]
    return -jnp.stack(
        [
            (even + odd * half) * one + odd * mixed * two,
            odd * mixed * one + (even - odd * half) * two,
        ],
        axis=-1,
    )
