"""The agreement of theory and measurement as people read it: one table per experiment and observable."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

_ROW = " row"  # of a table; no dimension of a result is called so


def tables(label: str, agreement: xr.Dataset, width: int = 160) -> Iterator[Any]:
    """Rich tables of one experiment: a row per measured point; measured mean ± s.e., then every theory.

    Beside a theory's value: z = (mean - theory) / standard error, and the deviation of the mean from the theory in per cent.
    Theories that do not fit side by side into `width` characters follow in tables of their own.
    """
    if not agreement.sizes:
        return
    grid = [str(dim) for dim in agreement["mean"].dims if dim not in ("theory", "observable")]
    for observable in agreement["observable"].values:
        part = agreement.sel(observable=observable).stack({_ROW: grid}) if grid else agreement.sel(observable=observable)
        part = part if grid else part.expand_dims(_ROW)
        theories = [t for t in part["theory"].values if np.isfinite(part["theory_value"].sel(theory=t)).any()]
        title = f"{label}: {str(observable).replace('_', ' ')}"
        for beside in range(len(theories), 0, -1):
            groups = [theories[i : i + beside] for i in range(0, len(theories), beside)]
            found = [_table(title, part, grid, group) for group in groups]
            if beside == 1 or all(_characters(table) <= width for table in found):
                yield from found
                break


def _table(title: str, part: xr.Dataset, grid: list[str], theories: list[Any]) -> Any:
    """One observable at every measured point, beside some of the theories."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in grid:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("measured", justify="right", no_wrap=True)
    for theory in theories:
        table.add_column(f"{theory}\nvalue     z       %", justify="right", no_wrap=True)
    for i in range(part.sizes[_ROW]):
        row = part.isel({_ROW: i})
        first = row.isel(theory=0)
        cells = [f"{row[name].values[()]:g}" if row[name].dtype.kind in "if" else str(row[name].values) for name in grid]
        cells.append(with_error(float(first["mean"]), float(first["standard_error"])))
        for theory in theories:
            one = row.sel(theory=theory)
            value, z, relative = (float(one[k]) for k in ("theory_value", "z", "relative_deviation"))
            cells.append(f"{value:.4g} {_signed(z, '+.1f'):>5} {_signed(100 * relative, '+.1f'):>6}")
        table.add_row(*cells)
    return table


def _characters(table: Any) -> int:
    """How wide a table is when nothing in it is cut."""
    from rich.console import Console

    return Console(width=10**4).measure(table).maximum


def _signed(value: float, form: str) -> str:
    """A number in the given form; a dash where there is none, a bound where it is too large to be told."""
    if not np.isfinite(value):
        return "–"
    return format(value, form) if abs(value) < 1000 else (">999" if value > 0 else "<-999")


def with_error(mean: float, error: float) -> str:
    """`0.1234(56)`: a mean with the standard error of its last two digits; the bare mean when no error is known, a dash for none
    (every run failed, or the observable is not defined there)."""
    if not np.isfinite(mean):
        return "–"
    if not np.isfinite(error) or error <= 0:
        return f"{mean:.4g}"
    size = max(abs(mean), error)
    if not 1e-3 <= size < 1e6:
        exponent = int(np.floor(np.log10(size)))
        return f"{with_error(mean / 10.0**exponent, error / 10.0**exponent)}e{exponent}"
    digits = max(0, 1 - int(np.floor(np.log10(error))))
    if digits > 8:
        return f"{mean:.8g}"
    shown = f"{error:.{digits}f}" if error >= 1 else round(error * 10**digits)
    return f"{mean:.{digits}f}({shown})"
