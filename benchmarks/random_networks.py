"""Random networks drawn a second: the compiled, chunked experiment against a plain numpy loop and
numpy all at once; interleaved.

    python benchmarks/random_networks.py

One hidden layer, erf, two inputs of dimension two, uniform weights; every way ends with the fourth
moment at both inputs.
"""

import statistics
import time
from collections.abc import Callable

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import erf

import orderparam as op
from orderparam.systems.random_networks import RandomNetwork, marginals, sampled_marginals

PROBES = np.array([[1.0, 0.5], [-0.3, 2.0]])
SIZES = {1: 200_000, 5: 200_000, 500: 10_000}  # width -> networks
LOOPED = 2000  # networks of the numpy loop, which is timed on these alone
REPEATS = 3


def loop(width: int, networks: int) -> np.ndarray:
    """What one writes first: a network at a time."""
    rng = np.random.default_rng(0)
    values = np.empty((networks, 2))
    for i in range(networks):
        w = rng.uniform(-(0.5**0.5), 0.5**0.5, (width, 2))
        a = rng.uniform(-(width**-0.5), width**-0.5, width)
        values[i] = a @ erf(w @ PROBES.T)
    return np.mean(values**4, axis=0)


def at_once(width: int, networks: int) -> np.ndarray:
    """What one writes second: all weights in one array."""
    rng = np.random.default_rng(0)
    w = rng.uniform(-(0.5**0.5), 0.5**0.5, (networks, width, 2))
    a = rng.uniform(-(width**-0.5), width**-0.5, (networks, width))
    return np.mean(np.einsum("rc,rcp->rp", a, erf(w @ PROBES.T)) ** 4, axis=0)


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - start


def main() -> None:
    table = Table(title=f"orderparam {op.__version__}: random networks drawn a second")
    for column in (
        "width",
        "orderparam",
        "numpy loop",
        "numpy at once",
        "ratio to the loop",
        "ratio at once",
    ):
        table.add_column(column, justify="right")
    for width, networks in SIZES.items():
        system = RandomNetwork(PROBES, width=width)
        ways: dict[str, tuple[Callable[[], object], int]] = {
            "ours": (
                lambda s=system, n=networks: sampled_marginals(s, jax.random.key(0), n),
                networks,
            ),
            "loop": (lambda n=width: loop(n, LOOPED), LOOPED),
            "once": (lambda n=width, r=networks: at_once(n, r), networks),
        }
        ways["ours"][0]()  # compile
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(REPEATS):
            for name, (way, _) in ways.items():
                times[name].append(seconds(way))
        rates = {name: ways[name][1] / statistics.median(times[name]) for name in ways}
        cells = [f"{rates[name]:.3g}" for name in ways]
        table.add_row(
            str(width),
            *cells,
            f"{rates['ours'] / rates['loop']:.0f}x",
            f"{rates['ours'] / rates['once']:.1f}x",
        )
    theory = op.sweep(marginals, RandomNetwork(PROBES), {"width": range(1, 1001)})
    Console(width=120).print(table)
    Console(width=120).print(
        f"exact kurtosis at 1000 widths: {float(theory['seconds'].sum()):.3f} s with compilation"
    )


if __name__ == "__main__":
    main()
