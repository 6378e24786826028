"""State evolution of signs and binary weights, and message passing against the memory it has to
read; interleaved.

    python benchmarks/generalised_linear.py

State evolution is compared with the same iteration by SciPy's adaptive quadrature, one call per
expectation, to the same accuracy: the scheme of the package tramp (Baker, Aubin, Krzakala,
Zdeborová 2020), which needs networkx below 2 and does not install on current Python. A step of
message passing reads the matrix twice: its limit is the time of two products of the matrix with a
vector.
"""

import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.integrate import quad
from scipy.stats import norm

import orderparam as op
from orderparam.systems.committee import Committee
from orderparam.systems.committee import state_evolution as committee_evolution
from orderparam.systems.generalised_linear import (
    GeneralisedLinear,
    message_passing,
    solutions,
    state_evolution,
)

RATIOS = (0.5, 1.0, 1.4)
SIZE, STEPS = 10_000, 10
GRID = 10_000
REPEATS = 5


def information(z: float, steepness: float) -> float:
    return norm.pdf(z) * np.exp(2 * norm.logpdf(steepness * z) - norm.logcdf(steepness * z))


def overlap(z: float, precision: float) -> float:
    return norm.pdf(z) * np.tanh(precision + np.sqrt(precision) * z)


def integral(function: Callable[[float, float], float], parameter: float) -> float:
    return quad(function, -10, 10, args=(parameter,), epsabs=1e-12, epsrel=1e-11, limit=200)[0]


def adaptive(ratio: float) -> float:
    """q by iteration with scipy.integrate.quad."""
    q = 1e-6
    while True:
        precision = 2 * ratio * integral(information, np.sqrt(q / (1 - q))) / (1 - q)
        new = integral(overlap, precision)
        if abs(new - q) < 1e-11:
            return new
        q = new


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - start


def main() -> None:
    table = Table(title=f"orderparam {op.__version__}: state evolution of signs and binary weights")
    for column in ("alpha", "ours, ms", "SciPy quad, ms", "ratio", "difference of q"):
        table.add_column(column, justify="right")
    for ratio in RATIOS:
        system = GeneralisedLinear(ratio, "sign", "rademacher")
        found = float(state_evolution(system).overlap)  # compiles
        times = [
            (timed(lambda s=system: state_evolution(s)), timed(lambda r=ratio: adaptive(r)))
            for _ in range(REPEATS)
        ]
        ours, scipy = (1e3 * statistics.median(column) for column in zip(*times))
        table.add_row(
            str(ratio),
            f"{ours:.3g}",
            f"{scipy:.3g}",
            f"{scipy / ours:.0f}x",
            f"{found - adaptive(ratio):.1e}",
        )
    console = Console(width=120)
    console.print(table)
    curve = GeneralisedLinear(1.0, "sign", "rademacher")
    jax.block_until_ready(solutions(curve, points=200))
    shortest = min(timed(lambda: solutions(curve, points=200)) for _ in range(REPEATS))
    console.print(f"all solutions at 200 points: {1e3 * shortest:.3g} ms")
    grid = jnp.linspace(0.05, 1.4, GRID)
    many = jax.jit(jax.vmap(lambda ratio: state_evolution(curve.with_(sample_ratio=ratio)).overlap))
    jax.block_until_ready(many(grid))
    console.print(
        f"state evolution at {GRID} points, one program: {timed(lambda: many(grid)):.3g} s"
    )
    committee = Committee(2.5)
    steps = float(committee_evolution(committee).steps)
    shortest = min(timed(lambda: committee_evolution(committee)) for _ in range(REPEATS))
    console.print(
        f"committee of two at alpha = 2.5: {shortest:.3g} s, {1e3 * shortest / steps:.3g} ms a step"
    )

    # In a process of its own: the peak of this one is that of the grid above.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        step, limit, peak, start = process.submit(message_passing_at_size).result()
    console.print(
        f"message passing, n = d = {SIZE}, single precision: {step:.3g} ms a step, two products "
        f"{limit:.3g} ms; peak memory {peak:.2f} GiB, of which {start:.2f} GiB are the libraries "
        f"and {4 * SIZE**2 / 2**30:.2f} GiB the matrix"
    )


def message_passing_at_size() -> tuple[float, float, float, float]:
    """ms of a step, ms of two products of a matrix of that size with a vector, and GiB: the peak of
    a run, and before it."""
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    system = GeneralisedLinear(1.0, "sign", "gaussian", SIZE)
    run = partial(
        message_passing,
        system,
        jax.random.key(0),
        precision="single",
        max_steps=STEPS,
        tolerance=1e-30,  # no step is so short: all are taken
    )
    one = partial(message_passing, system, jax.random.key(0), precision="single", max_steps=1)
    for way in (run, one):
        jax.block_until_ready(way())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    matrix, vector = jnp.ones((SIZE, SIZE), jnp.float32), jnp.ones(SIZE, jnp.float32)
    products = jax.jit(lambda matrix, vector: ((matrix @ vector) * 1e-4) @ matrix)
    jax.block_until_ready(products(matrix, vector))
    rows = [
        (timed(run), timed(one), timed(lambda: products(matrix, vector))) for _ in range(REPEATS)
    ]
    whole, first, limit = (1e3 * statistics.median(column) for column in zip(*rows))
    return (whole - first) / (STEPS - 1), limit, peak, start


if __name__ == "__main__":
    main()
