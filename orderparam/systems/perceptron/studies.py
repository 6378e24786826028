"""Named figures of perceptrons: the first-order transition of binary weights, and learning rules."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.analysis.phases.study import diagram_curve, phases_panel
from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, vertical
from orderparam.plotting.style import COLOURS
from orderparam.systems.perceptron.experiment import (
    batch_student,
    enumerated_students,
    online_student,
    parallel_tempering,
)
from orderparam.systems.perceptron.model import BatchPerceptron, OnlinePerceptron, ThermalPerceptron
from orderparam.systems.perceptron.rules import batch_rule, online_rule
from orderparam.systems.perceptron.theory import annealed, binary_transitions, quenched

# ------------------------------------------------------------------------------------------------
# Students at a temperature: the first-order transition of binary weights, and their phases.

# Transitions of binary weights at T = 0 (Györgyi 1990; Sompolinsky, Tishby, Seung 1990).
TRANSITION, SPINODAL = 1.2446840, 1.4926318


def draw_lines(axes: Any, comparison: Comparison) -> None:
    """Draw the lines at which the state R < 1 loses the largest free entropy, its entropy
    vanishes, and it ends.
    """
    (lines,) = comparison.theories(part="plane").values()
    for name, style, text in (
        ("thermodynamic", "-", "first order"),
        ("freezing", "--", ""),
        ("spinodal", ":", ""),
    ):
        axes.plot(lines[name], lines["temperature"], style, color=COLOURS[0], label=text or name)
    axes.set(xlabel="samples per dimension $\\alpha$", ylabel="temperature $T$")


@study(
    "binary-perceptron",
    title="Binary weights: errors at temperatures 0.5 and 1 follow the theory; enumerating 15 weights rounds the transition at 0",
    source="Györgyi 1990; Sompolinsky, Tishby, Seung 1990; Seung, Sompolinsky, Tishby 1992",
    seconds=(60, 1800),
    observables=("classification_error", "mistakes", "free_entropy", "entropy"),
    full={
        "input_dim": 127,
        "counted": 19,
        "seeds": 32,
        "sweeps": 20_000,
        "temperatures": tuple(np.linspace(0.1, 0.7, 25)),
    },
    columns=3,
    panels=[
        Panel(
            "sample_ratio",
            "classification_error",
            where={"part": "zero"},
            reference=[vertical(TRANSITION, ""), vertical(SPINODAL, "")],
            title="$T = 0$",
        ),
        Panel("sample_ratio", "classification_error", by="temperature", where={"part": "warm"}),
        Freehand(draw_lines, "Transitions of the state $R < 1$"),
    ],
    caption=r"""
        Left: theory for $N\to\infty$ with the transition at 1.245 and the spinodal at 1.493 (dotted);
        marks are averages over all $2^N$ students at $N$ = {counted}. Middle: parallel tempering,
        $N$ = {input_dim}. Grey: annealed theory. Right: lines at which the state $R < 1$ has the free
        entropy of the teacher (first order), its entropy vanishes (freezing), and it ends (spinodal).
    """,
    explained=(
        "Only for few weights (15 here) can all students be enumerated. The transition is then rounded, "
        "and the error is below the limit of many weights: at n/d = 0.9 by 23 % at 9 and 13 weights and "
        "by 14 % at 17."
    ),
)
def binary_perceptron(
    sample_ratios: tuple[float, ...] = (0.3, 0.6, 0.9, 1.2),
    warm: tuple[float, ...] = (0.5, 1.0),
    temperatures: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5),
    counted: int = 15,
    input_dim: int = 63,
    sweeps: int = 1000,
    seeds: int = 16,
) -> Iterator[Curve]:
    over = {"sample_ratio": sample_ratios}
    fine = {"sample_ratio": tuple(np.linspace(0.02, 1.48, 74).tolist())}
    cold, part = ThermalPerceptron(1.0, 0.0, input_dim=counted), {"part": "zero"}
    yield Curve("annealed", annealed, cold, fine, facets=part, baseline=True)
    yield Curve("replica theory", quenched, cold, fine, facets=part)
    yield Curve("every student", enumerated_students, cold, over, 4 * seeds, facets=part)
    yield Curve(
        "replica theory",
        binary_transitions,
        cold,
        {"temperature": temperatures},
        facets={"part": "plane"},
    )
    for temperature in warm:
        system, facets = (
            ThermalPerceptron(1.0, temperature, input_dim=input_dim),
            {"part": "warm", "temperature": temperature},
        )
        tempered = partial(parallel_tempering, sweeps=sweeps)
        yield Curve("annealed", annealed, system, fine, facets=facets, baseline=True)
        yield Curve("replica theory", quenched, system, fine, facets=facets)
        yield Curve("parallel tempering", tempered, system, over, seeds, facets=facets)


# ------------------------------------------------------------------------------------------------
# The phases of the binary perceptron that learns from a teacher.


def teacher_overlap(data: xr.Dataset) -> xr.DataArray:
    """Overlap with the teacher in equilibrium: 1 where the teacher, whose free entropy is 0, has
    the largest free entropy.
    """
    return data["teacher_overlap"].where(data["free_entropy"] > 0, 1.0)


@study(
    "binary-perceptron-plane",
    title="Phases of the binary perceptron: perfect generalisation beyond a first-order line",
    source="Györgyi 1990; Sompolinsky, Tishby, Seung 1990; Seung, Sompolinsky, Tishby 1992",
    seconds=(60, 600),
    gallery={"resolution": 32},
    full={"resolution": 64},
    panels=[phases_panel("sample_ratio", "temperature", order="teacher_overlap")],
    caption="Colour: overlap with the teacher in equilibrium; {resolution} squares along each axis.",
)
def binary_perceptron_plane(resolution: int = 16, most_samples: float = 2.4) -> list[Curve]:
    over = {"sample_ratio": (0.8, most_samples), "temperature": (0.0, 1.0)}
    options: dict[str, Any] = {"resolution": resolution, "accuracy": 1e-4}
    return [diagram_curve(quenched, ThermalPerceptron(1.0), over, order=teacher_overlap, **options)]


# ------------------------------------------------------------------------------------------------
# Learning rules: from all examples at once, and from one at a time.

BATCH = ("hebb", "pseudo-inverse", "maximal stability")
ONLINE = ("hebb", "rosenblatt", "adaline", "optimal")


@study(
    "perceptron-rules",
    title=(
        "A perceptron that sees all examples at once learns best with maximal stability, and worst "
        "with the pseudo-inverse at n = d; one that sees each once, with the optimal rule"
    ),
    source="Opper, Kinzel, Kleinz, Nehl 1990; Kinouchi, Caticha 1992; Watkin, Rau, Biehl 1993",
    seconds=(50, 900),
    observables=("teacher_overlap", "classification_error"),
    gallery={"batch_ratios": (0.5, 0.8, 1.0, 1.25, 2.0, 3.0, 4.0), "seeds": 16},
    full={
        "input_dim": 400,
        "stream_dim": 10_000,
        "seeds": 16,
        "batch_ratios": (0.25, 0.5, 1.5, 2.0, 3.0, 4.0, 6.0),
    },
    columns=2,
    panels=[
        Panel(
            "sample_ratio",
            "classification_error",
            by="rule",
            log="xy",
            where={"part": part},
            title=title,
        )
        for part, title in (("batch", "all examples at once"), ("online", "each example once"))
    ],
    caption=r"""
        $y=\mathrm{{sign}}(w_0\cdot x)$. $N$ = {input_dim} (left) and {stream_dim} (right, learning rate {rate}).
        Grey: a random student among all those without training errors.
    """,
)
def perceptron_rules(
    batch_ratios: tuple[float, ...] = (0.5, 2.0, 4.0),
    online_ratios: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0),
    rate: float = 0.5,
    input_dim: int = 100,
    stream_dim: int = 1000,
    seeds: int = 8,
) -> list[Curve]:
    curves: list[Curve] = []
    system: BatchPerceptron | OnlinePerceptron
    for part, rules, ratios in (("batch", BATCH, batch_ratios), ("online", ONLINE, online_ratios)):
        fine = {
            "sample_ratio": tuple(np.geomspace(min(ratios) / 2, 1.5 * max(ratios), 80).tolist())
        }
        sphere = ThermalPerceptron(1.0, 0.0, "spherical")
        curves += [
            Curve("without errors", quenched, sphere, fine, facets={"part": part}, baseline=True)
        ]
        for rule in rules:
            facets, over = {"part": part, "rule": rule}, {"sample_ratio": ratios}
            if part == "batch":
                system, predict, run = (
                    BatchPerceptron(1.0, rule, input_dim),
                    batch_rule,
                    batch_student,
                )
            else:
                system, predict, run = (
                    OnlinePerceptron(1.0, rule, rate, stream_dim),
                    online_rule,
                    online_student,
                )
            curves.append(Curve("theory", predict, system, fine, facets=facets))
            curves.append(Curve("student", run, system, over, seeds, facets=facets))
    return curves
