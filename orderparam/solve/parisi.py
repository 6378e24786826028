r"""Parisi's equation for problems of a single site: replica symmetry broken in k steps.

Overlaps $q_0 < \dots < q_k$ and heights $0 < y_1 < \dots < y_k$ describe the hierarchy of states. A
function of a Gaussian field is averaged from the innermost level outwards,

$$ \phi_{i-1}(h) = \frac{1}{y_i} \ln \int Dz\, e^{y_i \phi_i(h + \sqrt{q_i - q_{i-1}}\, z)}, \qquad
   \phi = \int Dz\, \phi_0(h_0 + \sqrt{q_0}\, z) $$

In the limit of many steps this is Parisi's equation $\partial_q \phi = -\frac12 (\phi'' + y(q)
\phi'^2)$. A problem supplies $\phi_k$, or $\phi_{k-1}$ in closed form where $\phi_k$ has kinks, and
the terms of its free energy that depend only on overlaps and heights.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.nn import softmax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

POINTS = 400
_LEAST = 0.004  # fraction of the largest overlap below which the grid does not resolve a step


class OverlapSteps(eqx.Module):
    """A step function of the overlap: y = 0 up to the first overlap, then `heights` between
    neighbouring `overlaps`."""

    overlaps: Float[Array, "level"]
    heights: Float[Array, "step"]

    @property
    def widths(self) -> Float[Array, "step"]:
        """Differences of neighbouring overlaps, the variances of the steps."""
        return jnp.diff(self.overlaps)

    @property
    def outer(self) -> "OverlapSteps":
        """All steps but the last."""
        return OverlapSteps(self.overlaps[:-1], self.heights[:-1])

    def halved(self) -> "OverlapSteps":
        """The function with every step divided into two equal ones."""
        middle = (self.overlaps[1:] + self.overlaps[:-1]) / 2
        joined = jnp.stack([self.overlaps[:-1], middle], axis=1).ravel()
        return OverlapSteps(jnp.append(joined, self.overlaps[-1]), jnp.repeat(self.heights, 2))


def field_grid(reach: Float[Array, ""] | float) -> Float[Array, "field"]:
    """Fields from -reach to reach at which the functions of a cascade are evaluated."""
    return reach * jnp.linspace(-1.0, 1.0, POINTS)


def cascade(
    values: Float[Array, "field"],
    grid: Float[Array, "field"],
    steps: OverlapSteps,
    field: Float[Array, ""] | float = 0.0,
) -> Float[Array, ""]:
    """The average over all levels of a function given on the grid.

    values: the function at the last overlap of `steps`. field: the mean of the outermost average.

    Accuracy: rounding, while the square root of every width exceeds the spacing of the grid, the
    function is smooth on that scale, and the grid reaches eight standard deviations beyond where
    the tilted fields lie.
    """

    def outwards(values: Array, step: tuple[Array, Array]) -> tuple[Array, None]:
        width, height = step
        return logsumexp(height * values + _log_rows(grid, width), axis=1) / height, None

    order = steps.widths[::-1], steps.heights[::-1]
    values, _ = jax.lax.scan(jax.checkpoint(outwards), values, order)
    return softmax(-((grid - field) ** 2) / (2 * steps.overlaps[0])) @ values


def slope_squares(
    values: Float[Array, "field"],
    slopes: Float[Array, "field"],
    grid: Float[Array, "field"],
    steps: OverlapSteps,
    field: Float[Array, ""] | float = 0.0,
) -> Float[Array, "level"]:
    r"""Mean squared slope $E\, \phi_i'(X_i)^2$ at every overlap of `steps`.

    The fields $X_i$ follow the steps with the weights that the averages of `cascade` have. Where
    the free energy is stationary in the overlaps, these equal the values that the problem requires;
    between two steps the difference shows the effect of further steps.

    values, slopes: the function and its derivative at the last overlap.
    """

    def outwards(state: tuple, step: tuple[Array, Array]) -> tuple[tuple, tuple]:
        values, slopes = state
        width, height = step
        terms = height * values + _log_rows(grid, width)
        weights = softmax(terms, axis=1)
        return (logsumexp(terms, axis=1) / height, weights @ slopes), (weights, slopes)

    order = steps.widths[::-1], steps.heights[::-1]
    (_, first), (weights, others) = jax.lax.scan(outwards, (values, slopes), order)

    def inwards(law: Array, level: tuple[Array, Array]) -> tuple[Array, Array]:
        weights, slopes = level
        law = law @ weights
        return law, law @ slopes**2

    start = softmax(-((grid - field) ** 2) / (2 * steps.overlaps[0]))
    _, squares = jax.lax.scan(inwards, start, (weights[::-1], others[::-1]))
    return jnp.append(start @ first**2, squares)


def overlaps_of(unknowns: Float[Array, "unknown"]) -> Float[Array, "level"]:
    """Increasing overlaps between 0 and 1 (without 1) from real numbers, one for each."""
    share = softmax(jnp.append(unknowns, 0.0))
    least = _LEAST * jnp.ones_like(share).at[-1].set(0.0)
    return jnp.cumsum(least + (1 - jnp.sum(least)) * share)[:-1]


def dense_overlaps(steps: int) -> Float[Array, "step"]:
    """Overlaps 1 - (1 - u)^2 at equidistant u, which are dense near 1."""
    return 1 - (1 - jnp.arange(1, steps + 1) / (steps + 1)) ** 2


def increasing(unknowns: Float[Array, "step"]) -> Float[Array, "step"]:
    """Increasing positive heights from real numbers."""
    return jnp.cumsum(jnp.exp(unknowns))


def _log_rows(
    grid: Float[Array, "field"], variance: Float[Array, ""]
) -> Float[Array, "field field"]:
    """Logarithms of the weights of a Gaussian average on the grid, each row normalised."""
    size = grid.size
    shift = jnp.arange(1 - size, size) * (grid[1] - grid[0])
    # The rows are pieces of one vector of differences, and their sums are differences of its
    # cumulative sums.
    summed = jnp.append(0.0, jnp.cumsum(jnp.exp(-(shift**2) / (2 * variance))))
    row = jnp.arange(size)
    total = summed[2 * size - 1 - row] - summed[size - 1 - row]
    return -((grid[:, None] - grid) ** 2) / (2 * variance) - jnp.log(total)[:, None]
