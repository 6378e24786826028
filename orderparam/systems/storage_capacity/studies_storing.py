"""Studies of how random patterns are stored: the corrections of perceptron learning, the volume of
all couplings that store the patterns, and biased patterns.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, horizontal, vertical
from orderparam.plotting.style import COLOURS, ink
from orderparam.running.estimate import estimate
from orderparam.systems.storage_capacity.beyond_capacity import broken_minimal_error
from orderparam.systems.storage_capacity.experiment import separability
from orderparam.systems.storage_capacity.fewest_errors import fewest_errors_by_programming
from orderparam.systems.storage_capacity.learning import corrections_bound, perceptron_learning
from orderparam.systems.storage_capacity.measured_volume import measured_volume
from orderparam.systems.storage_capacity.model import SphericalPatterns
from orderparam.systems.storage_capacity.studies import inverse_size
from orderparam.systems.storage_capacity.theory import (
    capacity,
    largest_margin,
    minimal_error,
    volume,
)


@study(
    "perceptron-margin",
    title=(
        "Where perceptron learning stores all patterns, it needs less than half of the corrections "
        "that its proof allows, up to 0.8 of the largest margin"
    ),
    source="Rosenblatt 1962; Novikoff 1962; Gardner 1988",
    seconds=(60, 600),
    observables=("corrections",),
    columns=2,
    panels=[
        Panel(
            "margin",
            "corrections",
            by="input_dim",
            where={"load": load},
            log="y",
            title=rf"$\alpha$ = {load:g}",
            reference=[vertical(largest, r"$\kappa_{\max}$")],
        )
        for load, largest in ((0.5, 1.0343), (1.0, 0.4707))
    ],
    caption=r"""
        The axis shows corrections per input until all patterns are stored, with $\alpha$ patterns
        per input; each run has {samples} samples. The line is an upper bound for many inputs, which
        diverges at the largest margin. Samples that were not stored within {max_sweeps} sweeps are
        left out, which lowers the means. There are none up to 0.6 of the largest margin; of 64
        samples with 50, 100 and 200 inputs they are 3, 1 and 0 ($\alpha$ = 0.5) and 7, 5 and 3
        ($\alpha$ = 1) at 0.8 of it, 15, 7 and 5 and 23, 13 and 12 at 0.9.
    """,
)
def perceptron_margin(
    dims: tuple[int, ...] = (50, 100, 200),
    loads: tuple[float, ...] = (0.5, 1.0),
    shares: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9),
    samples: int = 4,
    max_sweeps: int = 3000,
    seeds: int = 16,
) -> Iterator[Curve]:
    for load in loads:
        system, facets = SphericalPatterns(load), {"load": load}
        largest = float(largest_margin(system).margin)
        fine = {"margin": tuple((largest * np.linspace(0, 0.97, 60)).tolist())}
        yield Curve("upper bound", corrections_bound, system, fine, facets=facets, baseline=True)
        over = {"margin": tuple(round(largest * share, 6) for share in shares)}
        learning = partial(perceptron_learning, samples=samples, max_sweeps=max_sweeps)
        for n in dims:
            own = system.with_(input_dim=n)
            yield Curve(
                "perceptron learning", learning, own, over, seeds, facets={**facets, "input_dim": n}
            )


@study(
    "capacity-volume",
    title="The volume of the couplings that store random patterns, and the overlap of two of them, "
    "approach Gardner's theory",
    source="Gardner 1988; splitting (Kahn, Harris 1951) and hit-and-run (Smith 1984)",
    seconds=(90, 900),
    observables=("entropy", "overlap"),
    gallery={"dims": (10, 20, 40), "samples": 6, "moves": 80},
    columns=3,
    panels=[
        Panel("load", "entropy", by="input_dim"),
        Panel("load", "overlap", by="input_dim"),
        Panel(
            ("$1/N$", inverse_size),
            "overlap",
            by="input_dim",
            where={"load": 1.0},
            title=r"$\alpha$ = 1",
        ),
    ],
    caption=r"""
        $\alpha$ random patterns for each of $d$ = $N$ inputs, without a margin. $s$: logarithm, per
        coupling, of the share of the sphere of couplings that stores the patterns. Each run has
        {samples} samples with {walkers} walkers each, which make {moves} moves after each pattern.
        Right: the cross at zero is the theory, the limit of many inputs.
    """,
    explained=(
        "The theory is the limit of many inputs. The overlap of 10 inputs lies 4 to 6 % above it, "
        "that of 20 inputs 3 to 4 %, and that of 40 inputs agrees within two standard errors, of "
        "0.7 %."
    ),
)
def capacity_volume(
    dims: tuple[int, ...] = (10, 20),
    loads: tuple[float, ...] = (0.3, 0.6, 1.0),
    samples: int = 4,
    walkers: int = 100,
    moves: int = 40,
    seeds: int = 16,
) -> Iterator[Curve]:
    fine = np.unique(np.append(np.linspace(0.05, 1.2, 47), loads).round(12))
    yield Curve("theory", volume, SphericalPatterns(), {"load": tuple(fine.tolist())})
    measured = partial(measured_volume, samples=samples, walkers=walkers, moves=moves)
    for n in dims:
        yield Curve(
            "walkers",
            measured,
            SphericalPatterns(input_dim=n),
            {"load": loads},
            seeds,
            facets={"input_dim": n},
        )


@study(
    "capacity-biased",
    title="The success fractions of linear programs on biased patterns cross at Gardner's "
    "capacity, which grows with the bias",
    source="Gardner 1988",
    seconds=(90, 900),
    observables=("success_fraction",),
    gallery={"dims": (25, 50, 100, 200), "samples": 12},
    columns=2,
    panels=[
        Panel(
            "load",
            "success_fraction",
            by="input_dim",
            where={"bias": bias},
            title=f"b = {bias:g}",
            reference=[vertical(limit, r"$\alpha_c$"), horizontal(0.5)],
        )
        for bias, limit in ((0.5, 2.40587), (0.8, 3.9129))
    ],
    caption=r"""
        The margin is zero, and inputs and outputs have mean b. Each run has {samples} samples.
        Vertical lines: the capacity in theory.
    """,
)
def capacity_biased(
    dims: tuple[int, ...] = (25, 50),
    biases: tuple[float, ...] = (0.5, 0.8),
    shares: tuple[float, ...] = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2),
    samples: int = 4,
    seeds: int = 16,
) -> Iterator[Curve]:
    for bias in biases:
        system, facets = SphericalPatterns(bias=bias), {"bias": bias}
        limit = float(capacity(system).capacity)
        over = {"load": tuple(round(limit * share, 6) for share in shares)}
        for n in dims:
            measured = partial(separability, samples=samples)
            yield Curve(
                "linear program",
                measured,
                system.with_(input_dim=n),
                over,
                seeds,
                facets={**facets, "input_dim": n},
            )


# ------------------------------------------------------------------------------------------------
# The study of the fewest errors against the number of inputs, which are found by integer
# programming.

# Order of the polynomial in 1/N, and smallest number of sizes to which it is fitted.
_ORDER, _FEWEST = 2, 6


def draw_sizes(axes: Any, comparison: Comparison, load: float) -> None:
    """Draw the fewest errors at one load against 1/N, a parabola that is fitted to them, and both
    theories of infinite N."""
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
    title=(
        "With 3 patterns per input, fewest errors of up to 11 inputs cannot tell whether replica "
        "symmetry is broken: their extrapolation is too uncertain"
    ),
    source="Gardner, Derrida 1988; Majer, Engel, Zippelius 1993",
    seconds=(60, 6000),
    observables=("error_fraction",),
    gallery={"dims": (5, 6, 7, 8, 9, 10, 11), "most": 33, "seeds": 16},
    full={"dims": (5, 6, 7, 8, 9, 10, 11, 12), "most": 36, "samples": 16, "seeds": 16},
    panels=lambda p: [Freehand(partial(draw_sizes, load=load)) for load in p["loads"]],
    columns=2,
    caption=r"""
        There are $\alpha$ random patterns for each of $N$ inputs, and the margin is zero. Marks are
        exact minima over all couplings, for {samples} samples in each of {seeds} runs. Solid: a
        parabola in $1/N$ and its value at 0, fitted where six sizes are measured; it does not
        distinguish the theories. Dashed: the theories of many inputs, with replica symmetry and
        with replica symmetry broken in 2 steps.
    """,
    explained=(
        "The theories are limits of many inputs; with few inputs the smallest fraction of errors "
        "is larger, the more so the fewer they are. For 3 patterns per input the parabola reaches "
        "0.075(33), an error five times the difference of the theories. For 4 patterns per input "
        "four sizes were measured, too few for the parabola."
    ),
    coarse=(
        "That errors are too large is what the title says: to distinguish the two theories they "
        "would have to be five times as small, which needs 25 times as many samples."
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
