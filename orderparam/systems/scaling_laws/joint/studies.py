"""Studies of random features with a given number of examples and of features."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, horizontal, slope
from orderparam.plotting.measured import dots, mean_and_error
from orderparam.plotting.style import COLOURS, GREY
from orderparam.systems.scaling_laws.joint.experiment import drawn_regression
from orderparam.systems.scaling_laws.joint.model import ParameterBudget, ScaleFreeFeatures
from orderparam.systems.scaling_laws.joint.theory import (
    best_split,
    joint_law,
    limit_exponents,
    optimal_ridge,
)


def _draw_excess(part: str, name: str, limit: str, axes: Any, comparison: Comparison) -> None:
    """Draw the excess of the error at a finite number of features or examples over the theory for
    infinitely many, for the theory and for the measured error."""
    fixed, moving = {"width": ("n_train", "width"), "data": ("width", "n_train")}[part]
    theories = list(comparison.theories(part=part).values())
    first = {"width": len(theories), "data": 0}[part]  # colours of the panel above
    for number, theory in enumerate(theories, first):
        size, colour = theory.attrs["facets"][fixed], COLOURS[number % len(COLOURS)]
        axes.plot(theory[moving], theory[name], color=colour)
        at_limit = (theory["test_error"] - theory[name]).isel({moving: -1})
        for runs in comparison.experiments(**{"part": part, fixed: size}).values():
            above = runs["test_error"] - float(at_limit)
            predicted = np.interp(runs[moving], theory[moving], theory[name])
            above = above.isel({moving: np.flatnonzero(predicted > 2 * mean_and_error(above)[1])})
            dots(axes, above[moving], above, number, fmt="o", filled=True)
    x = np.array([1.0, 0.1]) * float(theories[0][moving].max())
    axes.plot(x, float(theories[0][name].min()) * x[0] / x, ":", color=GREY)
    ylabel = f"error $-$ that of {limit}"
    xlabel = {"width": "width $N$", "data": "training examples $n$"}[part]
    axes.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)


@study(
    "joint-scaling-regimes",
    title=(
        "The error of random features falls as a power of the number of examples or features, "
        "whichever is smaller; a finite number of the other adds an excess that falls as one over "
        "it"
    ),
    source="Bahri, Dyer, Kaplan, Lee, Sharma 2024 (arXiv:2102.06701); Defilippis, Loureiro, "
    "Misiakiewicz 2024 (arXiv:2405.15699)",
    panels=lambda p: [
        Panel(
            "n_train",
            "test_error",
            by="width",
            where={"part": "data"},
            log="xy",
            reference=[
                slope(
                    -limit_exponents(p["spectral_decay"], p["target_decay"]).data,
                    r"$n^{-\min(b-1,2a)}$",
                )
            ],
        ),
        Panel(
            "width",
            "test_error",
            by="n_train",
            where={"part": "width"},
            log="xy",
            reference=[
                slope(
                    -limit_exponents(p["spectral_decay"], p["target_decay"]).width,
                    r"$N^{-\min(b-1,a)}$",
                )
            ],
        ),
        Freehand(partial(_draw_excess, "width", "above_infinite_width", r"$N=\infty$")),
        Freehand(partial(_draw_excess, "data", "above_infinite_data", r"$n=\infty$")),
    ],
    caption=(
        "Eigenvalues $k^{{-a}}$ and target power $k^{{-b}}$ with $a$ = {spectral_decay:g} and $b$ "
        "= {target_decay:g}, ridge {ridge} added to the summed error, no noise; $n$ examples, $N$ "
        "features. Top: the error as the number on the axis grows; resolution limits it while the "
        "other number is larger. Bottom: the difference from the theory's limit of infinitely "
        "many, which is due to fluctuations; marks where the theory is larger than two standard "
        "errors."
    ),
    observables=("test_error",),
    seconds=(40, 900),
    gallery={"measured": (20, 60, 150, 500, 1500), "seeds": 16},
    full={
        "modes": 20_000,
        "sizes": (30, 300, 3000),
        "measured": (30, 100, 250, 1000, 2500),
        "seeds": 16,
    },
    columns=2,
)
def joint_scaling_regimes(
    spectral_decay: float = 1.5,
    target_decay: float = 2.0,
    ridge: float = 0.01,
    modes: int = 4000,
    sizes: tuple[int, ...] = (20, 200, 2000),
    measured: tuple[int, ...] = (20, 60, 150, 500),
    seeds: int = 8,
) -> list[Curve]:
    fine, curves = tuple(np.geomspace(min(measured), 20 * max(measured), 41).tolist()), []
    for size in sizes:
        for part, fixed, moving in (("data", "width", "n_train"), ("width", "n_train", "width")):
            numbers = {fixed: float(size), moving: float(size)}
            system = ScaleFreeFeatures(
                **numbers,
                spectral_decay=spectral_decay,
                target_decay=target_decay,
                ridge=ridge,
                modes=modes,
            )
            facets = {"part": part, fixed: size}
            curves += [
                Curve("theory", joint_law, system, {moving: fine}, facets=facets),
                Curve(
                    "drawn features",
                    drawn_regression,
                    system,
                    {moving: measured},
                    seeds,
                    facets=facets,
                ),
            ]
    return curves


@study(
    "joint-scaling-optimum",
    title=(
        "With the best ridge the error falls as examples and features grow together; for a target "
        "decay of 2.5 equal numbers are nearly optimal"
    ),
    source="Bahri et al. 2024 (arXiv:2102.06701); Maloney, Roberts, Sully 2022 (arXiv:2210.16859); "
    "Defilippis et al. 2024",
    panels=lambda p: [
        Panel(
            ("$n = N$", lambda data: data["total"] / 2),
            "test_error",
            by="penalty",
            where={"part": "together"},
            log="xy",
            reference=[
                slope(
                    -limit_exponents(p["spectral_decay"], p["target_decay"]).together,
                    r"$n^{-\min(b-1,a)}$",
                )
            ],
        ),
        Panel(
            "data_share",
            "test_error",
            where={"part": "split"},
            log="y",
            title=f"$N + n$ = {p['total']}, best ridge",
        ),
        Panel(
            "target_decay",
            "data_share",
            where={"part": "best"},
            ylabel="$n/(N+n)$ of the lowest error",
            reference=[horizontal(0.5)],
        ),
    ],
    caption=r"""
        Eigenvalues $k^{{-a}}$, $a$ = {spectral_decay:g}, target power $k^{{-b}}$, $b$ =
        {target_decay:g} (left, middle), $n$ examples, $N$ random features, no noise. Without a
        ridge ({tiny:g}, hardly any) the interpolation threshold is at $n = N$. Green: theory with
        the best ridge. Right, theory alone: large sizes, $N + n = 10^5$.
    """,
    observables=("test_error",),
    seconds=(40, 900),
    gallery={"seeds": 32},
    full={"modes": 20_000, "sizes": (30, 100, 300, 1000, 3000), "total": 2000, "seeds": 16},
    columns=3,
)
def joint_scaling_optimum(
    spectral_decay: float = 2.0,
    target_decay: float = 2.5,
    tiny: float = 1e-4,
    modes: int = 4000,
    sizes: tuple[int, ...] = (20, 60, 180, 500),
    total: int = 300,
    shares: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 0.9),
    seeds: int = 8,
) -> Iterator[Curve]:
    numbers = {
        "spectral_decay": spectral_decay,
        "target_decay": target_decay,
        "ridge": tiny,
        "modes": modes,
    }
    fine = tuple(np.geomspace(2 * min(sizes), 2 * max(sizes), 25).tolist())
    drawn = {"total": tuple(2 * size for size in sizes)}
    best = partial(drawn_regression, penalty="best")
    together, system = {"part": "together"}, ParameterBudget(2.0 * sizes[0], **numbers)
    for penalty, solved, run in (
        ("best ridge", optimal_ridge, best),
        ("hardly any ridge", joint_law, drawn_regression),
    ):
        facets = together | {"penalty": penalty}
        yield Curve("theory", solved, system, {"total": fine}, facets=facets)
        yield Curve("drawn features", run, system, drawn, seeds, facets=facets)
    split, facets = system.with_(total=total), {"part": "split"}
    everywhere = {"data_share": tuple(np.linspace(0.05, 0.95, 37).tolist())}
    decays = {"target_decay": tuple(np.linspace(1.2, 5.0, 39).tolist())}
    large = ParameterBudget(1e5, spectral_decay=spectral_decay)
    yield Curve("theory", optimal_ridge, split, everywhere, facets=facets)
    yield Curve("drawn features", best, split, {"data_share": shares}, seeds, facets=facets)
    yield Curve("theory", best_split, large, decays, facets={"part": "best"})
