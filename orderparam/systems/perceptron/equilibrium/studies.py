"""The named figures of students at a temperature: the first-order transition of binary weights, and their phases."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.core.study import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel, vertical
from orderparam.plotting.style import COLOURS
from orderparam.systems.perceptron.equilibrium.experiment import enumerated_students, parallel_tempering
from orderparam.systems.perceptron.equilibrium.model import ThermalPerceptron
from orderparam.systems.perceptron.equilibrium.theory import annealed, binary_transitions, quenched

TRANSITION, SPINODAL = 1.2446840, 1.4926318  # of binary weights at T = 0 (Györgyi 1990; Sompolinsky, Tishby, Seung 1990)


def draw_lines(axes: Any, comparison: Comparison) -> None:
    """Where the state R < 1 stops to be the state of largest free entropy, where its entropy vanishes, and where it ends."""
    (lines,) = comparison.theories(part="plane").values()
    for name, style, text in (("thermodynamic", "-", "first order"), ("freezing", "--", ""), ("spinodal", ":", "")):
        axes.plot(lines[name], lines["temperature"], style, color=COLOURS[0], label=text or name)
    axes.set(xlabel="samples per dimension $\\alpha$", ylabel="temperature $T$")


@study(
    "binary-perceptron",
    title="A perceptron with binary weights: sudden generalisation and metastable students",
    source="Györgyi 1990; Sompolinsky, Tishby, Seung 1990; Seung, Sompolinsky, Tishby 1992",
    seconds=(60, 1800),
    observables=("classification_error", "mistakes", "free_entropy", "entropy"),
    full={"input_dim": 127, "counted": 19, "seeds": 32, "sweeps": 20_000, "temperatures": tuple(np.linspace(0.1, 0.7, 25))},
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
        Freehand(draw_lines, "Lines of the state $R < 1$"),
    ],
    caption=r"""
        Left: theory for $N\to\infty$, transition at 1.245 and spinodal at 1.493 (dotted); all $2^N$ students at $N$ = {counted}.
        Middle: parallel tempering, $N$ = {input_dim}. Grey: annealed. Right: where the state $R < 1$ has the free entropy of the
        teacher (first order), where its entropy vanishes (freezing), and where it ends (spinodal).
    """,
    explained=(
        "Every student can be counted at 15 weights only: the jump is rounded, and the error is below that of many "
        "weights (at n/d = 0.9 by 23 % at 9 and 13 weights, 14 % at 17)."
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
    yield Curve("replica theory", binary_transitions, cold, {"temperature": temperatures}, facets={"part": "plane"})
    for temperature in warm:
        system, facets = ThermalPerceptron(1.0, temperature, input_dim=input_dim), {"part": "warm", "temperature": temperature}
        tempered = partial(parallel_tempering, sweeps=sweeps)
        yield Curve("annealed", annealed, system, fine, facets=facets, baseline=True)
        yield Curve("replica theory", quenched, system, fine, facets=facets)
        yield Curve("parallel tempering", tempered, system, over, seeds, facets=facets)
