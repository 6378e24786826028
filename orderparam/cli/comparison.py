"""Prints a finished study, for `run` and `show`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from orderparam.cli.terminal import console, duration, plain, short

if TYPE_CHECKING:
    from orderparam.comparison import Comparison


def print_comparison(finished: "Comparison", folder: Path) -> str:
    """Prints a finished study: its parameters, its agreement tables with the reason for
    disagreements, failures, and the place of the files. Returns what it printed."""
    from orderparam.comparison.agreement import differs
    from orderparam.comparison.table import tables
    from orderparam.core.text import formulas_in_words

    out = console(record=True)
    summary: dict[str, Any] = finished.summary
    out.print(
        f"[bold]{plain(formulas_in_words(summary['title']))}[/]  [dim]{plain(summary['source'])}[/]"
    )
    settings = ", ".join(f"{key} = {short(value)}" for key, value in summary["parameters"].items())
    out.print(f"[dim]{plain(settings)}[/]\n", highlight=False)
    for label, table in finished.agreement.items():
        for one in tables(label, table, finished.datasets[label], out.width):
            out.print(one)
            out.print()
    entries = [entry for table in summary["agreement"].values() for entry in table]
    if finished.study.explained and any(map(differs, entries)):
        out.print(
            "Where |z| > 3, or deviations are systematic: "
            f"{plain(formulas_in_words(finished.study.explained))}\n",
            highlight=False,
        )
    for record in summary["curves"]:
        if record["failed"] or record["unconverged"]:
            out.print(
                f"[yellow]{plain(formulas_in_words(record['label']))}: of {record['points']} "
                f"points {record['failed']} failed, {record['unconverged']} did not converge[/]"
            )
    out.print(
        f"{duration(summary['seconds'])}; figure: {folder / 'figure.png'} (and .pdf)",
        highlight=False,
        soft_wrap=True,
    )
    out.print(
        f"data: {folder / 'result.zarr'}, summary: {folder / 'summary.json'}",
        highlight=False,
        soft_wrap=True,
    )
    return out.export_text(styles=out.is_terminal)
