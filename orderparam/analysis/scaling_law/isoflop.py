"""Parabolas through runs of equal compute: the second approach of Hoffmann et al. 2022, and its
bias."""

from dataclasses import dataclass

import numpy as np

from orderparam.analysis.scaling_law.law import ScalingLaw
from orderparam.analysis.scaling_law.runs import Runs

_SAME = 0.05  # runs whose logarithm of the compute differs by less belong to one budget


@dataclass(frozen=True)
class IsoFlop:
    """compute, parameters: (budget,) where the parabola of L over log N has its minimum; exponent:
    N* ~ C^exponent.

    bias: N* of the same parabolas through the fitted law, divided by the optimum of the law.
    Parabolas are exact only for alpha = beta, and a window that is wide or not centred on the
    optimum changes the prefactor.
    """

    compute: np.ndarray
    parameters: np.ndarray
    exponent: float
    bias: np.ndarray


def iso_flop(law: ScalingLaw) -> IsoFlop:
    """Parabolas through the budgets of at least four runs with a minimum inside. Raises
    `ValueError` where fewer than two budgets have one."""
    runs = law.runs
    if runs.parameters is None or runs.samples is None:
        raise ValueError("parabolas of equal compute need the numbers of parameters and of samples")
    groups = _budgets(runs.compute)
    fitted = Runs(
        law.predict(runs.parameters, runs.samples, runs.unique)[0],
        runs.parameters,
        runs.samples,
        runs.unique,
        runs.flops,
    )
    found = []
    for group in groups:
        minimum, again = _vertex(runs, group), _vertex(fitted, group)
        if minimum is not None and again is not None:
            compute = float(np.exp(np.mean(np.log(runs.compute[group]))))
            found.append((compute, minimum, again / law.allocate(compute).parameters.value))
    if len(found) < 2:
        raise ValueError(
            "fewer than two budgets of at least four runs have their lowest loss inside: no "
            "parabolas"
        )
    budgets, sizes, bias = map(np.array, zip(*found, strict=True))
    return IsoFlop(budgets, sizes, float(np.polyfit(np.log(budgets), np.log(sizes), 1)[0]), bias)


def _budgets(compute: np.ndarray) -> list[np.ndarray]:
    order = np.argsort(compute)
    ends = np.flatnonzero(np.diff(np.log(compute[order])) > _SAME) + 1
    return [group for group in np.split(order, ends) if len(group) >= 4]


def _vertex(runs: Runs, group: np.ndarray) -> float | None:
    """N at the minimum of the parabola through L over log N, if there is a minimum inside."""
    x = np.log(runs.parameters[group])  # type: ignore[index]
    curvature, slope, _ = np.polyfit(x - x.mean(), runs.loss[group], 2)
    vertex = -slope / (2 * curvature) if curvature > 0 else np.inf
    return float(np.exp(x.mean() + vertex)) if x.min() <= x.mean() + vertex <= x.max() else None
