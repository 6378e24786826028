"""Columns as people keep them (numbers with gaps, words, dates, identifiers) as the inputs that a kernel takes.

What scikit-learn's users expect: numbers are standardised and their gaps filled with the median, beside an indicator of the
gap; words become one column for each, the rare ones together; the whole is a `ColumnTransformer`, fitted to the rows that are
known. What was done to every column is kept and printed.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

MOST_LEVELS = 20  # of a column of words; rarer ones share a column
YEAR, DAY = 365.2425, 86400.0  # days of a year, seconds of a day


@dataclass(frozen=True)
class Column:
    """What was done to a column: its name, what it is, what became of it, and the number of inputs that it gives."""

    name: str
    kind: str
    done: str
    inputs: int


@dataclass(frozen=True)
class Encoding:
    """A fitted encoding. transformer: of frames with the columns of the one it was fitted to."""

    transformer: ColumnTransformer
    columns: tuple[Column, ...]

    def __call__(self, frame: pd.DataFrame) -> Float[np.ndarray, "row input"]:
        """Raises `ValueError` for a column that is not there."""
        return np.asarray(self.transformer.transform(_plain(frame)), np.float64)


def fit_encoding(frame: pd.DataFrame) -> Encoding:
    """Learns from the rows of a frame how its columns become inputs.

        numbers      (x - mean) / standard deviation; gaps: the median, and a column 0/1 that says where they are; new numbers
        that
                     lie further out than the known ones by more than their range are set back to there
        yes/no       0 and 1, gaps as for numbers
        dates        days, standardised; beside them the season, if they span more than a year, and the hour, if there are hours
        words        a column 0/1 for each of the 20 most frequent; the others share one; a gap is a word of its own
        left out     columns that never change, copies of an earlier column, and identifiers: whole numbers that count the rows,
                     words of which more than half occur only once

    Raises `ValueError` for infinite numbers, and when no column is left.
    """
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
        told = "; ".join(f"{name}: {done}" for name, _, done in notes[:5])
        raise ValueError(f"no column is left to learn from ({told})")
    transformer = ColumnTransformer(steps, sparse_threshold=0.0).fit(frame)
    parts = ((name, transformer.output_indices_[step]) for step, _, (name,) in transformer.transformers_[: len(steps)])
    widths = {name: part.stop - part.start for name, part in parts}
    return Encoding(transformer, tuple(Column(str(name), kind, done, widths.get(name, 0)) for name, kind, done in notes))


class Bounded(TransformerMixin, BaseEstimator):
    """Sets numbers back that lie outside the range of the known ones by more than that range: a kernel of a network grows without
    bound, and one such number among the inputs outweighs all others. Gaps pass."""

    def fit(self, x: Any, y: Any = None) -> "Bounded":
        low, high = np.nanmin(x, axis=0), np.nanmax(x, axis=0)
        self.low_, self.high_ = 2 * low - high, 2 * high - low
        return self

    def transform(self, x: Any) -> Any:
        return np.clip(x, self.low_, self.high_)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of float64, of words (object, gaps None) or of dates: one type for each kind, whatever the file's format made of
    it."""
    return pd.DataFrame({name: _plain_column(frame[name]) for name in frame.columns}, index=frame.index)


def _plain_column(column: pd.Series) -> pd.Series:
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return column.dt.tz_localize(None) if column.dt.tz is not None else column
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return column.dt.total_seconds()
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_numeric_dtype(column.dtype):
        return column.astype("Float64").to_numpy(np.float64, na_value=np.nan) + pd.Series(0.0, index=column.index)
    known = column.dropna()
    if known.map(lambda value: isinstance(value, bool | np.bool_ | int | float | np.number)).all():
        return column.astype(float)
    return column.map(str, na_action="ignore").astype(object).where(column.notna(), None)


def _plan(name: Hashable, column: pd.Series) -> tuple[str, str, Any]:
    """What a column is, what becomes of it in words, and the transformer that does it (None: it is left out)."""
    known = column.dropna()
    gaps = len(column) - len(known)
    different = known.nunique()
    if different == 0 or (different == 1 and gaps == 0):
        return "constant", "left out: it never changes", None
    if pd.api.types.is_numeric_dtype(column.dtype):
        if not np.isfinite(known).all():
            raise ValueError(f"column {str(name)!r} holds {known[~np.isfinite(known)].iloc[0]}: must be finite")
        if len(known) == different == len(column) and (known.sort_values().diff().iloc[1:] == 1).all():
            return "identifier", "left out: it counts the rows", None
        filled = f"{gaps} gaps filled with the median and marked; " if gaps else ""
        if set(known.unique()) <= {0.0, 1.0}:
            imputer = SimpleImputer(strategy="most_frequent", add_indicator=True)
            return "yes/no", f"{filled.replace('median', 'more frequent')}0 and 1", make_pipeline(Bounded(), imputer)
        numbers = make_pipeline(StandardScaler(), Bounded(), SimpleImputer(strategy="median", add_indicator=True))
        return "numbers", f"{filled}standardised", numbers
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return _dates(column)
    if known.str.match(r"[0-9]{4}-[0-9]{2}").all() and (dates := _as_dates(known)) is not None:
        kind, done, step = _dates(dates)
        return kind, done, make_pipeline(FunctionTransformer(_parse_dates), step)
    if 2 * int((known.value_counts() == 1).sum()) > len(column):
        return "identifier", f"left out: {different} different words in {len(column)} rows", None
    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_LEVELS + 1, sparse_output=False)
    rare = f", the rarest of {different} together" if different > MOST_LEVELS else ""
    empty = f"; {gaps} gaps are a word of their own" if gaps else ""
    return "words", f"one column 0/1 for each{rare}{empty}", make_pipeline(FunctionTransformer(_name_gaps), encoder)


def _name_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.where(frame.notna(), "(missing)")


def _as_dates(words: pd.Series) -> pd.Series | None:
    """Words as dates (ISO 8601), None where one is none."""
    try:
        return pd.to_datetime(words, format="ISO8601")
    except (ValueError, TypeError, OverflowError):
        return None


def _parse_dates(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.apply(lambda column: pd.to_datetime(column, format="ISO8601", errors="coerce"))


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


def _calendar(frame: pd.DataFrame, first: pd.Timestamp, cycles: list[float]) -> Float[np.ndarray, "row feature"]:
    days = ((frame.iloc[:, 0] - first).dt.total_seconds() / DAY).to_numpy(np.float64)
    turns = [2 * np.pi * days / cycle for cycle in cycles]
    return np.stack([days, *(wave(turn) for turn in turns for wave in (np.sin, np.cos))], axis=1)
