"""State evolution of signs and binary weights, and message passing against the memory it has to read; interleaved.

    python benchmarks/generalised_linear.py

State evolution is compared with the same iteration by SciPy's adaptive quadrature, to the same accuracy. A step of message
passing reads the matrix twice: its limit is the time of two products of the matrix with a vector.
"""

import resource
import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.integrate import quad
from scipy.stats import norm

import orderparam as op
from orderparam.systems.generalised_linear import GeneralisedLinear, message_passing, solutions, state_evolution

RATIOS = (0.5, 1.0, 1.4)
SIZE, STEPS = 10_000, 10
REPEATS = 5


def adaptive(ratio: float) -> float:
    """q by iteration with scipy.integrate.quad."""
    q = 1e-6
    while True:
        u = np.sqrt(q / (1 - q))
        inside = lambda z, u=u: norm.pdf(z) * np.exp(2 * norm.logpdf(u * z) - norm.logcdf(u * z))  # noqa: E731
        precision = 2 * ratio * quad(inside, -10, 10, epsabs=1e-12, epsrel=1e-11, limit=200)[0] / (1 - q)
        overlap = lambda z, a=precision: norm.pdf(z) * np.tanh(a + np.sqrt(a) * z)  # noqa: E731
        new = quad(overlap, -10, 10, epsabs=1e-12, epsrel=1e-11, limit=200)[0]
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
        times = [(timed(lambda s=system: state_evolution(s)), timed(lambda r=ratio: adaptive(r))) for _ in range(REPEATS)]
        ours, scipy = (1e3 * statistics.median(column) for column in zip(*times))
        table.add_row(str(ratio), f"{ours:.3g}", f"{scipy:.3g}", f"{scipy / ours:.0f}x", f"{found - adaptive(ratio):.1e}")
    console = Console()
    console.print(table)
    curve = GeneralisedLinear(1.0, "sign", "rademacher")
    jax.block_until_ready(solutions(curve, points=200))
    shortest = min(timed(lambda: solutions(curve, points=200)) for _ in range(REPEATS))
    console.print(f"all solutions at 200 points: {1e3 * shortest:.3g} ms")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    system = GeneralisedLinear(1.0, "sign", "gaussian", SIZE)
    run = lambda: message_passing(system, jax.random.key(0), precision="single", max_steps=STEPS, tolerance=0.0)  # noqa: E731
    none = lambda: message_passing(system, jax.random.key(0), precision="single", max_steps=0)  # noqa: E731
    for way in (run, none):
        jax.block_until_ready(way())
    matrix, vector = jnp.ones((SIZE, SIZE), jnp.float32), jnp.ones(SIZE, jnp.float32)
    products = jax.jit(lambda matrix, vector: ((matrix @ vector) * 1e-4) @ matrix)
    jax.block_until_ready(products(matrix, vector))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20 - before
    rows = [(timed(run), timed(none), timed(lambda: products(matrix, vector))) for _ in range(REPEATS)]
    whole, drawing, limit = (1e3 * statistics.median(column) for column in zip(*rows))
    console.print(
        f"message passing, n = d = {SIZE}, single precision: {(whole - drawing) / STEPS:.3g} ms a step, two products "
        f"{limit:.3g} ms; peak memory above the start, with the matrix of the products: {peak:.2f} GiB"
    )


if __name__ == "__main__":
    main()
