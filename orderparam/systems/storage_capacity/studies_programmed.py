"""The figure of the fewest errors against the number of inputs, by integer programming."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand
from orderparam.plotting.style import COLOURS, ink
from orderparam.running.estimate import estimate
from orderparam.systems.storage_capacity.beyond_capacity import broken_minimal_error
from orderparam.systems.storage_capacity.model import SphericalPatterns
from orderparam.systems.storage_capacity.programmed_errors import fewest_errors_by_programming
from orderparam.systems.storage_capacity.theory import minimal_error

_ORDER, _FEWEST = 2, 6  # order of the polynomial in 1/N, and sizes to which one is fitted


def draw_sizes(axes: Any, comparison: Comparison, load: float) -> None:
    """Draw the fewest errors at one load against 1/N with a parabola through them, and both
    theories at infinite N."""
    sizes, means, errors = [], [], []
    for data in comparison.experiments().values():
        if load not in data["load"]:
            continue
        mean, uncertainty = estimate(data.sel(load=[load]), "error_fraction")
        sizes.append(data.attrs["facets"]["input_dim"])
        means.append(mean.item())
        errors.append(uncertainty.item())
    x, y, error = 1 / np.array(sizes, float), np.array(means), np.array(errors)
    axes.errorbar(x, y, error, fmt="o", markersize=4, color=ink(), label="integer programming")
    good = np.isfinite(y) & np.isfinite(error) & (error > 0)
    axes.set_title(rf"$\alpha$ = {load:g}")
    if good.sum() >= _FEWEST:
        fit, covariance = np.polyfit(x[good], y[good], _ORDER, w=1 / error[good], cov="unscaled")
        fine = np.linspace(0, x.max(), 100)
        axes.plot(fine, np.polyval(fit, fine), color=ink(), linewidth=0.9)
        limit, uncertain = fit[-1], np.sqrt(covariance[-1, -1])
        axes.errorbar([0], [limit], [uncertain], fmt="d", markersize=4, color=ink())
        axes.set_title(rf"$\alpha$ = {load:g}: {limit:.2f} ± {uncertain:.2f} at $1/N$ = 0")
    for number, (label, data) in enumerate(comparison.theories().items()):
        height = data["error_fraction"].sel(load=load).item()
        axes.axhline(height, color=COLOURS[number], linewidth=1, linestyle="--", label=label)
    axes.set(
        xlabel="$1/N$", ylabel="smallest fraction of errors", xlim=(-0.01, None), ylim=(0, None)
    )


@study(
    "capacity-errors-sizes",
    title="With up to 11 inputs the fewest errors beyond capacity lie above both theories of many "
    "inputs",
    source="Gardner, Derrida 1988; Majer, Engel, Zippelius 1993",
    seconds=(60, 20000),
    observables=("error_fraction",),
    gallery={"dims": (5, 6, 7, 8, 9, 10, 11), "most": 33, "seeds": 16},
    full={"dims": (5, 6, 7, 8, 9, 10, 11, 12, 13), "most": 52, "samples": 40, "seeds": 16},
    panels=lambda p: [Freehand(partial(draw_sizes, load=load)) for load in p["loads"]],
    columns=2,
    caption=r"""
        No margin, $\alpha$ random patterns for each of $N$ inputs; exact minima over all couplings,
        {samples} samples in each of {seeds} runs. Solid: a parabola in $1/N$ and its value at 0,
        where six sizes are measured; it does not tell the theories apart. Dashed: theories of many
        inputs, replica symmetric and with replica symmetry broken in 2 steps.
    """,
    explained=(
        "The theories are limits of many inputs; with few inputs the smallest fraction of errors "
        "is larger, the more so the fewer they are. The parabola reaches 0.075(33) for 3 patterns "
        "per input, which does not tell the theories apart."
    ),
)
def capacity_errors_sizes(
    dims: tuple[int, ...] = (5, 6, 7, 8),
    loads: tuple[float, ...] = (3.0, 4.0),
    most: int = 40,
    samples: int = 4,
    seeds: int = 4,
) -> Iterator[Curve]:
    """dims: numbers of inputs N. loads: patterns per input. most: patterns, above which a size is
    left out."""
    system, over = SphericalPatterns(), {"load": loads}
    yield Curve("replica symmetric", minimal_error, system, over)
    yield Curve("2 steps", partial(broken_minimal_error, steps=2), system, over)
    for n in dims:
        measured = partial(fewest_errors_by_programming, samples=samples)
        facets = {"input_dim": n}
        own, few = system.with_(input_dim=n), tuple(load for load in loads if load * n <= most)
        if few:
            yield Curve("integer programming", measured, own, {"load": few}, seeds, facets=facets)
