"""Runs of one network at several widths, as one table: width, learning rate, seed, loss, and the
sizes of activations and updates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from orderparam.analysis.scaling_law.runs import numbers
from orderparam.analysis.scaling_law.tables import run_column, run_table

FEWEST = 3  # widths


@dataclass(frozen=True)
class WidthRuns:
    """The table of runs; all columns have the shape (run,).

    rate: learning rate. loss: inf where the run diverged; None where the table has only best rates.
    seed: any labels; runs without seeds count as different ones. activations, updates: column name
    -> root mean square over units and examples of a layer's values, and of their change, from the
    input layer to the output.

    Raises `ValueError`, with the row (counted from 1), for widths, rates, losses and sizes that are
    not positive, a width, rate or size that is not finite, two runs of one width, rate and seed,
    and fewer than three widths.
    """

    width: np.ndarray
    rate: np.ndarray
    seed: np.ndarray
    loss: np.ndarray | None = None
    activations: Mapping[str, np.ndarray] = field(default_factory=dict)
    updates: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sizes = {**self.activations, **self.updates}
        for name, column in {"width": self.width, "learning rate": self.rate, **sizes}.items():
            finite = np.isfinite(column) | (np.isnan(column) if name in sizes else False)
            _refuse(~finite | (column <= 0), column, name, "finite and > 0")
        if self.loss is not None:
            wrong = np.isnan(self.loss) | (self.loss <= 0)
            _refuse(wrong, self.loss, "loss", "> 0, and inf where the run diverged")
        widths = np.unique(self.width)
        if len(widths) < FEWEST:
            listed = ", ".join(f"{width:g}" for width in widths)
            raise ValueError(f"the runs have the widths {listed}: at least {FEWEST} are needed")
        seen: dict[tuple[Any, ...], int] = {}
        for row, key in enumerate(zip(self.width, self.rate, self.seed), start=1):
            if key in seen:
                raise ValueError(
                    f"rows {seen[key]} and {row} have one width, learning rate and seed: "
                    "name the column that distinguishes them as the seed"
                )
            seen[key] = row

    @property
    def widths(self) -> np.ndarray:
        return np.unique(self.width)


def _refuse(wrong: np.ndarray, column: np.ndarray, name: str, allowed: str) -> None:
    rows = np.flatnonzero(wrong)
    if len(rows):
        raise ValueError(f"row {rows[0] + 1}: {name} = {column[rows[0]]:g}: must be {allowed}")


def width_runs(
    table: Any,
    *,
    width: str = "width",
    learning_rate: str = "learning_rate",
    seed: str | None = None,
    loss: str | None = None,
    activations: Sequence[str] = (),
    updates: Sequence[str] = (),
) -> WidthRuns:
    """The runs in a file, a data frame or a dictionary of columns.

    seed, loss: None uses the columns of these names where they exist. A loss that is missing or not
    a number means that the run diverged, and a missing size is left out.

    Raises `ValueError` for a column that does not exist, with the nearest name, and the errors of
    `WidthRuns`.
    """
    import pandas

    name = "the table"
    if isinstance(table, str | Path):
        name, table = str(table), run_table(Path(table))
    frame = pandas.DataFrame(table)
    seed = "seed" if seed is None and "seed" in frame else seed
    loss = "loss" if loss is None and "loss" in frame else loss

    def column(wanted: str) -> np.ndarray:
        return numbers(run_column(frame, wanted, name).tolist(), wanted)

    widths = column(width)
    labels = np.arange(len(widths)).astype(str)
    if seed is not None:
        labels = run_column(frame, seed, name).astype(str).to_numpy()
    elif loss is None and not (activations or updates):
        labels = np.full(len(widths), "0")
    losses = None
    if loss is not None:
        losses = column(loss)
        losses = np.where(np.isnan(losses), np.inf, losses)
    return WidthRuns(
        widths,
        column(learning_rate),
        labels,
        losses,
        {name: column(name) for name in activations},
        {name: column(name) for name in updates},
    )
