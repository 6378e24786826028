"""The perceptron of largest margin on examples of a teacher perceptron."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, Bool, Float

from orderparam.gaussian import standard_normal_rule
from orderparam.solve.root import decreasing_root

Number = Float[Array, ""]


class LargestMargin(NamedTuple):
    """The student of largest margin: its angle to the teacher, its smallest margin kappa = min
    sqrt(N) y w.x / |w| for |x| = 1, and the solved root."""

    angle: Number
    stability: Number
    residual: Number
    converged: Bool[Array, ""]


def largest_margin(ratio: Number | float) -> LargestMargin:
    """The student of largest margin for N -> infinity at alpha = ratio examples per dimension with
    labels y = sign(w0.x): Opper, Kinzel, Kleinz, Nehl 1990,

        s^2 = 1 - R^2 = 2 alpha E_{t<kappa} Phi(R t/s) (kappa - t)^2,
        R = 2 alpha E_{t<kappa} phi(R t/s)/s (kappa - t).

    Unknown: k = kappa/s, on which R/s = c = alpha sqrt(2/pi) (k Phi(k) + phi(k)) depends
    explicitly.
    """

    def cotangent(k: Number, ratio: Number | float) -> Number:
        return (
            ratio * np.sqrt(2 / np.pi) * (k * ndtr(k) + jnp.exp(-(k**2) / 2) / np.sqrt(2 * np.pi))
        )

    def equation(logarithm: Number, ratio: Number) -> Number:
        k = jnp.exp(logarithm)
        c = cotangent(k, ratio)
        kappa = k / jnp.sqrt(1 + c**2)
        t, weight = standard_normal_rule((0.0, kappa))
        inside = jnp.maximum(kappa - t, 0.0)
        return -jnp.log(2 * ratio * (1 + c**2) * jnp.sum(weight * ndtr(c * t) * inside**2))

    highest = jnp.log(2 / jnp.sqrt(ratio) + 2.0)
    root = decreasing_root(equation, highest - 30.0, highest, ratio)
    k = jnp.exp(root.value)
    c = cotangent(k, ratio)
    return LargestMargin(jnp.arctan(1 / c), k / jnp.sqrt(1 + c**2), root.residual, root.converged)
