"""A finished study: the data set of every curve and the agreement of each experiment with its
theories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from orderparam.comparison.agreement import agreement
from orderparam.comparison.registry import Study
from orderparam.core.facets import agree


@dataclass(frozen=True)
class Comparison:
    """A finished study.

    datasets: key of a curve -> its data set, with the attributes `label`, `facets`, `kind`
    ("theory" or "experiment"), `baseline`, `bound`, `same_data`, `function` and `system`.
    agreement: key of an experiment -> observable -> table (see `agreement`). `summary` is the
    content of `summary.json`; `figure()` draws the figure.
    """

    study: Study
    parameters: dict[str, Any]
    datasets: dict[str, xr.Dataset]
    agreement: dict[str, dict[str, xr.Dataset]]
    summary: dict[str, Any] = field(repr=False)

    def curves(self, kind: str | None = None, **facets: Any) -> dict[str, xr.Dataset]:
        """The curves of that kind ("theory", "experiment"; both by default) that carry all these
        facets, by key."""
        return {
            name: data
            for name, data in self.datasets.items()
            if kind in (None, data.attrs["kind"]) and facets.items() <= data.attrs["facets"].items()
        }

    def theories(self, **facets: Any) -> dict[str, xr.Dataset]:
        return self.curves("theory", **facets)

    def experiments(self, **facets: Any) -> dict[str, xr.Dataset]:
        return self.curves("experiment", **facets)

    def figure(self, dark: bool = False, narrow: bool = False) -> Any:
        """Draws the figure in the house style (for a dark background with `dark`).

        narrow: for a telephone, with the panels below one another; it has no effect on a study with
        its own function `draw`.
        """
        from orderparam.plotting import draw, house_style

        with house_style(dark):
            if self.study.draw is not None:
                return self.study.draw(self)
            panels = self.study.panels_at(self.parameters)
            return draw(
                self, panels, columns=self.study.columns, caption=self.study.caption, narrow=narrow
            )


def is_measured(data: xr.Dataset) -> bool:
    """True for the curve of an experiment that is not a theory on the training sets of the runs."""
    return bool(data.attrs["kind"] == "experiment" and not data.attrs.get("same_data"))


def agreements(
    datasets: Mapping[str, xr.Dataset], observables: Sequence[str]
) -> dict[str, dict[str, xr.Dataset]]:
    """The agreement of every experiment among the curves with the theories whose facets agree with
    its own. A theory on the training sets of the runs (`same_data`) is no experiment."""
    measurements = {name: data for name, data in datasets.items() if is_measured(data)}
    theories = {name: data for name, data in datasets.items() if name not in measurements}
    tables = {}
    for name, measured in measurements.items():
        facets = measured.attrs["facets"]
        beside = {
            key: data for key, data in theories.items() if agree(data.attrs["facets"], facets)
        }
        tables[name] = agreement(beside, measured, observables)
    return tables
