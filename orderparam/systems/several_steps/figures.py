"""How the studies of several giant steps are drawn."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from orderparam.core.study import Comparison
from orderparam.core.text import with_error
from orderparam.plotting.curves import caption
from orderparam.plotting.measured import dots, mean_and_error
from orderparam.plotting.style import COLOURS, DASHES
from orderparam.systems.several_steps.model import SeveralSteps
from orderparam.systems.several_steps.theory import first_moments

_DIRECTIONS = (r"$\theta_1$", r"$\theta_2$", r"$\theta_3$")


def draw_staircase(comparison: Comparison) -> Any:
    """Overlaps after every step: above the correlation loss with its theory, below the square loss."""
    p = comparison.parameters
    targets = [panel for panel in comparison.panels if not panel.startswith("square loss")]
    figure, rows = plt.subplots(2, len(targets), figsize=(9.6, 5.8), sharex=True)
    times = np.arange(p["steps"] + 1)
    for (top, bottom), target in zip(rows.T, targets):
        (theory,), (measured,) = comparison.theories(target).values(), comparison.experiments(target).values()
        (square,) = comparison.experiments(f"square loss, {target}").values()
        for k in range(theory.sizes["direction"]):
            one = {"direction": k, "step": 0}
            line = theory["overlap"].isel(one)
            top.plot(times, line, color=COLOURS[k], linestyle=DASHES[k], label=_DIRECTIONS[k])
            dots(top, times, measured["overlap"].isel(one), k)
            dots(bottom, times, square["cosine_squared"].isel(one), k, linestyle=":", linewidth=0.7)
        bottom.axhline(1 / p["input_dim"], color="0.6", linewidth=0.8, linestyle="--", zorder=0)
        bottom.set(yscale="log", xlabel="steps", ylim=(0.3 / p["input_dim"], 1.2))
        top.set_title(f"$y$ = {target}", fontsize=9)
        top.legend()
    rows[0, 0].set_ylabel("overlap $w\\cdot\\theta_k$\n(correlation loss)")
    rows[1, 0].set_ylabel("mean $\\cos^2(w, \\theta_k)$\n(square loss)")
    caption(
        figure,
        f"Fresh batches of n = {p['sample_ratio']:g} d examples, d = {p['input_dim']}. From left to right: relu, step 3; erf "
        "with bias 1, step 2; relu with bias 0.5, step 2. Above: lines, the exact recursion for d to infinity; marks, mean over "
        f"{p['neurons']} neurons, {p['repeats']} draws of the batches and {p['seeds']} seeds, bars: standard error over seeds. "
        f"Below: {4 * p['neurons']} neurons with read-outs ±1 trained on the square loss (no theory), {p['seeds']} seeds; dotted "
        "lines guide the eye, dashed: a random direction, 1/d.",
        150,
    )
    return figure


def draw_reuse(comparison: Comparison) -> Any:
    """The overlap after two steps: against the step size, and against the dimension."""
    p = comparison.parameters
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.7), sharey=True)
    last = {"time": -1, "direction": 0}
    for number, (prefix, name) in enumerate((("same batch", "same batch twice"), ("fresh batches", "fresh batches"))):
        (theory,) = comparison.theories(f"{prefix}, step").values()
        line = theory["overlap"].isel(last)
        left.plot(line["step"], line, color=COLOURS[number], linestyle=DASHES[number], label=f"{name}, $d\\to\\infty$")
        limit = np.interp(p["step"], line["step"], line)
        right.axhline(limit, color=COLOURS[number], linestyle=DASHES[number])
        (against_step,) = comparison.experiments(f"{prefix}, step").values()
        (against_size,) = comparison.experiments(f"{prefix}, size").values()
        dots(left, against_step["step"], against_step["overlap"].isel(last), number)
        dots(right, 1 / against_size["input_dim"], against_size["overlap"].isel(last), number, label=f"{name}, measured")
    left.set_xlabel("step size $s$")
    left.set_ylabel("overlap after two steps, $w\\cdot\\theta$")
    left.set_title(f"$d$ = {p['input_dim']}")
    left.set_ylim(top=0.05)
    left.legend(loc="upper left")
    right.legend(loc="upper left")
    right.set_xlabel("$1/d$")
    right.set_xlim(0, 1.08 / min(p["dimensions"]))
    right.locator_params(axis="x", nbins=5)
    right.set_title(f"$s$ = {p['step']:g}")
    caption(
        figure,
        f"y = He3(z)/√6 (information exponent 3), {p['activation']} neurons, correlation loss, batches of n = "
        f"{p['sample_ratio']:g} d. Lines: exact for d to infinity; fresh batches learn nothing of such a target in a finite "
        f"number of steps. Marks: mean over {p['neurons']} neurons, {p['repeats']} draws of the batches and {p['seeds']} seeds, "
        "bars: standard error over seeds.",
        130,
    )
    return figure


def draw_directions(comparison: Comparison) -> Any:
    """Cosines of every neuron with the two directions, and the one direction that a single step could find."""
    p = comparison.parameters
    figure, row = plt.subplots(1, len(comparison.panels), figsize=(8.0, 4.4), sharex=True, sharey=True)
    angle = np.linspace(0, 2 * np.pi, 200)
    for axes, panel in zip(row, comparison.panels):
        (data,) = comparison.experiments(panel).values()
        first, _ = first_moments(SeveralSteps(target=panel))
        axes.plot(*np.outer(first / np.linalg.norm(first), [-1, 1]), color=COLOURS[1], linewidth=0.9, label="first step")
        cosine = data["cosine"].isel(seed=0, step=0)
        axes.scatter(*cosine.values.T, s=6, color=COLOURS[0], alpha=0.6, linewidth=0, label=f"after {p['steps']} steps")
        axes.plot(np.cos(angle), np.sin(angle), color="0.8", linewidth=0.8)
        mean, error = mean_and_error(data["cosine_squared"].isel(step=0, time=-1))
        text = ", ".join(with_error(float(m), float(e)) for m, e in zip(mean, error))
        axes.set(aspect="equal", xlabel=f"$\\cos(w, \\theta_1)$\nmean squares {text}")
        axes.set_title(f"$y$ = {panel}", fontsize=9)
    row[0].set_ylabel("$\\cos(w, \\theta_2)$")
    row[0].legend(loc="lower center", bbox_to_anchor=(0.55, 0.12))
    caption(
        figure,
        f"Two-layer network of {p['neurons']} relu neurons with read-outs ±1, square loss, step {p['step']:g}, fresh batches "
        f"of n = {p['sample_ratio']:g} d examples, d = {p['input_dim']}. Dots: neurons of one run; line: the direction E[y z], "
        f"all that one step finds; below: mean squared cosines with standard errors over {p['seeds']} runs.",
        120,
    )
    return figure
