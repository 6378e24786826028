"""What a sweep costs beyond the work itself: per theory point, per experiment point, and per stored
point.

Compared with the loop one would otherwise write: a Python loop over a jitted function. All in one
run, repetitions interleaved.
"""

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from rich.console import Console
from rich.table import Table

import orderparam as op

REPEATS = 5


class Magnet(op.System):
    """Independent spins in a field."""

    temperature: float
    field: float


class Magnetisation(op.Result):
    """Magnetisation per spin."""

    magnetisation: Float[Array, ""]


def exact(system: Magnet) -> Magnetisation:
    return Magnetisation(magnetisation=jnp.tanh(system.field / system.temperature))


@jax.jit
def _spin(up: float, key: jax.Array) -> jax.Array:
    return 2 * jax.random.bernoulli(key, up, (1000,)).mean() - 1


def sampled(system: Magnet, key: jax.Array) -> Magnetisation:
    return Magnetisation(
        magnetisation=_spin(1 / (1 + np.exp(-2 * system.field / system.temperature)), key)
    )


def main() -> None:
    warnings.simplefilter("ignore")
    system, grid = (
        Magnet(1.0, 0.5),
        {"temperature": np.linspace(0.5, 2, 100), "field": np.linspace(0, 1, 100)},
    )
    few = {"temperature": np.linspace(0.5, 2, 10), "field": np.linspace(0, 1, 10)}
    jitted = jax.jit(lambda t, h: jnp.tanh(h / t))

    def loop_theory() -> None:
        [float(jitted(t, h)) for t in grid["temperature"] for h in grid["field"]]

    def loop_experiment() -> None:
        points = [(t, h) for t in few["temperature"] for h in few["field"]]
        for i, (t, h) in enumerate(points):
            for seed in range(4):
                float(
                    _spin(1 / (1 + np.exp(-2 * h / t)), jax.random.fold_in(jax.random.key(seed), i))
                )

    def stored() -> None:
        with tempfile.TemporaryDirectory() as folder:
            op.sweep(sampled, system, few, seeds=4, store=Path(folder) / "s.zarr", progress=False)

    cases: dict[str, tuple[int, Callable[[], object], Callable[[], object]]] = {
        "theory, in memory": (10_000, lambda: op.sweep(exact, system, grid), loop_theory),
        "experiment, in memory": (
            400,
            lambda: op.sweep(sampled, system, few, seeds=4, progress=False),
            loop_experiment,
        ),
        "experiment, stored on disk": (400, stored, loop_experiment),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for repeat in range(REPEATS + 1):
        for name, (_, ours, plain) in cases.items():
            seconds = []
            for function in (ours, plain):
                start = time.perf_counter()
                function()
                seconds.append(time.perf_counter() - start)
            if repeat:  # the first round compiles
                times[name].append((seconds[0], seconds[1]))
    table = Table(
        title="sweep: time per point (median of repetitions; compilation of the theory included)"
    )
    for column in ("case", "points", "sweep", "plain loop", "sweep / loop"):
        table.add_column(column, justify="left" if column == "case" else "right")
    for name, (points, _, _) in cases.items():
        ours, plain = (statistics.median(pair[i] for pair in times[name]) / points for i in (0, 1))
        table.add_row(
            name,
            str(points),
            f"{1e6 * ours:.0f} µs",
            f"{1e6 * plain:.0f} µs",
            f"{ours / plain:.2f}",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
