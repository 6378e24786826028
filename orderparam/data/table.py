"""A table of numbers in a text file (`.csv`, `.tsv`), read so that every wrong cell is named by its
line and column."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float

from orderparam.core.reading import reading
from orderparam.core.text import counted
from orderparam.data.dataset import EXACT_INTEGERS

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})  # lower case
MOST_COLUMNS = 100_000
WHOLE = re.compile(r"[+-]?[0-9]+")


def number(cell: str) -> float | None:
    """The number in a cell, or None (Python's digit separator `1_000` is text)."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


@dataclass(frozen=True)
class Table:
    """Named columns of text cells. Columns of a file without a header are named "0", "1", ..

    lines: the line of the file on which each row ends.
    """

    names: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def cells(self, name: str) -> tuple[str, ...]:
        """One column. Raises `ValueError` for a missing value."""
        cells = self.columns[self._places[name]]
        for line, cell in zip(self.lines, cells):
            if cell.lower() in MISSING:
                raise ValueError(
                    f"line {line}, column {name!r}: missing value ({cell!r}); fill it in or leave "
                    "the row out"
                )
        return cells

    def is_text(self, name: str) -> bool:
        """True if no cell of the column is a number."""
        return all(number(cell) is None for cell in self.cells(name))

    def numbers(self, name: str) -> Float[np.ndarray, "rows"]:
        """One column as numbers. Raises `ValueError` for text, for numbers that are not finite, and
        for whole numbers beyond 2^53."""
        cells = self.cells(name)
        values = np.empty(len(cells))
        for row, (line, cell) in enumerate(zip(self.lines, cells)):
            value = number(cell)
            where = f"line {line}, column {name!r}: {cell!r}"
            if value is None:
                hint = (
                    "; the line holds numbers, so it was taken for data, not for a header"
                    if line == 1
                    else ""
                )
                raise ValueError(
                    f"{where} is not a number (every column but a target of words is numeric){hint}"
                )
            if not np.isfinite(value):
                raise ValueError(f"{where} is not finite in float64")
            if (
                abs(value) >= EXACT_INTEGERS
                and WHOLE.fullmatch(cell)
                and abs(int(cell)) > EXACT_INTEGERS
            ):
                raise ValueError(f"{where}: whole numbers beyond 2^53 are not exact in float64")
            values[row] = value
        return values

    def is_whole(self, name: str) -> bool:
        """True if every cell of the column is written as a whole number."""
        return all(WHOLE.fullmatch(cell) for cell in self.cells(name))


def read_table(path: Path, row_names: bool = False, fewest: int = 2) -> Table:
    """Reads a `.csv` (comma, or semicolon if its first line has no comma) or `.tsv` file in UTF-8;
    blank lines are skipped.

    The first line is a header when none of its cells is a number, or when its numbers count 0, 1,
    2, .. (as unnamed columns are written) and its words stand above columns of numbers. Raises
    `ValueError` naming the file and the line for ragged rows, nameless or repeated columns, a first
    line that could be either, and a table with fewer than `fewest` rows.

    row_names: a nameless first column, as pandas writes its index, is taken as "(row)".
    """
    with reading(path), path.open(newline="", encoding="utf-8-sig") as stream:
        first = stream.readline()
        stream.seek(0)
        comma = ";" if ";" in first and "," not in first else ","
        rows: list[tuple[str, ...]] = []
        lines: list[int] = []
        reader = csv.reader(
            stream, delimiter="\t" if path.suffix.lower() == ".tsv" else comma, strict=True
        )
        for row in reader:
            cells = tuple(cell.strip() for cell in row)
            if len(cells) <= 1 and not any(cells):
                continue
            if len(cells) > MOST_COLUMNS:
                raise ValueError(
                    f"line {reader.line_num} has {len(cells)} cells: must be at most {MOST_COLUMNS}"
                )
            if rows and len(cells) != len(rows[0]):
                raise ValueError(
                    f"line {reader.line_num} has {counted(len(cells), 'cell')}, the lines before "
                    f"it have {len(rows[0])}"
                )
            rows.append(cells)
            lines.append(reader.line_num)
        if not rows:
            raise ValueError("the file is empty")
        names = tuple(str(column) for column in range(len(rows[0])))
        if _is_header(rows[0], rows[1:]):
            names = rows[0]
            rows, lines = rows[1:], lines[1:]
        if row_names and not names[0]:
            names = ("(row)", *names[1:])
        first_places: dict[str, int] = {}
        for position, name in enumerate(names):
            if not name:
                raise ValueError(
                    f"column {position + 1} has no name (a row index written by pandas? write it "
                    "with index=False)"
                )
            if first_places.setdefault(name, position) < position:
                raise ValueError(
                    f"columns {first_places[name] + 1} and {position + 1} have the same name "
                    f"{name!r}"
                )
        if len(rows) < fewest:
            raise ValueError(
                f"{counted(len(rows), 'row')} of data: there must be at least "
                f"{'two' if fewest == 2 else fewest}"
            )
        return Table(names, tuple(zip(*rows)), tuple(lines))


def _is_header(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    numeric = [cell for cell in first if number(cell) is not None]
    if not numeric:
        return True
    words = [
        column
        for column, cell in enumerate(first)
        if number(cell) is None and cell.lower() not in MISSING
    ]
    if numeric != [str(i) for i in range(len(numeric))] or len(first) < 3:
        return False
    if (
        words
        and others
        and all(number(row[column]) is not None for row in others for column in words)
    ):
        return True
    raise ValueError(
        "line 1 counts 0, 1, 2, ..: it could be a header or data; give the columns names"
    )
