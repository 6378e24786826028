"""The label's moments of any target, by the most exact way that fits it, and the staircase that the best algorithm climbs.

For one index, lambda_k^2 = E_y E[h_k(z) | y]^2 (Damian, Pillaud-Vivien, Lee and Bruna 2024); for several, the second moments of
E[z | y] (order 1), the operator X -> E_y[G X G] with G(y) = E[z z^T - 1 | y] (order 2; Troiani et al. 2024) and the squared norm
of the third and higher tensors.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from orderparam.gaussian.target import Target
from orderparam.systems.multi_index.learnability.conditional import LabelMoments
from orderparam.systems.multi_index.learnability.hermite_tensors import complement, depends, in_axes
from orderparam.systems.multi_index.learnability.one_index import one_index
from orderparam.systems.multi_index.learnability.several_indices import DISCRETE, binned, coordinate_product, discrete
from orderparam.systems.multi_index.rules import grid

_KNOWN_NODES = {1: 3, 2: 2, 3: 1}  # Gauss nodes on each half line of the directions that are known


def label_moments(target: Target, orders: int, *, quick: bool = False) -> LabelMoments:
    """The moments of orders 1 .. orders - 1. quick: fewer points where only quantile bins are left."""
    if target.dimension == 1:
        return one_index(target, orders)
    if target.coordinate_product:
        return coordinate_product(target.dimension, orders)
    probe = np.random.default_rng(3).standard_normal((4096, target.dimension))
    if len(np.unique(np.round(np.asarray(target(probe), float), 10))) <= DISCRETE:
        return discrete(target, orders)
    return binned(target, orders, log2_points=16, pairs=2, bins=256) if quick else binned(target, orders)


@dataclass(frozen=True)
class Stair:
    """Directions found together: the order k of the moments that show them, an orthonormal basis (direction, index), and for
    order 2 the n / d from which the best algorithm sees them (0 for order 1, infinite beyond order 2)."""

    order: int
    directions: Float[np.ndarray, "direction index"]
    threshold: float


def lowest_stair(moments: LabelMoments, rest: Float[np.ndarray, "direction index"]) -> Stair | None:
    """What the moments of the directions `rest` show first, if anything."""
    order = next((k for k, signal in enumerate(moments.signal, 1) if signal), None)
    if order is None:
        return None
    values, vectors = np.linalg.eigh(moments.grams[order - 1])
    # The directions of an order 2 that is there are those above the accuracy; noise of quantile bins is below 1%.
    new = in_axes(vectors[:, values > max(min(moments.tolerance, values[-1] / 2), 1e-9 * values[-1])].T @ rest)
    threshold = 0.0 if order == 1 else 1 / moments.eigenvalues[1] if order == 2 else np.inf
    return Stair(order, new, float(threshold))


def generative_staircase(target: Target, orders: int, first: LabelMoments) -> tuple[list[Stair], bool]:
    """The stairs that the best algorithm climbs, and whether they lead to every direction; `first`: the moments of the target.

    With the directions V known, the next ones are those of the lowest order k at which E[h_a(z_rest) | y, z_V], |a| = k, does
    not vanish: the moments of the target with z_V held, averaged over z_V (Troiani et al. 2024, "grand staircase"; the highest
    order is the generative leap of Damian, Lee and Bruna 2025). Thresholds past the first stair take V as perfectly known and
    average over a few values of z_V: good to a few per cent where the moments depend on z_V.
    """
    size = target.dimension
    known = np.zeros((0, size))
    stairs: list[Stair] = []
    moments = first
    while True:
        rest = complement(known)
        stair = lowest_stair(moments, rest)
        if stair is None:
            return stairs, not depends(target, rest)
        stairs.append(stair)
        known = np.concatenate([known, stair.directions])
        if len(known) == size or not depends(target, complement(known)):
            return stairs, True
        moments = _given(target, known, orders)


def _given(target: Target, known: np.ndarray, orders: int) -> LabelMoments:
    """The moments of what is left of the target, averaged over the known directions."""
    points, weights = grid(len(known), _KNOWN_NODES[len(known)])
    rest = complement(known)
    slices = [target.slice(point @ known, rest) for point in points.reshape(-1, len(known))]
    return LabelMoments.average(weights.ravel(), [label_moments(part, orders, quick=True) for part in slices])
