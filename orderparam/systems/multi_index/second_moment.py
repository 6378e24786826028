"""The second moment of a target, and the target in units of its standard deviation.

Exponents depend on which coefficients vanish. A coefficient counts as zero if it is small compared
with the norm of the target, and this norm exists only if E[g(z)^2] is finite. If |g| is unbounded,
its growth towards poles and towards large |z| is examined.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from orderparam.core.late import minimize
from orderparam.gaussian.target import Target
from orderparam.systems.multi_index.model import NODES, REACH, double_exponential_panels, grid

# squares are computed in units of a typical value, which must itself be far from overflow
_LARGEST = 1e250
# a spread below this fraction of a target's size is due to rounding
_ROUNDING = 1e-13
_LINE = np.linspace(-REACH, REACH, 12011)
_DECADES = 10.0 ** -np.arange(2, 14)  # distances from a pole
_STEEPEST = 0.45  # |g| ~ distance^-p has a second moment for p < 1/2


def normalised(target: Target) -> tuple[Target, float]:
    """g / spread as a target, and the spread (standard deviation) of g(z) for standard normal z.

    Raises `ValueError` for a target without second moment, for one that is constant to within
    rounding, and for one of extreme size.
    """
    z = np.random.default_rng(4).standard_normal((256, target.dimension))
    unit = float(np.max(np.abs(target(z)))) or float(np.max(np.abs(target(4 * z)))) or 1.0
    if np.isinf(unit):
        raise ValueError(
            f"target {target.name!r}: grows too fast to have a second moment over normal z"
        )
    if not 1 / _LARGEST < unit < _LARGEST:
        raise ValueError(
            f"target {target.name!r}: values of size {unit:.3g}; must be from 1e-250 to 1e250"
        )
    if np.any(np.isnan(target(REACH * z / np.linalg.norm(z, axis=1, keepdims=True)))):
        raise ValueError(f"target {target.name!r}: must be a finite number for every z")
    scaled = _divided(target, unit)
    _refuse_poles(scaled)
    _refuse_fast_growth(scaled)
    mean, spread = _mean_and_spread(scaled)
    if not np.isfinite(spread):
        raise ValueError(f"target {target.name!r}: must be a finite number for every z")
    if spread <= _ROUNDING * max(1.0, abs(mean)):
        raise ValueError(
            f"target {target.name!r}: is a constant to within rounding; there is nothing to learn"
        )
    return _divided(target, spread * unit), spread * unit


def _divided(target: Target, unit: float) -> Target:
    return dataclasses.replace(target, function=lambda z: target(z) / unit)


def _mean_and_spread(target: Target) -> tuple[float, float]:
    if target.dimension == 1:
        z, w = double_exponential_panels(
            np.unique([-REACH, 0.0, REACH, *target.kinks, *_poles_on(target)])
        )
        z, w = z[:, None], w * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    else:
        z, w = grid(target.dimension, NODES[target.dimension])
    values = np.asarray(target(z), float)
    mean = np.sum(w * values)
    return float(mean), float(np.sqrt(np.sum(w * (values - mean) ** 2)))


def _refuse_fast_growth(target: Target) -> None:
    """Refuse targets that grow too fast. At the end of the quadrature, |z| = 12, g^2 times the
    normal density must have fallen by a factor e over the last unit of |z|, along the axes, the
    diagonals, and the eight of 4096 random directions in which |g| is largest."""
    size = target.dimension
    signs = 1.0 - 2.0 * np.indices((2,) * size).reshape(size, -1).T
    rays = np.random.default_rng(5).standard_normal((4096, size))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    rays = rays[np.argsort(np.nan_to_num(-np.abs(target(rays * (REACH - 0.3))), nan=-np.inf))[:8]]
    axes = np.concatenate([np.eye(size), -np.eye(size), signs / np.sqrt(size)])
    # points away from the coordinate planes, on which there may be poles
    rays = np.concatenate([axes + 1e-4 * np.cos(np.arange(size)), rays])
    radius = np.linspace(REACH - 2, REACH, 41)
    values = np.asarray(target(rays[:, None] * radius[:, None]), float)
    density = 2 * np.log(np.abs(values) + 1e-300) - radius**2 / 2
    inner, outer = density[:, :21].max(axis=1), density[:, 20:].max(axis=1)
    if not np.all((outer < inner - 1) | (outer < -60)):
        raise ValueError(
            f"target {target.name!r}: grows too fast to have a second moment over normal z, or one "
            f"that |z| < {REACH:g} holds"
        )


def _refuse_poles(target: Target) -> None:
    """Refuse poles without a second moment. They are searched along lines, on which poles of
    codimension one appear, and for several indices also around points."""
    size = target.dimension
    lines = (
        [target] if size == 1 else [target.slice(point, axis[None]) for point, axis in _lines(size)]
    )
    steep = any(_steepness(line, place) > _STEEPEST for line in lines for place in _poles_on(line))
    if size > 1 and not steep:
        steep = any(_steepness_around(target, pole) > _STEEPEST * size for pole in target.poles)
    if steep:
        raise ValueError(
            f"target {target.name!r}: has poles too steep to have a second moment over normal z"
        )


def _lines(size: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Lines along every axis and in eight random directions, each through a random point."""
    rng = np.random.default_rng(6)
    axes = np.concatenate([np.eye(size), rng.standard_normal((8, size))])
    return [(rng.standard_normal(size), axis / np.linalg.norm(axis)) for axis in axes]


def _poles_on(line: Target) -> list[float]:
    """Zeros of the denominators of a formula; for functions without a formula, the points where |g|
    is largest."""
    poles = line.poles if line.kinks_known else (lambda z: 1 / np.asarray(line(z), float),)
    return [place for pole in poles for place in _lowest(pole)]


def _lowest(pole: Callable[[np.ndarray], np.ndarray]) -> Float[np.ndarray, "place"]:
    """Local minima of |pole| on the line that are close to zero, found on a grid and refined by
    golden section."""

    def function(x: np.ndarray) -> np.ndarray:
        return np.nan_to_num(np.abs(pole(x[..., None])), nan=0.0)

    values = function(_LINE)
    middle = (
        np.flatnonzero(
            (values[1:-1] <= values[:-2])
            & (values[1:-1] <= values[2:])
            & (values[1:-1] < values.max())
        )
        + 1
    )
    low, high = _LINE[middle - 1], _LINE[middle + 1]
    golden = (np.sqrt(5) - 1) / 2
    for _ in range(80):
        left, right = high - golden * (high - low), low + golden * (high - low)
        nearer = function(left) < function(right)
        low, high = np.where(nearer, low, left), np.where(nearer, right, high)
    found = (low + high) / 2
    return found[function(found) < 1e-4 * np.median(values)]


def _steepness(line: Target, place: float) -> float:
    """The power p of |g| ~ distance^-p at a point of the line: the smallest over three successive
    decades, and of these the largest."""
    sides = np.abs(
        np.stack(
            [np.asarray(line(np.array(place + s * _DECADES)[:, None]), float) for s in (-1, 1)]
        )
    )
    return _growth(sides)


def _steepness_around(target: Target, pole: Callable[[np.ndarray], np.ndarray]) -> float:
    """The power with which the root mean square of g grows on small spheres around the zero of
    `pole` that a search finds; 0 if there is none."""
    rng = np.random.default_rng(7)
    starts = rng.standard_normal((4096, target.dimension))
    size = np.abs(pole(starts))
    steep = 0.0
    for start in starts[np.argsort(size)[:4]]:
        found = minimize(
            lambda z: abs(float(pole(z))),
            start,
            method="Nelder-Mead",
            options={"xatol": 1e-13, "fatol": 0.0},
        )
        if found.fun < 1e-9 * np.median(size):
            directions = rng.standard_normal((512, target.dimension))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
            values = np.asarray(target(found.x + _DECADES[:, None, None] * directions), float)
            steep = max(steep, _growth(np.sqrt(np.mean(values**2, axis=1))[None]))
    return steep


def _growth(values: Float[np.ndarray, "side distance"]) -> float:
    """The number of decades by which values grow towards a pole, for each decade of distance."""
    if not np.all(np.isfinite(values)):
        return np.inf
    slopes = np.diff(np.log10(values + 1e-300), axis=1)
    return float(np.max(np.min(np.stack([slopes[:, :-2], slopes[:, 1:-1], slopes[:, 2:]]), axis=0)))
