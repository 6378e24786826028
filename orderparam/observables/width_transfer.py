"""The parametrisation and the dependence of the best learning rate on the width, from a table of
runs at several widths.

found = width(table, activations=["h1", "h2", "f"], updates=["dh1", "dh2", "df"])
found.update["dh2"].low, found.consistent, found.shift.verdict
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orderparam.analysis.corrections import slope_law
from orderparam.observables.observable import LEVEL, Observed
from orderparam.observables.width_parametrisation import (
    NAMES,
    OPTIMISERS,
    Growth,
    Optimiser,
    growth,
)
from orderparam.observables.width_rate import RateShift, rate_shift
from orderparam.observables.width_runs import FEWEST, WidthRuns, width_runs

ACTIVATION, UPDATE = "activation", "update"


@dataclass(frozen=True)
class SizeExponent(Observed):
    """The exponent of a layer's size, which grows as N^exponent at large N; its null hypothesis is
    exponent 0.

    joint: the interval of this layer in a 95 % region for all layers at once (Bonferroni). width,
    size: those of the runs.
    """

    joint: tuple[float, float] = (-math.inf, math.inf)
    width: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    size: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)


@dataclass(frozen=True)
class WidthTransfer:
    """Exponents of activations and updates, the parametrisation, and the shift of the best rate.

    at_rate: the learning rate of the updates. predictions: (parametrisation, optimiser) -> its
    exponents. consistent: the pairs whose exponents all lie in the joint region. broken: for the
    nearest pair, layer -> measured minus predicted exponent, for layers where the region excludes
    it. shift: None where the table has only one learning rate at each width and a loss, or no best
    rate.
    """

    runs: WidthRuns
    at_rate: float | None
    activation: Mapping[str, SizeExponent]
    update: Mapping[str, SizeExponent]
    predictions: Mapping[tuple[str, Optimiser], Growth]
    consistent: tuple[tuple[str, Optimiser], ...]
    nearest: tuple[str, Optimiser] | None
    broken: Mapping[str, float]
    shift: RateShift | None
    notes: tuple[str, ...]

    @property
    def parametrisation(self) -> str:
        """The parametrisation, in a sentence."""
        if self.nearest is None:
            return "not asked: name the columns of the updates"
        if self.consistent:
            return " or ".join(f"{name} with {_shown(by)}" for name, by in self.consistent)
        layers = ", ".join(f"{layer} is off by N^{e:+.2f}" for layer, e in self.broken.items())
        name, by = self.nearest
        return (
            f"none of standard, NTK, muP (mean-field); nearest {name} with {_shown(by)}: {layers}"
        )

    def sentence(self) -> str:
        """The dependence of the best rate on the width, in a sentence."""
        if self.shift is None:
            return "best learning rate: not measured"
        low, high = self.shift.interval
        kind = "95 %" if np.isfinite(self.shift.probability) else "all that the grid allows:"
        text = f"best rate ~ width^{self.shift.exponent:.2f}, {kind} [{low:.2f}, {high:.2f}]: "
        return text + self.shift.verdict


def _shown(optimiser: Optimiser) -> str:
    return {"sgd": "gradient descent", "adam": "Adam"}[optimiser]


def width(
    runs: Any,
    *,
    width: str = "width",
    learning_rate: str = "learning_rate",
    seed: str | None = None,
    loss: str | None = None,
    activations: Sequence[str] = (),
    updates: Sequence[str] = (),
    optimiser: Optimiser | None = None,
    at_rate: float | None = None,
) -> WidthTransfer:
    r"""The exponents of sizes and of the best learning rate with the width, from a table of runs.

    $$ \text{rms}(\Delta z_l) \sim N^{u_l}, \qquad \text{rms}(z_l) \sim N^{s_l}, \qquad
       \eta^* \sim N^{b} . $$

    Args:
        runs: A file (.csv, .tsv, .parquet, .json ..), a data frame, or a dictionary of columns; a
            row for each run.
        width, learning_rate, seed, loss: Names of the columns. seed, loss: None uses "seed" and
            "loss" where they exist. A missing loss means that the run diverged.
        activations: Columns of the root mean squares of the layers' values at initialisation, from
            the input layer to the output.
        updates: Columns of the root mean squares of the change by the first step, in this order.
            Only these distinguish parametrisations: the activations alone do not.
        optimiser: "sgd" or "adam"; None compares with both.
        at_rate: The learning rate whose updates are used; by default the smallest that all widths
            have, where one step is closest to linear.

    Returns:
        A `WidthTransfer`.

    Raises:
        ValueError: for columns that do not exist, rows that are not runs (`WidthRuns`), fewer than
            three widths, updates of a single layer, no learning rate that all widths have, and best
            rates at the end of the grid at all but two widths.

    Accuracy: exponents allow for corrections as large as the value itself at the smallest width,
    with
        exponents from 1/2 to 2 in 1/N, and noise of unknown size. In `benchmarks/width_coverage.py`
        both intervals are compared with known laws.

    Source: predictions from Yang and Hu 2021 and Yang et al. 2022 (`width_parametrisation`); the
        estimators are derived here.

    >>> n = np.repeat([64, 128, 256, 512], 3)
    >>> noise = 0.02 * np.random.default_rng(0).normal(size=(2, 12))
    >>> sizes = {"dh": n**-0.5 * np.exp(noise[0]), "df": np.exp(noise[1])}
    >>> table = {"width": n, "learning_rate": 0 * n + 0.1, "seed": np.tile([0, 1, 2], 4), **sizes}
    >>> op.width(table, updates=["dh", "df"]).parametrisation
    'NTK with gradient descent'
    """
    if optimiser is not None and optimiser not in OPTIMISERS:
        raise ValueError(f"optimiser = {optimiser!r}: must be one of {', '.join(OPTIMISERS)}")
    if len(updates) == 1:
        raise ValueError(
            f"updates = {updates[0]}: name a column for each layer, from the input to the output"
        )
    table = width_runs(
        runs,
        width=width,
        learning_rate=learning_rate,
        seed=seed,
        loss=loss,
        activations=activations,
        updates=updates,
    )
    rate = _common_rate(table, at_rate) if activations or updates else None
    sizes = {
        kind: {
            name: _exponent(name, table, column, rate, len(columns))
            for name, column in columns.items()
        }
        for kind, columns in ((ACTIVATION, table.activations), (UPDATE, table.updates))
    }
    predictions = {
        key: growth(parametrisation, key[1], len(updates))
        for key, parametrisation in NAMES.items()
        if len(updates) > 1 and optimiser in (None, key[1])
    }
    off = {key: _off(sizes[UPDATE], prediction) for key, prediction in predictions.items()}
    nearest = min(
        off,
        key=lambda key: (len(off[key]), _distance(sizes[UPDATE], predictions[key])),
        default=None,
    )
    shift, notes = _shift(table)
    return WidthTransfer(
        table,
        rate,
        sizes[ACTIVATION],
        sizes[UPDATE],
        predictions,
        tuple(key for key, layers in off.items() if not layers),
        nearest,
        off[nearest] if nearest is not None else {},
        shift,
        notes,
    )


def _common_rate(runs: WidthRuns, asked: float | None) -> float:
    common = set.intersection(*(set(runs.rate[runs.width == width]) for width in runs.widths))
    if asked is not None:
        if asked not in common:
            raise ValueError(
                f"at_rate = {asked:g}: must be a learning rate that all widths have: "
                f"{', '.join(f'{rate:g}' for rate in sorted(common)) or 'there is none'}"
            )
        return asked
    if not common:
        raise ValueError(
            "no learning rate is common to all widths: updates are compared at one learning rate"
        )
    return float(min(common))


def _exponent(
    name: str, runs: WidthRuns, column: np.ndarray, rate: float | None, layers: int
) -> SizeExponent:
    chosen = (runs.rate == rate) & np.isfinite(column)
    width, size = runs.width[chosen], column[chosen]
    if len(np.unique(width)) < FEWEST:
        raise ValueError(f"{name} has numbers at fewer than {FEWEST} widths")
    law = slope_law(np.log(width), np.log(size))
    tail = (1 - LEVEL) / 2
    low, middle, high, least, most = law.quantiles(
        (tail, 0.5, 1 - tail, tail / layers, 1 - tail / layers)
    )
    below = law.below(0.0)
    return SizeExponent(
        name,
        middle,
        low,
        high,
        2 * min(below, 1 - below),
        estimand="seeds",
        source="derived here",
        joint=(least, most),
        width=width,
        size=size,
    )


def _off(sizes: Mapping[str, SizeExponent], prediction: Growth) -> dict[str, float]:
    return {
        name: one.value - predicted
        for (name, one), predicted in zip(sizes.items(), prediction.update)
        if not one.joint[0] <= predicted <= one.joint[1]
    }


def _distance(sizes: Mapping[str, SizeExponent], prediction: Growth) -> float:
    return float(sum(abs(one.value - u) for one, u in zip(sizes.values(), prediction.update)))


def _shift(runs: WidthRuns) -> tuple[RateShift | None, tuple[str, ...]]:
    several = len(np.unique(runs.rate)) > 1
    if runs.loss is None and (not several or runs.activations or runs.updates):
        return None, ("best learning rate: give the losses of several rates",)
    if runs.loss is not None and not several:
        return None, ("best learning rate: the runs have one learning rate; give several",)
    shift = rate_shift(runs)
    return shift, shift.notes
