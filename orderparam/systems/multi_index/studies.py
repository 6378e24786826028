"""Studies of targets with several directions: staircases and sample complexities."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, tex, vertical
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS, ink
from orderparam.plotting.text import number, words
from orderparam.systems.multi_index.experiment import climbed_staircase, measured_hermite_power
from orderparam.systems.multi_index.exponents import sgd_samples
from orderparam.systems.multi_index.hinted_parity import (
    first_seen,
    leading_eigenvectors,
    message_passing,
    spectral,
    state_evolution,
)
from orderparam.systems.multi_index.model import (
    STAIRS,
    HintedParity,
    LearnedTarget,
    SphericalSGD,
    WeakLearnability,
)
from orderparam.systems.multi_index.sgd_experiment import overlap_chain, trained_neuron
from orderparam.systems.multi_index.theory import grand_staircase, hardness, overlap_flow
from orderparam.systems.multi_index.weak_recovery import threshold

# ------------------------------------------------------------------------------------------------
# Panels that are drawn by functions of their own: the table of sample complexities, and Hermite
# powers as bars.


def draw_table(axes: Any, comparison: Comparison) -> None:
    """Draw the exponents of each target and the samples that each algorithm needs, row by row."""
    (theory,) = comparison.theories().values()
    rows = []
    for name in theory["target"].values:
        one = theory.sel(target=name)
        leap, generative, degree, threshold = (
            float(one[key]) for key in ("leap", "generative_leap", "degree", "threshold")
        )
        kernel = (
            "$e^d$" if math.isinf(degree) else "$d$" if degree == 1 else f"$d^{{{degree:.0f}}}$"
        )
        sgd = (
            sgd_samples(int(leap) if math.isfinite(leap) else None, 8)
            .replace("log", "\\log ")
            .replace(" ", "\\,")
        )
        best = "$d$" if generative <= 2 else f"$d^{{{generative:.0f}/2}}$"
        orders = [f"{float(value):.0f}" for value in (one["information"], leap, generative)]
        rows.append(
            [
                f"${tex(str(name))}$",
                *orders,
                kernel,
                f"${sgd}$",
                best,
                number(float(f"{threshold:.4g}")),
            ]
        )
    axes.axis("off")
    header = [
        "target",
        "information",
        "leap",
        "gen. leap",
        "kernels",
        "one-pass SGD",
        "best algorithm",
        "its $n/d$",
    ]
    cells = axes.table(rows, colLabels=header, loc="center", cellLoc="center", edges="horizontal")
    cells.scale(1, 1.35)
    cells.auto_set_column_width(range(len(header)))


def draw_powers(axes: Any, comparison: Comparison) -> None:
    """Draw the sums of squared Hermite coefficients of each degree: exact bars, measured dots."""
    (theory,), (runs,) = comparison.theories().values(), comparison.experiments().values()
    names = [str(name) for name in theory["target"].values]
    largest = theory["hermite_power"].max("order")
    for order in range(3):
        x = np.arange(len(names)) + 0.15 * (order - 1)
        height = theory["hermite_power"].isel(order=order) / largest
        label = f"degree {order + 1}"
        axes.bar(x, height, 0.13, color=COLOURS[order], alpha=0.55, label=label)
        dots(
            axes,
            x,
            runs["hermite_power"].isel(order=order) / largest,
            0,
            colour=ink(),
            filled=True,
            markersize=3,
        )
    axes.set_xticks(range(len(names)), [f"${tex(name)}$" for name in names])
    axes.set(ylabel="share of the largest degree", ylim=(-0.05, 1.1))


_TARGETS = ("z", "z**2", "He3(z)", "z1*z2", "z1*z2*z3", "sign(z1*z2*z3)")


@study(
    "leap-staircase",
    title="SGD finds the directions of a staircase one after the other, and none of a target of "
    "leap 3 in the same time",
    source="Abbe, Boix-Adsera, Misiakiewicz 2022, 2023",
    gallery={"seeds": 24},
    full={"dim": 100_000, "network_dim": 4096, "seeds": 64, "horizon": 200.0},
    seconds=(45, 1800),
    observables=("overlap",),
    panels=[
        Panel(
            (words("sample_ratio"), lambda data: data["sample_ratio"].isel(input_dim=-1)),
            ("overlap with each direction", lambda data: data["overlap"].isel(input_dim=-1)),
            facet="target",
            by="index",
            log="x",
            text={0: "$m_1$", 1: "$m_2$", 2: "$m_3$"},
        )
    ],
    caption=(
        r"One neuron, $\sigma = \mathrm{{He}}_1 + \mathrm{{He}}_2/2 + \mathrm{{He}}_3/6$, "
        r"correlation loss, learning rate 0.05; $z_i = w_i\cdot x$ with orthonormal $w_i$, whose "
        r"overlaps with the neuron are $m_i$. Flow from all overlaps = {first}; exact chain: "
        r"$d$ = {dim}; network with all weights: $d$ = {network_dim}. If the target has the lower "
        r"terms (leap 1) SGD finds one direction after the other; without them (leap 3) it finds "
        r"no direction in this time."
    ),
)
def leap_staircase(
    dim: int = 2048,
    network_dim: int = 256,
    first: float = 0.02,
    horizon: float = 80.0,
    seeds: int = 8,
) -> Iterator[Curve]:
    for formula in ("z1 + z1*z2 + z1*z2*z3", "z1*z2*z3"):
        system = SphericalSGD(
            target=formula,
            student="He1(z) + He2(z)/2 + He3(z)/6",
            learning_rate=0.05,
            first_overlap=first,
            horizon=horizon,
            records=14,
        )
        chain, network = system.with_(input_dim=dim), system.with_(input_dim=network_dim)
        facets = {"target": formula}
        yield Curve("flow", overlap_flow, chain, {"input_dim": (dim,)}, facets=facets)
        yield Curve(
            "exact chain", overlap_chain, chain, {"input_dim": (dim,)}, seeds, True, facets=facets
        )
        yield Curve(
            "network",
            trained_neuron,
            network,
            {"input_dim": (network_dim,)},
            seeds,
            True,
            facets=facets,
        )


@study(
    "weak-learnability-table",
    title=(
        "In theory, from degree 2 on, kernels need more samples than one-pass SGD, and SGD "
        "needs more than the best known algorithm"
    ),
    source="Abbe et al. 2023; Damian et al. 2024; Troiani et al. 2024",
    gallery={"seeds": 16},
    full={"samples": 2_000_000, "seeds": 16},
    seconds=(10, 300),
    observables=("hermite_power",),
    columns=1,
    panels=[Freehand(draw_table), Freehand(draw_powers)],
    caption=r"""
        Above, theory. Information: lowest degree in the Hermite expansion of the target. Leap:
        highest degree that SGD needs on the way to all directions, when those found before are
        known; gen. leap: the same after the best transformation of the labels. Kernels: samples
        with which a kernel learns the whole target ($e^d$: more than any power of $d$); one-pass
        SGD and best algorithm: samples to find all directions; its $n/d$: where the best algorithm
        finds the first of them. Below, a check of the expansions: sum of the squared Hermite
        coefficients of each degree over the largest of these sums; bars: exact, dots: from
        {samples} samples.
    """,
)
def weak_learnability_table(samples: int = 100_000, seeds: int = 8) -> Iterator[Curve]:
    over = {"target": _TARGETS}
    system = WeakLearnability(samples=samples)
    yield Curve("exact", hardness, system, over)
    yield Curve("random samples", measured_hermite_power, system, over, seeds=seeds)


@study(
    "hinted-parity",
    title=(
        "With a hint of one direction of a parity of three, a few samples for each input reveal "
        "the other two; with a better hint fewer"
    ),
    source="Troiani, Dandi, Defilippis, Zdeborová, Loureiro, Krzakala 2024; Mondelli, Montanari "
    "2018",
    full={
        "input_dim": 3000,
        "seeds": 16,
        "lines": tuple(np.geomspace(0.5, 3.0, 61).tolist()),
        "runs": (0.6, 0.8, 1.25, 1.5, 1.75, 2.0, 2.5),
    },
    seconds=(60, 1800),
    observables=("overlap",),
    explained=(
        "Below the thresholds, where the theory is zero, eigenvectors of 500 inputs have "
        "overlaps of 0.04. At 1.5 times the thresholds of Q = 0.8 and 1 measured overlaps lie"
        " up to 13 % below the theory of infinite d; other d were not run. Six of 144 runs of "
        "message passing did not converge, five of them below the thresholds, where overlaps "
        "decay slowly."
    ),
    panels=lambda p: [
        Panel(
            "sample_ratio",
            "overlap",
            facet="method",
            by="hint",
            log="x",
            reference=[vertical(first_seen(hint), "") for hint in p["hints"]],
            ylabel="overlap with $w_2$ and $w_3$",
        )
    ],
    caption=r"""
        $y = \mathrm{{sign}}(z_1 z_2 z_3)$, $z_k = w_k\cdot x$ with unit vectors $w_k$ and Gaussian
        $x$ in $d$ = {input_dim} dimensions, $n$ samples, and a known vector
        whose squared cosine with $w_1$ is $Q$; overlap: 1 where $w_2$ and $w_3$ are found. Dotted:
        the $n/d = (\pi^2/4)/((2/\pi)\arcsin Q)$ above which the other two directions are found; in
        theory they are never found without a hint, which is not measured. Message passing also
        improves the estimate of the first direction; eigenvectors do not. The line of $Q$ = 0.5 is
        steep, as its theory nearly jumps above the threshold.
    """,
)
def hinted_parity(
    hints: tuple[float, ...] = (0.5, 0.8, 1.0),
    lines: tuple[float, ...] = tuple(np.geomspace(0.55, 2.4, 24).tolist()),
    runs: tuple[float, ...] = (0.7, 1.5, 2.2),
    input_dim: int = 500,
    seeds: int = 4,
) -> Iterator[Curve]:
    """Curves of theory and runs; `lines` and `runs` are n/d in units of the threshold of each
    hint."""
    for hint in hints:
        system = HintedParity(1.0, hint, input_dim)
        fine, few = (
            {"sample_ratio": tuple(first_seen(hint) * x for x in ratios)}
            for ratios in (lines, runs)
        )
        passing, eigenvectors = (
            {"hint": hint, "method": method} for method in ("message passing", "eigenvectors")
        )
        yield Curve("theory", state_evolution, system, fine, facets=passing)
        yield Curve("drawn problem", message_passing, system, few, seeds, facets=passing)
        yield Curve("theory", spectral, system, fine, facets=eigenvectors)
        yield Curve("drawn problem", leading_eigenvectors, system, few, seeds, facets=eigenvectors)


_BOTH, _ALONE = "square and parity", "parity alone"


@study(
    "grand-staircase",
    title=(
        "Message passing finds first the direction of a square, then the two that a parity "
        "joins to it; without the square it does not find these two"
    ),
    source="Troiani, Dandi, Defilippis, Zdeborová, Loureiro, Krzakala 2024",
    gallery={"runs": (0.45, 0.53, 0.63, 0.9, 1.3, 1.9, 2.25, 2.7, 3.4, 4.0), "seeds": 16},
    full={
        "lines": tuple(np.arange(0.4, 4.01, 0.05).round(12).tolist()),
        "runs": (0.5, 0.7, 0.9, 1.1, 1.3, 1.6, 2.0, 2.4, 2.8, 3.2, 3.6, 4.0),
        "input_dim": 2000,
        "seeds": 16,
    },
    seconds=(60, 3600),
    observables=("overlap",),
    panels=lambda p: [
        Panel(
            "sample_ratio",
            "overlap",
            by="index",
            where={"target": _BOTH},
            text={0: "$z_1$", 1: "$z_2$", 2: "$z_3$"},
            reference=[vertical(stair.threshold, "") for stair in threshold(STAIRS).stairs],
            ylabel="overlap with each direction",
            title="with the square",
        ),
        Panel(
            "sample_ratio",
            "overlap",
            where={"target": _ALONE},
            ylabel="mean overlap with $z_2$ and $z_3$",
            ylim=(-0.05, 1.05),
            title="without the square",
        ),
    ],
    columns=2,
    caption=r"""
        $y = z_1^2 + \mathrm{{sign}}(z_1 z_2 z_3)$, $d$ = {input_dim}. A parity of three directions
        cannot be learned from $O(d)$ labels, but the square makes $z_1$ learnable, and once $z_1$
        is known a parity of two remains. Dotted: the two thresholds, the second for perfect
        knowledge of $z_1$. Right, a control: the same algorithm on $y = \mathrm{{sign}}(z_1 z_2
        z_3)$ (with a hint of squared overlap $10^{{-6}}$). At finite $d$ the second threshold is
        rounded. Runs that did not converge (of $z_1$: upper, of $z_2$ and $z_3$: lower grey marks)
        have smaller overlaps, so that means are somewhat too high. $z_2$ lies under $z_3$. The
        theory is computed at a few $n/d$ and joined by lines.
    """,
    explained=(
        "At finite d the second threshold is rounded. In a control with 16 runs of d = 250, "
        "500 and 1000 the overlap is 0.204(29), 0.178(16) and 0.125(19) at n/d = 2.7, where "
        "the theory is 0.098, and 0.027(5), 0.028(8) and 0.015(5) at n/d = 2.25, where it is "
        "0. Runs that did not converge have smaller overlaps, so that the means of the others "
        "are too high. Where the first direction is known perfectly, the iteration ends 4e-7 "
        "below 1, which is more than the scatter of the runs."
    ),
)
def grand_staircase_study(
    lines: tuple[float, ...] = (
        0.45,
        0.57,
        0.7,
        0.9,
        1.1,
        1.3,
        1.4,
        1.45,
        1.9,
        2.46,
        2.8,
        3.4,
        4.0,
    ),
    runs: tuple[float, ...] = (0.45, 0.9, 1.3, 1.9, 3.4, 4.0),
    input_dim: int = 500,
    seeds: int = 6,
) -> Iterator[Curve]:
    system, facets = LearnedTarget(1.0, input_dim=input_dim), {"target": _BOTH}
    line, marks = {"sample_ratio": lines}, {"sample_ratio": runs}
    yield Curve("state evolution", grand_staircase, system, line, facets=facets)
    yield Curve("message passing", climbed_staircase, system, marks, seeds, facets=facets)
    # The control is the parity alone. `HintedParity` needs a hint, and a hint of squared overlap
    # 1e-6 has no measurable effect.
    alone, facets = HintedParity(1.0, 1e-6, input_dim), {"target": _ALONE}
    yield Curve("message passing", message_passing, alone, marks, seeds, facets=facets)
