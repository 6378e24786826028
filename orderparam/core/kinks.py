"""Kinks and jumps of a person's function of one number, found by its values.

Averages over a Gaussian are integrated by quadrature that must know where a function is not smooth.
The function is evaluated on a grid, which is refined three times, by a factor of 64 each, where the
fourth differences are largest. At a jump the largest difference of neighbouring values stays what
it was, at a kink the largest difference of neighbouring slopes; where a function is smooth both
fall by that factor, also where it is as steep as tanh(1000 z).
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

# Range in which kinks are searched: values further away hardly enter an average. The ends are odd,
# so that no grid point is a likely place of a kink.
LOWEST, HIGHEST = -8.0137, 8.0071
COARSE = 4096  # points of a grid
CANDIDATES = 16  # places that are refined
# share of a difference that stays at a jump or a kink, where elsewhere 1/64 stays, and the largest
# growth, which only differences of rounding errors exceed
STAYS, GROWS = 0.4, 16.0
SMALLEST = 1e-5  # jump that counts, relative to the largest |f|, and kink, relative to the slope
SAME = 1e-4  # distance between a place that was given and one that was found
SHOWN = 4  # places in a message


class Rough(NamedTuple):
    """The places where a function is not smooth, in increasing order."""

    jumps: tuple[float, ...] = ()
    kinks: tuple[float, ...] = ()

    def beside(self, given: tuple[float, ...]) -> "Rough":
        """The places that are not among those that were given."""

        def others(places: tuple[float, ...]) -> tuple[float, ...]:
            return tuple(
                place
                for place in places
                if not any(abs(place - one) <= SAME * (1 + abs(one)) for one in given)
            )

        return Rough(others(self.jumps), others(self.kinks))

    def __str__(self) -> str:
        parts = []
        for word, places in (("jumps", self.jumps), ("is not smooth", self.kinks)):
            if places:
                shown = ", ".join(f"{place:.4g}" for place in places[:SHOWN])
                parts.append(f"{word} at {shown}{' and elsewhere' if places[SHOWN:] else ''}")
        return " and ".join(parts)


def check_kinks(value: Any) -> None:
    """Refuses an elementwise function (what has `function`, `kinks` and the average `two_point`)
    that is not smooth in a place that its kinks do not name. Functions of this package, whose
    averages have tests, are not searched.

    Raises `ValueError`, also for a function without a hash, for which nothing can be compiled.
    """
    function, given = getattr(value, "function", None), getattr(value, "kinks", None)
    if function is None or given is None or not hasattr(value, "two_point"):
        return
    if str(getattr(function, "__module__", "")).startswith("orderparam."):
        return
    try:
        hash(function)
    except TypeError as error:
        raise ValueError(
            f"an object of {type(function).__name__} has no hash ({error}): give a plain function, "
            "such as a lambda that calls it, or make its class a frozen dataclass"
        ) from error
    missing = rough_places(function).beside(given)
    if missing.jumps or missing.kinks:
        every = sorted({*given, *missing.jumps, *missing.kinks})
        raise ValueError(
            f"the function {missing}, where averages would be integrated wrongly: give all such "
            f"places, activation(function, kinks={tuple(every)})"
        )


@functools.lru_cache(maxsize=256)
def rough_places(function: Callable[[Any], Any]) -> Rough:
    """Where an elementwise function that JAX can trace jumps or has a kink between -8 and 8: at
    most 16 places. Nothing is found of a function that cannot be evaluated, because it depends on
    traced numbers."""
    try:
        with jax.ensure_compile_time_eval():
            compiled = jax.jit(function)
            return _searched(lambda z: np.array(compiled(jnp.asarray(z, jnp.float64)), float))
    except (jax.errors.JAXTypeError, jax.errors.UnexpectedTracerError):
        return Rough()


def _searched(values: Callable[[np.ndarray], np.ndarray]) -> Rough:
    grid = np.linspace(LOWEST, HIGHEST, COARSE)
    spacing = grid[1] - grid[0]
    coarse = values(grid)
    steps = np.abs(np.diff(coarse))
    if not np.isfinite(steps).any():
        return Rough()
    size = float(np.abs(coarse[np.isfinite(coarse)]).max())
    slope = float(np.quantile(steps[np.isfinite(steps)], 0.9)) / spacing
    uneven = np.nan_to_num(np.abs(np.diff(coarse, 4)), nan=0.0, posinf=0.0)
    uneven = np.append(uneven, np.zeros(4)).reshape(-1, 8)  # the largest of every eight
    blocks = np.argsort(-uneven.max(axis=1))[:CANDIDATES]
    centres = grid[np.minimum(8 * blocks + np.argmax(uneven[blocks], axis=1) + 2, COARSE - 1)]
    jumps, bends, places = [], [], []
    half = 3 * spacing
    for _ in range(3):
        fine = np.linspace(-half, half, COARSE // CANDIDATES)
        found = values((centres[:, None] + fine).ravel()).reshape(CANDIDATES, -1)
        found[~np.isfinite(found).all(axis=1)] = 0.0
        step = fine[1] - fine[0]
        first, second = np.abs(np.diff(found, 1)), np.abs(np.diff(found, 2))
        jumps.append(first.max(axis=1))
        bends.append(second.max(axis=1) / step)
        centres = centres + fine[1 + np.argmax(second, axis=1)]
        places.append(centres)
        half = 2 * step
    noise = 1e7 * np.finfo(float).eps * size
    jump = _stays(jumps[0], jumps[1]) & _stays(jumps[1], jumps[2]) & (jumps[2] > SMALLEST * size)
    # the third grid is too fine for slopes: their differences are lost in rounding
    kink = _stays(bends[0], bends[1]) & ~jump & (bends[1] > SMALLEST * slope + noise / spacing)
    return Rough(_distinct(places[2][jump]), _distinct(places[1][kink]))


def _stays(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Whether a difference is on the finer grid what it was on the coarser one."""
    return (after > STAYS * before) & (after < GROWS * before)


def _distinct(places: np.ndarray) -> tuple[float, ...]:
    """Places in increasing order, those of two neighbouring grids once; rounded to their
    accuracy."""
    kept: list[float] = []
    for place in np.sort(np.round(places, 6)).tolist():
        if not kept or place - kept[-1] > SAME:
            kept.append(place + 0.0)
    return tuple(kept)
