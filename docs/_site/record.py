"""What the gallery keeps of a finished study: how far theory and measurement are apart, what was
run, and the figure."""

import io
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from PIL import Image
from scipy import stats

from orderparam.comparison import Comparison
from orderparam.comparison.agreement import (
    BY_CHANCE,
    independent_points,
    probability_by_chance,
    run_deviations,
)
from orderparam.plotting import Panel, house_style
from orderparam.plotting.captions import filled

BEYOND = 2 * stats.norm.sf(3)  # of points that differ by chance alone
PIXELS = 1400  # across a figure as wide as a page
NARROW_PIXELS, NARROW_BYTES = 780, 25_000  # the same of a figure for a telephone
BYTES = 60_000  # a figure is compressed until it is no larger, as far as it can be


@dataclass(frozen=True)
class Agreement:
    """One theory beside the measured points that it can be compared with.

    z: deviation in standard errors, as a normal deviate of Student's t; deviation: |mean / theory -
    1|; resolution: standard error over the theory (see `orderparam.comparison.agreement`); runs:
    converged runs. Entries that are no numbers are left out. vectors: of every entry of z, the
    deviations of the runs from their mean.
    """

    theory: str
    z: np.ndarray
    deviation: np.ndarray
    resolution: np.ndarray
    runs: np.ndarray
    vectors: tuple[np.ndarray, ...]

    @property
    def beyond(self) -> int:
        return int((self.z > 3).sum())

    @property
    def rms_z(self) -> float | None:
        return float(np.sqrt(np.mean(self.z**2))) if self.z.size else None

    @property
    def independent(self) -> float:
        """Number of independent points among those with z."""
        return independent_points(self.vectors)

    @property
    def probability(self) -> float | None:
        """That chance gives such a root mean square of z, or a larger one."""
        return probability_by_chance(self.z, self.independent)

    @property
    def by_chance(self) -> bool:
        """Whether chance explains both the number of points beyond three standard errors and the
        root mean square of all z."""
        number = stats.binom.sf(self.beyond - 1, self.z.size, BEYOND)
        return bool(min(number, 1.0 if self.probability is None else self.probability) > BY_CHANCE)

    def numbers(self) -> dict[str, Any]:
        """What a record holds of it; None where there is nothing."""
        return {
            "points": int(self.z.size),
            "beyond": self.beyond,
            "rms_z": _rounded(self.rms_z),
            "independent": _rounded(self.independent),
            "probability": _rounded(self.probability),
            "median_deviation": _rounded(
                np.median(self.deviation) if self.deviation.size else None
            ),
            "worst_deviation": _rounded(np.max(self.deviation) if self.deviation.size else None),
            "resolution": _rounded(np.median(self.resolution) if self.resolution.size else None),
            "runs": [int(self.runs.min()), int(self.runs.max())] if self.runs.size else None,
        }


def _rounded(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.3g}")


Column = tuple[xr.Dataset, np.ndarray]  # a theory beside a measurement, and `run_deviations`


def _columns(
    finished: Comparison, key: str, observable: str, table: xr.Dataset
) -> Iterator[tuple[str, bool, Column]]:
    """The label of every theory in a table, whether it is a baseline, and its column."""
    for name in table["theory"].values:
        column = table.sel(theory=name)
        vectors = run_deviations(finished.datasets[key], observable, column)
        label = str(finished.datasets[str(name)].attrs["label"])
        if bound := str(column["bound"].values):
            label += f" ({bound} bound)"
        yield label, bool(column["baseline"]), (column, vectors)


def _pooled(theory: str, columns: Iterable[Column]) -> Agreement:
    """One theory beside several measurements. A mean with its error that stands at several points
    of a theory's grid is one measurement: it counts once, with its largest deviation."""
    names = (
        "z",
        "relative_deviation",
        "resolution",
        "runs",
        "mean",
        "standard_error",
        "theory_value",
    )
    parts: dict[tuple[float, float], tuple[tuple[float, ...], np.ndarray]] = {}
    unnamed = itertools.count()
    for column, vectors in columns:
        numbers = (column[name].transpose(*column["z"].dims).values.ravel() for name in names)
        for vector, z, deviation, resolution, runs, mean, error, value in zip(vectors, *numbers):
            if not np.isfinite(mean - value):
                continue
            point = (abs(z), abs(deviation), resolution, runs)
            key = (mean, error) if error > 0 else (np.nan, next(unnamed))
            known = parts.get(key)
            if known is None or np.nan_to_num(point[0]) > np.nan_to_num(known[0][0]):
                parts[key] = point, vector
    found = np.asarray([point for point, _ in parts.values()], float).reshape(-1, 4).T
    compared = tuple(vector for point, vector in parts.values() if np.isfinite(point[0]))
    z, deviation, resolution, run_counts = (part[np.isfinite(part)] for part in found)
    return Agreement(theory, z, deviation, resolution, run_counts, compared)


def best(finished: Comparison) -> Agreement:
    """The theory that agrees best with the observables that the figure shows: the fewest points
    beyond three standard errors, then the smallest root mean square of z. Never a baseline, and a
    bound, which is easier to satisfy, only where no other theory stands beside the measurement.
    Measurements beside different sets of theories are judged apart, and pooled."""
    found: dict[frozenset[str], dict[str, list[Column]]] = {}
    shown = drawn(finished)
    for key, tables in finished.agreement.items():
        for observable, table in tables.items():
            if observable not in shown:
                continue
            every = [
                (label, column)
                for label, baseline, column in _columns(finished, key, observable, table)
                if not baseline
            ]
            columns = [one for one in every if not str(one[1][0]["bound"].values)] or every
            group = found.setdefault(frozenset(label for label, _ in columns), {})
            for label, column in columns:
                group.setdefault(label, []).append(column)
    chosen = []
    for theories in found.values():
        pooled = [_pooled(label, columns) for label, columns in theories.items()]
        if pooled:
            most = max(one.z.size for one in pooled)
            chosen.append(
                min(pooled, key=lambda one: (one.beyond + most - one.z.size, one.rms_z or 0.0))
            )
    names = ", ".join(dict.fromkeys(one.theory for one in chosen))
    z, deviation, resolution, runs = (
        np.concatenate([np.zeros(0), *(getattr(one, name) for one in chosen)])
        for name in ("z", "deviation", "resolution", "runs")
    )
    vectors = tuple(itertools.chain.from_iterable(one.vectors for one in chosen))
    return Agreement(names, z, deviation, resolution, runs, vectors)


def drawn(finished: Comparison) -> set[str]:
    """The compared observables that the figure shows: all where it is drawn by hand or shows none
    of them by name."""
    known = {observable for tables in finished.agreement.values() for observable in tables}
    panels = finished.study.panels_at(finished.parameters)
    named = {panel.y for panel in panels if isinstance(panel, Panel) and isinstance(panel.y, str)}
    return (known & named) or known


def record(finished: Comparison, state: str, caption: str) -> dict[str, Any]:
    """What docs/gallery/STUDY.json holds: what was run, the best theory, and every theory beside
    every measurement."""
    agreement, summary = best(finished), finished.summary
    curves = summary["curves"]
    return {
        "study": summary["study"],
        "state": state,
        "caption": caption,
        **{
            name: summary[name]
            for name in (
                "size",
                "parameters",
                "seconds",
                "processor_seconds",
                "finished",
                "versions",
            )
        },
        "points": {
            kind: {
                name: sum(curve[name] for curve in curves if _kind(curve) == kind)
                for name in ("points", "failed", "unconverged")
            }
            for kind in ("theory", "experiment")
        },
        "best": {
            "theory": agreement.theory,
            **agreement.numbers(),
            "by_chance": agreement.by_chance,
        },
        "agreement": list(_rows(finished)),
    }


def _kind(curve: Mapping[str, Any]) -> str:
    """What a curve of a summary counts as."""
    return "theory" if curve.get("same_data") else str(curve["kind"])


def _rows(finished: Comparison) -> Iterator[dict[str, Any]]:
    """One row for each observable, measurement and theory, whatever their facets are."""
    pooled: dict[tuple[str, str, str, bool], list[Column]] = {}
    for key, tables in finished.agreement.items():
        measured = str(finished.datasets[key].attrs["label"])
        for observable, table in tables.items():
            for theory, baseline, column in _columns(finished, key, observable, table):
                pooled.setdefault((observable, measured, theory, baseline), []).append(column)
    for (observable, measured, theory, baseline), columns in sorted(
        pooled.items(), key=lambda item: item[0]
    ):
        names = {
            "observable": observable,
            "measured": measured,
            "theory": theory,
            "baseline": baseline,
        }
        yield {**names, **_pooled(theory, columns).numbers()}


def draw(finished: Comparison, path: Path, for_telephones: bool = True) -> str:
    """Writes the figure as WebP and gives back its caption: title and caption are words of the
    page, not of the picture.

    Beside the picture at `path` goes, for telephones, one with its panels below one another
    ("NAME-narrow.webp"), where the study has several and none of them is drawn by hand, unless
    `for_telephones` is false.
    """
    with house_style():
        caption = _write(finished, finished.figure(), path, PIXELS, BYTES)
        if not for_telephones:
            return caption
        figure = finished.figure(narrow=True)
        panels = finished.study.panels
        by_name = (
            finished.study.draw is None
            and not callable(panels)
            and all(isinstance(panel, Panel) for panel in panels)
        )
        if by_name and len(figure.axes) > 1:
            _write(finished, figure, narrow(path), NARROW_PIXELS, NARROW_BYTES)
        plt.close(figure)
    return caption


def narrow(path: Path) -> Path:
    """Where the picture for telephones of the picture at `path` is."""
    return path.with_name(f"{path.stem}-narrow.webp")


def _write(finished: Comparison, figure: Any, path: Path, pixels: int, most: int) -> str:
    """The figure without its title and its caption as WebP, not larger than `most` bytes if it can
    be; returns its caption."""
    title, caption = (
        " ".join(words.split())
        for words in (finished.study.title, filled(finished.study.caption, finished.parameters))
    )
    shown = caption
    for text in list(figure.texts):
        words = " ".join(text.get_text().split())
        if words == title:
            text.remove()
        elif words.startswith(caption):  # a study without one may write it with what it draws
            shown = words
            text.remove()
    for legend in figure.legends:
        legend.set_in_layout(True)  # what stands outside the layout would be cut off
    raw = io.BytesIO()
    figure.savefig(
        raw,
        format="png",
        dpi=min(300, pixels / figure.get_figwidth()),
        bbox_inches="tight",
        pad_inches=0.05,
    )
    plt.close(figure)
    picture = Image.open(raw).convert("RGB")
    for quality in (85, 75, 65, 55, 45, 35):
        packed = io.BytesIO()
        picture.save(packed, format="webp", quality=quality, method=6)
        if packed.tell() <= most:
            break
    path.write_bytes(packed.getvalue())
    return shown
