"""Broken replica symmetry: the functional of the spin glass with its gradient, beside NumPy.

    python benchmarks/broken_symmetry.py

One evaluation is three steps on 400 fields. The rival in NumPy sums the same averages with SciPy's
logsumexp, and has no gradient: it would need seven evaluations for differences. All rows come from
one run on one machine; read the ratios.
"""

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import logsumexp
from scipy.stats import norm
from timing import best_of

from orderparam.solve.parisi import OverlapSteps, cascade, field_grid
from orderparam.systems.broken_symmetry import SpinGlass, ground_state

OVERLAPS = np.array([0.2439, 0.6989, 0.9396, 1.0])
HEIGHTS = np.array([0.6263, 1.492, 4.379])
GRID = np.linspace(-11, 11, 400)


def innermost(h, width, height, log_cdf, logaddexp):
    scale = width**0.5
    above = height * h + log_cdf(h / scale + height * scale)
    below = -height * h + log_cdf(-h / scale + height * scale)
    return logaddexp(above, below) / height + height * width / 2


def in_numpy() -> float:
    widths = np.diff(OVERLAPS)
    values = innermost(GRID, widths[-1], HEIGHTS[-1], norm.logcdf, np.logaddexp)
    for width, height in zip(widths[-2::-1], HEIGHTS[-2::-1]):
        rows = -((GRID[:, None] - GRID) ** 2) / (2 * width)
        rows -= logsumexp(rows, axis=1, keepdims=True)
        values = logsumexp(height * values + rows, axis=1) / height
    weights = np.exp(-(GRID**2) / (2 * OVERLAPS[0]))
    average = weights @ values / weights.sum()
    return float(average - np.sum(HEIGHTS * np.diff(OVERLAPS**2)) / 4)


def functional(overlaps: jax.Array, heights: jax.Array) -> jax.Array:
    steps = OverlapSteps(overlaps, heights)
    first = innermost(
        jnp.asarray(GRID),
        steps.widths[-1],
        heights[-1],
        jax.scipy.stats.norm.logcdf,
        jnp.logaddexp,
    )
    average = cascade(first, field_grid(11.0), steps.outer)
    return average - jnp.sum(heights * jnp.diff(overlaps**2)) / 4


def main() -> None:
    compiled = jax.jit(jax.value_and_grad(functional, (0, 1)))
    given = jnp.asarray(OVERLAPS), jnp.asarray(HEIGHTS)
    ours, rival = best_of(lambda: compiled(*given)), best_of(in_numpy)
    whole = best_of(lambda: ground_state(SpinGlass(), steps=3))
    deviation = abs(in_numpy() - float(compiled(*given)[0]))
    table = Table("work", "seconds", "over the first")
    table.add_row("functional and gradient, 3 steps", f"{ours:.4f}", "1")
    table.add_row(
        f"NumPy, no gradient (deviation {deviation:.0e})", f"{rival:.4f}", f"{rival / ours:.2g}"
    )
    table.add_row("minimum over overlaps and heights", f"{whole:.3f}", f"{whole / ours:.2g}")
    Console().print(table)


if __name__ == "__main__":
    main()
