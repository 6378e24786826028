"""The one-loop flow of a mass and a quartic coupling, of the magnet and of learning alike.

    dr/dl = sigma r + a g [1/(1 + r) + w/(1 + r)^2]
    dg/dl = eps g - b g^2 [1/(1 + r)^2 + 2 w/(1 + r)^3]

sigma: power of the kinetic term, k^sigma; eps: 2 sigma minus the dimension; a, b: weights of the
tadpole and of the bubble; w: background (squared mean over variance of the modes at the cutoff;
none in the magnet without a field).
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

Number = Float[Array, "*batch"] | float


class OneLoop(NamedTuple):
    """The numbers of a flow: see above."""

    sigma: Number
    epsilon: Number
    tadpole: Number
    bubble: Number


class OneLoopFixedPoint(NamedTuple):
    """Where both couplings stand still, g != 0, and the eigenvalues of the flow about it: y_t > 0 >
    -omega for eps > 0.
    """

    mass: Number
    quartic: Number
    relevant: Number
    irrelevant: Number


def beta(
    mass: Number, quartic: Number, loop: OneLoop, background: Number = 0.0
) -> tuple[Number, Number]:
    """(dr/dl, dg/dl)."""
    gap = 1 + mass
    drift = loop.sigma * mass + loop.tadpole * quartic * (1 / gap + background / gap**2)
    return drift, loop.epsilon * quartic - loop.bubble * quartic**2 * (
        1 / gap**2 + 2 * background / gap**3
    )


def fixed_point(loop: OneLoop) -> OneLoopFixedPoint:
    """r* = -a eps / (b sigma + a eps), g* = eps (1 + r*)^2 / b, without background. For eps > 0."""
    sigma, epsilon, tadpole, bubble = loop
    mass = -tadpole * epsilon / (bubble * sigma + tadpole * epsilon)
    quartic = epsilon * (1 + mass) ** 2 / bubble
    # rows (dr/dr, dr/dg), (dg/dr, dg/dg); the product of the mixed ones is 2 (a/b) eps^2
    first, last, mixed = (
        sigma - tadpole / bubble * epsilon,
        -epsilon,
        2 * tadpole / bubble * epsilon**2,
    )
    middle, half = (first + last) / 2, jnp.sqrt(((first - last) / 2) ** 2 + mixed)
    return OneLoopFixedPoint(mass, quartic, middle + half, middle - half)
