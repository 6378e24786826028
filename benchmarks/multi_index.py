"""Weak learnability: exponents against binned samples, and the search for a direction against plain
numpy loops; interleaved.

python benchmarks/multi_index.py
"""

import time
from collections.abc import Callable

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from orderparam.systems.multi_index import SphericalSGD, exit_chain, exponents, trained_neuron

REPEATS = 3
DIM, STEPS, SEEDS = 1000, 4000, 64
# target, the same in numpy, its threshold of weak recovery in closed form
THRESHOLDS = {
    "z**2": (1, lambda z: z[:, 0] ** 2, 0.5),
    "z1*z2": (2, lambda z: z[:, 0] * z[:, 1], 0.5937510982),
    "sign(z1*z2)": (2, lambda z: np.sign(z[:, 0] * z[:, 1]), np.pi**2 / 4),
    "z1**2 + z2**2": (2, lambda z: z[:, 0] ** 2 + z[:, 1] ** 2, 1.0),
}


def binned_threshold(
    dimension: int, target: Callable, samples: int = 1_000_000, bins: int = 1000
) -> float:
    """What one writes first: sort the samples by label, average z z^T - 1 in bins, square (biased
    by bins / samples)."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((samples, dimension))
    ordered = z[np.argsort(target(z), kind="stable")].reshape(bins, -1, dimension)
    second = np.einsum("bni,bnj->bij", ordered, ordered) / ordered.shape[1] - np.eye(dimension)
    operator = np.einsum("bij,bkl->ikjl", second, second).reshape(dimension**2, -1) / bins
    return 1 / np.linalg.eigvalsh((operator + operator.T) / 2)[-1]


def numpy_neuron(steps: int) -> float:
    """One neuron with d weights, one sample a step; target and student He2 / sqrt 2."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal(DIM)
    w /= np.linalg.norm(w)
    for _ in range(steps):
        x = rng.standard_normal(DIM)
        field = w @ x
        error = np.sqrt(2) * field * (x[0] ** 2 - 1) / np.sqrt(2)
        w += 0.1 / DIM * error * (x - field * w)
        w /= np.linalg.norm(w)
    return float(w[0])


def numpy_chain(steps: int) -> float:
    """The same law through the overlap alone, all seeds in one array."""
    rng = np.random.default_rng(0)
    m = np.abs(rng.standard_normal(SEEDS)) / np.sqrt(DIM)
    for _ in range(steps):
        z, rest = rng.standard_normal((2, SEEDS)), rng.chisquare(DIM - 2, SEEDS)
        side = np.sqrt(1 - m**2)
        star = m * z[0] + side * z[1]
        error = 0.1 / DIM * np.sqrt(2) * z[0] * (star**2 - 1) / np.sqrt(2)
        m = (m + side * error * z[1]) / np.sqrt(1 + (error * z[1]) ** 2 + error**2 * rest)
    return float(m.mean())


def bandwidth() -> float:
    """Bytes a second that this machine copies (read and write counted)."""
    source = np.ones(2**23)
    target = np.empty_like(source)
    start = time.perf_counter()
    for _ in range(4):
        np.copyto(target, source)
    return 4 * 2 * source.nbytes / (time.perf_counter() - start)


def timed(function: Callable[[], object]) -> tuple[float, object]:
    start = time.perf_counter()
    value = jax.block_until_ready(function())
    return time.perf_counter() - start, value


def main() -> None:
    console = Console(width=120)
    table = Table(title="threshold of weak recovery")
    for column in ("target", "exponents", "its error", "binned samples", "its error"):
        table.add_column(column, justify="left" if column == "target" else "right")
    for name, (dimension, target, exact) in THRESHOLDS.items():
        ours, found = timed(lambda name=name: exponents(name, highest=4).threshold)  # type: ignore[misc]
        theirs, plain = timed(lambda d=dimension, g=target: binned_threshold(d, g))  # type: ignore[misc]
        errors = (abs(float(value) / exact - 1) for value in (found, plain))  # type: ignore[arg-type]
        shown = [f"{error:.0e}" for error in errors]
        table.add_row(name, f"{ours:.2f} s", shown[0], f"{theirs:.2f} s", shown[1])
    console.print(table)

    formula = "He2(z)/sqrt(2)"
    system = SphericalSGD(
        input_dim=DIM,
        target=formula,
        student=formula,
        horizon=STEPS / DIM,
        first_record=STEPS / DIM / 2,
        records=2,
    )
    # nobody gets there: all steps are made
    waiting = system.with_(exit_overlap=0.999, horizon=10 * STEPS / DIM)
    keys = jax.random.split(jax.random.key(0), SEEDS)
    few = keys[:4]
    tasks = {
        "numpy neuron": (STEPS, lambda: numpy_neuron(STEPS)),
        "trained_neuron": (
            4 * STEPS,
            lambda: jax.vmap(lambda key: trained_neuron(system, key).norm)(few),
        ),
        "numpy chain": (SEEDS * STEPS, lambda: numpy_chain(STEPS)),
        "exit_chain": (
            10 * SEEDS * STEPS,
            lambda: jax.vmap(lambda key: exit_chain(waiting, key).exit_steps)(keys),
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for round_ in range(REPEATS + 1):
        for name, (_, task) in tasks.items():
            took, _ = timed(task)
            if round_:  # the first round compiles
                seconds[name].append(took)
    rates = {name: count / float(np.median(seconds[name])) for name, (count, _) in tasks.items()}
    table = Table(title=f"search for a direction, He2, d = {DIM}")
    for column in ("", "seed-steps / s", "ratio"):
        table.add_column(column, justify="left" if not column else "right")
    # Each step reads the weights twice and writes them once, and writes and reads the input
    # (float64).
    traffic = bandwidth() / (8 * DIM * 5)
    rows = {
        "numpy loop over samples, all weights": ("numpy neuron", "numpy neuron"),
        "trained_neuron, 4 seeds at once": ("trained_neuron", "numpy neuron"),
        "numpy loop over the overlap, 64 seeds": ("numpy chain", "numpy chain"),
        "exit_chain, 64 seeds": ("exit_chain", "numpy chain"),
    }
    for words, (name, base) in rows.items():
        table.add_row(words, f"{rates[name]:,.0f}", f"{rates[name] / rates[base]:.1f}")
    table.add_row(
        "memory traffic of a plain step",
        f"{traffic:,.0f}",
        f"{traffic / rates['numpy neuron']:.1f}",
    )
    console.print(table)


if __name__ == "__main__":
    main()
