r"""The best learning rate at each width, and whether it moves with the width.

At one width, with $x = \log_2 \eta$ and one offset for each seed,

$$ \ln L = a_s + b x + c x^2 , \qquad x^* = -b / 2c , $$

on the rates within 2.5 octaves of the best; the error of $x^*$ is that of the fitted coefficients,
with one variance of the noise for all widths. Over widths $x^* = y_0 + b \log_2 N$ is a weighted
line; its interval is the wider of two: that from these errors, and Student's from the scatter about
the line. The choice of seeds does not affect $x^*$ as long as all rates have the same seeds.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import optimize, stats

from orderparam.observables.observable import LEVEL, Observed, holm
from orderparam.observables.width_runs import FEWEST, WidthRuns

REACH = 2.5  # octaves on either side of the best rate
FEWEST_RATES = 4
NEGLIGIBLE = 0.25  # largest exponent of the best rate that counts as zero
HALF_CELL = 0.5
_NOISE = 1e-12  # standard deviation of ln L where it cannot be measured

Verdict = Literal["transfers", "moves", "not resolved"]


@dataclass(frozen=True)
class Optimum:
    """The best rate at one width, in octaves (log2). error: NaN where only the best rate of the
    grid is known; the optimum then lies between low and high. curvature: c, in ln L per squared
    octave. least: ln L at the optimum, averaged over seeds. fault: the reason why there is no
    parabola."""

    width: float
    rate: float
    error: float = np.nan
    low: float = -np.inf
    high: float = np.inf
    curvature: float = np.nan
    least: float = np.nan
    fault: str = ""


@dataclass(frozen=True)
class RateShift:
    """The dependence of the best rate on the width, eta* ~ N^exponent.

    interval: 95 %. probability: that of an estimate at least as far from 0 if the exponent is 0;
    NaN for a table of best rates alone, where `interval` holds the exponents that all grid cells
    allow. verdict: "moves" where the interval excludes 0, "transfers" where it lies within 1/4 of
    0, else "not resolved". far: width -> distance in octaves from the constant (or from the line,
    where the rate moves) through the other widths, with Holm's p-value for the number of widths.
    excess: factor by which the loss at the largest width grows when the best rate of the smallest
    width is used, with its interval; None without parabolas there. notes: remarks in words.
    """

    optima: tuple[Optimum, ...]
    exponent: float
    interval: tuple[float, float]
    probability: float
    verdict: Verdict
    far: dict[float, Observed]
    excess: tuple[float, float, float] | None
    notes: tuple[str, ...]


def rate_shift(runs: WidthRuns) -> RateShift:
    """The shift of the best learning rate with width, from losses or from a table of best rates.

    Raises:
        ValueError: for fewer than three widths with a best rate inside the grid, and for a table of
            best rates with two of them at one width.

    Accuracy: `benchmarks/width_coverage.py` measures how often the interval holds the exponent.
    Source: derived here; a table of best rates is treated by a linear programme.
    """
    if runs.loss is None:
        return _censored(_cells(runs), ())
    optima = _optima(runs)
    fitted = [optimum for optimum in optima if np.isfinite(optimum.error)]
    notes = tuple(f"width {o.width:g}: {o.fault}" for o in optima if o.fault)
    if len(fitted) < FEWEST:
        if sum(np.isfinite(o.low) and np.isfinite(o.high) for o in optima) < FEWEST:
            raise ValueError(
                f"fewer than {FEWEST} widths have their best rate inside the grid; "
                f"{'; '.join(notes)}"
            )
        return _censored(optima, notes)
    y, error = (np.array([getattr(o, name) for o in fitted]) for name in ("rate", "error"))
    design = np.column_stack([np.log2([optimum.width for optimum in fitted]), np.ones(len(fitted))])
    slope, half, probability = _first_coefficient(design, y, error)
    interval = (slope - half, slope + half)
    verdict = _verdict(interval)
    return RateShift(
        tuple(optima),
        slope,
        interval,
        probability,
        verdict,
        _far([o.width for o in fitted], y, error, verdict == "moves"),
        _excess(fitted),
        notes,
    )


def _verdict(interval: tuple[float, float]) -> Verdict:
    low, high = interval
    if low > 0 or high < 0:
        return "moves"
    return "transfers" if max(-low, high) <= NEGLIGIBLE else "not resolved"


def _first_coefficient(
    design: np.ndarray, y: np.ndarray, error: np.ndarray, further: float = 0.0
) -> tuple[float, float, float]:
    """The first coefficient, half of its interval, and the probability of a coefficient at least as
    far from 0. further: the error of the number with which it is compared.

    The interval is the wider of two: one with the given errors, and one with their common scale
    taken from the scatter about the fit (Student). The second contains the truth in 95 % of cases,
    also where parabolas fit badly; the first cannot be narrow by chance."""
    rows = design / error[:, None]
    found = np.linalg.lstsq(rows, y / error, rcond=None)[0]
    freedom = len(y) - design.shape[1]
    scatter = np.sqrt(np.sum(((y - design @ found) / error) ** 2) / freedom)
    deviation = np.hypot(np.linalg.inv(rows.T @ rows)[0, 0] ** 0.5, further)
    tail, distance = (1 + LEVEL) / 2, abs(found[0]) / deviation
    half = deviation * max(stats.norm.ppf(tail), stats.t.ppf(tail, freedom) * scatter)
    chance = 2 * stats.norm.sf(distance)
    if scatter > 0:
        chance = max(chance, 2 * stats.t.sf(distance / scatter, freedom))
    return float(found[0]), float(half), float(chance)


def _optima(runs: WidthRuns) -> list[Optimum]:
    assert runs.loss is not None
    rows = [_points(runs, width) for width in runs.widths]
    fits = [_parabola(*points[:3]) if not points[3] else None for points in rows]
    done = [fit for fit in fits if fit is not None]
    freedom = sum(fit[3] for fit in done)
    variance = sum(fit[2] for fit in done) / freedom if freedom else np.nan
    optima = []
    for width, points, fit in zip(runs.widths, rows, fits):
        low, high, best = points[4:]
        fault = points[3]
        if fit is not None and not fit[0][-1] > 0:
            fault = "the loss has no minimum within 2.5 octaves of its best rate"
        elif fit is not None and not freedom:
            fault = "no runs are left to measure the noise: give more rates or seeds"
        if fit is None or fault:
            optima.append(Optimum(width, best, np.nan, low, high, fault=fault))
            continue
        coefficients, inverse = fit[0], fit[1]
        b, c = coefficients[-2:]
        vertex = -b / (2 * c)
        gradient = np.zeros(len(coefficients))
        gradient[-2:] = -1 / (2 * c), b / (2 * c**2)
        error = float(np.sqrt(max(variance, _NOISE**2) * gradient @ inverse @ gradient))
        place = float(vertex + best)
        if not low <= place <= high:
            message = "the parabola's minimum lies beyond the rates beside the best one"
            optima.append(Optimum(width, best, np.nan, low, high, fault=message))
            continue
        least = float(np.mean(coefficients[:-2]) + (b * vertex + c * vertex**2))
        optima.append(Optimum(width, place, error, low, high, float(c), least))
    return optima


def _points(
    runs: WidthRuns, width: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, str, float, float, float]:
    """Rates (octaves from the best), ln losses and seeds of the runs near the best rate; why there
    is no parabola; the rates on either side of the best, and the best."""
    here = runs.width == width
    octaves, seeds = np.log2(runs.rate[here]), runs.seed[here]
    with np.errstate(divide="ignore"):
        loss = np.log(runs.loss[here])  # type: ignore[index]
    rates = np.unique(octaves)
    mean = np.array([np.mean(loss[octaves == rate]) for rate in rates])  # inf where a run diverged
    empty = np.zeros(0)
    if not np.isfinite(mean).any():
        return empty, empty, empty, "all runs diverged", -np.inf, np.inf, np.nan
    k = int(np.argmin(mean))
    low = rates[k - 1] if k > 0 else -np.inf
    high = rates[k + 1] if k + 1 < len(rates) else np.inf
    best = float(rates[k])
    if k in (0, len(rates) - 1):
        end = "smallest" if k == 0 else "largest"
        message = f"the best rate {2**best:.4g} is the {end} that was tried: go on beyond it"
        return empty, empty, empty, message, low, high, best
    near = np.isfinite(mean) & (np.abs(rates - best) <= REACH + 1e-9)
    if not np.isfinite(mean[k + 1]) or not np.isfinite(mean[k - 1]):
        message = (
            "runs diverge at the rate beside the best one, which is therefore known to one cell"
        )
        return empty, empty, empty, message, low, high, best
    if near.sum() < FEWEST_RATES:
        message = f"{near.sum()} rates within 2.5 octaves of the best: {FEWEST_RATES} are needed"
        return empty, empty, empty, message, low, high, best
    used = np.isin(octaves, rates[near])
    return octaves[used] - best, loss[used], seeds[used], "", low, high, best


def _parabola(
    x: np.ndarray, y: np.ndarray, seeds: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float, int]:
    """Coefficients, inverse of the information, sum of squares, degrees of freedom."""
    labels, which, counts = np.unique(seeds, return_inverse=True, return_counts=True)
    offsets = np.eye(len(labels))[which] if counts.min() > 1 else np.ones((len(x), 1))
    design = np.column_stack([offsets, x, x**2])
    found = np.linalg.lstsq(design, y, rcond=None)[0]
    rest = float(np.sum((y - design @ found) ** 2))
    freedom = len(y) - int(np.linalg.matrix_rank(design))
    return found, np.linalg.pinv(design.T @ design), rest, freedom


def _far(
    widths: list[float], y: np.ndarray, error: np.ndarray, sloped: bool
) -> dict[float, Observed]:
    """The distance of each optimum from the fit to the others, with Holm's probabilities."""
    degree, x = (1 if sloped else 0), np.log2(widths)
    if len(x) - 1 <= degree + 1:
        return {}
    measured = []
    for k in range(len(x)):
        others = np.arange(len(x)) != k
        design = np.vander(x[others] - x[k], degree + 1, increasing=True)
        below, half, chance = _first_coefficient(
            design, y[others] - y[k], error[others], further=float(error[k])
        )
        name = f"best rate at width {widths[k]:g}, octaves off the others"
        measured.append(
            Observed(name, -below, -below - half, -below + half, chance, estimand="seeds")
        )
    return dict(zip(widths, holm(measured)))


def _excess(fitted: list[Optimum]) -> tuple[float, float, float]:
    small, large = fitted[0], fitted[-1]
    distance = large.rate - small.rate
    half = stats.norm.ppf((1 + LEVEL) / 2) * np.hypot(small.error, large.error)
    ends = sorted((abs(distance - half), abs(distance + half)))
    least = 0.0 if abs(distance) <= half else ends[0]
    values = (np.exp(large.curvature * d**2) for d in (abs(distance), least, ends[1]))
    middle, low, high = map(float, values)
    return middle, low, high


def _cells(runs: WidthRuns) -> list[Optimum]:
    """The grid cells of a table of best rates; the grid is the common factor between them."""
    if len(runs.widths) < len(runs.width):
        raise ValueError(
            "the table has several rates at one width and no losses: name the column of the loss"
        )
    order = np.argsort(runs.width)
    octaves = np.log2(runs.rate[order])
    steps = np.diff(np.unique(np.round(octaves, 9)))
    cell = float(np.min(steps)) if len(steps) else 1.0
    return [
        Optimum(float(width), float(y), np.nan, float(y - cell), float(y + cell))
        for width, y in zip(runs.width[order], octaves)
    ]


def _censored(optima: list[Optimum], notes: tuple[str, ...]) -> RateShift:
    """The range of exponents of the straight lines through all grid cells."""
    kept = [o for o in optima if np.isfinite(o.low) and np.isfinite(o.high)]
    ends = _slopes(kept)
    words = list(notes)
    if ends is None:
        first = next(k for k in range(2, len(kept) + 1) if _slopes(kept[:k]) is None)
        message = (
            f"no power law passes through all grid cells: width {kept[first - 1].width:g} breaks it"
        )
        return RateShift(
            tuple(optima), np.nan, (np.nan, np.nan), np.nan, "not resolved", {}, None,
            (*words, message),
        )  # fmt: skip
    low, high, middle = ends
    verdict = _verdict((low, high))
    if verdict == "not resolved" and middle is not None:
        cell = (kept[-1].high - kept[-1].low) / 2
        words.append(
            f"one best rate near {2**middle:.3g}, the same at all widths, explains all grid cells; "
            f"to resolve a shift divide the grid's factor {2**cell:.3g} at the two largest widths"
        )
    return RateShift(
        tuple(optima), (low + high) / 2, (low, high), np.nan, verdict, {}, None, tuple(words)
    )


def _slopes(kept: list[Optimum]) -> tuple[float, float, float | None] | None:
    """The smallest and the largest exponent, and the middle of the constants that all cells
    allow."""
    x = np.log2([o.width for o in kept])
    below = np.array([o.rate - HALF_CELL * (o.rate - o.low) for o in kept])
    above = np.array([o.rate + HALF_CELL * (o.high - o.rate) for o in kept])
    lines = np.column_stack([np.ones_like(x), x])
    found = []
    for sign in (1, -1):
        answer = optimize.linprog(
            [0, sign],
            np.vstack([lines, -lines]),
            np.concatenate([above, -below]) + 1e-9,
            bounds=[(None, None)] * 2,
        )
        if not answer.success:
            return None
        found.append(float(answer.x[1]))
    constant = (
        (np.max(below) + np.min(above)) / 2 if np.max(below) <= np.min(above) + 1e-9 else None
    )
    # without digits below the tolerance of the linear programme
    clean = [round(end, 6) + 0.0 for end in found]
    return min(clean), max(clean), None if constant is None else float(constant)
