"""Readable tables of the agreement of theory and measurement: one for each experiment and
observable."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison.agreement import BY_CHANCE, ENOUGH_RUNS, summary
from orderparam.core.text import formulas_in_words, with_error

_ROW = " row"  # name of a table's dimension, which no dimension of a result has


def tables(
    key: str, agreement: Mapping[str, xr.Dataset], measured: xr.Dataset, width: int = 160
) -> Iterator[Any]:
    """Rich tables of one experiment: a row per measured point; measured mean ± s.e., then every
    theory.

    Beside the value of a theory stand z, or the number of runs where these are too few for z (see
    `agreement`), and the deviation of the mean from the theory in per cent. Points where nothing is
    defined are left out. Bounds and baselines are marked as such; baselines come last and have no
    z, because they need not agree. Beside a mean stands the number of runs that it leaves out
    because they did not converge. Theories that do not fit side by side into `width` characters
    follow in tables of their own. A line below gives the root mean square of z of every theory, and
    the probability that chance makes it as large.
    """
    for observable, table in agreement.items():
        grid = [str(dim) for dim in table["mean"].dims if dim != "theory"]
        part = table.stack({_ROW: grid}) if grid else table.expand_dims(_ROW)
        defined = part["mean"].notnull().any("theory") | part["theory_value"].notnull().any(
            "theory"
        )
        part = part.isel({_ROW: np.flatnonzero(defined)})
        theories = sorted(part["theory"].values, key=lambda name: _aside(part, name))
        title = formulas_in_words(f"{key}: {observable.replace('_', ' ')}")
        together = {
            record["theory"]: _together(record)
            for record in summary({observable: table}, measured)
            if record["points_with_z"] > 1 and not record["baseline"]
        }
        for beside in range(len(theories), 0, -1):
            groups = [theories[i : i + beside] for i in range(0, len(theories), beside)]
            found = [_table(title, part, grid, group, together) for group in groups]
            if beside == 1 or all(_characters(table) <= width for table in found):
                yield from found
                break


def _together(record: Mapping[str, Any]) -> str:
    """The line below a table on all points of a theory."""
    words = (
        f"{formulas_in_words(record['theory'])}: rms z {record['rms_z']:.2f} at "
        f"{record['points_with_z']} points ({record['independent_points']:.3g} independent), "
        f"probability {record['probability']:.2g}"
    )
    return f"{words}: systematic" if record["probability"] < BY_CHANCE else words


def _table(
    title: str,
    part: xr.Dataset,
    grid: list[str],
    theories: list[Any],
    together: Mapping[str, str],
) -> Any:
    """One observable at every measured point, with some of the theories."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        caption="\n".join(together[name] for name in theories if name in together) or None,
        caption_justify="left",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for name in grid:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("measured", justify="right", no_wrap=True)
    for theory in theories:
        bound = str(part["bound"].sel(theory=theory).values)
        head = (
            f"{formulas_in_words(theory)} (baseline)\nvalue       %"
            if _aside(part, theory)
            else formulas_in_words(theory)
            + (f" ({bound} bound)" if bound else "")
            + "\nvalue       z       %"
        )
        table.add_column(head, justify="right", no_wrap=True)
    for i in range(part.sizes[_ROW]):
        row = part.isel({_ROW: i})
        first = row.isel(theory=0)
        cells = [
            f"{row[name].values[()]:g}"
            if row[name].dtype.kind in "if"
            else formulas_in_words(str(row[name].values))
            for name in grid
        ]
        missed = int(first["unconverged"])
        left_out = f" ({missed} unconverged)" if missed else ""
        cells.append(with_error(float(first["mean"]), float(first["standard_error"])) + left_out)
        for theory in theories:
            one = row.sel(theory=theory)
            value, z, relative = (
                float(one[name]) for name in ("theory_value", "z", "relative_deviation")
            )
            shown = f"{value:.4g}" if np.isfinite(value) else "–"
            far = "" if _aside(part, theory) else f" {_deviate(z, int(one['runs'])):>7}"
            cells.append(f"{shown}{far} {_signed(100 * relative):>6}")
        table.add_row(*cells)
    return table


def _aside(part: xr.Dataset, theory: Any) -> bool:
    """True if a theory is a baseline."""
    return bool(part["baseline"].sel(theory=theory))


def _characters(table: Any) -> int:
    """The width of a table in which no cell is cut."""
    from rich.console import Console

    return Console(width=10**4).measure(table).maximum


def _deviate(z: float, runs: int) -> str:
    """The text of z, or the reason why there is none."""
    if np.isfinite(z) or not 0 < runs < ENOUGH_RUNS:
        return _signed(z)
    return f"{runs} runs" if runs > 1 else "1 run"


def _signed(value: float) -> str:
    """A number with its sign; a dash where there is none, and a bound where it is too large to
    print."""
    if not np.isfinite(value):
        return "–"
    return f"{value:+z.1f}" if abs(value) < 1000 else (">999" if value > 0 else "<-999")
