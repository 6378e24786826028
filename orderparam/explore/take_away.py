"""What a person takes away from the page: the figure as Python, as commands, and as files, which
are its numbers as CSV and a drawing by matplotlib in the house style."""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import panel as pn
import xarray as xr

from orderparam.explore.curves import COURSE, CurveLook, spoken
from orderparam.explore.state import PageState
from orderparam.explore.written import Unwritten

_WIDE: dict[str, Any] = {"sizing_mode": "stretch_width"}


class TakeAway:
    """The texts to be copied and the buttons that save files. file: returns the figure as a file of
    the kind "png", "pdf" or "csv"."""

    def __init__(self, file: Callable[[str], Any]) -> None:
        self.python = pn.widgets.TextAreaInput(name="as Python", rows=8, disabled=True, **_WIDE)
        self.command = pn.widgets.TextAreaInput(name="as commands", rows=4, disabled=True, **_WIDE)
        copies = []
        for words, source in (("Copy as Python", self.python), ("Copy as command", self.command)):
            button = pn.widgets.Button(name=words, width=140)
            button.js_on_click(
                args={"source": source}, code="navigator.clipboard.writeText(source.value)"
            )
            copies.append(button)
        files = [
            pn.widgets.FileDownload(
                label=kind.upper(),
                callback=lambda kind=kind: file(kind),
                filename=f"orderparam.{kind}",
                button_type="default",
                width=80,
            )
            for kind in ("png", "pdf", "csv")
        ]
        self.view = pn.Column(
            pn.FlexBox(*copies, *files, **_WIDE), self.python, self.command, **_WIDE
        )

    def write(self, state: PageState) -> None:
        """Writes a state as Python and as commands."""
        try:
            self.python.value = state.python()
        except Unwritten as error:
            self.python.value = f"# {error}"
        try:
            self.command.value = "\n".join(state.commands())
        except Unwritten:
            study = state.opening.study
            self.command.value = (
                f"# this system holds arrays of the study {study}, which words cannot say: take "
                "the Python above"
            )


def table(curves: Mapping[str, xr.Dataset], measured: xr.Dataset | None, x: str) -> str:
    """All drawn numbers as CSV: one line for each point of a theory or run of an experiment."""
    import pandas as pd

    parts = []
    for name, data in (
        *curves.items(),
        *(((measured.attrs["label"], measured),) if measured is not None else ()),
    ):
        rows = {dim: data[dim].values for dim in data["status"].dims}
        wide = [
            key
            for key in data.data_vars
            if data[key].dims == data["status"].dims and key != "seconds"
        ]
        frame = data[wide].to_dataframe().reset_index()
        for key in data.data_vars:
            if key not in wide and key != "seconds" and set(rows) <= set(data[key].dims):
                values = data[key].transpose(*rows, ...).values.reshape(len(frame), -1)
                for k in range(min(values.shape[1], 100)):
                    frame[f"{key}[{k + 1}]"] = values[:, k]
        frame.insert(0, "curve", name)
        parts.append(frame)
    return pd.concat(parts, ignore_index=True).to_csv(index=False) if parts else f"curve,{x}\n"


def picture(
    curves: Mapping[str, xr.Dataset],
    measured: xr.Dataset | None,
    looks: Sequence[CurveLook],
    dark: bool,
    kind: str,
) -> bytes:
    """The figure drawn by matplotlib in the house style, as "png" or "pdf"."""
    import matplotlib.pyplot as plt

    from orderparam.plotting import Panel, figure_of, house_style, labelled

    found = {spoken(name): data for name, data in curves.items()}
    if measured is not None:
        found[spoken(measured.attrs["label"])] = measured
    first = looks[0]
    log = ("x" if first.log_x else "") + ("y" if first.log_y else "")
    panels = [
        Panel(first.x, one.observable, log=log, where=_first_entry(found, one.observable))
        for one in looks
    ]
    with house_style(dark):
        made = figure_of(labelled(found), panels)
        out = io.BytesIO()
        made.savefig(out, format=kind)
        plt.close(made)
    return out.getvalue()


def _first_entry(found: Mapping[str, xr.Dataset], observable: str) -> dict[str, int]:
    """The entry of an observable that a printed figure shows: the last along a time, the first
    along other dimensions of its own."""
    data = next(data for data in found.values() if observable in data)
    return {
        str(dim): -1 if dim in COURSE else 0
        for dim in data[observable].dims
        if dim not in data["status"].dims
    }
