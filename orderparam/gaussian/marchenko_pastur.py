"""Averages over the eigenvalues x of W W^T for p random rows W in d dimensions: the law of
Marchenko and Pastur (1967)."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Entry = Float[Array, "*#batch"] | float
Average = Float[Array, "*batch"]


class InverseMoments(NamedTuple):
    """The averages with D = flat + slope x: inverse <1/D>, linear <x/D>, inverse_2 <1/D^2>,
    linear_2 <x/D^2>, square_2 <x^2/D^2>."""

    inverse: Average
    linear: Average
    inverse_2: Average
    linear_2: Average
    square_2: Average


def inverse_moments(aspect: Entry, flat: Entry, slope: Entry) -> InverseMoments:
    """The averages, elementwise, for flat > 0, slope >= 0 and aspect beta = p/d; rows are uniform
    on the unit sphere or N(0, I/d), and p and d are large.

    For p > d the p - d eigenvalues that are zero are included. Gamma = <1/D> is the positive root
    of beta flat slope Gamma^2 + (flat + slope (1 - beta)) Gamma = 1; the other averages are
    algebraic in it, written without differences of large numbers.
    """
    b = flat + slope * (1 - aspect)
    root = jnp.sqrt(b**2 + 4 * aspect * flat * slope)
    negative = b < 0
    small = jnp.where(negative, 2 * aspect * flat * slope, 1.0)
    inverse = jnp.where(negative, (root - b) / small, 2 / jnp.where(negative, 1.0, b + root))
    enhanced = 1 + aspect * slope * inverse
    linear, linear_2 = inverse / enhanced, inverse / enhanced / root
    return InverseMoments(
        inverse=inverse,
        linear=linear,
        inverse_2=inverse * enhanced / root,
        linear_2=linear_2,
        square_2=linear_2 * (1 + aspect - 2 * aspect * slope * linear),
    )


def spectral_rule(aspect: Float[Array, ""] | float) -> tuple[Array, Array]:
    """Nodes and masses of the law of the eigenvalues of X^T X/n for n rows N(0, I_d), d/n = aspect:
    4,000 Chebyshev nodes on its support, and zero, with mass 1 - 1/aspect where that is positive.
    """
    count = 4000
    angle = (np.arange(count) + 0.5) * np.pi / count
    middle, half = 1 + aspect, 2 * jnp.sqrt(aspect)
    s = middle + half * np.cos(angle)
    density = (half * np.sin(angle)) ** 2 / (2 * np.pi * aspect * s) * np.pi / count
    # at aspect 1 the density diverges at s = 0 and is integrable: no node lies there
    return jnp.append(s, 0.0), jnp.append(density, jnp.maximum(1 - 1 / aspect, 0.0))
