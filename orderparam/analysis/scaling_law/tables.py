"""Reads runs from a file in the forms that experiment trackers export: one row for each run, one
row for each logged step or number, or one column for each run."""

import re
from pathlib import Path
from typing import Any

from orderparam.analysis.scaling_law.runs import FLOPS, Runs, numbers
from orderparam.core.names import nearest
from orderparam.core.reading import reading
from orderparam.data.files import existing
from orderparam.data.frame import FRAMES, read_frame

LINES = (".json", ".jsonl")
READERS = (*FRAMES, *LINES)
_WIDE = re.compile(r"^(?P<run>.+) - (?P<what>.+?)(?P<bound>__MIN|__MAX)?$")


def read_runs(
    path: Path,
    *,
    loss: str,
    parameters: str | None,
    samples: str | None,
    unique: str | None = None,
    run: str | None = None,
    configuration: Path | None = None,
    flops: float = FLOPS,
) -> Runs:
    """The runs in a table.

    The table has one of four forms. It has one row for each run; or, with `run`, one row for each
    logged step, of which the last one with a loss counts; or, with columns "RUN - LOSS" as a
    tracker exports a chart, one column for each run, whose last number counts; or, with columns
    "run", "tag" and "value" as a log of scalars has, one row for each number, of which the last of
    each run and tag counts (by "step", where that is a column). configuration: a second table with
    one row for each run, which contains sizes that the first table lacks; rows are matched by `run`
    (default there: "run" or "name").

    Raises `ValueError` for files that cannot be read, for columns that do not exist (with the
    nearest name), and for runs that `Runs` refuses.
    """
    table = _untagged(run_table(path), loss)
    sizes = {"parameters": parameters, "samples": samples, "unique": unique}
    wide = _melted(table, loss)
    if wide is not None and loss not in table:
        if configuration is None:
            raise ValueError(
                f"{path} has one column for each run: name a table with the runs' sizes, --runs "
                "FILE"
            )
        table, run = wide, run or "run"
    elif run is not None:
        run_column(table, run, path)
        run_column(table, loss, path)
        table = table[table[loss].notna()].groupby(run, sort=False).last().reset_index()
    if configuration is not None:
        table = _joined(table, run_table(configuration), run or "run", configuration)
    columns: dict[str, Any] = {"loss": run_column(table, loss, path)}
    columns |= {
        name: run_column(table, wanted, path)
        for name, wanted in sizes.items()
        if wanted is not None
    }
    return Runs.of(
        **{name: numbers(column.tolist(), str(column.name)) for name, column in columns.items()},
        flops=flops,
    )


def run_table(path: Path) -> Any:
    """The data frame in a file of runs, by its ending. Raises `ValueError` naming the file."""
    import pandas

    path = existing(path)
    suffix = path.suffix.lower()
    if suffix in FRAMES:
        return read_frame(path, fewest=1)
    if suffix not in LINES:
        raise ValueError(f"{path}: must be one of {', '.join(READERS)}")
    with reading(path):
        try:
            table = pandas.read_json(path, lines=suffix == ".jsonl")
        except (OSError, MemoryError):
            raise
        except Exception as error:  # a damaged file can raise anything
            raise ValueError(f"cannot be read as {suffix}: {error}") from None
        if table.empty:
            raise ValueError("has no rows")
        table.columns = [str(name) for name in table.columns]
        return table


def run_column(table: Any, name: str, path: Path | str) -> Any:
    """A column of a table. Raises `ValueError` with the nearest name."""
    if name not in table:
        columns = [str(column) for column in table.columns]
        raise ValueError(f"{path} has no column {name!r}{nearest(name, columns)}")
    return table[name]


def _untagged(table: Any, loss: str) -> Any:
    """A table with one row for each run and one column for each tag from a log of scalars; any
    other table is returned as it is."""
    if loss in table or not {"run", "tag", "value"} <= set(table.columns):
        return table
    ordered = table.sort_values("step", kind="stable") if "step" in table else table
    return ordered.pivot_table(
        index="run", columns="tag", values="value", aggfunc="last", sort=False
    ).reset_index()


def _melted(table: Any, loss: str) -> Any:
    """A table with one row for each run from columns "RUN - LOSS"; None where there are no such
    columns."""
    import pandas

    found = {}
    for column in table.columns:
        parts = _WIDE.match(str(column))
        if parts and parts["what"] == loss and not parts["bound"]:
            values = table[column].dropna()
            if len(values):
                found[parts["run"]] = values.iloc[-1]
    return pandas.DataFrame({"run": list(found), loss: list(found.values())}) if found else None


def _joined(table: Any, configuration: Any, run: str, path: Path) -> Any:
    key = next(
        (name for name in (run, "run", "name", "Name", "Run") if name in configuration), None
    )
    if key is None:
        raise ValueError(f"{path} has no column {run!r} with the names of the runs")
    if configuration[key].duplicated().any():
        raise ValueError(
            f"{path}: the run {configuration[key][configuration[key].duplicated()].iloc[0]!r} is "
            "there twice"
        )
    run_column(table, run, path)
    missing = sorted(set(map(str, table[run])) - set(map(str, configuration[key])))
    if missing:
        raise ValueError(f"{path} does not have the run {missing[0]!r}")
    new = [column for column in configuration.columns if column not in table or column == key]
    left, right = (
        table.assign(**{run: table[run].map(str)}),
        configuration[new].assign(**{key: configuration[key].map(str)}),
    )
    return left.merge(right, left_on=run, right_on=key, how="left")
