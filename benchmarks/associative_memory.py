"""The Hopfield model: solved points a second beside SciPy, spin updates a second and memory beside
NumPy with a coupling matrix.

    python benchmarks/associative_memory.py

Both columns of a table come from one run on one machine; read the ratios. Peak memory is that of
the process so far.
"""

import resource
import time

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import root
from timing import best_of

import orderparam as op
from orderparam.systems.associative_memory import (
    Hopfield,
    phase_lines,
    recall,
    replica_symmetric,
    zero_temperature,
)

POINTS, SCIPY_POINTS = 10_000, 50
SPINS, LARGE, LOAD, SWEEPS = 2000, 10_000, 0.13, 5


def scipy_retrieval(load: float, temperature: float) -> np.ndarray:
    """m, q, r by SciPy's hybrid method on the three equations, averages on 2001 nodes."""
    z = np.linspace(-10, 10, 2001)
    weight = np.exp(-(z**2) / 2)
    weight /= weight.sum()

    def gap(x: np.ndarray) -> np.ndarray:
        tanh = np.tanh((x[0] + np.sqrt(load * abs(x[2])) * z) / temperature)
        m, q = weight @ tanh, weight @ tanh**2
        return np.array([m, q, q / (1 - (1 - q) / temperature) ** 2]) - x

    return root(gap, np.ones(3), tol=1e-12).x


def solved() -> Table:
    table = Table(
        title=f"orderparam {op.__version__}: points a second, {POINTS} loads and temperatures at "
        "once"
    )
    for column in ("theory", "unknowns", "points/s", "SciPy, one by one", "ratio"):
        table.add_column(column, justify="right")
    rng = np.random.default_rng(0)
    loads, temperatures = (
        jnp.asarray(rng.uniform(0.01, 0.1, POINTS)),
        jnp.asarray(rng.uniform(0.05, 0.2, POINTS)),
    )
    count = time.perf_counter()
    for load, temperature in zip(
        loads[:SCIPY_POINTS].tolist(), temperatures[:SCIPY_POINTS].tolist()
    ):
        scipy_retrieval(load, temperature)
    plain = SCIPY_POINTS / (time.perf_counter() - count)
    for name, unknowns, function in (
        ("T = 0", "1", lambda a, t: zero_temperature(Hopfield(a)).overlap),
        (
            "spin glass",
            "1",
            lambda a, t: replica_symmetric(Hopfield(a, t), branch="spin glass").self_overlap,
        ),
        ("retrieval", "2", lambda a, t: replica_symmetric(Hopfield(a, t)).overlap),
    ):
        many = jax.jit(jax.vmap(function))
        rate = POINTS / best_of(lambda f=many: f(loads, temperatures))
        compared = [f"{plain:.3g}", f"{rate / plain:.3g}x"] if name == "retrieval" else ["–", "–"]
        table.add_row(name, unknowns, f"{rate:.3g}", *compared)
    lines = jax.jit(jax.vmap(lambda a: phase_lines(Hopfield(a)).global_temperature))
    some = loads[:200]
    table.add_row("all four lines", "", f"{len(some) / best_of(lambda: lines(some)):.3g}", "–", "–")
    return table


def numpy_sweeps(n: int, rng: np.random.Generator) -> np.ndarray:
    """Fields of all spins kept, a column of couplings added for each spin that turns."""
    stored = rng.choice(np.array([-1.0, 1.0], np.float32), (n, round(LOAD * n)))
    couplings = stored @ stored.T / np.float32(n)
    np.fill_diagonal(couplings, 0)
    spins = stored[:, 0].copy()
    fields = couplings @ spins
    for _ in range(SWEEPS):
        for i in range(n):
            if spins[i] * fields[i] < 0:
                spins[i] = -spins[i]
                fields += 2 * spins[i] * couplings[i]
    return spins


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def recalled() -> Table:
    """At a tiny temperature all sweeps are made, as in the loop."""
    table = Table(
        title=f"recall at load {LOAD}, {SWEEPS} sweeps, patterns and couplings made included"
    )
    for column in ("way", "N", "seconds", "peak memory, GiB"):
        table.add_column(column, justify="right")
    for n in (SPINS, LARGE):
        system = Hopfield(LOAD, 1e-9, spins=n)
        seconds = best_of(lambda s=system: recall(s, jax.random.key(0), networks=1, sweeps=SWEEPS))
        table.add_row("patterns, one byte an entry", str(n), f"{seconds:.3g}", f"{peak():.2f}")
    for n in (SPINS, LARGE):
        seconds = best_of(lambda n=n: numpy_sweeps(n, np.random.default_rng(0)))
        table.add_row("NumPy, float32 couplings", str(n), f"{seconds:.3g}", f"{peak():.2f}")
    return table


if __name__ == "__main__":
    console = Console(width=120)
    console.print(recalled())
    console.print(solved())
