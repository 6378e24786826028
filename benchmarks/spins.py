"""Spin updates a second at the critical point: Metropolis and Swendsen-Wang for many replicas
against numba loops; interleaved.

    python benchmarks/spins.py

Public JAX codes of the Ising model that a search found (2026) are scripts of one form: `roll` for
sums over neighbours, a uniform float and an exponential for each spin, and a checkerboard as a
mask. That form, written here, runs beside ours as "usual JAX". The heat-bath sweeps of thrml, a
public library, are compared where it is installed.

The loops are of the usual form: site after site with a table of acceptance probabilities; clusters
by union-find. Without numba installed only our own numbers are printed. Beside wall time stands
processor time, which other work on the machine disturbs less. The first lines are the memory of the
whole process after the largest lattices.
"""

import math
import resource
import statistics
import time
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
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
USUAL_SLOWER = 100
RARELY = 10  # sweeps from one measurement to the next, where correlations last longer


def loops() -> dict[str, Callable[[int, int, np.random.Generator], float]]:
    """name -> compiled function (length, sweeps, generator) that returns the mean energy; empty
    without numba."""
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
                    around = (
                        spins[x - 1, y]
                        + spins[(x + 1) % length, y]
                        + spins[x, y - 1]
                        + spins[x, (y + 1) % length]
                    )
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
                energy -= spins[i] * (
                    spins[i - i % length + (i + 1) % length] + spins[(i + length) % n]
                )
        return energy / (sweeps * n)

    return {"Metropolis": local, "Swendsen-Wang": clusters}


@partial(jax.jit, static_argnames=("length", "replicas", "sweeps"))
def usual_jax(key: jax.Array, length: int, replicas: int, sweeps: int) -> jax.Array:
    """Mean energy of checkerboard Metropolis as it is usually written, measured after every
    sweep."""
    colour = (jnp.indices((length, length)).sum(axis=0) % 2).astype(bool)

    def around(spins: jax.Array) -> jax.Array:
        return sum(jnp.roll(spins, step, axis) for step in (1, -1) for axis in (1, 2))

    def half(spins: jax.Array, key: jax.Array, mask: jax.Array) -> jax.Array:
        cost = 2.0 * spins * around(spins)
        accepted = jax.random.uniform(key, spins.shape, jnp.float32) < jnp.exp(
            -cost / CRITICAL_TEMPERATURE
        )
        return jnp.where(accepted & mask, -spins, spins)

    def sweep(spins: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        first, second = jax.random.split(key)
        spins = half(half(spins, first, colour), second, ~colour)
        return spins, -jnp.mean(spins * around(spins)) / 2

    start = jnp.ones((replicas, length, length), jnp.float32)
    return jnp.mean(jax.lax.scan(sweep, start, jax.random.split(key, sweeps))[1])


def memory() -> None:
    """The peak of the process after the largest lattices, before anything else has run in it."""
    largest = IsingLattice(CRITICAL_TEMPERATURE, (1024, 1024))
    for name, way, replicas in (
        ("Swendsen-Wang", swendsen_wang, 1),
        ("Metropolis", metropolis, 64),
    ):
        jax.block_until_ready(
            way(largest, jax.random.key(0), replicas=replicas, warmup=0, sweeps=20)
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"peak of the process after {name} with L = 1024 and {replicas} replicas: {peak:.2f} "
            "GiB"
        )


def public_code() -> None:
    """Heat-bath updates of thrml beside ours, where it is installed."""
    try:
        from peers.thrml_spins import heat_bath
    except ImportError:
        print("thrml is not installed: no public JAX code is compared")
        return
    length, replicas, sweeps = 64, 64, 200
    system = IsingLattice(CRITICAL_TEMPERATURE, (length, length))
    ways: dict[str, tuple[int, Callable[[], object]]] = {
        "thrml": (sweeps, heat_bath(length, replicas, sweeps, RARELY, CRITICAL_TEMPERATURE)),
        "ours": (
            50 * sweeps,
            lambda: metropolis(
                system,
                jax.random.key(0),
                replicas=replicas,
                warmup=0,
                sweeps=50 * sweeps,
                every=RARELY,
            ),
        ),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _, run in ways.values():
        jax.block_until_ready(run())  # compile
    for _ in range(REPEATS):
        for name, (count, run) in ways.items():
            start = time.process_time()
            jax.block_until_ready(run())
            rates[name].append(replicas * count * length**2 / (time.process_time() - start) / 1e6)
    ours, theirs = (statistics.median(rates[name]) for name in ("ours", "thrml"))
    print(
        f"L = {length}, {replicas} replicas, measured every {RARELY} sweeps: thrml {theirs:.3g}, "
        f"ours {ours:.3g} million updates per core second, {ours / theirs:.0f}x"
    )


def main() -> None:
    memory()
    public_code()
    table = Table(
        title=f"orderparam {op.__version__}: spin updates at T_c, measurements after every sweep "
        "unless said otherwise"
    )
    columns = (
        "way",
        "L",
        "replicas",
        "million updates/s",
        "per core second",
        "ms a sweep of one replica",
        "numba loop",
        "ratio",
        "usual JAX",
        "ratio",
    )
    for column in columns:
        table.add_column(column, justify="right")
    compared = loops()
    ways_of_ours = (
        ("Metropolis", metropolis, ""),
        ("Metropolis", partial(metropolis, every=RARELY), f", measured every {RARELY} sweeps"),
        ("Swendsen-Wang", swendsen_wang, ""),
    )
    for name, ours, how in ways_of_ours:
        for length in LENGTHS[name]:
            system = IsingLattice(CRITICAL_TEMPERATURE, (length, length))
            replicas = REPLICAS[name] if length < 1024 or name == "Metropolis" else 1
            sweeps = max(8 * RARELY, int(UPDATES[name] / (replicas * length**2)))
            work = {"ours": replicas * sweeps * length**2}
            ways: dict[str, Callable[[], object]] = {
                "ours": lambda s=system, n=sweeps, f=ours, r=replicas: f(
                    s, jax.random.key(0), replicas=r, warmup=0, sweeps=n
                )
            }
            if name in compared:
                count = max(1, replicas * sweeps // SLOWER[name])
                work["numba"] = count * length**2
                ways["numba"] = lambda f=compared[name], n=length, count=count: f(
                    n, count, np.random.default_rng(0)
                )
            if name == "Metropolis":
                few, count = (
                    min(replicas, 16),
                    max(1, sweeps * replicas // (USUAL_SLOWER * min(replicas, 16))),
                )
                work["usual"] = few * count * length**2
                ways["usual"] = lambda n=length, r=few, c=count: usual_jax(
                    jax.random.key(0), n, r, c
                )
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
            rate, busy = (
                {way: work[way] / statistics.median(taken[way]) / 1e6 for way in ways}
                for taken in (wall, cores)
            )
            loop = (
                [f"{busy['numba']:.3g}", f"{busy['ours'] / busy['numba']:.1f}x"]
                if "numba" in busy
                else ["–", "–"]
            )
            usual = (
                [f"{busy['usual']:.3g}", f"{busy['ours'] / busy['usual']:.1f}x"]
                if "usual" in busy
                else ["–", "–"]
            )
            mine = [
                f"{rate['ours']:.3g}",
                f"{busy['ours']:.3g}",
                f"{length**2 / busy['ours'] / 1e3:.3g}",
            ]
            table.add_row(name + how, str(length), str(replicas), *mine, *loop, *usual)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
