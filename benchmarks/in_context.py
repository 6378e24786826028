"""In-context learning: the errors of linear attention, beside NumPy and beside a trained layer.

    python benchmarks/in_context.py

One curve is 256 numbers of tasks at one ridge. The rival in NumPy halves a bracket in the effective
ridge of the tasks for all of them at once; the regression is what a person without a theory would
run. All rows come from one run on one machine; read the ratios.
"""

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from timing import best_of

from orderparam.systems.in_context import LinearAttention, linear_attention, quadratic_regression

SYSTEM = LinearAttention(2.0, 1.0, 3.0, 0.2, 0.1)
KAPPA = np.geomspace(0.1, 10, 256)
ALPHA, TAU, RHO, RIDGE = 2.0, 3.0, 0.2, 0.1


def in_numpy() -> np.ndarray:
    """Errors on fresh tasks, isotropic: theta by bisection, everything else in closed form."""
    x = (1 + RHO) / ALPHA

    def parts(theta: np.ndarray) -> tuple[np.ndarray, ...]:
        learned = 1 / (1 + theta)
        y = theta * (1 - learned / KAPPA)
        return learned, y, y - x

    low, high = np.full_like(KAPPA, -30.0), np.full_like(KAPPA, 30.0)
    for _ in range(70):
        middle = (low + high) / 2
        learned, y, nu = parts(np.exp(middle))
        safe = np.where(nu > 0, nu, 1.0)
        excess = RIDGE / safe + (1 - safe / y * (1 - learned)) / TAU - 1
        below = (nu <= 0) | (excess > 0)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    theta = np.exp((low + high) / 2)
    learned, y, nu = parts(theta)
    left, rest = 1 - learned, 1 - learned**2 / KAPPA
    square = learned**2 + (learned * left) ** 2 / KAPPA / rest
    weight = left * (x / y**2 + nu * learned / (theta * y * rest))
    unexplained = RHO + y * learned - nu * square
    unused = TAU * RIDGE / nu + nu * weight
    return (
        RHO
        + left**2
        + (learned * left) ** 2 / KAPPA / rest
        + x * square
        + (unexplained * (1 + x) * weight / unused)
    )


def main() -> None:
    curve = jax.jit(jax.vmap(lambda k: linear_attention(SYSTEM.with_(task_ratio=k)).icl_error))
    ratios = jnp.asarray(KAPPA)
    ours, rival = best_of(lambda: curve(ratios)), best_of(in_numpy)
    deviation = np.max(np.abs(in_numpy() / np.asarray(curve(ratios)) - 1))
    one = best_of(lambda: quadratic_regression(SYSTEM, jax.random.key(0)))
    table = Table("work", "seconds", "over the first")
    table.add_row("errors at 256 numbers of tasks", f"{ours:.4f}", "1")
    table.add_row(
        f"NumPy, all at once (deviation {deviation:.0e})", f"{rival:.4f}", f"{rival / ours:.2g}"
    )
    table.add_row("one trained layer, d = 20", f"{one:.4f}", f"{one / ours:.2g}")
    Console().print(table)


if __name__ == "__main__":
    main()
