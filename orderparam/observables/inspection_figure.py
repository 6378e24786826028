"""The figure of an inspected network: its layers, the spectra of its weights, its tangent kernel,
and the theories beside what was measured."""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from orderparam.observables.weights import WeightSpectrum
from orderparam.plotting import house_style
from orderparam.plotting.style import COLOURS, GREY, MARKERS, paper

if TYPE_CHECKING:
    from orderparam.observables.assumptions import Predicted
    from orderparam.observables.inspection import Inspection
    from orderparam.observables.theory_comparison import TheoryComparison

PANELS = 4  # at most; spectra fill the places of what was not measured
NEGLIGIBLE = 1e-12  # eigenvalues below this fraction of the largest are rounding errors
_NARROW: dict[str, Any] = {"fontsize": 7, "columnspacing": 0.8, "handlelength": 1.2}
LEAST = 1e-3  # predictions below this have no ratio to what was measured
# of each number of a layer: its distance from the place of the layer, mark and colour
_LAYER = {
    "similarity to start": (-0.15, MARKERS[0], COLOURS[0]),
    "alignment at the start": (0.0, MARKERS[1], COLOURS[5]),
    "alignment": (0.15, MARKERS[1], COLOURS[1]),
}


def draw(found: "Inspection", compared: "TheoryComparison | None" = None) -> Any:
    """At most four panels: the numbers of the layers with the 99 % points of their null
    distributions; the tangent kernel's eigenvalues at the start and now; predicted and measured
    numbers; and the spectra with most outliers, with the Marchenko-Pastur law."""
    import matplotlib.pyplot as plt

    panels: list[Callable[[Any], None]] = []
    if found.layers:
        panels.append(lambda ax: _draw_layers(ax, found))
    if found.eigenvalues:
        panels.append(lambda ax: _draw_kernel(ax, found))
    numbers = [] if compared is None else _predictions(compared)
    if numbers:
        panels.append(lambda ax: _draw_theories(ax, numbers))
    ranked = sorted(found.spectra.items(), key=lambda item: -len(item[1].outliers))
    spectra = [
        partial(_draw_spectrum, name=name, spectrum=spectrum)
        for name, spectrum in ranked[: PANELS - len(panels)]
    ]
    panels[1:1] = spectra
    with house_style():
        columns = min(2, max(len(panels), 1))
        lines = math.ceil(max(len(panels), 1) / columns)
        figure, grid = plt.subplots(
            lines, columns, figsize=(3.5 * columns, 2.7 * lines), squeeze=False
        )
        axes = list(grid.ravel())
        for panel in panels:
            panel(axes.pop(0))
        for unused in axes:
            unused.set_visible(False)
    return figure


def _draw_layers(ax: Any, found: "Inspection") -> None:
    places = np.arange(len(found.layers))
    for name, (shift, marker, colour) in _LAYER.items():
        numbers = [
            next((one for one in layer if one.name == name and math.isfinite(one.value)), None)
            for layer in found.layers.values()
        ]
        measured = [(place, one) for place, one in zip(places, numbers) if one is not None]
        if not measured:
            continue
        y = np.array([one.value for _, one in measured])
        ends = np.array([(one.low, one.high) for _, one in measured])
        ax.errorbar(
            [place + shift for place, _ in measured], y, [y - ends[:, 0], ends[:, 1] - y],
            marker=marker, color=colour, linestyle="", label=name,
            markerfacecolor=paper() if name == "alignment at the start" else colour,
        )  # fmt: skip
        for place, one in measured:
            if one.null is not None:
                low, high = (one.null.quantile(part) for part in (0.01, 0.99))
                ax.fill_between(
                    [place + shift - 0.07, place + shift + 0.07], low, high, color=GREY, alpha=0.5,
                    linewidth=0,
                )  # fmt: skip
    ax.fill_between([], [], [], color=GREY, alpha=0.5, label="null, 1 % to 99 %")
    ax.set_xticks(places, [name[:14] for name in found.layers], rotation=20, ha="right")
    ax.set_xlim(-0.5, len(places) - 0.5)
    ax.set_ylabel("similarity, alignment")
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.45 * (high - low))  # above the marks: the legend
    ax.set_title("Layers")
    ax.legend(ncols=2, loc="upper center", **_NARROW)


def _draw_kernel(ax: Any, found: "Inspection") -> None:
    for (when, values), colour, style in zip(
        found.eigenvalues.items(), (COLOURS[2], COLOURS[0]), ("--", "-")
    ):
        kept = values[values > NEGLIGIBLE * values[0]]
        ax.plot(
            np.arange(1, len(kept) + 1), kept, color=colour, linestyle=style,
            label={"start": "at the start"}.get(when, when),
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("rank")
    ax.set_ylabel("eigenvalue / examples")
    drift = {one.name: one for one in found.network}
    words = [
        f"{label} {drift[name].value:.2g}"
        for name, label in (("kernel drift", "drift"), ("kernel drift in shape", "in shape"))
        if name in drift and math.isfinite(drift[name].value)
    ]
    ax.set_title("Tangent kernel" + (f": {', '.join(words)}" if words else ""))
    ax.legend()


def _predictions(compared: "TheoryComparison") -> list[tuple[str, "Predicted"]]:
    """The measured numbers, with their names, of each theory that is not refused."""
    return [
        (f"{one.theory}: {number.name}", number)
        for one in compared.accepted
        for number in one.predictions
        if number.measured is not None
        and math.isfinite(number.z)
        and abs(number.value) > LEAST * abs(number.measured.value)
    ]


def _draw_theories(ax: Any, numbers: list[tuple[str, "Predicted"]]) -> None:
    ax.axvline(1, color=GREY)
    for place, (_, number) in enumerate(numbers):
        assert number.measured is not None
        value, error = (
            part / number.value for part in (number.measured.value, number.measured.error)
        )
        ax.errorbar(
            value, place, xerr=1.96 * abs(error), marker=MARKERS[0], color=COLOURS[0], linestyle=""
        )
        ax.annotate(
            f"z = {number.z:.1f}", (value, place), (0, 5), textcoords="offset points", ha="center",
            fontsize=7,
        )  # fmt: skip
    ax.set_yticks(range(len(numbers)), [_broken(name) for name, _ in numbers], fontsize=7)
    ax.set_ylim(len(numbers) - 0.4, -0.6)
    ax.margins(x=0.15)
    ax.set_xlabel("measured / predicted")
    ax.set_title("Theories that are not refused")


def _broken(name: str, most: int = 24) -> str:
    """The words of a name in lines of at most some letters."""
    lines = [""]
    for word in name.split():
        if lines[-1] and len(lines[-1]) + len(word) >= most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def _draw_spectrum(ax: Any, name: str, spectrum: WeightSpectrum) -> None:
    beta = spectrum.columns / spectrum.rows
    s = spectrum.singular_values
    bulk = s[len(spectrum.outliers) :]
    bins = max(4, min(int(2 * np.sqrt(len(s))), len(s) // 4))
    ax.hist(bulk, bins=bins, density=True, color=COLOURS[0], alpha=0.35, label="bulk")
    low, high = 1 - math.sqrt(beta), 1 + math.sqrt(beta)
    x = np.linspace(low, high, 300)[1:-1]
    density = np.sqrt(np.maximum((x**2 - low**2) * (high**2 - x**2), 0)) / (np.pi * beta * x)
    ax.plot(x, density, color=GREY, label="Marchenko-Pastur")
    if spectrum.initial is not None:
        start = spectrum.initial.singular_values * spectrum.initial.noise / spectrum.noise
        ax.hist(
            start, bins=bins, density=True, histtype="step", color=COLOURS[2], label="at the start"
        )
    top = ax.get_ylim()[1]
    if spectrum.outliers:
        values = [one.value.value for one in spectrum.outliers]
        ax.plot(values, np.full(len(values), 0.04 * top), "v", color=COLOURS[1], label="outliers")
    ax.set_xlabel(r"singular value / $\sigma\sqrt{n}$")
    ax.set_ylabel("density")
    count = len(spectrum.outliers)
    ax.set_title(f"{name[:30]}: {count} outlier{'' if count == 1 else 's'}")
    ax.set_ylim(top=1.6 * top)  # above the bars: the legend
    ax.legend(loc="upper right", ncols=2, **_NARROW)
