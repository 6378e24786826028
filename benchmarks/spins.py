"""Spin updates a second at the critical point: Metropolis and Swendsen-Wang for many replicas against numba loops; interleaved.

    python benchmarks/spins.py

The loops are of the usual form: site after site with a table of acceptance probabilities; clusters by union-find. Without numba
installed only our own numbers are printed.
"""

import math
import statistics
import time
from collections.abc import Callable

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import orderparam as op
from orderparam.systems.spins import CRITICAL_TEMPERATURE, IsingLattice, metropolis, swendsen_wang

try:
    from numba import njit
except ImportError:
    njit = None

LENGTHS = (32, 64, 256)
UPDATES = 5e6  # of a way, about
REPLICAS = 16
REPEATS = 3


def loops() -> dict[str, Callable[[int, int, np.random.Generator], float]]:
    """name -> compiled function (length, sweeps, generator) that returns the mean energy; empty without numba."""
    if njit is None:
        return {}

    @njit
    def local(length: int, sweeps: int, rng: np.random.Generator) -> float:
        spins = np.ones((length, length), np.int8)
        accept = np.exp(-2 * np.arange(-4, 5) / CRITICAL_TEMPERATURE)
        energy = 0
        for _ in range(sweeps):
            for x in range(length):
                for y in range(length):
                    around = spins[x - 1, y] + spins[(x + 1) % length, y] + spins[x, y - 1] + spins[x, (y + 1) % length]
                    if rng.random() < accept[spins[x, y] * around + 4]:
                        spins[x, y] = -spins[x, y]
                    energy -= spins[x, y] * around
        return energy / (2 * sweeps * length**2)

    @njit
    def root(parent: np.ndarray, site: int) -> int:
        while parent[site] != site:
            parent[site] = parent[parent[site]]
            site = parent[site]
        return site

    @njit
    def clusters(length: int, sweeps: int, rng: np.random.Generator) -> float:
        n = length * length
        spins, bond, energy = np.ones(n, np.int8), 1 - math.exp(-2 / CRITICAL_TEMPERATURE), 0
        parent, turned = np.empty(n, np.int64), np.empty(n, np.int8)
        for _ in range(sweeps):
            for i in range(n):
                parent[i], turned[i] = i, 1 if rng.random() < 0.5 else -1
            for i in range(n):
                right, down = i - i % length + (i + 1) % length, (i + length) % n
                for j in (right, down):
                    if spins[i] == spins[j] and rng.random() < bond:
                        a, b = root(parent, i), root(parent, j)
                        parent[max(a, b)] = min(a, b)
            for i in range(n):
                spins[i] = turned[root(parent, i)]
            for i in range(n):
                energy -= spins[i] * (spins[i - i % length + (i + 1) % length] + spins[(i + length) % n])
        return energy / (sweeps * n)

    return {"Metropolis": local, "Swendsen-Wang": clusters}


def main() -> None:
    table = Table(title=f"orderparam {op.__version__}: spin updates a second at T_c, {REPLICAS} replicas, measurements included")
    for column in ("way", "L", "million updates/s", "ms a sweep of one replica", "numba loop", "ratio"):
        table.add_column(column, justify="right")
    compared = loops()
    for name, ours in (("Metropolis", metropolis), ("Swendsen-Wang", swendsen_wang)):
        for length in LENGTHS:
            system = IsingLattice(CRITICAL_TEMPERATURE, (length, length))
            sweeps = max(16, int(UPDATES / (REPLICAS * length**2)) // (1 if name == "Metropolis" else 8))
            ways: dict[str, Callable[[], object]] = {
                "ours": lambda s=system, n=sweeps, f=ours: f(s, jax.random.key(0), replicas=REPLICAS, warmup=0, sweeps=n)
            }
            if name in compared:
                ways["numba"] = lambda f=compared[name], n=length, count=REPLICAS * sweeps: f(n, count, np.random.default_rng(0))
            times: dict[str, list[float]] = {way: [] for way in ways}
            for way in ways.values():
                jax.block_until_ready(way())  # compile
            for _ in range(REPEATS):
                for way, run in ways.items():
                    start = time.perf_counter()
                    jax.block_until_ready(run())
                    times[way].append(time.perf_counter() - start)
            total = REPLICAS * sweeps * length**2
            rate = {way: total / statistics.median(seconds) / 1e6 for way, seconds in times.items()}
            loop = [f"{rate['numba']:.3g}", f"{rate['ours'] / rate['numba']:.2f}x"] if "numba" in rate else ["–", "–"]
            table.add_row(name, str(length), f"{rate['ours']:.3g}", f"{length**2 / rate['ours'] / 1e3:.3g}", *loop)
    Console().print(table)


if __name__ == "__main__":
    main()
