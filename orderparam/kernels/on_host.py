r"""Kernels of infinitely wide relu and erf networks in NumPy, without JAX.

A forecast of a small table needs a few small matrices, once. Importing JAX and loading or compiling
a program for each of them takes longer than everything else. The numbers are those of
`orderparam.networks.parse(arch).nngp` with its default variances, but for rounding:

    K^0 = x.x'/d,    K^l = F(K^{l-1}(x, x), K^{l-1}(x, x'), K^{l-1}(x', x')),
    relu  F(a, c, b) = [S + (pi - theta) c] / (2 pi),    S = sqrt(ab - c^2) = sqrt(ab) sin(theta),
    erf   F(a, c, b) = (2/pi) arctan(2c / sqrt(1 + 2(a + b) + 4(ab - c^2))).

Sources: Cho and Saul 2009; Williams 1998, eq. 11; see `orderparam.gaussian`, whose functions also
have derivatives.
"""

import re
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

ENTRIES = 2**16  # entries that are computed at a time, so that temporaries stay in the cache
# fraction of ab below which ab - c^2 is rounding, as in `orderparam.gaussian.covariance`
ROUNDING = 8 * float(np.finfo(np.float64).eps)

Inputs = Float[np.ndarray, "example input"]
Kernel = Callable[[Inputs, Inputs | None], Float[np.ndarray, "first second"]]
TwoPoint = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def named(arch: str) -> Kernel | None:
    """The kernel K(x, x') of "fc:DEPTH:relu" or "fc:DEPTH:erf"; None for any other name."""
    match = re.fullmatch(r"fc:([1-9]\d?):(relu|erf)", arch)
    if match is None:
        return None
    depth, average = int(match[1]), _relu if match[2] == "relu" else _erf
    return lambda first, second: _matrix(depth, average, first, second)


def _matrix(
    depth: int, average: TwoPoint, first: Inputs, second: Inputs | None
) -> Float[np.ndarray, "first second"]:
    """The kernel after `depth` hidden layers; exactly symmetric, with the diagonal of the one-point
    recursion, if `second` is None."""
    first = np.asarray(first, np.float64)
    other = first if second is None else np.asarray(second, np.float64)
    own = _variances(depth, average, first)
    others = own if second is None else _variances(depth, average, other)
    kernel = first @ other.T / first.shape[1]
    height = max(1, ENTRIES // max(1, len(other)))
    for start in range(0, len(first), height):
        rows = slice(start, start + height)
        # of a symmetric matrix what lies to the right of the block's first column
        columns = slice(start if second is None else 0, None)
        for a, b in zip(own[:-1], others[:-1]):
            kernel[rows, columns] = average(a[rows, None], kernel[rows, columns], b[columns])
    if second is None:
        kernel = np.triu(kernel, 1)
        kernel += kernel.T
        np.fill_diagonal(kernel, own[-1])
    return kernel


def _variances(depth: int, average: TwoPoint, inputs: Inputs) -> list[Float[np.ndarray, "example"]]:
    """K^l(x, x) of every input for l = 0 .. depth."""
    found = [np.einsum("ij,ij->i", inputs, inputs) / inputs.shape[1]]
    for _ in range(depth):
        found.append(average(found[-1], found[-1], found[-1]))
    return found


def _relu(a: np.ndarray, c: np.ndarray, b: np.ndarray) -> np.ndarray:
    product = a * b
    squared = product - c * c
    sine = np.sqrt(np.where(squared > ROUNDING * product, squared, 0.0))
    angle = np.where(product > 0, np.arctan2(sine, c), np.pi / 2)
    return (sine + (np.pi - angle) * c) / (2 * np.pi)


def _erf(a: np.ndarray, c: np.ndarray, b: np.ndarray) -> np.ndarray:
    gap = np.maximum(a * b - c * c, 0.0)
    return 2 / np.pi * np.arctan2(2 * c, np.sqrt(1 + 2 * (a + b) + 4 * gap))
