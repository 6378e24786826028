"""Training runs as one table: the size of each network, the data it saw, and the loss it
reached."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import ArrayLike

FLOPS = 6.0  # operations per parameter and sample: forward and backward pass (Kaplan et al. 2020)


@dataclass(frozen=True)
class Runs:
    """parameters N, samples D and loss L of every run, all (run,); N or D is None where it was not
    varied.

    unique: number of different samples, where data were repeated. flops: operations per parameter
    and sample.

    Raises `ValueError`, with the row (counted from 1), for numbers that are not finite and
    positive, and for a run that occurs twice.
    """

    loss: np.ndarray
    parameters: np.ndarray | None = None
    samples: np.ndarray | None = None
    unique: np.ndarray | None = None
    flops: float = FLOPS

    @classmethod
    def of(
        cls,
        loss: ArrayLike,
        parameters: ArrayLike | None = None,
        samples: ArrayLike | None = None,
        unique: ArrayLike | None = None,
        flops: float = FLOPS,
    ) -> "Runs":
        if not (np.isfinite(flops) and flops > 0):
            raise ValueError(
                f"flops = {flops:g}: must be finite and > 0 (operations of a parameter and a "
                "sample)"
            )
        named: dict[str, Any] = {
            "loss": loss,
            "parameters": parameters,
            "samples": samples,
            "unique": unique,
        }
        columns = {
            name: _checked(name, values) for name, values in named.items() if values is not None
        }
        if "parameters" not in columns and "samples" not in columns:
            raise ValueError("runs need the number of parameters, the number of samples, or both")
        if "unique" in columns and "samples" not in columns:
            raise ValueError("unique samples need the number of samples too")
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(
                "the columns have different lengths: "
                f"{', '.join(f'{name} {n}' for name, n in lengths.items())}"
            )
        if "unique" in columns:
            more = np.flatnonzero(columns["unique"] > columns["samples"] * (1 + 1e-9))
            if len(more):
                raise ValueError(f"row {more[0] + 1}: more unique samples than samples")
        table = np.stack(list(columns.values()), axis=1)
        _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
        repeated = np.flatnonzero(first[inverse.ravel()] != np.arange(len(table)))
        if len(repeated):
            row = int(repeated[0])
            raise ValueError(
                f"rows {first[inverse.ravel()[row]] + 1} and {row + 1} are the same run: leave one "
                "of them out"
            )
        return cls(**columns, flops=flops)

    def __len__(self) -> int:
        return len(self.loss)

    @property
    def compute(self) -> np.ndarray:
        """The compute C = flops N D where both sizes are given, and otherwise the size that is
        varied."""
        if self.parameters is None or self.samples is None:
            return self.parameters if self.samples is None else self.samples  # type: ignore[return-value]
        return self.flops * self.parameters * self.samples

    def rows(self, chosen: np.ndarray) -> "Runs":
        """The runs in some of the rows."""
        n, d, unique = (None if column is None else column[chosen] for column in self.columns[1:])
        return Runs(self.loss[chosen], n, d, unique, self.flops)

    @property
    def columns(self) -> tuple[np.ndarray | None, ...]:
        return self.loss, self.parameters, self.samples, self.unique


def _checked(name: str, values: ArrayLike) -> np.ndarray:
    try:
        column = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: must be numbers") from None
    if column.ndim != 1:
        raise ValueError(f"{name} has shape {column.shape}: must be one number for each run")
    wrong = np.flatnonzero(~(np.isfinite(column) & (column > 0)))
    if len(wrong):
        raise ValueError(
            f"row {wrong[0] + 1}: {name} = {column[wrong[0]]:g}: must be finite and > 0"
        )
    return column


_SUFFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}


def number(text: Any) -> float:
    """A number as it is written in tables of runs: 1.3e9, "1.3B", "70M", "1,000". Raises
    `ValueError`."""
    if not isinstance(text, str):
        return float(text)
    plain = text.strip().replace(",", "").replace("_", "").lower()
    try:
        return float(plain)
    except ValueError:
        if plain and plain[-1] in _SUFFIXES:
            return float(plain[:-1]) * _SUFFIXES[plain[-1]]
        raise


def numbers(column: Sequence[Any], name: str) -> np.ndarray:
    """A column of such numbers; raises `ValueError` with the row and the value."""
    found = []
    for row, value in enumerate(column, start=1):
        try:
            found.append(number(value))
        except (TypeError, ValueError):
            raise ValueError(
                f"row {row}: {name} = {value!r}: must be a number, such as 1.3e9 or 1.3B"
            ) from None
    return np.array(found)
