r"""A Gaussian matrix plus a rank-one spike: its largest singular value, exactly at any size, and
the overlaps of its singular vectors with the spike.

For $W = \sigma G/\sqrt n + \theta\, u v^\top$ with G of n rows and $p \leq n$ columns, in units of
$\sigma$ and with $\beta = p/n$ (Benaych-Georges and Nadakuditi 2012): above the threshold
$\theta > \beta^{1/4}$

$$ s = \frac{\sqrt{(1+\theta^2)(\beta+\theta^2)}}{\theta} , \quad
   \langle u, \hat u \rangle^2 = 1 - \frac{\beta+\theta^2}{\theta^2(\theta^2+1)} , \quad
   \langle v, \hat v \rangle^2 = 1 - \frac{\beta(1+\theta^2)}{\theta^2(\theta^2+\beta)} . $$

At finite size W is, up to rotations, bidiagonal: $\theta$ enters only its first entry, and all
others are independent chi variables (derived here, after Dumitriu and Edelman 2002). The first
entry that belongs to a given singular value is a continued fraction, so that the distribution of
$\theta$ given s needs no matrices.
"""

import numpy as np
from jaxtyping import Float


def edge(aspect: float) -> float:
    """The largest singular value without a spike, for large n: 1 + sqrt(beta)."""
    return 1 + np.sqrt(aspect)


def threshold(aspect: float) -> float:
    """The strength of the spike below which no singular value leaves the bulk: beta^(1/4)."""
    return aspect**0.25


def outlier(strength: float, aspect: float) -> float:
    """The largest singular value with a spike of this strength; below the threshold it is the
    edge."""
    if strength <= threshold(aspect):
        return edge(aspect)
    square = strength**2
    return np.sqrt((1 + square) * (aspect + square)) / strength


def overlaps(strength: float, aspect: float) -> tuple[float, float]:
    """The squared overlaps of the long (n) and the short (p) singular vector with those of the
    spike."""
    if strength <= threshold(aspect):
        return 0.0, 0.0
    square = strength**2
    long = 1 - (aspect + square) / (square * (square + 1))
    return long, 1 - aspect * (1 + square) / (square * (square + aspect))


def strengths(
    value: float, rows: int, columns: int, rng: np.random.Generator, draws: int = 2000
) -> Float[np.ndarray, "draw"]:
    """The strength, for each draw of the noise, at which the largest singular value of W is `value`
    (in units of sigma); zero where the noise alone reaches it.

    The share of strengths below theta is the probability that W with theta reaches `value` (but for
    exp(-n theta^2 / 2), where the noise beats the direction): quantiles of the strengths are the
    ends of an interval of theta.
    """
    needed, first, rest = _first_entry(value, rows, columns, rng, draws)
    return np.maximum(np.sqrt(np.maximum(needed - rest, 0)) - first, 0) / np.sqrt(rows)


def probability(
    value: Float[np.ndarray, "*value"],
    rows: int,
    columns: int,
    rng: np.random.Generator,
    draws: int = 2000,
) -> Float[np.ndarray, "*value"]:
    """The probability that noise alone has a singular value of at least `value`: (1 + draws with
    one) / (1 + draws). Several values use the same draws."""
    needed, first, rest = _first_entry(np.asarray(value)[..., None], rows, columns, rng, draws)
    return (1 + np.sum(first**2 + rest >= needed, axis=-1)) / (1 + draws)


def _first_entry(
    value: np.ndarray | float, rows: int, columns: int, rng: np.random.Generator, draws: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The square of the bidiagonal's first entry at which the largest singular value is `value`
    sqrt(n), zero where the rest has a larger one; and the noise in that entry, as the Gaussian
    along the spike and the sum of squares of all others.

    B has the diagonal chi_n, chi_{n-1} .. and above it chi_{p-1} .. chi_1. With B B^T - s^2 reduced
    from its last row, every pivot t is negative where s exceeds all singular values of the rest.
    """
    square = rows * value**2 + np.zeros(draws)
    pivot, below = np.full_like(square, -np.inf), np.zeros(draws)
    beyond = np.zeros(square.shape, bool)
    last = rng.chisquare(rows - columns + 1, draws)  # square of the diagonal entry
    for j in range(columns - 1, 0, -1):  # row j + 1 has the off-diagonal entry chi_{p-j-1}
        above = rng.chisquare(columns - j - 1, draws) if j < columns - 1 else np.zeros(draws)
        pivot = last + above - square - above * below / pivot
        beyond |= pivot >= 0
        below = last
        last = rng.chisquare(rows - j + 1, draws) if j > 1 else below
    first = rng.normal(size=draws)
    rest = rng.chisquare(rows - 1, draws)
    if columns == 1:
        return square, first, rest
    above = rng.chisquare(columns - 1, draws)
    needed = square - above + above * below / pivot
    return np.where(beyond, 0.0, np.maximum(needed, 0.0)), first, rest
