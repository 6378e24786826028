"""Several giant steps: overlaps per second beside tensor quadrature in NumPy, and training steps
per second beside NumPy.

    python benchmarks/several_steps.py

Both columns of a table come from one run on one machine; read the ratios.
"""

import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import norm

from orderparam.systems.several_steps import SeveralSteps, correlation_steps, fresh_batches

TARGET, RATIO, STEPS, POINTS, REPEATS = "z1/3 + 2*z1*z2/3", 4.0, 4, 64, 3
DIMENSION, NEURONS, DRAWS = 400, 64, 8


def label(z: np.ndarray) -> np.ndarray:
    return z[..., 0] / 3 + 2 * z[..., 0] * z[..., 1] / 3


def recursion(step: float, across: int = 40, nodes: int = 60) -> np.ndarray:
    """Overlaps of relu neurons by tensor Gauss-Hermite quadrature; E sigma' and E sigma'' given z
    in closed form."""
    x, w = np.polynomial.hermite_e.hermegauss(across)
    z = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    weight, y = np.outer(w, w).ravel() / w.sum() ** 2, label(z)
    m, rest = np.zeros(2), 1.0
    for _ in range(STEPS):
        u = z @ m / np.sqrt(rest)
        slope, bend = norm.cdf(u), norm.pdf(u) / np.sqrt(rest)
        growth = 1 + step * np.sum(weight * y * bend)
        m, rest = (
            m + step * (weight * y * slope) @ z,
            rest * growth**2 + step**2 / RATIO * np.sum(weight * y**2 * slope),
        )
    return m


def numpy_steps(rng: np.random.Generator) -> np.ndarray:
    rows = rng.standard_normal((NEURONS, DIMENSION))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    count = int(RATIO * DIMENSION)
    for _ in range(STEPS):
        x = rng.standard_normal((count, DIMENSION))
        slopes = (x @ rows.T > 0) * label(x)[:, None]
        rows = rows + 3.0 / count * slopes.T @ x
    return rows


def best_of(run: Callable[[], object]) -> float:
    """Shortest of a few times, after a first call that compiles."""
    run()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    system = SeveralSteps(
        RATIO, 3.0, input_dim=DIMENSION, target=TARGET, activation="relu", steps=STEPS
    )
    traced = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), system)
    batch = eqx.filter_jit(
        lambda sizes: jax.lax.map(lambda s: fresh_batches(traced.with_(step=s)).overlap[-1], sizes)
    )
    sizes = jnp.linspace(0.5, 4.0, POINTS)
    ours = best_of(lambda: jax.block_until_ready(batch(sizes))) / POINTS
    theirs = best_of(lambda: recursion(3.0))
    deviation = max(
        np.abs(recursion(float(s)) - m).max() for s, m in zip(sizes[::16], batch(sizes)[::16])
    )
    table = Table("overlaps after 4 steps, 2 directions", "s / point", "largest deviation")
    table.add_row("NumPy, 40 x 40 Gauss-Hermite nodes", f"{theirs:.3g}", f"{deviation:.1e}")
    table.add_row(f"orderparam, {POINTS} step sizes in one call", f"{ours:.3g}", "")
    Console(width=120).print(table)

    run = best_of(
        lambda: jax.block_until_ready(
            correlation_steps(system, jax.random.key(0), neurons=NEURONS, repeats=DRAWS)
        )
    )
    rng = np.random.default_rng(0)
    plain = best_of(lambda: [numpy_steps(rng) for _ in range(DRAWS)])
    table = Table(f"training, d = {DIMENSION}, n = {RATIO:g} d, {NEURONS} neurons", "steps / s")
    table.add_row("NumPy", f"{DRAWS * STEPS / plain:.3g}")
    table.add_row("orderparam", f"{DRAWS * STEPS / run:.3g}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
