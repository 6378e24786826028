"""Message passing for several Gaussian directions: GAMP with one field for every direction and
every example.

    omega = X a - v g',  g = gradient of ln P(y | omega, v),
    a <- (A a + X^T g) / (1 + A),  v = 1 / (1 + A)

with rows of X of variance 1/d and g' the g of the step before (Aubin et al. 2018), for estimates
without overlaps between different directions. The precision A_k is -sum dg_k/domega_k / d, but at
least the smaller of 1 and sum g_k^2 / d. Both expressions have the same mean. The first may be
negative while overlaps are small; the second is far too large if a few examples are misjudged.

The equations hold for many dimensions: where 1 - q falls to a few times 1/d, the variances are too
small and the estimates become too long.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from orderparam.solve.passing import pass_messages

Fields = Float[Array, "sample direction"]

FIRST = 0.1  # root mean square of the first estimates of weights with variance 1
# tolerance, in units of 1/sqrt(d), for the deviation of mean square plus variance of an estimate
# from 1
_LENGTHS = 3.0


class Messages(NamedTuple):
    """State of message passing.

    Fields:
        estimate: a, of weights of variance 1.
        variance: v.
        gradient: g, for every example.
    """

    estimate: Float[Array, "input direction"]
    variance: Float[Array, "direction"]
    gradient: Fields

    @classmethod
    def first(cls, estimate: Float[Array, "input direction"], samples: int) -> "Messages":
        """Messages of an estimate before any example has been used."""
        size = estimate.shape[1]
        return cls(estimate, jnp.ones(size), jnp.zeros((samples, size)))


class Passed(NamedTuple):
    """Result of message passing.

    Fields:
        messages: the last messages.
        fields: omega of every example.
        residual: root mean square change of the estimate in the last step, before damping.
        converged: True if that is below the tolerance, and mean squares and variances of the
            estimates add up to one.
    """

    messages: Messages
    fields: Fields
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@partial(jax.jit, static_argnames=("gradient", "max_steps"))
def passing(
    gradient: Callable[[Fields, Float[Array, "direction"], PyTree], tuple[Fields, Fields]],
    data: PyTree,
    matrix: Float[Array, "sample input"],
    start: Messages,
    damping: Float[Array, ""],
    tolerance: Float[Array, ""],
    max_steps: int,
) -> Passed:
    """Runs message passing until the estimate changes by less than `tolerance`.

    `gradient` gives g_k and dg_k / domega_k of omega, v and `data`. It must be a function at module
    level, because the compiled program is stored under it.
    """
    d = matrix.shape[1]

    def step(old: Messages) -> Messages:
        a, v, g = old
        fresh, slope = gradient(matrix @ a - v * g, v, data)
        precision = jnp.maximum(
            -jnp.sum(slope, axis=0) / d, jnp.minimum(jnp.sum(fresh**2, axis=0) / d, 1.0)
        )
        mean = (precision * a + matrix.T @ fresh) / (1 + precision)
        return Messages(mean, 1 / (1 + precision), fresh)

    last, _, change = pass_messages(
        step, start, tolerance=tolerance, max_steps=max_steps, damping=lambda _: damping
    )
    a, v, g = last
    lengths = jnp.abs(jnp.mean(a**2, axis=0) + v - 1)
    return Passed(
        last,
        matrix @ a - v * g,
        change,
        (change < tolerance) & jnp.all(lengths < _LENGTHS / np.sqrt(d)),
    )
