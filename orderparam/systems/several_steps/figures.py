"""What the studies of several giant steps draw by hand: where neurons point."""

from typing import Any

import numpy as np

from orderparam.core.study import Comparison
from orderparam.core.text import with_error
from orderparam.plotting.measured import mean_and_error
from orderparam.plotting.style import COLOURS, GREY
from orderparam.systems.several_steps.model import SeveralSteps
from orderparam.systems.several_steps.theory import first_moments


def draw_directions(target: str, axes: Any, comparison: Comparison) -> None:
    """Cosines of every neuron with the two directions, and the one direction that a single step could find."""
    (data,) = comparison.curves(target=target).values()
    first, _ = first_moments(SeveralSteps(target=target))
    axes.plot(*np.outer(first / np.linalg.norm(first), [-1, 1]), color=COLOURS[1], linewidth=0.9, label="first step")
    cosine = data["cosine"].isel(seed=0, step=0)
    label = f"after {comparison.parameters['steps']} steps"
    axes.scatter(*cosine.values.T, s=6, color=COLOURS[0], alpha=0.6, linewidth=0, label=label)
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.cos(angle), np.sin(angle), color=GREY, linewidth=0.8)
    mean, error = mean_and_error(data["cosine_squared"].isel(step=0, time=-1))
    text = ", ".join(with_error(float(m), float(e)) for m, e in zip(mean, error))
    axes.set(aspect="equal", xlabel=f"$\\cos(w, \\theta_1)$\nmean squares {text}", ylabel=r"$\cos(w, \theta_2)$")
