"""`orderparam solve`: one theory or experiment, at numbers of one's own."""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orderparam.cli import completion
from orderparam.cli.arguments import check_own, result_folder
from orderparam.cli.errors import clear_errors, warnings_in_one_line
from orderparam.cli.limits import SEEDS, within_memory
from orderparam.cli.parameters import check_fields, described
from orderparam.cli.terminal import console, new_table, plain
from orderparam.core.paths import whole_file
from orderparam.running.lock import may_stay

if TYPE_CHECKING:
    import xarray as xr

_ROWS = 60  # largest number of printed rows; the file has all rows
_ENTRIES = 4  # largest number of printed entries of an observable with a dimension of its own
_PANELS = 3
_ASIDE = ("residual", "converged", "valid", "status", "seconds")


Name = Annotated[
    str,
    typer.Argument(
        help="A theory or experiment (`orderparam list theories`).",
        autocompletion=completion.verbs,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME=VALUE...",
        help="Fields of its system, and its options.",
        autocompletion=completion.arguments,
    ),
]
Over = Annotated[
    list[str] | None,
    typer.Option(
        "--over",
        metavar="NAME=LOW:HIGH:N[:log]",
        help="Sweep a field (or NAME=A,B,C); may be repeated.",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="EXPERIMENT",
        help="An experiment that measures the same observables.",
        autocompletion=completion.experiments,
    ),
]
Seeds = Annotated[int | None, typer.Option("--seeds", help="Runs of an experiment at each point.")]
Show = Annotated[
    list[str] | None,
    typer.Option("--show", metavar="OBSERVABLE", help="Observables to print and draw."),
]
Out = Annotated[
    Path | None, typer.Option("--out", help="Folder of the results (default: results/...).")
]


def solve(
    name: Name,
    settings: Settings = None,
    over: Over = None,
    against: Against = None,
    seeds: Seeds = None,
    show: Show = None,
    out: Out = None,
) -> None:
    """Solve one theory, or run one experiment, at numbers of your own: a result, or with --over a
    table, a figure and files."""
    with clear_errors(), warnings_in_one_line(), within_memory():
        from orderparam.cli.ranges import grid_of
        from orderparam.core.given import assignments, read
        from orderparam.core.registry import find, full_name

        grid = grid_of(over or [])
        if seeds is not None and not 1 <= seeds <= SEEDS:
            raise ValueError(f"--seeds {seeds}: must be at least 1 and at most {SEEDS}")
        for wanted in (name, *([against] if against is not None else [])):
            full_name(wanted)  # an unknown name is refused before anything is imported
        given = assignments(settings or [])
        if twice := sorted(given.keys() & grid.keys()):
            raise ValueError(
                f"{twice[0]} is given twice: {twice[0]}={given[twice[0]]} and by --over"
            )
        first = {**given, **{field: str(values[0]) for field, values in grid.items()}}
        check_fields(name, first)
        from orderparam.core.verb import Experiment

        verb, measured = find(name), None if against is None else find(against)
        _check_roles(verb, measured, against, seeds)
        # the description is stored, so that the next mistake is refused before anything is imported
        described(name)
        system, options = read(verb, first, {})
        runs = (seeds or 4) if isinstance(verb, Experiment) or measured is not None else None
        if not grid and measured is None and not isinstance(verb, Experiment):
            if out is not None:
                raise ValueError(
                    f"--out {out}: one result is printed, and not written; --over NAME=LOW:HIGH:N "
                    "writes a table"
                )
            _check_shown(show or [], [name for one in verb.results for name in one.dims()])
            _print_result(verb, verb.at_one_point(system, **options), show or [])
            return
        shown = {**given, **{text.partition("=")[0]: text.partition("=")[2] for text in over or []}}
        folder = out or Path("results") / result_folder(f"solve-{verb.name}", "quick", shown)
        asked = [(one, own) for one, own in ((verb, options), (measured, {})) if one is not None]
        found = _swept(asked, system, grid, runs, folder)
        _report(found, measured, grid, show or [], folder, _title(verb.name, given))


def _check_roles(verb: Any, measured: Any, against: str | None, seeds: int | None) -> None:
    """Raises `ValueError` unless a theory is compared with an experiment, and for runs of a theory
    alone."""
    from orderparam.core.verb import Experiment

    if measured is not None and not isinstance(measured, Experiment):
        raise ValueError(f"--against {against}: {measured.name} is a theory; name an experiment")
    if isinstance(verb, Experiment) and measured is not None:
        raise ValueError(f"--against {against}: {verb.name} is an experiment itself; name a theory")
    if seeds is not None and measured is None and not isinstance(verb, Experiment):
        raise ValueError(
            f"--seeds {seeds}: {verb.name} is a theory, which has no runs; --against EXPERIMENT "
            "adds one"
        )


def _swept(
    asked: Sequence[tuple[Any, dict[str, Any]]],
    system: Any,
    grid: dict[str, Any],
    runs: int | None,
    folder: Path,
) -> "dict[str, xr.Dataset]":
    """The sweep of each theory and experiment, with its options, stored in the folder."""
    from orderparam.core.verb import Experiment
    from orderparam.running.sweep import sweep

    check_own(folder, [f"{one.name}.zarr" for one, _ in asked])
    found: dict[str, xr.Dataset] = {}
    for one, own in asked:
        several = runs if isinstance(one, Experiment) else None
        data = sweep(
            partial(one, **own), system, grid, seeds=several, store=folder / f"{one.name}.zarr"
        )
        label = one.name.rpartition(".")[2].replace("_", " ")
        found[one.name] = _with_words(data, grid).assign_attrs(label=label)
    return found


def _check_shown(show: Sequence[str], observables: Sequence[str]) -> None:
    from orderparam.core.names import nearest

    for name in show:
        if name not in observables:
            raise ValueError(
                f"--show {name}: there is no such observable{nearest(name, observables)}"
            )


def _print_result(verb: Any, result: Any, show: Sequence[str]) -> None:
    import numpy as np

    title, *rows = repr(result).splitlines()
    print("\n".join([title, *(row for row in rows if not show or row.split()[0] in show)]))
    for name in ("converged", "valid"):
        if not np.all(getattr(result, name, True)):
            meaning = "did not converge" if name == "converged" else "has no such solution here"
            console().print(f"[yellow]{plain(verb.name)} {meaning}: {name} is False[/]")


def _report(
    found: dict[str, "xr.Dataset"],
    measured: Any,
    grid: dict[str, Any],
    show: Sequence[str],
    folder: Path,
    title: str,
) -> None:
    """Prints the sweep, or its differences from the measurement; writes all of it, and draws the
    requested observables."""
    from orderparam.comparison.agreement import agreement
    from orderparam.comparison.table import tables

    names = _observables(list(found.values()), show)
    out = console()
    if measured is not None:
        theory, experiment = found
        for table in tables(
            measured.name,
            agreement({theory: found[theory]}, found[experiment], names),
            found[experiment],
            out.width,
        ):
            out.print(table)
            out.print()
    else:
        (data,) = found.values()
        out.print(_table(data, names, out.width))
        if line := _without_columns(data, names):
            out.print(line, highlight=False, soft_wrap=True)
        for line in _without_solution(data):
            out.print(f"[yellow]{plain(line)}[/]", highlight=False, soft_wrap=True)
    drawn, tables_there = "", all((folder / f"{one}.csv").is_file() for one in found)
    with may_stay(folder, "tables and figure") if tables_there else nullcontext():
        for one, data in found.items():
            _write_table(data, folder / f"{one}.csv")
        drawn = _draw(found, names, folder, title) if grid else ""
    out.print(f"{drawn}data: {plain(str(folder))} (.zarr, .csv)", highlight=False, soft_wrap=True)


def _with_words(data: "xr.Dataset", grid: dict[str, Any]) -> "xr.Dataset":
    """Coordinates that are not numbers as words, also where a file stores them in another form."""
    words = {
        name: [str(value) for value in values]
        for name, values in grid.items()
        if isinstance(values[0], str)
    }
    return data.assign_coords(words)


def _observables(found: Sequence["xr.Dataset"], show: Sequence[str]) -> list[str]:
    """The requested observables, or all observables but those that only report convergence."""
    _check_shown(show, [str(name) for data in found for name in data.data_vars])
    first = found[0]
    chosen = [
        str(name)
        for name, values in first.items()
        if values.dtype.kind == "f" and name not in _ASIDE
    ]
    return list(show) or [
        name
        for name in chosen
        if not (name.endswith("_error") and name.removesuffix("_error") in chosen)
    ]


def _columns(data: "xr.Dataset", names: Sequence[str], most: int) -> dict[str, "xr.DataArray"]:
    """One column for each number of an observable, by its name and place; observables with more
    than `most` are left out."""
    points = set(data["status"].dims)
    columns = {}
    for name in names:
        own = [dim for dim in data[name].dims if dim not in points]
        if not own:
            columns[name] = data[name]
        else:
            flat = data[name].stack(entry=own)
            for k in range(flat.sizes["entry"] if flat.sizes["entry"] <= most else 0):
                columns[f"{name} {k + 1}"] = flat.isel(entry=k, drop=True).drop_vars(
                    own, errors="ignore"
                )
    return columns


def _without_columns(data: "xr.Dataset", names: Sequence[str]) -> str:
    """A sentence on the observables that the table leaves out because they have too many numbers at
    each point."""
    points = set(data["status"].dims)
    sizes = {
        name: math.prod([data.sizes[dim] for dim in data[name].dims if dim not in points])
        for name in names
        if name in data
    }
    long = [f"{name} ({size})" for name, size in sizes.items() if size > _ENTRIES]
    return (
        f"not in the table, for their many numbers at each point: {', '.join(long)}" if long else ""
    )


def _table(data: "xr.Dataset", names: Sequence[str], width: int) -> Any:
    """A table with a row for each point (only the first and the last where there are too many),
    with mean and error over runs, and as many columns as fit."""
    import numpy as np

    from orderparam.core.text import with_error
    from orderparam.running.estimate import estimate

    grid = [str(dim) for dim in data["status"].dims if dim != "seed"]
    shape = [data.sizes[dim] for dim in grid]
    cells: dict[str, list[str]] = {}
    for dim, column in zip(grid, _places(data, grid)):
        cells[dim] = [f"{x:g}" if column.dtype.kind in "if" else str(x) for x in column.ravel()]
    for name, values in _columns(data, [name for name in names if name in data], _ENTRIES).items():
        mean, error = estimate(data.assign({name: values}), name)
        pairs = np.stack([one.transpose(*grid).values.ravel() for one in (mean, error)], axis=1)
        cells[name] = [
            with_error(m, e) if np.isfinite(e) else f"{m:.8g}" for m, e in pairs.tolist()
        ]
    marks = _marks(data, len(shape))
    table = new_table()
    used = 0
    shown: list[str] = []
    for name, texts in cells.items():
        used += max(len(name), *map(len, texts)) + 1
        if used <= width or name in grid:
            shown.append(name)
            table.add_column(name, justify="right", no_wrap=True)
    if any(marks):
        table.add_column("")
    count = len(marks)
    for row in (
        range(count)
        if count <= _ROWS
        else [*range(_ROWS // 2), -1, *range(count - _ROWS // 2, count)]
    ):
        line = ["…"] * len(shown) if row < 0 else [cells[name][row] for name in shown]
        table.add_row(
            *line,
            *(
                [f"[yellow]{marks[row]}[/]" if row >= 0 and marks[row] else ""]
                if any(marks)
                else []
            ),
        )
    return table


def _marks(data: "xr.Dataset", dims: int) -> list[str]:
    """The remarks on each point over all its runs, such as that it did not converge."""
    import numpy as np

    from orderparam.running.status import FAILED, UNCONVERGED

    status = data["status"].values
    valid = (
        data["valid"].values.reshape((*status.shape, -1)).all(axis=-1)
        if "valid" in data
        else np.ones(status.shape, bool)
    )
    found = {
        "failed": status == FAILED,
        "not converged": valid & (status == UNCONVERGED),
        "not valid": ~valid & (status != FAILED),
    }
    words = {
        word: np.reshape(there, (*there.shape[:dims], -1)).any(axis=-1).ravel()
        for word, there in found.items()
    }
    count = int(np.prod(status.shape[:dims]))
    return [", ".join(word for word, there in words.items() if there[k]) for k in range(count)]


def _title(name: str, held: dict[str, str]) -> str:
    """The title: the theory or experiment, and the fixed values of its fields and options."""
    words = ", ".join(f"{field} = {text}" for field, text in held.items())
    field = name.rpartition(".")[2].replace("_", " ")
    return f"{field}: {words}" if words else field


def _without_solution(data: "xr.Dataset") -> list[str]:
    """A sentence on the range of a single field in which the theory has no such solution."""
    import numpy as np

    dims = [str(dim) for dim in data["status"].dims]
    if (
        "valid" not in data
        or data["valid"].dims != tuple(dims)
        or len(dims) != 1
        or data[dims[0]].dtype.kind not in "if"
    ):
        return []
    place, valid = data[dims[0]].values, data["valid"].values.astype(bool)
    if valid.all():
        return []
    (rows,) = np.nonzero(~valid)
    word = f"valid is False at {len(rows)} of {len(place)} points: there is no such solution"
    if not valid.any():
        return [word]
    order = np.argsort(place)
    switch = np.flatnonzero(np.diff(valid[order].astype(int)))
    low, high = (place[order][switch[0] + k] for k in (0, 1))
    side = "beyond" if valid[order][0] else "below"
    if len(switch) > 1:
        return [
            (
                f"{word} from {dims[0]} = {place[rows].min():g} to {place[rows].max():g}, with "
                "others between"
            )
        ]
    return [f"{word} {side} {dims[0]} = {low if side == 'beyond' else high:g}"]


def _places(data: "xr.Dataset", dims: Sequence[str]) -> list[Any]:
    """The coordinate of every point along each of these dimensions."""
    import numpy as np

    return list(np.meshgrid(*(data[dim].values for dim in dims), indexing="ij")) if dims else []


def _write_table(data: "xr.Dataset", file: Path) -> None:
    """Writes a line for each point: fields, seed, and all observables of at most 1000 numbers."""
    import csv

    import numpy as np

    points = [str(dim) for dim in data["status"].dims]
    columns = _columns(data, [str(name) for name in data.data_vars], 1000)
    arrays = [
        *_places(data, points),
        *(values.transpose(*points).values for values in columns.values()),
    ]
    with whole_file(file) as aside, open(aside, "w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow([*points, *columns])
        writer.writerows(zip(*(np.ravel(array).tolist() for array in arrays)))


def _draw(found: dict[str, "xr.Dataset"], names: Sequence[str], folder: Path, title: str) -> str:
    """Draws the observables that are one number at each point against the longest dimension; prints
    the name of the file."""
    from orderparam.plotting import Panel, house_style, save
    from orderparam.plotting.figure import figure_of, labelled

    data = next(iter(found.values()))
    dims = sorted(
        (str(dim) for dim in data["status"].dims if dim != "seed"), key=lambda dim: -data.sizes[dim]
    )
    numeric = [dim for dim in dims if data[dim].dtype.kind in "if"]
    drawn = [name for name in names if set(data[name].dims) == set(data["status"].dims)][:_PANELS]
    if not numeric or not drawn or len(dims) > 2:
        return ""
    x = numeric[0]
    by = next((dim for dim in dims if dim != x), "")
    log = "x" if _is_log(data[x].values) else ""
    curves = labelled({one.attrs["label"]: one for one in found.values()})
    with house_style():
        save(
            figure_of(curves, [Panel(x, y, by=by, log=log) for y in drawn], title=title),
            folder / "figure",
        )
    return f"figure: {folder / 'figure.png'} (and .pdf); "


def _is_log(values: Any) -> bool:
    import numpy as np

    if len(values) < 3 or np.any(values <= 0):
        return False
    steps, ratios = np.diff(values), np.diff(np.log(values))
    return float(np.ptp(ratios)) < float(np.ptp(steps)) * float(np.mean(ratios)) / float(
        np.mean(steps)
    )
