"""Lines through measurements at several sizes, to the limit of infinite size."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from orderparam.plotting.style import COLOURS, ink

Values = Float[np.ndarray, "size"]


def line_at_infinity(x: Values, value: Values, error: Values) -> tuple[float, float, float]:
    """The line a + b x through values with errors by weighted least squares: a, its error, b."""
    design = np.stack([np.ones_like(x), x], axis=1) / error[:, None]
    covariance = np.linalg.inv(design.T @ design)
    limit, slope = covariance @ design.T @ (value / error)
    return float(limit), float(np.sqrt(covariance[0, 0])), float(slope)


def draw_ratios(
    axes: Any, measured: Mapping[str, tuple[Values, Values, Values]], what: str
) -> None:
    """Draw measured / theory against 1/N with the lines through them, and write the value of each
    line at 0 with its error.

    measured: label -> sizes N, ratios and their errors. what: the label of the y axis.
    """
    for number, (label, (size, ratio, error)) in enumerate(measured.items()):
        colour, far = COLOURS[number], 1 / np.asarray(size, float)
        limit, limit_error, slope = line_at_infinity(far, ratio, error)
        axes.errorbar(far, ratio, error, fmt="o", color=colour, markersize=4)
        x = np.array([0.0, far.max()])
        axes.plot(x, limit + slope * x, color=colour, linewidth=0.9)
        shift = far.max() * 0.02 * (number + 1)  # beside one another, left of the axis
        axes.errorbar([-shift], [limit], [limit_error], fmt="d", color=colour, markersize=4)
        axes.text(
            0.03,
            0.97 - 0.07 * number,
            f"{label}: {limit:.3f} ± {limit_error:.3f}",
            color=colour,
            transform=axes.transAxes,
            va="top",
            fontsize="small",
        )
    axes.axhline(1, color=ink(), linewidth=0.8, linestyle=":")
    axes.locator_params(axis="x", nbins=4)
    axes.set(xlabel="$1/N$", ylabel=what)
