"""The named figures of several giant steps."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Comparison, Curve, study
from orderparam.core.text import with_error
from orderparam.plotting import Freehand, Panel, horizontal, tex
from orderparam.plotting.measured import mean_and_error
from orderparam.plotting.style import COLOURS, GREY
from orderparam.systems.several_steps.experiment import (
    correlation_steps,
    layer_steps,
    square_loss_steps,
)
from orderparam.systems.several_steps.layer import hidden_power, layer_error
from orderparam.systems.several_steps.model import GiantLayer, SeveralSteps
from orderparam.systems.several_steps.theory import first_moments, fresh_batches, reused_batch

# ------------------------------------------------------------------------------------------------
# The function that draws the panels with the directions of the neurons.


def draw_directions(target: str, axes: Any, comparison: Comparison) -> None:
    """Draw the cosines of every neuron with the two directions, and the one direction that a single
    step could find."""
    (data,) = comparison.curves(target=target).values()
    first, _ = first_moments(SeveralSteps(target=target))
    axes.plot(
        *np.outer(first / np.linalg.norm(first), [-1, 1]),
        color=COLOURS[1],
        linewidth=0.9,
        label="first step",
    )
    cosine = data["cosine"].isel(seed=0, step=0)
    label = f"after {comparison.parameters['steps']} steps"
    axes.scatter(*cosine.values.T, s=6, color=COLOURS[0], alpha=0.6, linewidth=0, label=label)
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.cos(angle), np.sin(angle), color=GREY, linewidth=0.8)
    mean, error = mean_and_error(data["cosine_squared"].isel(step=0, time=-1))
    text = ", ".join(with_error(float(m), float(e)) for m, e in zip(mean, error))
    axes.set(
        aspect="equal",
        xlabel=f"$\\cos(w, \\theta_1)$\nmean squares {text}",
        ylabel=r"$\cos(w, \theta_2)$",
    )


# target, activation, bias, step
_STAIRS = (
    ("z1/3 + 2*z1*z2/3", "relu", 0.0, 3.0),
    ("z1 + z1*z2 + z1*z2*z3", "erf", 1.0, 2.0),
    ("z1 + He3(z2)/sqrt(6)", "relu", 0.5, 2.0),
)
_CUBIC = "He3(z)/sqrt(6)"
_DIRECTIONS = {0: r"$\theta_1$", 1: r"$\theta_2$", 2: r"$\theta_3$"}
_LAST = {"time": -1, "direction": 0}
_STEPS = ("steps", lambda data: xr.DataArray(np.arange(data.sizes["time"]), dims=["time"]))
_PLANE = ("2*z1 + z1**2/2 + z2/2", "(z1 + z1**2 + z2 - z2**2)/2")


@study(
    "giant-steps-staircase",
    title=(
        "After the first direction, a giant step learns another only if the target joins it to "
        "directions learned before"
    ),
    source="Dandi, Krzakala, Loureiro, Pesce, Stephan 2023 (arXiv:2305.18270); Abbe, Boix-Adsera, "
    "Misiakiewicz 2022",
    panels=lambda p: [
        Panel(
            _STEPS,
            "overlap",
            facet="target",
            by="direction",
            where={"loss": "correlation"},
            text=_DIRECTIONS,
        ),
        Panel(
            _STEPS,
            ("mean $\\cos^2(w, \\theta_k)$", lambda data: data["cosine_squared"]),
            facet="target",
            by="direction",
            where={"loss": "square"},
            log="y",
            text=_DIRECTIONS,
            reference=[horizontal(1 / p["input_dim"], "$1/d$")],
        ),
    ],
    caption=r"""
        $z_k = \theta_k\cdot x$, with orthonormal $\theta_k$. Neurons $w$ start uniformly on the
        unit sphere; a giant step changes them by a length of order 1. Fresh batches of $n$ =
        {sample_ratio} $d$ examples, $d$ = {input_dim}. From left to right: relu with step 3; erf
        with bias 1 and step 2; relu with bias 0.5 and step 2. Top row: correlation loss; overlap:
        $w\cdot\theta_k$; lines are the exact recursion for $d\to\infty$, marks are means over
        {neurons} neurons and {repeats} draws of the batches in each run. Bottom row: networks of
        neurons with read-outs $\pm 1$ on the square loss, for which there is no theory. A random
        direction has the value $1/d$. After one step $\theta_2$ can lie above it, because a batch
        has more noise along directions of the target; the value of a direction that is not learned
        yet falls below $1/d$ while the neurons grow along other directions.
    """,
    seconds=(60, 1800),
    observables=("overlap",),
    gallery={"seeds": 24},
    full={"input_dim": 1024, "repeats": 16, "seeds": 32},
)
def giant_steps_staircase(
    input_dim: int = 256,
    sample_ratio: float = 8.0,
    steps: int = 5,
    neurons: int = 64,
    repeats: int = 4,
    seeds: int = 12,
) -> Iterator[Curve]:
    for target, activation, bias, step in _STAIRS:
        system = SeveralSteps(sample_ratio, step, bias, 0.0, input_dim, target, activation, steps)
        over = {"step": (step,)}
        run = partial(correlation_steps, neurons=neurons, repeats=repeats)
        square = partial(square_loss_steps, neurons=4 * neurons)
        facets = {"target": target, "loss": "correlation"}
        yield Curve("recursion", fresh_batches, system, over, facets=facets)
        yield Curve("networks", run, system, over, seeds, facets=facets)
        yield Curve("networks", square, system, over, seeds, facets=facets | {"loss": "square"})


@study(
    "giant-steps-batch-reuse",
    title=(
        "Two steps on one batch give an overlap with a target of information exponent 3; two "
        "steps on fresh batches give none"
    ),
    source="Dandi, Troiani, Arnaboldi, Pesce, Zdeborova, Krzakala 2024 (arXiv:2402.03220)",
    panels=lambda p: [
        Panel(
            "step",
            "overlap",
            by="batches",
            where={"part": "step size", **_LAST},
            title=f"$d$ = {p['input_dim']}",
        ),
        Panel(
            ("$1/d$", lambda data: 1 / data["input_dim"]),
            "overlap",
            by="batches",
            where={"part": "dimension", **_LAST},
            title=f"$s$ = {p['step']:g}",
            xlim=(0, None),
        ),
    ],
    caption=r"""
        $y = \mathrm{{He}}_3(z)/\sqrt{{6}}$ (information exponent 3), {activation} neurons,
        correlation loss, two steps on batches of $n$ = {sample_ratio} $d$. Overlap: projection of a
        neuron's weights, of length 1 at the start, on the target's direction; for this target and
        activation it becomes negative. The theory is exact for $d\to\infty$; on fresh batches
        nothing of such a target is learned in a finite number of steps. Left: $d$ = {input_dim};
        its marks leave the line as the right panel shows for larger $d$. Each run averages
        {neurons} neurons and {repeats} draws of the batches.
    """,
    seconds=(70, 1500),
    observables=("overlap",),
    explained=(
        "The theory is that of infinite d. At the largest step the overlap is 39, 29, 15 and 7 % "
        "smaller in 50, 100, 200 and 400 dimensions, as the right panel shows."
    ),
    gallery={"dimensions": (50, 100, 200, 400), "seeds": 16},
    full={"dimensions": (50, 100, 200, 400, 800), "repeats": 400, "seeds": 24},
)
def giant_steps_batch_reuse(
    step_sizes: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0),
    sample_ratio: float = 4.0,
    step: float = 4.0,
    dimensions: tuple[int, ...] = (50, 100, 200),
    input_dim: int = 100,
    activation: str = "relu",
    neurons: int = 32,
    repeats: int = 50,
    seeds: int = 12,
) -> Iterator[Curve]:
    system = SeveralSteps(sample_ratio, step, 0.0, 0.0, input_dim, _CUBIC, activation, 2)
    grid = list(np.linspace(0.0, max(step_sizes), 33))
    for batches, reuse, theory in (
        ("same batch twice", True, reused_batch),
        ("fresh batches", False, fresh_batches),
    ):
        run = partial(correlation_steps, reuse=reuse, neurons=neurons, repeats=repeats)
        along, across = ({"batches": batches, "part": part} for part in ("step size", "dimension"))
        yield Curve("infinite dimension", theory, system, {"step": grid}, facets=along)
        yield Curve("networks", run, system, {"step": step_sizes}, seeds, facets=along)
        yield Curve("infinite dimension", theory, system, {"input_dim": dimensions}, facets=across)
        yield Curve("networks", run, system, {"input_dim": dimensions}, seeds, facets=across)


@study(
    "giant-steps-directions",
    title=(
        "After several giant steps neurons point near the direction of the first step if one "
        "direction of the target is strong, and along two others if two are equal"
    ),
    source="Dandi, Krzakala, Loureiro, Pesce, Stephan 2023 (arXiv:2305.18270)",
    panels=[
        Freehand(partial(draw_directions, target), f"$y = {tex(target)}$") for target in _PLANE
    ],
    caption=r"""
        A two-layer network of {neurons} relu neurons $w$ with read-outs $\pm 1$ takes steps of size
        {step} on the square loss, on fresh batches of $n$ = {sample_ratio} $d$ examples with $d$ =
        {input_dim}; $z_i = \theta_i\cdot x$, with orthonormal $\theta_i$. Dots: the neurons of one
        of {seeds} runs after {steps} steps; on the circle they would lie in the plane of both
        directions. Line: the direction $\mathrm{{E}}[y z]$ of the correlations of label and $z$,
        the only one that a single step finds. Below: mean squared cosines with $\theta_1$ and
        $\theta_2$ and their standard errors.
    """,
    seconds=(20, 900),
    observables=("cosine_squared",),
    full={"input_dim": 4096, "sample_ratio": 1.0, "neurons": 1024, "seeds": 2},
)
def giant_steps_directions(
    input_dim: int = 512,
    sample_ratio: float = 4.0,
    step: float = 2.0,
    steps: int = 6,
    neurons: int = 256,
    seeds: int = 4,
) -> Iterator[Curve]:
    for target in _PLANE:
        system = SeveralSteps(sample_ratio, step, 0.0, 0.0, input_dim, target, "relu", steps)
        run = partial(square_loss_steps, neurons=neurons)
        yield Curve("networks", run, system, {"step": (step,)}, seeds, facets={"target": target})


_LAYER_TARGETS = ("z1 + z1*z2 + z2*z3/2", "z1 + z1*z2 + z1*z2*z3", "z1 + z1*z2/2 + He3(z1)/4")
_BOUND = "lower bound"


def _error_or_bound(data: xr.Dataset) -> xr.DataArray:
    return data["bound"] if "bound" in data else data["test_error"]


@study(
    "giant-steps-error",
    title=(
        "Each giant step lowers the error of 16 neurons as the recursion predicts, but by "
        "less than the directions that it reveals would permit"
    ),
    source="Dandi, Krzakala, Loureiro, Pesce, Stephan 2023 (arXiv:2305.18270); recursion derived "
    "here",
    panels=[
        Panel(
            _STEPS,
            ("test error", _error_or_bound),
            facet="target",
            by="loss",
            ylim=(0, None),
            share_y=False,
            text={name: f"$y = {tex(name)}$" for name in _LAYER_TARGETS},
        )
    ],
    columns=3,
    caption=r"""
        {neurons} erf neurons with biases from -1.5 to 1.5 take steps of size $\pm 1$ and $\pm 2$
        (signs of their read-outs) on fresh batches of $n$ = {sample_ratio} $d$ examples, $d$ =
        {input_dim}, on the correlation loss $-yf$ or the square loss $(y - f)^2/2$ (colours). After
        each step a read-out is fitted to many fresh examples. Lines: recursion for $d\to\infty$,
        whose averages are sampled; marks: networks. Green, the lower bound: mean variance of the
        target given the directions that are revealed so far. It holds for any read-out of finitely
        many neurons.
    """,
    seconds=(90, 600),
    observables=("test_error",),
    gallery={"input_dim": 500},
    full={"input_dim": 2000, "samples": 200000, "seeds": 48},
)
def giant_steps_error(
    neurons: int = 16,
    sample_ratio: float = 8.0,
    steps: int = 4,
    input_dim: int = 250,
    samples: int = 40000,
    runs: int = 8,
    seeds: int = 16,
) -> Iterator[Curve]:
    step = np.resize([1.0, -1.0, 2.0, -2.0], neurons)
    for target in _LAYER_TARGETS:
        for loss in ("correlation", "square"):
            system = GiantLayer(
                step,
                np.linspace(-1.5, 1.5, neurons),
                sample_ratio,
                input_dim=input_dim,
                target=target,
                loss=loss,
                steps=steps,
            )
            facets = {"target": target, "loss": loss}
            theory = partial(layer_error, samples=samples, runs=runs)
            yield Curve("infinite dimension", theory, system, {}, facets=facets)
            yield Curve("networks", layer_steps, system, {}, seeds, facets=facets)
        yield Curve(
            "infinite dimension", hidden_power, system, {}, facets={**facets, "loss": _BOUND}
        )
