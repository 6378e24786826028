"""Tables as data frames: `.csv`, `.tsv`, `.parquet`, `.feather`, `.xlsx`, with gaps, words and
dates as in the file."""

import csv
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from orderparam.core.reading import TooLarge, check_archive, reading
from orderparam.core.text import counted
from orderparam.data.feather import unpacked_bytes
from orderparam.data.table import MISSING, MOST_COLUMNS, number, read_table

LARGE = 2**22  # size in bytes above which text is read by pandas' own readers, a column at a time
TEXT, BINARY = (".csv", ".tsv"), (".parquet", ".feather", ".xlsx", ".xls")
FRAMES = (*TEXT, *BINARY)
MOST_CELLS = 10**8  # of a .parquet file
MOST_UNPACKED = {".xlsx": 2**28, ".feather": 2**30}  # bytes
_TRUTH = {"true": True, "false": False, "yes": True, "no": False}


def read_frame(path: Path, fewest: int = 2, missing: Sequence[str] = ()) -> pd.DataFrame:
    """The table in a file, read according to its ending; for a workbook the first sheet.

    In text files empty cells and the usual words for them (NA, NaN, null, none, ?) are gaps,
    columns of numbers become numbers, those of true/false or yes/no become truth values, and all
    others stay words. missing: further words for a gap, in any format, in upper or lower case. The
    index counts the lines of a text file, and the rows from 1 in other formats.

    Raises `ValueError` naming the file, for anything but a table, for columns of the same name,
    fewer than `fewest` rows, and where the format needs a package that is not installed.
    """
    suffix = path.suffix.lower()
    gaps = frozenset(word.strip().lower() for word in missing)
    if suffix in TEXT:
        if (
            path.stat().st_size > LARGE
            and (frame := _large(path, suffix, MISSING | gaps)) is not None
        ):
            return frame
        table = read_table(path, row_names=True, fewest=fewest)
        frame = pd.DataFrame(
            {
                name: _typed(pd.Series(cells, dtype=object), MISSING | gaps)
                for name, cells in zip(table.names, table.columns)
            }
        )
        return frame.set_axis(pd.Index(table.lines, name="line"))
    read = {".parquet": pd.read_parquet, ".feather": pd.read_feather}.get(suffix, pd.read_excel)
    with reading(path):
        try:
            _check_size(path)
            frame = read(path)
        except ImportError:
            where = "pip install '.[tables]' in a copy of the repository"
            raise ValueError(f"{suffix} files need a further package: {where}") from None
        except (OSError, MemoryError, TooLarge):
            raise
        except Exception as error:  # a damaged file can raise anything in pyarrow and openpyxl
            raise ValueError(f"cannot be read as {suffix}: {error}") from None
        frame.columns = [str(name) for name in frame.columns]
        if not frame.columns.is_unique:
            raise ValueError(
                f"two columns have the same name {frame.columns[frame.columns.duplicated()][0]!r}"
            )
        if len(frame) < fewest:
            raise ValueError(
                f"{counted(len(frame), 'row')} of data: there must be at least "
                f"{'two' if fewest == 2 else fewest}"
            )
        for name in frame.columns if gaps else ():
            if frame[name].dtype == object or pd.api.types.is_string_dtype(frame[name].dtype):
                kept = frame[name].where(
                    ~frame[name].map(lambda cell: str(cell).strip().lower() in gaps)
                )
                frame[name] = kept.infer_objects()
        return frame.set_axis(pd.RangeIndex(1, len(frame) + 1, name="row"))


def _check_size(path: Path) -> None:
    """Refuses a file that unpacks into too many bytes or cells, before it is unpacked."""
    if path.suffix.lower() == ".parquet":
        from pyarrow.parquet import read_metadata

        found = read_metadata(path)
        rows, columns = found.num_rows, found.num_columns
        if rows * columns > MOST_CELLS:
            raise TooLarge(
                f"holds {rows} rows of {columns} columns: must be at most {MOST_CELLS} cells"
            )
    elif path.suffix.lower() == ".xlsx":
        check_archive(path, MOST_UNPACKED[".xlsx"])
    elif path.suffix.lower() == ".feather":
        unpacked, most = unpacked_bytes(path), MOST_UNPACKED[".feather"]
        if unpacked > most:
            raise TooLarge(f"unpacks into {unpacked} bytes: must be at most {most}")


def _large(path: Path, suffix: str, gaps: frozenset[str]) -> pd.DataFrame | None:
    """A large text file, read by pyarrow where it is installed, and otherwise by pandas. Columns of
    numbers are kept as they are, and columns of words are converted by `_typed`. None for a file
    that is not plain (no clear header, ragged rows), so that the slower reader can report the
    fault."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            lines = [line for line, _ in zip(stream, range(200))]
        comma = (
            "\t" if suffix == ".tsv" else ";" if ";" in lines[0] and "," not in lines[0] else ","
        )
        header = [cell.strip() for cell in next(csv.reader(lines, delimiter=comma, strict=True))]
        unclear = (
            any(number(cell) is not None for cell in header)
            or not all(header[1:])
            or len(set(header)) < len(header)
        )
        if unclear or len(header) > MOST_COLUMNS:
            return None
        fast: dict[str, Any] = (
            {"engine": "pyarrow"} if find_spec("pyarrow") else {"engine": "c", "low_memory": False}
        )
        empty = sorted(
            {form for word in gaps for form in (word, word.upper(), word.title(), "NaN", "N/a")}
        )
        frame = pd.read_csv(
            path, sep=comma, encoding="utf-8-sig", keep_default_na=False, na_values=empty, **fast
        )
    except Exception:  # any fault is reported by the reader that knows lines and columns
        return None
    if (
        len(frame.columns) != len(header)
        or len(frame) < 2
        or not isinstance(frame.index, pd.RangeIndex)
    ):
        return None
    frame.columns = pd.Index([header[0] or "(row)", *header[1:]])
    if not np.isfinite(frame.select_dtypes("float").fillna(0)).to_numpy().all():
        return None
    with path.open("rb") as binary:
        lines_below = sum(block.count(b"\n") for block in iter(partial(binary.read, 2**20), b""))
    if lines_below not in (len(frame), len(frame) + 1):  # empty lines, or cells of several lines
        return None
    return frame.apply(_plainly, gaps=gaps).set_axis(pd.RangeIndex(2, len(frame) + 2, name="line"))


def _plainly(column: pd.Series, gaps: frozenset[str]) -> pd.Series:
    if pd.api.types.is_bool_dtype(column.dtype):
        return column.astype("boolean")
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(
        column.dtype
    ):
        return column
    words = column.astype(object).where(column.notna(), "")
    return _typed(words.map({cell: str(cell).strip() for cell in words.unique()}), gaps)


def _typed(cells: pd.Series, gaps: frozenset[str]) -> pd.Series:
    """Cells of text as numbers, truth values or words; each different cell is read once."""
    filled = {cell: None if cell.lower() in gaps else cell for cell in cells.unique()}
    words = {cell.lower() for cell in filled.values() if cell is not None}
    if words and words <= set(_TRUTH):
        truth = {
            cell: pd.NA if one is None else _TRUTH[one.lower()] for cell, one in filled.items()
        }
        return cells.map(truth).astype("boolean")
    numbers = {cell: np.nan if one is None else number(one) for cell, one in filled.items()}
    if any(value is None for value in numbers.values()):
        return cells.map(filled).astype(object).where(cells.map(filled).notna(), None)
    values = cells.map(numbers).to_numpy(np.float64)
    whole = (
        np.isfinite(values).all()
        and (values == np.round(values)).all()
        and all("." not in cell for cell in filled)
    )
    return pd.Series(
        values.astype(np.int64) if whole and np.abs(values).max() < 2**53 else values, cells.index
    )
