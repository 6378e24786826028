"""The spectrum of the features' second moments, whose bulks determine the time scales of
training."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.diffusion.score_model import FeatureScore, Powers
from orderparam.systems.diffusion.score_theory import largest_bound, resolvent

Scalar = Float[Array, ""]

_GRID, _BULKS, _HALVINGS, _NEWTON = 600, 3, 12, 24
POINTS = 120


class ScoreSpectrum(Result):
    """Eigenvalues of U, the features' second moments averaged over the noise.

    Fields:
        smallest: lower edge of the eigenvalues above v^2.
        gap_start: upper edge of the bulk below the widest gap, which has the largest ratio of its
            two ends. The model memorises along the eigenvectors whose eigenvalues lie below it.
            Infinite if there is no gap.
        gap_end: lower edge of the bulk above that gap; infinite if there is no gap.
        largest: largest eigenvalue.
        frozen_share: share of eigenvalues equal to v^2, max(0, 1 - (n + d)/p).
        eigenvalue: 120 values x at equal ratios, between 0.3 v^2 and three times an upper bound of
            the spectrum.
        density: density of ln x at these values, smoothed over the width eta = `smoothing`.
        converged: whether the edges were found.
    """

    smallest: Scalar
    gap_start: Scalar
    gap_end: Scalar
    largest: Scalar
    frozen_share: Scalar
    eigenvalue: Float[Array, "point"]
    density: Float[Array, "point"]
    converged: Bool[Array, ""]


@theory
def score_spectrum(system: FeatureScore) -> ScoreSpectrum:
    r"""Edges and density of the spectrum that determines the time scales of a random-feature score.

    Outside of the spectrum $e(x) = \frac1n \mathrm{tr}\, C (U - x)^{-1}$ is real and solves
    $h(e, x) = 0$; at an edge this equation has a double root, and x as a function of $m = \frac1p
    \mathrm{tr}\, (S + y)^{-1}$, which has a closed form, has an extremum. The points where the
    density begins and ends are located on a grid of 600 values of $x - v^2$, by bisection, and by
    solving for the extremum. The density at x is $\frac{1}{\pi - \eta} \mathrm{Im}\, \frac wp
    \mathrm{tr}\, (U - w)^{-1}$ at $w = x e^{i \eta}$, so that an eigenvalue $\lambda$ contributes a
    peak of unit mass $\propto \sin \eta/(\cosh \ln (x/\lambda) - \cos \eta)$.

    Returns:
        The edges of the spectrum and of its widest gap (there are up to three bulks);
        the share `frozen_share` of the eigenvalues equals $v^2$. A hard edge at $v^2$ is given as
        $v^2$.

    Accuracy: 1e-10 relative to $x - v^2$; bulks and gaps that are narrower than 4 % of $x - v^2$
    may be overlooked.

    Source: Bonnaire, Urfin, Biroli, Mezard (2025); the equation of the edges is derived here.

    >>> found = score_spectrum(FeatureScore(2.0, 8.0, 0.1))
    >>> [
    ...     round(float(x), 4)
    ...     for x in (found.smallest, found.gap_start, found.gap_end, found.largest)
    ... ]
    [0.0154, 0.1076, 0.571, 8.9347]
    """
    powers = system.powers
    # the spectrum of U - v^2
    shifted = powers._replace(rest=0.0 * powers.rest)
    bound = jax.lax.stop_gradient(1.01 * largest_bound(powers))
    lowest = 1e-10 * powers.example / (1 + powers.feature_ratio) + 1e-13 * bound
    grid = jnp.exp(jnp.linspace(jnp.log(jax.lax.stop_gradient(lowest)), jnp.log(bound), _GRID))
    inside = _inside(shifted, grid)
    changes = inside[1:] != inside[:-1]
    (before,) = jnp.nonzero(changes, size=2 * _BULKS, fill_value=_GRID - 2)
    exists = jnp.arange(2 * _BULKS) < jnp.sum(changes)
    low, high, rising = grid[before], grid[before + 1], inside[before + 1]

    def halve(ends: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        low, high = ends
        middle = jnp.sqrt(low * high)
        after = _inside(shifted, middle) == rising
        return (jnp.where(after, low, middle), jnp.where(after, middle, high)), None

    (low, high), _ = jax.lax.scan(halve, (low, high), length=_HALVINGS)
    edges, misses = jax.vmap(lambda x: _edge(shifted, x))(jnp.where(rising, low, high))
    # if the density is positive at the lowest point, the bulk begins at v^2
    hard = jnp.where(inside[0], 0.0, edges[0])
    starts = jnp.where(exists & rising, edges, jnp.inf)
    stops = jnp.where(exists & ~rising, edges, 0.0)
    # gaps: from the end of a bulk to the start of the next one
    opens = exists[1:] & rising[1:] & ~rising[:-1]
    widths = jnp.where(opens, jnp.log(jnp.where(opens, edges[1:] / edges[:-1], 1.0)), 0.0)
    widest = jnp.argmax(widths)
    gap = jnp.any(opens)
    smallest = jnp.where(inside[0], hard, jnp.min(starts))
    x = points(powers)
    turned = x * jnp.exp(1j * system.smoothing)
    smooth, _ = resolvent(powers, -turned)
    density = jnp.imag(turned * smooth.trace / smooth.slope) / (jnp.pi - system.smoothing)
    share = (system.sample_ratio + 1) / system.feature_ratio
    rest = powers.rest
    largest = jnp.max(stops)
    ordered = (smallest < largest) & (~gap | (edges[:-1][widest] < edges[1:][widest]))
    return ScoreSpectrum(
        smallest=rest + smallest,
        gap_start=jnp.where(gap, rest + edges[:-1][widest], jnp.inf),
        gap_end=jnp.where(gap, rest + edges[1:][widest], jnp.inf),
        largest=rest + largest,
        frozen_share=jnp.maximum(1 - share, 0.0),
        eigenvalue=x,
        density=density,
        converged=ordered & jnp.all(jnp.isfinite(density)) & jnp.all(~exists | (misses < 1e-6)),
    )


def points(powers: Powers) -> Float[Array, "point"]:
    """The eigenvalues at which the density is given."""
    low, high = jnp.log(0.3 * powers.rest), jnp.log(3 * (powers.rest + largest_bound(powers)))
    return jnp.exp(low + (high - low) * np.linspace(0.0, 1.0, POINTS))


def _inside(powers: Powers, x: Float[Array, "point"]) -> Array:
    """True where the density at x is positive; x is approached from above the real axis."""
    found, _ = resolvent(powers, -x + 0j, direction=-1j * jnp.ones_like(x))
    green = found.trace / found.slope
    return jnp.imag(green) > 1e-7 * jnp.abs(green)


def _edge(powers: Powers, near: Scalar) -> tuple[Scalar, Scalar]:
    """The edge closest to x = `near`, a point outside of the spectrum, and the relative dx/dm at
    the edge.

    Outside of the spectrum m is real; at an edge the curve x(m) has an extremum.
    """
    near, fixed = jax.lax.stop_gradient((near, powers))
    found, _ = resolvent(fixed, -near[None] + 0j, direction=-1j * jnp.ones(1))
    start, example = jnp.real(found.trace[0]), jnp.real(found.example[0])
    misses = jnp.stack([jnp.abs(_curve(fixed, start, plus)[0] - example) for plus in (True, False)])
    plus = misses[0] < misses[1]
    slope = jax.grad(lambda m: _curve(fixed, m, plus)[1])
    bend = jax.grad(slope)

    def newton(m: Scalar, _: None) -> tuple[Scalar, None]:
        # the start is close: longer steps would leave the neighbourhood of the edge
        longest = 0.1 * jnp.abs(m)
        return m - jnp.clip(slope(m) / bend(m), -longest, longest), None

    last, _ = jax.lax.scan(newton, start, length=_NEWTON)
    # x is stationary in m at the edge: its derivatives are those at fixed m
    x = _curve(powers, last, plus)[1]
    return x, jnp.abs(slope(last) * last / x)


def _curve(powers: Powers, trace: Any, plus: Any) -> tuple[Scalar, Scalar]:
    """The values of e and x - v^2 at a real m, on one of the two branches of e, which solves D e^2
    - (r - 1) e = r and is real for every r."""
    psi, linear = powers.feature_ratio, powers.linear
    damping = 1 / (1 + psi * trace)
    filled = powers.kept * linear + powers.example * (1 + psi * trace)
    r = psi / (powers.sample_ratio * linear) * trace * damping * filled
    b = r - 1
    root = jnp.sqrt(b**2 + 4 * powers.noise * r)
    up, down = b > 0, b < 0
    # each root without cancellation
    high = jnp.where(up, (b + root) / (2 * powers.noise), -2 * r / jnp.where(up, 1.0, b - root))
    low = jnp.where(down, (b - root) / (2 * powers.noise), -2 * r / jnp.where(down, 1.0, b + root))
    example = jnp.where(plus, high, low)
    slope = linear * (powers.noise + powers.kept / (1 + example))
    return example, powers.example / (1 + example) - slope * (1 / trace - damping)
