"""Tables as data frames: `.csv`, `.tsv`, `.parquet`, `.feather`, `.xlsx`, with gaps, words and dates as they stand in the
file."""

from pathlib import Path

import numpy as np
import pandas as pd

from orderparam.data.reading import reading
from orderparam.data.table import MISSING, number, read_table

TEXT, BINARY = (".csv", ".tsv"), (".parquet", ".feather", ".xlsx", ".xls")
FRAMES = (*TEXT, *BINARY)
_TRUTH = {"true": True, "false": False, "yes": True, "no": False}


def read_frame(path: Path) -> pd.DataFrame:
    """The table in a file, by its ending; of a workbook the first sheet.

    In text files empty cells and the usual words for them (NA, NaN, null, none, ?) are gaps, columns of numbers become numbers,
    those of true/false or yes/no truth values; all others stay words. Raises `ValueError` naming the file, for what is no
    table, for columns of one name, fewer than two rows, and where the format needs a package that is not installed.
    """
    suffix = path.suffix.lower()
    if suffix in TEXT:
        table = read_table(path, row_names=True)
        return pd.DataFrame({name: _typed(cells) for name, cells in zip(table.names, table.columns)})
    read = {".parquet": pd.read_parquet, ".feather": pd.read_feather}.get(suffix, pd.read_excel)
    with reading(path):
        try:
            frame = read(path)
        except ImportError:
            raise ValueError(f"{suffix} files need a further package: pip install 'orderparam[tables]'") from None
        except (OSError, MemoryError):
            raise
        except Exception as error:  # a damaged file can raise anything in pyarrow and openpyxl
            raise ValueError(f"cannot be read as {suffix}: {error}") from None
        frame.columns = [str(name) for name in frame.columns]
        if not frame.columns.is_unique:
            raise ValueError(f"two columns have the same name {frame.columns[frame.columns.duplicated()][0]!r}")
        if len(frame) < 2:
            raise ValueError(f"{len(frame)} rows of data: there must be at least two")
        return frame


def _typed(cells: tuple[str, ...]) -> pd.Series:
    known = [None if cell.lower() in MISSING else cell for cell in cells]
    words = {cell.lower() for cell in known if cell is not None}
    if words and words <= set(_TRUTH):
        return pd.Series([None if cell is None else _TRUTH[cell.lower()] for cell in known], dtype="boolean")
    numbers = [np.nan if cell is None else number(cell) for cell in known]
    if any(value is None for value in numbers):
        return pd.Series(known, dtype=object)
    values = np.array(numbers, np.float64)
    whole = np.isfinite(values).all() and (values == np.round(values)).all() and all("." not in cell for cell in cells)
    return pd.Series(values.astype(np.int64) if whole and np.abs(values).max() < 2**53 else values)
