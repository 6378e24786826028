"""Named figures of perceptrons: the first-order transition of binary weights, and learning
rules."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
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
from orderparam.systems.perceptron.theory import Quenched, binary_transitions, quenched

# ------------------------------------------------------------------------------------------------
# Students at a temperature: the first-order transition of binary weights, and their phases.


def draw_lines(axes: Any, comparison: Comparison) -> None:
    """Draw three lines in the plane of alpha and T: where the state R < 1 has the free entropy of
    the teacher, where the entropy of this state vanishes, and where this state ends.
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
    title=(
        "Students of up to 17 binary weights err less than the replica curve already before its "
        "jump"
    ),
    source="Györgyi 1990; Sompolinsky, Tishby, Seung 1990; Seung, Sompolinsky, Tishby 1992",
    seconds=(60, 3600),
    observables=("classification_error", "mistakes"),
    gallery={
        "sample_ratios": (0.3, 0.6, 0.9, 1.2, 1.5, 1.8, 2.1),
        "warm_ratios": (0.3, 0.6, 0.9, 1.2, 1.5, 1.7, 1.9, 2.1, 2.4),
        "counted": (9, 13, 17),
        "dims": (31, 63, 127),
        "seeds": 16,
    },
    full={
        "sample_ratios": (0.3, 0.6, 0.9, 1.2, 1.5, 1.8, 2.1),
        "warm_ratios": (0.3, 0.6, 0.9, 1.2, 1.5, 1.7, 1.9, 2.1, 2.4),
        "counted": (11, 15, 19),
        "dims": (63, 127, 255),
        "seeds": 16,
        "sweeps": 5_000,
    },
    columns=3,
    panels=lambda p: [
        *(
            Panel(
                "sample_ratio",
                "classification_error",
                by="input_dim",
                where={"part": part},
                title=f"$T$ = {temperature:g}",
                reference=[vertical(_jump(temperature))],
                text={n: f"$N$ = {n}" for n in (*p["counted"], *p["dims"])},
            )
            for part, temperature in (("zero", 0.0), ("warm", p["warm"]))
        ),
        Freehand(draw_lines, "Transitions of the state $R < 1$"),
    ],
    caption=r"""
        Students with $N$ binary weights at temperature $T$; there are $n$ training examples,
        $\alpha = n/N$, and $R$ is the overlap with the teacher. Lines: replica theory for
        $N\to\infty$; dotted: here the state $R < 1$ and the teacher have equal free entropy, and
        the error jumps to 0. The axis $n/d$ is $\alpha$. Grey: the state $R < 1$ beyond that point,
        metastable, up to its spinodal. Left (every student): averages over all $2^N$ students.
        Middle: parallel tempering. Right, theory alone: the state $R < 1$ is as probable as the
        teacher (first order), its entropy vanishes (freezing), and it ends (spinodal).
    """,
    explained=(
        "The theory is the equilibrium of many weights. With few weights the jump is rounded: "
        "before the jump the error approaches the theory from below as weights are added, and it "
        "is 0 only beyond the jump. Beyond the jump at T = 0.5, tempering of 127 weights does not "
        "reach equilibrium. Control at n/N = 1.7, where the metastable state has the error 0.25: "
        "the mean error of 16 runs is 0.237(8) after 1000 sweeps and 0.179(17) after 8000 sweeps."
    ),
)
def binary_perceptron(
    sample_ratios: tuple[float, ...] = (0.3, 0.9, 1.2, 1.8),
    warm_ratios: tuple[float, ...] = (0.3, 0.9, 1.2, 1.8),
    warm: float = 0.5,
    temperatures: tuple[float, ...] = tuple(np.linspace(0.05, 0.7, 27).round(3).tolist()),
    counted: tuple[int, ...] = (9, 13),
    dims: tuple[int, ...] = (31, 63),
    sweeps: int = 1000,
    seeds: int = 16,
) -> Iterator[Curve]:
    lines = Curve(
        "replica theory",
        binary_transitions,
        ThermalPerceptron(1.0, 0.0),
        {"temperature": temperatures},
        facets={"part": "plane"},
    )
    yield lines
    for part, temperature, ratios, sizes in (
        ("zero", 0.0, sample_ratios, counted),
        ("warm", warm, warm_ratios, dims),
    ):
        system = ThermalPerceptron(1.0, temperature)
        ends = binary_transitions(system)
        first, last = float(ends.thermodynamic), float(ends.spinodal)
        facets = {"part": part, "temperature": temperature}
        for name, state, end in (
            ("replica theory", equilibrium, first),
            ("metastable", quenched, last),
        ):
            line = np.append(np.linspace(0.02, max(ratios), 60), (end - 1e-3, end + 1e-3))
            grid = {"sample_ratio": np.unique([*line.round(9), *ratios]).tolist()}
            orientation = name == "metastable"
            yield Curve(name, state, system, grid, facets=facets, baseline=orientation)
        method, label, count = (
            (enumerated_students, "every student", 4 * seeds)
            if part == "zero"
            else (partial(parallel_tempering, sweeps=sweeps), "parallel tempering", seeds)
        )
        for n in sizes:
            one = system.with_(input_dim=n)
            over = {"sample_ratio": ratios}
            yield Curve(label, method, one, over, count, facets=facets | {"input_dim": n})


def _jump(temperature: float) -> float:
    """Sample ratio above which the teacher is more probable than the state R < 1."""
    return float(binary_transitions(ThermalPerceptron(1.0, temperature)).thermodynamic)


def equilibrium(system: ThermalPerceptron) -> Quenched:
    """Equilibrium state: the state R < 1 if its free entropy is positive, else the teacher.

    The free entropy of the teacher is 0, and its errors are 0.
    """
    state = quenched(system)

    def errors(found: Quenched) -> tuple[Any, Any]:
        return found.classification_error, found.mistakes

    kept = [jnp.where(state.free_entropy > 0, error, 0.0) for error in errors(state)]
    return eqx.tree_at(errors, state, tuple(kept))


# ------------------------------------------------------------------------------------------------
# The phases of the binary perceptron that learns from a teacher.


def teacher_overlap(data: xr.Dataset) -> xr.DataArray:
    """Overlap with the teacher in equilibrium.

    The overlap is 1 where the state R < 1 has a negative free entropy, because the free entropy of
    the teacher is 0.
    """
    return data["teacher_overlap"].where(data["free_entropy"] > 0, 1.0)


@study(
    "binary-perceptron-plane",
    title=(
        "In theory binary perceptrons generalise perfectly beyond a line of first-order transitions"
    ),
    source="Györgyi 1990; Sompolinsky, Tishby, Seung 1990; Seung, Sompolinsky, Tishby 1992",
    seconds=(60, 600),
    gallery={"resolution": 32},
    full={"resolution": 64},
    panels=[phases_panel("sample_ratio", "temperature", order="teacher_overlap")],
    caption=r"""
        Replica theory; nothing is measured. Colour: overlap $R$ with the teacher in equilibrium;
        {resolution} values along each axis.
    """,
)
def binary_perceptron_plane(resolution: int = 16, most_samples: float = 2.4) -> list[Curve]:
    over = {"sample_ratio": (0.8, most_samples), "temperature": (0.0, 1.0)}
    options: dict[str, Any] = {"resolution": resolution, "accuracy": 1e-4}
    return [diagram_curve(quenched, ThermalPerceptron(1.0), over, order=teacher_overlap, **options)]


# ------------------------------------------------------------------------------------------------
# Learning rules: from all examples at once, and from one at a time.

BATCH = ("hebb", "pseudo-inverse", "maximal stability")
ONLINE = ("hebb", "rosenblatt", "adaline", "optimal")

# where the name of a rule stands at its line
_BATCH_PLACES: dict[str, Any] = {
    "hebb": 3.0,
    "pseudo-inverse": 1.02,
    "maximal stability": (2.4, "below"),
}
_ONLINE_PLACES: dict[str, Any] = {
    "rosenblatt": 1.5,
    "adaline": (np.inf, "right"),
    "optimal": (6.0, "below"),
}


@study(
    "perceptron-rules",
    title=(
        "Of these rules maximal stability learns best from stored examples, the optimal rule from "
        "a stream; the pseudo-inverse fails at n = N"
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
            xlabel=r"examples per weight $\alpha = n/N$",
            text={"hebb": "Hebb", "rosenblatt": "Rosenblatt", "adaline": "Adaline"},
            beside=places,
            xlim=(None, 40) if part == "online" else None,
        )
        for part, title, places in (
            ("batch", "all examples at once", _BATCH_PLACES),
            ("online", "each example once", _ONLINE_PLACES),
        )
    ],
    caption=r"""
        Labels $y=\mathrm{{sign}}(w_0\cdot x)$ of a teacher $w_0$ with $N$ weights; $N$ =
        {input_dim} (left) and {stream_dim} (right, learning rate {rate}). Lines: theory for
        $N\to\infty$. Hebb: sum of $y x$; pseudo-inverse: the shortest least-squares fit of $w\cdot
        x$ to $y$; maximal stability: the largest smallest $y\, w\cdot x/|w|$; Rosenblatt: $y x$ is
        added after an error; Adaline: a gradient step on $(y - w\cdot x)^2$; optimal: the largest
        mean gain of overlap in each step. Grey: mean error of all students without training errors.
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
