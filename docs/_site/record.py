"""What the gallery keeps of a finished study: how far theory and measurement are apart, what was run, and the figure."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from scipy import stats

from orderparam.core.study import Comparison
from orderparam.plotting import house_style
from orderparam.plotting.captions import filled

BEYOND = 2 * stats.norm.sf(3)  # of points that differ by chance alone
BY_CHANCE = 0.01  # a number of points beyond three standard errors that is less probable than this is no chance
PIXELS = 1400  # across a figure as wide as a page
BYTES = 60_000  # a figure is compressed until it is no larger, as far as it can be


@dataclass(frozen=True)
class Agreement:
    """Of the best theory of one study: its name, |z| and |deviation| of all points that have them."""

    theory: str
    z: np.ndarray
    deviation: np.ndarray

    @property
    def beyond(self) -> int:
        return int((self.z > 3).sum())

    @property
    def by_chance(self) -> bool:
        return bool(stats.binom.sf(self.beyond - 1, self.z.size, BEYOND) > BY_CHANCE)


def best(finished: Comparison) -> Agreement:
    """The theory that agrees at most points. Measurements beside different sets of theories are judged apart, and pooled."""
    found: dict[frozenset[str], dict[str, list[tuple[np.ndarray, np.ndarray]]]] = {}
    for tables in finished.agreement.values():
        for table in tables.values():
            columns = [
                (str(finished.datasets[str(name)].attrs["label"]), table.sel(theory=name))
                for name in table["theory"].values
                if not bool(table["baseline"].sel(theory=name))
            ]
            group = found.setdefault(frozenset(label for label, _ in columns), {})
            for label, column in columns:
                group.setdefault(label, []).append(_defined(column))
    names, z, deviation = [], [np.zeros(0)], [np.zeros(0)]
    for theories in found.values():
        pooled = {label: [np.concatenate(parts) for parts in zip(*columns)] for label, columns in theories.items()}
        if pooled:
            label = max(pooled, key=lambda name: (np.sum(pooled[name][0] <= 3), -np.sum(pooled[name][0] > 3)))
            names.append(label)
            z.append(pooled[label][0])
            deviation.append(pooled[label][1])
    return Agreement(", ".join(dict.fromkeys(names)), np.concatenate(z), np.concatenate(deviation))


def _defined(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """|z| and |deviation| of one theory, where they are numbers."""
    z, deviation = (np.abs(column[name].values).ravel() for name in ("z", "relative_deviation"))
    return z[np.isfinite(z)], deviation[np.isfinite(deviation)]


def record(finished: Comparison, state: str) -> dict[str, Any]:
    """What docs/gallery/STUDY.json holds: what was run, the best theory, and every theory beside every measurement."""
    agreement, summary = best(finished), finished.summary
    curves = summary["curves"]
    return {
        "study": summary["study"],
        "state": state,
        "caption": " ".join(filled(finished.study.caption, finished.parameters).split()),
        **{name: summary[name] for name in ("size", "parameters", "seconds", "processor_seconds", "finished", "versions")},
        "points": {
            kind: {
                name: sum(curve[name] for curve in curves if curve["kind"] == kind)
                for name in ("points", "failed", "unconverged")
            }
            for kind in ("theory", "experiment")
        },
        "best": {"theory": agreement.theory, **_numbers(agreement.z, agreement.deviation), "by_chance": agreement.by_chance},
        "agreement": list(_rows(finished)),
    }


def _rows(finished: Comparison) -> Iterator[dict[str, Any]]:
    """One row for each observable, measurement and theory, whatever their facets are."""
    pooled: dict[tuple[str, str, str, bool], list[tuple[np.ndarray, np.ndarray]]] = {}
    for key, tables in finished.agreement.items():
        measured = str(finished.datasets[key].attrs["label"])
        for observable, table in tables.items():
            for name in table["theory"].values:
                column = table.sel(theory=name)
                theory = str(finished.datasets[str(name)].attrs["label"])
                row = (observable, measured, theory, bool(column["baseline"]))
                pooled.setdefault(row, []).append(_defined(column))
    for (observable, measured, theory, baseline), columns in sorted(pooled.items()):
        z, deviation = (np.concatenate(parts) for parts in zip(*columns))
        names = {"observable": observable, "measured": measured, "theory": theory, "baseline": baseline}
        yield {**names, **_numbers(z, deviation)}


def _numbers(z: np.ndarray, deviation: np.ndarray) -> dict[str, Any]:
    """Points with a standard error, how many are beyond three, and the median deviation (None where there is none)."""
    median = float(f"{np.median(deviation):.3g}") if deviation.size else None
    return {"points": int(z.size), "beyond": int((z > 3).sum()), "median_deviation": median}


def draw(finished: Comparison, path: Path) -> None:
    """The figure as WebP: 1400 pixels across if it is as wide as a page, and not larger than `BYTES` if that can be had."""
    with house_style():
        figure = finished.figure()
        raw = io.BytesIO()
        figure.savefig(raw, format="png", dpi=min(300, PIXELS / figure.get_figwidth()))
    plt.close(figure)
    picture = Image.open(raw).convert("RGB")
    for quality in (85, 75, 65, 55, 45, 35):
        packed = io.BytesIO()
        picture.save(packed, format="webp", quality=quality, method=6)
        if packed.tell() <= BYTES:
            break
    path.write_bytes(packed.getvalue())
