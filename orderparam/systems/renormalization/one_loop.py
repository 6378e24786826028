"""The one-loop flow of a mass r and a quartic coupling g, shared by the magnet and by learning.

    dr/dl = sigma r + a g [1/(1 + r) + w/(1 + r)^2]
    dg/dl = eps g - b g^2 [1/(1 + r)^2 + 2 w/(1 + r)^3]

The scale l grows towards large lengths (magnet) or large modes (learning). sigma is the power of
the kinetic term, k^sigma; eps is 2 sigma minus the dimension; a and b are the weights of the
tadpole and of the bubble diagram; w is the background: the squared mean divided by the variance of
the modes at the cutoff. It is zero for a magnet without a field.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

Number = Float[Array, "*batch"] | float


class OneLoop(NamedTuple):
    """The constants of a one-loop flow.

    Fields:
        sigma: power of the kinetic term.
        epsilon: 2 sigma minus the dimension.
        tadpole: weight a of the tadpole diagram.
        bubble: weight b of the bubble diagram.
    """

    sigma: Number
    epsilon: Number
    tadpole: Number
    bubble: Number


class OneLoopFixedPoint(NamedTuple):
    """The fixed point with g != 0, and the eigenvalues of the flow linearised about it.

    Fields:
        mass: r*.
        quartic: g*.
        relevant: the larger eigenvalue y_t, positive for eps > 0.
        irrelevant: the smaller eigenvalue -omega, negative for eps > 0.
    """

    mass: Number
    quartic: Number
    relevant: Number
    irrelevant: Number


def beta(
    mass: Number, quartic: Number, loop: OneLoop, background: Number = 0.0
) -> tuple[Number, Number]:
    """Right-hand sides (dr/dl, dg/dl) of the one-loop flow, for arrays of one shape."""
    gap = 1 + mass
    drift = loop.sigma * mass + loop.tadpole * quartic * (1 / gap + background / gap**2)
    return drift, loop.epsilon * quartic - loop.bubble * quartic**2 * (
        1 / gap**2 + 2 * background / gap**3
    )


def fixed_point(loop: OneLoop) -> OneLoopFixedPoint:
    """Fixed point without background, for eps > 0, with the eigenvalues of the flow about it:
    r* = -a eps / (b sigma + a eps), g* = eps (1 + r*)^2 / b.
    """
    sigma, epsilon, tadpole, bubble = loop
    mass = -tadpole * epsilon / (bubble * sigma + tadpole * epsilon)
    quartic = epsilon * (1 + mass) ** 2 / bubble
    # The matrix of slopes has the rows (dr/dr, dr/dg) and (dg/dr, dg/dg). Its eigenvalues depend on
    # the diagonal and on the product of the other two entries, which is 2 (a/b) eps^2.
    first, last, mixed = (
        sigma - tadpole / bubble * epsilon,
        -epsilon,
        2 * tadpole / bubble * epsilon**2,
    )
    middle, half = (first + last) / 2, jnp.sqrt(((first - last) / 2) ** 2 + mixed)
    return OneLoopFixedPoint(mass, quartic, middle + half, middle - half)
