"""Turns the columns of a table (numbers with gaps, words, dates, identifiers) into the inputs of a
kernel.

The treatment is the usual one in scikit-learn: numbers are standardised and their gaps filled with
the median, with an indicator of the gap as a further column; every word becomes a column, rare
words share one; the result is a `ColumnTransformer`, fitted to the given rows. The treatment of
every column is recorded and printed.
"""

import re
import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import kstest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from orderparam.core.text import counted
from orderparam.data.written import MOST, Dates, Numbers, dates_of, numbers_of

MOST_COLUMNS = 10_000  # each column is examined separately
MOST_LEVELS = 20  # largest number of columns for a column of words; rarer words share one
# words in the name of a column of identifiers
NAMES_OF_ROWS = frozenset(
    {
        *("id", "ids", "uid", "uuid", "guid", "pid", "identifier", "serial", "nr", "key", "record"),
        *("account", "patient", "subject", "participant", "customer", "client", "user"),
    }
)
# fewest digits and rows of whole numbers that count as identifiers, whatever the name of their
# column
DIGITS, FEWEST_DRAWN = 4, 50
# fewest different numbers of a column that identifies groups of rows
FEWEST_GROUPS = 10
YEAR, DAY = 365.2425, 86400.0  # days of a year, seconds of a day


@dataclass(frozen=True)
class Column:
    """The treatment of a column: its name, its kind, its encoding, and the number of inputs that it
    gives."""

    name: str
    kind: str
    done: str
    inputs: int


@dataclass(frozen=True)
class Encoding:
    """A fitted encoding. transformer: for frames with the columns of the frame to which it was
    fitted."""

    transformer: ColumnTransformer
    columns: tuple[Column, ...]

    def check(self, frame: pd.DataFrame) -> None:
        """Raises `ValueError` for a frame without one of the columns."""
        missing = [
            str(name)
            for name in getattr(self.transformer, "feature_names_in_", ())
            if str(name) not in set(map(str, frame.columns))
        ]
        if missing:
            raise ValueError(
                f"there is no column {', '.join(map(repr, missing))}; there are: "
                f"{', '.join(map(str, frame.columns))}"
            )

    def __call__(self, frame: pd.DataFrame) -> Float[np.ndarray, "row input"]:
        """Encodes a frame. Raises `ValueError` for a column that is missing."""
        self.check(frame)
        return np.asarray(self.transformer.transform(_plain(frame)), np.float64)


def fit_encoding(frame: pd.DataFrame) -> Encoding:
    """Fits the encoding of the columns of a frame as inputs.

        numbers      (x - mean) / standard deviation; gaps: the median, and a column 0/1 that says
                     where they are; new numbers that lie further out than the known ones by more
                     than their range are set back to there. Words that are numbers with a unit, per
                     cent, brackets or separators ($1,002; (3.50) for -3.50; 12 %; 7 kg; 3,5) are
                     numbers (`orderparam.data.written`)
        yes/no       0 and 1, gaps as for numbers
        dates        days, standardised; beside them the season, if they span more than a year, and
                     the hour, if there are hours
        words        a column 0/1 for each of the 20 most frequent; the others share one; a gap is a
                     word of its own
        left out     columns that are empty or never change, copies of an earlier column, and
                     identifiers: whole numbers that count the rows, or are all different and named
                     or drawn as identifiers are; words of which more than half occur only once

    In a column of numbers or dates, cells that are neither become gaps; a warning names the first
    of them. There are warnings too for columns that are empty, for words mixed with numbers, and
    for identifiers that are numbers.

    Raises `ValueError` for infinite and complex numbers, numbers in several units, dates whose day
    and month cannot be distinguished, more than 10,000 columns, and when no column is left.
    """
    if frame.shape[1] > MOST_COLUMNS:
        raise ValueError(f"{frame.shape[1]} columns: must be at most {MOST_COLUMNS}")
    frame = _plain(frame)
    steps: list[tuple[str, Any, list[Hashable]]] = []
    notes: list[tuple[Hashable, str, str]] = []
    seen: dict[bytes, Hashable] = {}
    for name in frame.columns:
        column = frame[name]
        kind, done, step = _plan(name, column)
        fingerprint = pd.util.hash_pandas_object(column, index=False).to_numpy().tobytes()
        twin = seen.setdefault(fingerprint, name)
        if step is not None and twin != name and column.equals(frame[twin]):
            done, step = f"left out: a copy of {twin}", None
        if step is not None:
            steps.append((f"{len(steps)}", step, [name]))
        notes.append((name, kind, done))
    if not steps:
        treatments = "; ".join(
            f"{name}: {done.removeprefix('left out: ')}" for name, _, done in notes[:5]
        )
        raise ValueError(f"no column is left to learn from ({treatments})")
    transformer = ColumnTransformer(steps, sparse_threshold=0.0).fit(frame)
    parts = (
        (name, transformer.output_indices_[step])
        for step, _, (name,) in transformer.transformers_[: len(steps)]
    )
    widths = {name: part.stop - part.start for name, part in parts}
    return Encoding(
        transformer,
        tuple(Column(str(name), kind, done, widths.get(name, 0)) for name, kind, done in notes),
    )


class Bounded(TransformerMixin, BaseEstimator):
    """Limits numbers that lie outside the fitted range by more than that range: the kernel of a
    network grows without bound, so that one such number among the inputs would outweigh all others.
    Gaps are not changed."""

    def fit(self, x: Any, y: Any = None) -> "Bounded":
        low, high = np.nanmin(x, axis=0), np.nanmax(x, axis=0)
        self.low_, self.high_ = 2 * low - high, 2 * high - low
        return self

    def transform(self, x: Any) -> Any:
        return np.clip(x, self.low_, self.high_)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of float64, of words (object, gaps None) or of dates: one type for each kind,
    independent of the file's format."""
    return pd.DataFrame(
        {name: _plain_column(frame[name]) for name in frame.columns}, index=frame.index
    )


def check_real(what: str, values: Any) -> None:
    """Raises `ValueError` naming `what` if one of the values is a complex number."""
    array = np.asarray(values)
    if array.dtype.kind == "O":
        places = [isinstance(one, complex | np.complexfloating) for one in array.ravel()]
    else:
        places = [array.dtype.kind == "c" and array.size > 0]
    if any(places):
        example = array.ravel()[places.index(True)]
        raise ValueError(
            f"{what} holds complex numbers, such as {example:.3g}: must be real; give the real and "
            "the imaginary part each by itself"
        )


def _plain_column(column: pd.Series) -> pd.Series:
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return column.dt.tz_localize(None) if column.dt.tz is not None else column
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return column.dt.total_seconds()
    if column.dtype.kind == "c":
        check_real(f"column {str(column.name)!r}", column)
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_numeric_dtype(column.dtype):
        return column.astype("Float64").to_numpy(np.float64, na_value=np.nan) + pd.Series(
            0.0, index=column.index
        )
    cells = column.dropna()
    if pd.api.types.infer_dtype(cells) == "string":
        return column.astype(object).where(column.notna(), None)
    check_real(f"column {str(column.name)!r}", cells)
    if cells.map(lambda value: isinstance(value, bool | np.bool_ | int | float | np.number)).all():
        return column.astype(float)
    return column.map(str, na_action="ignore").astype(object).where(column.notna(), None)


def _plan(name: Hashable, column: pd.Series) -> tuple[str, str, Any]:
    """The kind of a column, its encoding in words, and the transformer (None if it is left out)."""
    cells = column.dropna()
    gaps = len(column) - len(cells)
    different = cells.nunique()
    if different == 0:
        warnings.warn(f"column {str(name)!r} is empty: it was left out", stacklevel=2)
        return "empty", "left out: every cell is a gap", None
    if different == 1 and gaps == 0:
        return "constant", "left out: it never changes", None
    if pd.api.types.is_numeric_dtype(column.dtype):
        if not np.isfinite(cells).all():
            raise ValueError(
                f"column {str(name)!r} holds {cells[~np.isfinite(cells)].iloc[0]}: must be finite"
            )
        if (
            len(cells) == different == len(column)
            and cells.max() - cells.min() == different - 1
            and (cells == np.round(cells)).all()
        ):
            return "identifier", "left out: it counts the rows", None
        if _identifies(str(name), column):
            warnings.warn(
                f"column {str(name)!r} was left out as an identifier: its {different} whole "
                "numbers are all different. If they measure something, give the column another "
                "name or other units",
                stacklevel=2,
            )
            return "identifier", f"left out: {different} whole numbers, all different", None
        if _groups_rows(str(name), cells):
            warnings.warn(
                f"column {str(name)!r} has the name of identifiers, and each of its {different} "
                f"numbers stands in {len(cells) / different:.2g} rows on average: if the rows of "
                f"one number belong together, give it as groups (--groups {name})",
                stacklevel=2,
            )
        filled = f"{counted(gaps, 'gap')} filled with the median and marked; " if gaps else ""
        if different <= 2 and set(cells.unique()) <= {0.0, 1.0}:
            imputer = SimpleImputer(strategy="most_frequent", add_indicator=True)
            return (
                "yes/no",
                f"{filled.replace('median', 'more frequent')}0 and 1",
                make_pipeline(Bounded(), imputer),
            )
        numbers = make_pipeline(
            StandardScaler(), Bounded(), SimpleImputer(strategy="median", add_indicator=True)
        )
        return "numbers", f"{filled}standardised", numbers
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return _dates(column)
    read = as_written(column)
    if read is not None:
        kind, done, step = _plan(name, read.values)
        reading_note = f"{read.how.description}; " if read.how.description else ""
        return (
            kind,
            f"{reading_note}{done}",
            step and make_pipeline(FunctionTransformer(_read, kw_args={"how": read.how}), step),
        )
    if 2 * int((cells.value_counts() == 1).sum()) > len(column):
        return "identifier", f"left out: {different} different words in {len(column)} rows", None
    encoder = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_LEVELS + 1, sparse_output=False
    )
    rare = f", the rarest of {different} together" if different > MOST_LEVELS else ""
    empty = f"; {gaps} gaps are a word of their own" if gaps else ""
    return (
        "words",
        f"one column 0/1 for each{rare}{empty}",
        make_pipeline(FunctionTransformer(_name_gaps), encoder),
    )


def _name_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.where(frame.notna(), "(missing)")


def _identifies(name: str, column: pd.Series) -> bool:
    """True if whole numbers identify the rows: they are all different, and either the column's name
    says so, or they are spread evenly from 0 or from a power of ten to the next, as random
    identifiers are and measured quantities are not."""
    values = column.to_numpy()
    if not (
        np.isfinite(values).all()
        and (values == np.round(values)).all()
        and len(np.unique(values)) == len(values)
    ):
        return False
    if _has_name_of_rows(name):
        return True
    top = 10.0 ** np.ceil(np.log10(values.max() + 1)) if values.min() >= 0 else 0.0
    if len(values) < FEWEST_DRAWN or top < 10.0**DIGITS:
        return False
    return any(
        kstest(values, "uniform", (low, top - low)).pvalue > 0.05
        for low in (0.0, top / 10)
        if values.min() >= low
    )


@dataclass(frozen=True)
class Read:
    """A column of words as numbers or dates (gaps and anything else: nan, NaT), and a description
    of how its words were read."""

    values: pd.Series
    how: Numbers | Dates


def as_written(column: pd.Series) -> Read | None:
    """Words as dates or numbers, whichever most of them are; None for other words. Warns of cells
    that are neither.

    A column counts as numbers if nine tenths of its words are numbers, or half of them where there
    are more than 20 different ones. Raises `ValueError` naming the column, as
    `orderparam.data.written` does.
    """
    filled, how = column.dropna(), _how(column)
    if how is None:
        return None
    values = how.read(column)
    bad = filled[values[filled.index].isna()]
    share = 1 - len(bad) / len(filled)
    what = "date" if isinstance(how, Dates) else "number"
    if share < MOST and (share < 0.5 or filled.nunique() <= MOST_LEVELS):
        warnings.warn(
            f"column {str(column.name)!r} mixes {len(filled) - len(bad)} {what}s with {len(bad)} "
            f"words such as {_short(bad.iloc[0])}: all were taken as words",
            stacklevel=2,
        )
        return None
    if len(bad):
        place, word = f"{column.index.name or 'row'} {bad.index[0]}", _short(bad.iloc[0])
        gaps = (
            "it was taken as a gap"
            if len(bad) == 1
            else f"it and {len(bad) - 1} further cells were taken as gaps"
        )
        warnings.warn(
            f"column {str(column.name)!r}: {place} holds {word}, which is no {what}: {gaps}. Mend "
            f"the file, or give --missing {word} if this stands for a gap",
            stacklevel=2,
        )
    return Read(values, how)


def moments(column: pd.Series) -> pd.Series:
    """The times of the rows of a table, as numbers or dates that can be sorted. Raises
    `ValueError` for a cell that is neither, and for gaps, naming the cell."""
    plain = _plain_column(column)
    if plain.dtype != object:
        return plain
    how = _how(plain)
    found = pd.Series(np.nan, plain.index) if how is None else how.read(plain)
    if found.isna().any():
        place = (
            f", {column.index.name or 'row'} {plain.index[found.isna()][0]}"
            if found.notna().any()
            else ""
        )
        raise ValueError(
            f"column {str(column.name)!r}{place} holds {_short(plain[found.isna()].iloc[0])}: "
            "times must all be numbers, or all dates such as 2015-03-25, 25.03.2015 or 25/3/2015"
        )
    return found


def _how(column: pd.Series) -> Numbers | Dates | None:
    filled = column.dropna()
    try:
        return dates_of(filled) or numbers_of(filled)
    except ValueError as error:
        raise ValueError(f"column {str(column.name)!r} {error}") from None


def _short(word: str, most: int = 40) -> str:
    return repr(word if len(word) <= most else f"{word[:most]}…")


def _read(frame: pd.DataFrame, how: Numbers | Dates) -> pd.DataFrame:
    return frame.apply(how.read)


def _dates(column: pd.Series) -> tuple[str, str, Any]:
    days = (column - column.min()).dt.total_seconds() / DAY
    season, hour = bool(days.max() > YEAR), bool((days.dropna() % 1 != 0).any())
    cycles = [*([YEAR] if season else []), *([1.0] if hour else [])]
    pipeline = make_pipeline(
        FunctionTransformer(_calendar, kw_args={"first": column.min(), "cycles": cycles}),
        SimpleImputer(strategy="median"),
        StandardScaler(),
    )
    beside = "".join([", with the season" if season else "", ", with the hour" if hour else ""])
    return "dates", f"days, standardised{beside}", pipeline


def _calendar(
    frame: pd.DataFrame, first: pd.Timestamp, cycles: list[float]
) -> Float[np.ndarray, "row feature"]:
    days = ((frame.iloc[:, 0] - first).dt.total_seconds() / DAY).to_numpy(np.float64)
    turns = [2 * np.pi * days / cycle for cycle in cycles]
    return np.stack([days, *(wave(turn) for turn in turns for wave in (np.sin, np.cos))], axis=1)


def _has_name_of_rows(name: str) -> bool:
    return bool(NAMES_OF_ROWS & {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)})


def _groups_rows(name: str, cells: pd.Series) -> bool:
    """True if whole numbers identify groups of rows, such as the persons of a panel: the column's
    name says so, and most numbers recur."""
    counts = cells.value_counts()
    return (
        _has_name_of_rows(name)
        and len(counts) >= FEWEST_GROUPS
        and bool((cells == np.round(cells)).all())
        and float(np.median(counts)) >= 2
    )
