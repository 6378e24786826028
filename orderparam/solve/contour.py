r"""Exponentials as sums over resolvents: a contour in the complex plane.

With the nodes z and weights w of a modified Talbot contour (Trefethen, Weideman, Schmelzer 2006),

    exp(-u) = sum w/(z + u),    (1 - exp(-u))/u = sum (w/z)/(z + u),    u >= 0,

so that functions of time of a matrix S are sums over its resolvents (S + z/t)^{-1}. Twelve digits
at 24 nodes.
"""

import numpy as np


def _talbot(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes z and weights w with exp(-u) = sum w/(z + u) for u >= 0 (modified Talbot contour)."""
    angle = (2 * np.arange(count) + 1) * np.pi / count - np.pi
    turned = 0.6407 * angle
    node = 0.5017 * angle / np.tan(turned) - 0.6122 + 0.2645j * angle
    slope = 0.5017 / np.tan(turned) - 0.5017 * turned / np.sin(turned) ** 2 + 0.2645j
    node, slope = count * node, count * slope
    return node, np.exp(node) * slope / (1j * count)


# The contour is symmetric about the real axis: its upper half stands here, with twice the weights,
# and the real part of a sum is that over all 24 nodes.
NODES, WEIGHTS = (half[12:] for half in _talbot(24))
WEIGHTS = 2 * WEIGHTS
