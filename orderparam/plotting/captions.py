"""The text below a figure: its parameters, and the meaning of its lines and marks."""

import string
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from orderparam.plotting.text import number
from orderparam.running.status import DONE, UNCONVERGED


class _Plain(string.Formatter):
    """A formatter that writes numbers in few digits and lists with commas, unless a format is
    given."""

    def format_field(self, value: Any, spec: str) -> str:
        if not spec and isinstance(value, float):
            return number(value)
        if isinstance(value, tuple | list):
            return ", ".join(self.format_field(one, spec) for one in value)
        return super().format_field(value, spec)


def filled(caption: str, parameters: Mapping[str, Any]) -> str:
    """The caption with the values of the parameters, as in "d = {input_dim}"; braces of mathematics
    are doubled."""
    return _Plain().vformat(caption, (), parameters)


def _unconverged(status: np.ndarray) -> int:
    """The number of runs that did not converge."""
    return int(np.sum(status == UNCONVERGED))


def _runs_of_means(data: xr.Dataset) -> set[int]:
    """The numbers of runs in the means of one experiment, without those that failed or did not
    converge."""
    if "seed" not in data.dims:
        return set()
    if "status" not in data:
        return {data.sizes["seed"]}
    counted = (data["status"] == DONE).sum("seed")
    return {int(number) for number in counted.values.ravel() if number}


def marks_sentence(drawn: Mapping[str, xr.Dataset]) -> str:
    """The sentence on the meaning of lines, marks, bars and grey curves of a figure."""
    theories = [data for data in drawn.values() if data.attrs["kind"] == "theory"]
    measured = [data for data in drawn.values() if data.attrs["kind"] == "experiment"]
    sentences = ["Lines: theory."] if any(not data.attrs["baseline"] for data in theories) else []
    runs = sorted(set().union(*map(_runs_of_means, measured)))
    if runs and runs[-1] > 1:
        count = f"{runs[0]} to {runs[-1]}" if len(runs) > 1 else str(runs[0])
        sentences.append(f"Marks: means of {count} runs, bars: standard errors.")
    elif runs:
        sentences.append("Marks: one run.")
    if any(data.attrs["baseline"] for data in drawn.values()):
        sentences.append("Thin grey: for orientation.")
    states = [
        data["status"].values.ravel()
        for data in measured
        if "status" in data and not data.attrs.get("same_data")
    ]
    left_out, among = (sum(map(count, states)) for count in (_unconverged, np.size))
    if left_out:
        sentences.append(
            f"Large open marks: the {left_out} of {among} runs that did not converge, left out of "
            "all other means."
        )
    return " ".join(sentences)
