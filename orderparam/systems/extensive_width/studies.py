"""The figures of the theory of extensive-width learning: staircase, transitions, laws of
read-outs."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.analysis.phases.study import diagram_curve, phases_panel
from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.style import COLOURS, DASHES, GREY, ink
from orderparam.running.status import DONE
from orderparam.systems.extensive_width.limits import flat_hierarchy
from orderparam.systems.extensive_width.model import HierarchicalTeacher, WeightedTeacher
from orderparam.systems.extensive_width.posterior import posterior_hmc
from orderparam.systems.extensive_width.theory import bayes_optimal, informed_state

# ------------------------------------------------------------------------------------------------
# Grids in the number of samples, whose natural unit is d^2, and the explanation of finite-size
# effects.

# Why sampled posteriors differ from the theory (docs/theory/extensive_width.md): measured at d = 16
# to 48.
FINITE_DIMENSION = (
    "The theory is that of large dimensions: near the threshold of a feature a small system has "
    "learned it in some data sets and not in others, and between thresholds the error is lower by "
    "a relative amount of about 4/d."
)


def samples(low: float, high: float, count: int) -> list[float]:
    """Whole numbers of samples, equidistant in the logarithm."""
    return sorted({float(round(n)) for n in np.geomspace(low, high, count)})


def from_learned(warmup: int, draws: int, thin: int, doublings: int) -> Callable[..., Any]:
    """Chains in which the features that are learned in theory start at the teacher."""
    return partial(
        posterior_hmc,
        start="partially_informed",
        warmup=warmup,
        draws=draws,
        thin=thin,
        doublings=doublings,
    )


def per_ratio(ratios: Iterable[float], input_dim: float) -> list[float]:
    """Whole numbers of samples at given n / d^2."""
    return [float(round(ratio * input_dim**2)) for ratio in ratios]


def learned(data: xr.Dataset) -> xr.DataArray:
    """True where a feature is learned; overlaps jump where this changes."""
    return data["overlap"] > 0


def per_square(input_dim: float) -> tuple[str, Callable[[xr.Dataset], xr.DataArray]]:
    """n / d^2 as the axis of a panel."""
    return "$n/d^2$", lambda data: data["n_train"] / input_dim**2


def sum_of_overlaps(data: xr.Dataset) -> xr.DataArray:
    """About the number of features that are learned."""
    overlap = data["overlap"]
    return overlap.sum([dim for dim in overlap.dims if dim not in ("point", "seed")])


# ------------------------------------------------------------------------------------------------
# Panels that are drawn by functions of their own: every run by itself, and a map of the order of
# the transition.


def draw_every_run(
    group: str, axes: Any, comparison: Comparison, xlabel: str = "", **kept: Any
) -> None:
    """Draw the sum of the overlaps of every run, and that of the theory as a line.

    Runs that did not converge are open and grey. group: the facet whose values stand side by side;
    kept: values of other facets, of which alone the runs are drawn.
    """
    names = []
    for place, data in enumerate(comparison.experiments(**kept).values()):
        facets, colour = data.attrs["facets"], COLOURS[place]
        names.append(facets[group])
        (theory,) = comparison.theories(**facets).values()
        ends = place - 0.4, place + 0.4
        axes.plot(ends, 2 * [sum_of_overlaps(theory).item()], color=colour)
        runs = sum_of_overlaps(data).values.ravel()
        done = data["status"].values.ravel() == DONE
        at = np.linspace(*ends, runs.size + 2)[1:-1]
        axes.plot(at[done], runs[done], ".", color=colour)
        axes.plot(at[~done], runs[~done], "o", markersize=3, color=GREY, markerfacecolor="none")
    axes.set_xticks(range(len(names)), names)
    axes.set(xlabel=xlabel, ylabel="sum of the overlaps")


def draw_runs(axes: Any, comparison: Comparison) -> None:
    """Draw the sum of the overlaps of every run against the number of samples, runs of one number
    side by side, and that of the theory as a line.

    Runs that did not converge are open and grey.
    """
    (data,) = comparison.experiments().values()
    optimal, _ = comparison.theories(**data.attrs["facets"]).values()
    axes.plot(optimal["n_train"], optimal["overlap"].sum("feature"), color=COLOURS[0])
    runs = data["overlap"].sum("feature").transpose("n_train", "seed").values
    done = data["status"].transpose("n_train", "seed").values == DONE
    at = np.geomspace(0.96, 1.04, runs.shape[1]) * data["n_train"].values[:, None]
    axes.plot(at[done], runs[done], ".", color=COLOURS[0])
    axes.plot(at[~done], runs[~done], "o", markersize=3, color=GREY, markerfacecolor="none")
    axes.set(xscale="log", xlabel="training examples $n$", ylabel="sum of the overlaps")


def draw_order(axes: Any, comparison: Comparison) -> None:
    """Draws the region of (decay, noise) in which a finite fraction of the features is learned at
    once."""
    (diagram,) = comparison.theories(part="diagram").values()
    ratio = diagram["first_order_ratio"].transpose("noise", "decay")
    decay, noise = diagram["decay"], diagram["noise"]
    mesh = axes.pcolormesh(
        decay, noise, np.log10(ratio), cmap="RdBu_r", vmin=-1, vmax=1, shading="gouraud"
    )
    axes.contour(decay, noise, ratio, levels=[1.0], colors=[ink()])
    axes.plot(comparison.parameters["decay"], comparison.parameters["noise"], "*", color=ink())
    axes.annotate("many at once", (0.15, 0.18), xycoords="axes fraction")
    axes.annotate("one by one", (0.96, 0.85), xycoords="axes fraction", ha="right")
    axes.set(yscale="log", xlabel=r"decay $\beta$", ylabel=r"noise $\Delta$")
    axes.figure.colorbar(mesh, ax=axes, label=r"$\log_{10}\, A / (2\beta(\Delta + g(1)))$")


def draw_widths(axes: Any, comparison: Comparison) -> None:
    """Draws the number of features that every chain has learned, beside the theory; chains of runs
    that did not converge are open."""
    (data,) = comparison.experiments().values()
    dim = data.attrs["facets"]["input_dim"]
    lines = [t for t in comparison.theories(input_dim=dim).values() if not t.attrs["baseline"]]
    for number, theory in enumerate(lines):
        look: Any = {"color": COLOURS[number], "linestyle": DASHES[number]}
        axes.plot(theory["n_train"] / dim**2, np.ravel(theory["effective_width"]), **look)
    widths = data["chain_width"].transpose("n_train", "seed", "chain").values
    converged = data["converged"].transpose("n_train", "seed").values.astype(bool)
    for place, own, good in zip(data["n_train"].values / dim**2, widths, converged):
        # chains of the same number side by side, those of one run in order
        at = place + np.linspace(-0.06, 0.06, own.size).reshape(own.shape)
        dot: Any = {"marker": "o", "markersize": 2.5, "linestyle": ""}
        axes.plot(at[good].ravel(), own[good].ravel(), color=ink(), **dot)
        axes.plot(at[~good].ravel(), own[~good].ravel(), color=GREY, mfc="none", **dot)
    axes.set(xlabel="$n/d^2$", ylabel=f"features learned, of {data.sizes['feature']}")


SOURCE = "Nguyen and Barbier 2026"


@study(
    "feature-staircase",
    title=(
        "Chains that start in the states of the theory's staircase keep the learned features, to "
        "4 % in the 56 of 96 that converge; the small overlap of the next one depends on the start"
    ),
    source=SOURCE,
    seconds=(50, 2700),
    observables=("overlap",),
    gallery={
        "ratios": (0.006, 0.034, 0.04, 0.068, 0.075, 0.105),
        "warmup": 600,
        "draws": 400,
        "thin": 5,
    },
    full={
        "points": 3000,
        "measured_dim": 140,
        "ratios": (0.006, 0.034, 0.04, 0.068, 0.075, 0.105),
        "warmup": 600,
        "draws": 400,
        "thin": 5,
        "seeds": 16,
    },
    panels=lambda p: [
        Panel(
            "n_train",
            "overlap",
            by="feature",
            log="x",
            where={"part": "overlaps", "feature": (0, 1, 2, 3)},
            jump=learned,
        ),
        Panel(
            "n_train",
            "effective_width",
            log="xy",
            where={"part": "width"},
            colours={"Bayes-optimal": "text", "informed branch": "text"},
            ylabel="number of learned features $k_c$",
        ),
        Freehand(draw_runs, "every run", one_by_one=True),
    ],
    caption=r"""
        Teacher of $k$ hidden units with $\tanh(2z)$, the features, on $d$ Gaussian inputs;
        read-outs $\propto i^{{-\beta}}$, $\beta$ = {decay}; label noise of variance $\Delta$ =
        {noise}. Left: $d$ = {measured_dim}, $k$ = {measured_width}; overlap of the weights of
        feature $i$ with those of the teacher; chains start with the features that are learned in
        theory at the teacher. Middle: number $k_c$ of learned features in theory, $d$ =
        {input_dim}, $k$ = {width}; solid: Bayes-optimal, dashed: informed branch, the state that a
        start at the teacher reaches. Right: the sum over features, about the number of learned
        ones, in every run and in theory (line); open: runs that did not converge.
    """,
    explained=(
        "The theory is that of large dimensions, and there are 100. In the runs that converged "
        "the features that the theory has learned have its overlaps to 4 %, and the feature that "
        "is next has 0.02 to 0.07, with errors of 0.01 to 0.03, where the theory has 0. In an "
        "earlier run of this study chains of the same length started at the teacher itself: they "
        "converged as seldom (64 of 96 runs) and kept 0.07 to 0.18 of the next feature. The start "
        "therefore decides a part of this overlap. In runs that did not converge the last learned "
        "feature has 0.85(2) for 0.90 at 750 examples and 0.70(5) for 0.86 at 1050."
    ),
    metastable=(
        "Chains of 2,600 trajectories gain and lose the last learned feature and the next one "
        "rarely, from whichever state they start: in 40 of 96 runs R-hat of the error is above "
        "1.05 or there are fewer than 100 effective samples. The right panel shows every run."
    ),
)
def feature_staircase(
    input_dim: int = 200,
    width: int = 100,
    decay: float = 1.0,
    noise: float = 0.01,
    points: int = 600,
    measured_dim: int = 100,
    measured_width: int = 8,
    ratios: tuple[float, ...] = (0.015, 0.045, 0.08, 0.145),
    warmup: int = 100,
    draws: int = 100,
    thin: int = 1,
    seeds: int = 4,
) -> Iterator[Curve]:
    """thin: trajectories between draws."""
    few = HierarchicalTeacher(measured_dim, measured_width, decay, noise)
    many = HierarchicalTeacher(input_dim, width, decay, noise)
    over = {"n_train": samples(0.01 * measured_dim**2, 0.2 * measured_dim**2, points)}
    all_steps = {"n_train": samples(0.01 * input_dim**2, 40 * input_dim**2, points)}
    measured = {"n_train": per_ratio(ratios, measured_dim)}
    overlaps = {"part": "overlaps"}
    chains = from_learned(warmup, draws, thin, doublings=0)
    yield Curve("Bayes-optimal", bayes_optimal, few, over, facets=overlaps)
    yield Curve("informed branch", informed_state, few, over, facets=overlaps)
    yield Curve("HMC, learned features informed", chains, few, measured, seeds, facets=overlaps)
    yield Curve("Bayes-optimal", bayes_optimal, many, all_steps, facets={"part": "width"})
    yield Curve("informed branch", informed_state, many, all_steps, facets={"part": "width"})


@study(
    "collective-transition",
    title="In theory many features are learned at once if their read-outs are of similar size; "
    "chains that start at the teacher, most of them not converged, keep 1 to 7 of 12 features at "
    "$n/d^2$ = 0.6 and 7 to 12 at 0.8",
    source="derived for this package from the free entropy of Nguyen and Barbier 2026",
    seconds=(60, 1200),
    observables=("error",),
    gallery={"warmup": 600, "draws": 400, "thin": 5},
    full={
        "points": 400,
        "resolution": 80,
        "measured_dim": 60,
        "warmup": 600,
        "draws": 400,
        "thin": 5,
        "seeds": 16,
    },
    panels=[
        Panel(
            ("$n/d^2$", lambda data: data["n_train"] / data.attrs["facets"]["input_dim"] ** 2),
            "error",
            facet="input_dim",
            where={"part": "error"},
        ),
        Freehand(draw_widths, "chains one by one, $d$ = 24", one_by_one=True),
        Freehand(draw_order, "order of the transition"),
    ],
    columns=2,
    caption=r"""
        A teacher of $k$ = {width_ratio} $d$ features tanh$(2z)$ in $d$ inputs, whose read-outs fall
        as $i^{{-\beta}}$; $\Delta$: variance of the label noise, $n$: number of examples. Errors:
        $\beta$ = {decay}, $\Delta$ = {noise} (star in the map). Informed branch: the state that a
        start at the teacher reaches. Infinite dimension: the limit
        $d\to\infty$, which finite sizes approach slowly, as $k^{{2\beta - 1}}$. All chains start
        at the teacher, with all features. Bottom left: the four chains of every data set, side by
        side; a feature is learned where its overlap with the teacher's exceeds 1/2. Where chains
        have not converged (grey), the features that they keep describe the sampler, not the
        equilibrium. In the red part of the map a finite fraction of the features is
        learned at once: there $A > 2\beta(\Delta + g(1))$, where $g(1)$ is the error before any
        feature is learned and $A$ its fall to the error at the smallest $n/d^2$ at which all can be
        learned.
    """,
    metastable=(
        "Chains of 2,600 trajectories keep different features: at n/d^2 = 0.4, 0.6 and 0.8 the "
        "four chains of 12, 16 and 11 of the 16 data sets differ in the features that they have "
        "learned. The figure shows all chains. In all 40 of 80 runs did not converge: which "
        "features a chain keeps is there a property of the sampler and of its start."
    ),
    explained=(
        f"{FINITE_DIMENSION} At n/d^2 = 0.4, 0.6 and 0.8 only 4, 1 and 3 of 16 runs converged, and "
        "the choice of these runs biases their mean: at 0.8 they have the error 0.021(2), the "
        "other 13 have 0.034(2), where the theory of the state that is reached from the teacher "
        "has 0.024 and that of the equilibrium 0.063. At 1 and 1.2, where all converged, errors "
        "are 0.0123(4) and 0.0081(2) for 0.0112 and 0.0076. Longer chains were not run."
    ),
)
def collective(
    width_ratio: float = 0.5,
    noise: float = 0.01,
    decay: float = 0.3,
    points: int = 120,
    resolution: int = 32,
    input_dim: int = 400,
    measured_dim: int = 24,
    ratios: tuple[float, ...] = (0.4, 0.6, 0.8, 1.0, 1.2),
    warmup: int = 100,
    draws: int = 100,
    thin: int = 1,
    seeds: int = 4,
) -> Iterator[Curve]:
    """thin: trajectories between draws."""
    limit = HierarchicalTeacher(input_dim, round(width_ratio * input_dim), decay, noise)
    diagram = {
        "decay": list(np.linspace(0.02, 0.48, resolution)),
        "noise": list(np.geomspace(0.002, 0.3, resolution)),
    }
    yield Curve(
        "order of the transition", flat_hierarchy, limit, diagram, facets={"part": "diagram"}
    )
    for dim in (input_dim, measured_dim):
        system, facets = (
            HierarchicalTeacher(dim, round(width_ratio * dim), decay, noise),
            {"part": "error", "input_dim": dim},
        )
        grid = {"n_train": [float(a) * dim**2 for a in np.linspace(0.3, 1.3, points)]}
        yield Curve(
            "infinite dimension", flat_hierarchy, system, grid, facets=facets, baseline=True
        )
        yield Curve("Bayes-optimal", bayes_optimal, system, grid, facets=facets)
        yield Curve("informed branch", informed_state, system, grid, facets=facets)
    measured = {"n_train": per_ratio(ratios, measured_dim)}
    chains = partial(posterior_hmc, start="informed", warmup=warmup, draws=draws, thin=thin)
    yield Curve("HMC from the teacher", chains, system, measured, seeds, facets=facets)


@study(
    "readout-laws",
    title=(
        "Of 14 features with similar read-outs all stay unlearned at $n/d^2$ = 0.5, nearly all "
        "stay learned at 2; of steeper ones two or three and then five to nine, the last in part"
    ),
    source="Nguyen and Barbier 2026, appendix figures",
    seconds=(60, 3000),
    observables=("overlap",),
    gallery={"warmup": 600, "draws": 400, "thin": 5},
    full={
        "measured_dim": 60,
        "measured_width": 30,
        "ratios": (0.5, 1.0, 1.5, 2.0),
        "doublings": 3,
        "seeds": 8,
    },
    panels=lambda p: [
        Panel(
            per_square(p["input_dim"]),
            "effective_width",
            facet="law",
            log="x",
            where={"width": p["width"]},
            colours={"Bayes-optimal": "text"},
        ),
        Panel(
            "feature",
            "overlap",
            facet="law",
            by="ratio",
            where={"width": p["measured_width"]},
            jump=learned,
            text={ratio: f"$n/d^2$ = {ratio:g}" for ratio in p["ratios"]},
        ),
        *(
            Freehand(
                partial(draw_every_run, "ratio", xlabel="$n/d^2$", law=law),
                f"every run, {law}",
                one_by_one=True,
            )
            for law, _ in _laws(p["measured_dim"], p["measured_width"], p["noise"])
        ),
    ],
    caption=r"""
        Teachers of $k$ hidden units with $\tanh(2z)$, the features, on $d$ Gaussian inputs;
        read-outs of unit norm that are proportional to $i^{{-0.7}}$, fall linearly from 2.5 to 1,
        or fall as $e^{{-5i/k}}$; label noise of variance $\Delta$ = {noise}, $n$ examples. Top,
        theory alone: number $k_c$ of learned features, $d$ = {input_dim}, $k$ = {width}. Middle:
        $d$ = {measured_dim}, $k$ = {measured_width}; chains that start with the learned features at
        the teacher test whether the state of the theory is stable, not whether it is selected.
        There too the lines are those of the theory. Bottom: the sum over features, about the number
        of learned ones, in every run and in theory (line) at both $n/d^2$; open: not converged.
    """,
    explained=(
        "The theory is that of large dimensions. With 28 inputs a feature within two places of the "
        "last learned one is learned in some data sets and not in others: the last two learned "
        "features have overlaps of 0.38(8) to 1.00(1) where the theory has 0.77 to 0.97, and the "
        "first two unlearned ones up to 0.24(5) where it has 0. All other learned features lie "
        "within 3.2 % of the theory. With the 17 runs that did not converge no mean changes by "
        "more than 0.07. Control with half the inputs and half the features, 14 and 7, and 16 data "
        "sets: for the power law at n/d^2 = 2 three features next to the last learned one differ "
        "from the theory by 0.28 to 0.37, where three do by 0.20 to 0.38 with 28 inputs: they are "
        "as many, so that their share of the features halves. At n/d^2 = 0.5 the first unlearned "
        "feature has 0.28(7), with 28 inputs 0.20(6), and similar read-outs at most 0.16(3) and "
        "0.14(4)."
    ),
    metastable=(
        "Chains of 2,600 trajectories gain and lose features near the last learned one rarely. "
        "Chains eight times as long were tried at one point: 3 of 16 runs still did not converge. "
        "The bottom panels show every run."
    ),
)
def readout_laws(
    input_dim: int = 200,
    width: int = 100,
    noise: float = 0.04,
    points: int = 100,
    ratios: tuple[float, ...] = (0.5, 2.0),
    measured_dim: int = 28,
    measured_width: int = 14,
    warmup: int = 100,
    draws: int = 80,
    thin: int = 1,
    doublings: int = 0,
    seeds: int = 4,
) -> Iterator[Curve]:
    """warmup, draws, thin, doublings: lengths of the chains."""
    chains = from_learned(warmup, draws, thin, doublings)
    all_ratios = {"n_train": samples(0.05 * input_dim**2, 4 * input_dim**2, points)}
    for law, teacher in _laws(input_dim, width, noise):
        facets: dict[str, Any] = {"law": law, "width": width}
        yield Curve("Bayes-optimal", bayes_optimal, teacher, all_ratios, facets=facets)
    for law, teacher in _laws(measured_dim, measured_width, noise):
        for ratio in ratios:
            system = teacher.with_(n_train=float(round(ratio * measured_dim**2)))
            facets = {"law": law, "ratio": ratio, "width": measured_width}
            yield Curve("Bayes-optimal", bayes_optimal, system, {}, facets=facets)
            yield Curve("HMC, learned features informed", chains, system, {}, seeds, facets=facets)


def _laws(input_dim: int, width: int, noise: float) -> Iterator[tuple[str, WeightedTeacher]]:
    """The laws by which read-outs fall, and their teachers with input_dim**2 examples."""
    rank = np.arange(width)
    laws = {
        "power law 0.7": (rank + 1.0) ** -0.7,
        "linear 2.5 to 1": np.linspace(2.5, 1.0, width),
        "$e^{-5i/k}$": np.exp(-5 * rank / width),
    }
    for law, v in laws.items():
        yield law, WeightedTeacher(input_dim, v / np.linalg.norm(v), noise, float(input_dim**2))


# ------------------------------------------------------------------------------------------------
# The phases of a teacher of extensive width: which of its features are learned.


@study(
    "feature-plane",
    title=(
        "In theory features are learned together if their read-outs are similar, one by one if "
        "the read-outs decay"
    ),
    source="derived for this package from the free entropy of Nguyen and Barbier 2026",
    seconds=(60, 1200),
    gallery={"resolution": 64},
    full={"resolution": 128, "width": 20},
    panels=[phases_panel("n_train", "decay", log="x", order="sum of the overlaps of features")],
    caption=r"""
        Theory alone. Teacher of $k$ = {width} hidden units, the features, on $d$ = {input_dim}
        inputs, read-outs $\propto i^{{-\beta}}$ (decay $\beta$), label noise of variance {noise}.
        Colour: sum of the overlaps of all features, about the number that is learned; lines: jumps
        of one or more features; where many features jump together, at small decay, lines break
        because they are drawn from a grid.
    """,
)
def feature_plane(
    resolution: int = 32, input_dim: int = 150, width: int = 6, noise: float = 0.1
) -> list[Curve]:
    over = {"n_train": (input_dim**2 / 100, 2.0 * input_dim**2, "log"), "decay": (0.0, 1.8)}
    system = HierarchicalTeacher(input_dim, width, 0.8, noise)
    options: dict[str, Any] = {"resolution": resolution, "accuracy": 1e-4}
    return [diagram_curve(bayes_optimal, system, over, order=sum_of_overlaps, **options)]
