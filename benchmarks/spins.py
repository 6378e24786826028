"""Spin updates a second at the critical point: Metropolis and Swendsen-Wang for many replicas against numba loops; interleaved.

    python benchmarks/spins.py

The loops are of the usual form: site after site with a table of acceptance probabilities; clusters by union-find. Without numba
installed only our own numbers are printed. Beside wall time stands processor time, which other work on the machine disturbs less.
The last line is the memory of the whole process after the largest lattice.
"""

import math
import resource
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

LENGTHS = {"Metropolis": (32, 64, 256, 1024), "Swendsen-Wang": (32, 64, 256, 1024)}
UPDATES = {"Metropolis": 2e8, "Swendsen-Wang": 2e7}  # of ours, about
SLOWER = {"Metropolis": 10, "Swendsen-Wang": 1}  # a loop makes so many fewer
REPLICAS = {"Metropolis": 64, "Swendsen-Wang": 16}
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
    table = Table(title=f"orderparam {op.__version__}: spin updates at T_c, measurements included")
    columns = ("way", "L", "replicas", "million updates/s", "per core second", "ms a sweep of one replica", "numba loop", "ratio")
    for column in columns:
        table.add_column(column, justify="right")
    compared = loops()
    for name, ours in (("Metropolis", metropolis), ("Swendsen-Wang", swendsen_wang)):
        for length in LENGTHS[name]:
            system = IsingLattice(CRITICAL_TEMPERATURE, (length, length))
            replicas = REPLICAS[name] if length < 1024 or name == "Metropolis" else 1
            sweeps = max(8, int(UPDATES[name] / (replicas * length**2)))
            work = {"ours": replicas * sweeps * length**2}
            ways: dict[str, Callable[[], object]] = {
                "ours": lambda s=system, n=sweeps, f=ours, r=replicas: f(s, jax.random.key(0), replicas=r, warmup=0, sweeps=n)
            }
            if name in compared:
                count = max(1, replicas * sweeps // SLOWER[name])
                work["numba"] = count * length**2
                ways["numba"] = lambda f=compared[name], n=length, count=count: f(n, count, np.random.default_rng(0))
            wall: dict[str, list[float]] = {way: [] for way in ways}
            cores: dict[str, list[float]] = {way: [] for way in ways}
            for way in ways.values():
                jax.block_until_ready(way())  # compile
            for _ in range(REPEATS):
                for way, run in ways.items():
                    start = time.perf_counter(), time.process_time()
                    jax.block_until_ready(run())
                    wall[way].append(time.perf_counter() - start[0])
                    cores[way].append(time.process_time() - start[1])
            rate, busy = ({way: work[way] / statistics.median(taken[way]) / 1e6 for way in ways} for taken in (wall, cores))
            loop = [f"{busy['numba']:.3g}", f"{busy['ours'] / busy['numba']:.1f}x"] if "numba" in busy else ["–", "–"]
            mine = [f"{rate['ours']:.3g}", f"{busy['ours']:.3g}", f"{length**2 / busy['ours'] / 1e3:.3g}"]
            table.add_row(name, str(length), str(replicas), *mine, *loop)
    Console().print(table)
    print(f"largest memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
