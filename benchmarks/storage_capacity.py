"""Saddle points a second on a vmapped grid, against one root by SciPy at a time; samples a second
of the experiments.

python benchmarks/storage_capacity.py
"""

import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import scipy.integrate
import scipy.optimize
import scipy.special
from rich.console import Console
from rich.table import Table

import orderparam as op
from orderparam.systems.storage_capacity import (
    BinaryPatterns,
    SphericalPatterns,
    annealed_search,
    enumerated_solutions,
    maximal_margin,
    separability,
    solutions,
    volume,
)

POINTS = 1000
REPEATS = 5


def by_quadrature(load: float) -> float:
    """q of `volume` without margin, in the usual way: adaptive quadrature inside a bracketing root
    finder."""

    def excess(q: float) -> float:
        def integrand(t: float) -> float:
            u = np.sqrt(q / (1 - q)) * t
            hazard = np.exp(-(u**2) / 2 - scipy.special.log_ndtr(-u)) / np.sqrt(2 * np.pi)
            return float(np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi) * hazard**2)

        return load * scipy.integrate.quad(integrand, -12, 12, epsabs=1e-11, limit=200)[0] - q / (
            1 - q
        )

    return float(scipy.optimize.brentq(excess, 1e-9, 1 - 1e-9, xtol=1e-12))


def seconds(run: Callable[[], object]) -> float:
    jax.block_until_ready(run())  # compile
    taken = []
    for _ in range(REPEATS):
        start = time.process_time()
        jax.block_until_ready(run())
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def main() -> None:
    loads = jnp.linspace(0.1, 1.9, POINTS)
    grids = {
        "volume of solutions": jax.jit(jax.vmap(lambda a: volume.fn(SphericalPatterns(a)).overlap)),
        "entropy of binary couplings": jax.jit(
            jax.vmap(lambda a: solutions.fn(BinaryPatterns(0.4 * a)).entropy)
        ),
    }
    table = Table(title=f"orderparam {op.__version__}: storage capacity, processor seconds")
    for column in ("what", "points or samples a second", "one at a time, SciPy"):
        table.add_column(column, justify="right")
    for name, grid in grids.items():
        slow = "–"
        if name.startswith("volume"):
            few = [float(load) for load in loads[:: POINTS // 10]]
            slow = (
                f"{len(few) / seconds(lambda few=few: [by_quadrature(load) for load in few]):.3g}"
            )
        table.add_row(name, f"{POINTS / seconds(lambda grid=grid: grid(loads)):.3g}", slow)
    key = jax.random.key(0)
    runs = {
        "linear program, N = 50, alpha = 2": (
            8,
            lambda: separability(SphericalPatterns(2.0, input_dim=50), key, samples=8),
        ),
        "hard margin, N = 100, alpha = 1": (
            8,
            lambda: maximal_margin(SphericalPatterns(1.0, input_dim=100), key, samples=8),
        ),
        "all couplings, N = 19, alpha = 0.5": (
            8,
            lambda: enumerated_solutions(BinaryPatterns(input_dim=19), key, samples=8),
        ),
        "annealing, N = 101, alpha = 0.5, 200 sweeps": (
            8,
            lambda: annealed_search(BinaryPatterns(input_dim=101), key, samples=8, sweeps=200),
        ),
    }
    for name, (samples, run) in runs.items():
        table.add_row(name, f"{samples / seconds(run):.3g}", "–")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
