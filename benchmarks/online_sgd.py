"""One-pass SGD: the compiled network against a plain numpy loop, the flow against Euler steps, and
the chain; interleaved.

    python benchmarks/online_sgd.py
    PHDIAG_SGD=/path/to/phdiag_sgd python benchmarks/online_sgd.py
        # a checkout with its Cython modules built in place
"""

import contextlib
import importlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import erf

from orderparam.systems.online_sgd import CommitteeSGD, overlap_chain, overlap_flow, trained_network
from orderparam.systems.online_sgd.theory import Order, problem, velocity

WIDTH, TEACHER, DIM, SEEDS, REPEATS = 8, 4, 1000, 16, 5
STEPS = 5000
PEER = os.environ.get("PHDIAG_SGD")


def numpy_network(steps: int) -> float:
    """What one writes first: one sample a step, float64."""
    rng = np.random.default_rng(0)
    star = np.sqrt(DIM) * np.eye(TEACHER, DIM)
    weights = 0.5 * rng.standard_normal((WIDTH, DIM))
    for _ in range(steps):
        x = rng.standard_normal(DIM)
        fields = weights @ x / np.sqrt(DIM)
        label = erf(star @ x / np.sqrt(2 * DIM)).mean() + 0.03 * rng.standard_normal()
        error = label - erf(fields / np.sqrt(2)).mean()
        slope = np.sqrt(2 / np.pi) * np.exp(-(fields**2) / 2)
        weights += np.outer(slope * error, x) / np.sqrt(DIM)
    return float(np.sum(weights**2))


def bandwidth() -> float:
    """Bytes a second that this machine copies (read and write counted)."""
    source = np.ones(2**24)
    target = np.empty_like(source)
    start = time.perf_counter()
    for _ in range(4):
        np.copyto(target, source)
    return 4 * 2 * source.nbytes / (time.perf_counter() - start)


def euler(system: CommitteeSGD, horizon: float, step: float) -> float:
    """Explicit Euler in Python over the compiled right-hand side."""
    field = jax.jit(
        lambda order: jax.tree.map(
            lambda y, dy: y + step * dy, order, velocity(order, problem(system))
        )
    )
    state = field(Order.at_start(system))
    start = time.perf_counter()
    for _ in range(int(horizon / step)):
        state = field(state)
    jax.block_until_ready(state)
    return time.perf_counter() - start


def peer_flow(system: CommitteeSGD, horizon: float, steps_per_time: int) -> tuple[float, float]:
    """Seconds and final risk of the Cython flow of Veiga et al. 2022
    (github.com/rodsveiga/phdiag_sgd), Euler steps."""
    sys.path.insert(0, str(Path(str(PEER)) / "ode"))
    solver = importlib.import_module("ode").ode(steps_per_time, WIDTH, TEACHER)
    self_overlap, teacher_overlap = (np.array(part) for part in system.overlaps())
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(None):
        solver.set_Q0(Q0=self_overlap)
        solver.set_M0(M0=teacher_overlap)
        solver.set_P(P=np.eye(TEACHER))
        start = time.perf_counter()
        _, risk = solver.fit(horizon, 0.0, 0.0, noise=float(system.noise), save_folder=f"{folder}/")
    return time.perf_counter() - start, float(np.ravel(risk)[-1])


def interleaved(tasks: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each task, every round running all of them."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for round_ in range(REPEATS + 1):
        for name, task in tasks.items():
            start = time.perf_counter()
            jax.block_until_ready(task())
            if round_:  # the first round compiles
                times[name].append(time.perf_counter() - start)
    return {name: float(np.median(values)) for name, values in times.items()}


def main() -> None:
    system = CommitteeSGD(
        input_dim=DIM,
        width=WIDTH,
        teacher_width=TEACHER,
        learning_rate=8.0,
        horizon=STEPS / DIM,
        records=2,
    )
    keys = jax.random.split(jax.random.key(0), SEEDS)
    flow_system = system.with_(horizon=1000.0)
    seconds = interleaved(
        {
            "numpy": lambda: numpy_network(STEPS),
            "network": lambda: jax.vmap(lambda key: trained_network(system, key).test_error)(keys),
            "chain": lambda: jax.vmap(lambda key: overlap_chain(system, key).test_error)(keys),
            "flow": lambda: overlap_flow(flow_system).test_error,
            "bandwidth": bandwidth,
        }
    )
    rates = {"numpy": STEPS / seconds["numpy"]} | {
        x: SEEDS * STEPS / seconds[x] for x in ("network", "chain")
    }
    # Each plain step reads the weights twice and writes them once, and writes and reads the input
    # (float64).
    traffic = 8 * DIM * (3 * WIDTH + 2)
    limit = bandwidth() / traffic
    table = Table(
        title=f"p = {WIDTH}, k = {TEACHER}, d = {DIM}; network and chain: {SEEDS} seeds at once"
    )
    for column in ("", "seed-steps / s", "x width x d / s", "ratio to numpy"):
        table.add_column(column, justify="left" if not column else "right")
    names = {
        "numpy": "numpy loop, one sample a step",
        "network": "trained_network",
        "chain": "overlap_chain (no weights)",
    }
    for name, words in names.items():
        rate = rates[name]
        table.add_row(
            words, f"{rate:,.0f}", f"{rate * WIDTH * DIM:.2e}", f"{rate / rates['numpy']:.1f}"
        )
    table.add_row(
        "memory traffic of a plain float64 step",
        f"{limit:,.0f}",
        f"{limit * WIDTH * DIM:.2e}",
        f"{limit / rates['numpy']:.1f}",
    )
    console = Console(width=120)
    console.print(table)
    plain = euler(flow_system, 20.0, 1 / 200) * 1000 / 20
    console.print(
        f"flow to n/d = 1000: {seconds['flow']:.2f} s adaptive, {plain:.1f} s by Euler steps of "
        "1/200 (compiled right-hand side, extrapolated from n/d = 20): "
        f"{plain / seconds['flow']:.0f} times"
    )
    if PEER is None:
        console.print("the Cython flow of Veiga et al.: skipped (PHDIAG_SGD is not set)")
        return
    exact = float(overlap_flow(system.with_(horizon=10.0)).test_error[-1])
    for steps_per_time in (200, 2000):
        took, risk = peer_flow(system, 10.0, steps_per_time)
        console.print(
            f"Cython flow of Veiga et al. to n/d = 1000, Euler steps of 1/{steps_per_time}: "
            f"{100 * took:.1f} s (extrapolated from n/d = 10, where its error is "
            f"{abs(risk / exact - 1):.0e}): {100 * took / seconds['flow']:.0f} times"
        )
    console.print("its own default is 1/2000")


if __name__ == "__main__":
    main()
