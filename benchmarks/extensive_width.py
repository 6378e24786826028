"""Extensive-width theory and posterior sampling against the straightforward scipy and
unpreconditioned ways.

    python benchmarks/extensive_width.py [--full]

Ratios come from one run: repetitions of the competitors are interleaved, medians are compared. With
SCALING_LAWS_CODE naming a folder that holds `func.py` of the programs published with the theory
(github.com/Minh-Toan/scaling-laws), they are timed too.
"""

import importlib.util
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import brentq

import orderparam as op
from orderparam.gaussian import hermite_coefficients
from orderparam.sampling import sample
from orderparam.systems.extensive_width import (
    TANH_2,
    HierarchicalTeacher,
    QuadraticTeacher,
    bayes_optimal,
    quadratic_bayes_optimal,
)
from orderparam.systems.extensive_width.experiment import affine_part, draw, output
from orderparam.systems.extensive_width.quadratic import matrix_channel

PUBLISHED = "SCALING_LAWS_CODE"


class ScipySolver:
    """The self-consistent equations as one writes them down: a table of m(lambda) on a grid of q,
    bisection on the error."""

    def __init__(self, points: int = 20_000) -> None:
        squares = np.asarray(hermite_coefficients(TANH_2, 400)) ** 2
        squares[:3] = 0
        degrees = np.arange(400)
        q = -np.expm1(-np.linspace(1e-3, 30, points))
        powers = q[:, None] ** degrees
        self.total, g = squares.sum(), powers @ squares
        slope = powers[:, :-1] @ (degrees[1:] * squares[1:])
        height = q + np.log1p(-q)
        start = np.argmin(-height / g)
        self.threshold = (-height / g)[start]
        self.signal, self.q, self.g = (q / ((1 - q) * slope))[start:], q[start:], g[start:]

    def errors(self, teacher: HierarchicalTeacher, scanned: int) -> list[float]:
        """Roots between neighbours of a logarithmic grid of errors; with one cell, the root that
        bisection happens to find."""
        power = np.arange(1, teacher.width + 1.0) ** (-2 * teacher.decay)
        power /= power.sum()

        def miss(error: float) -> float:
            signal = teacher.n_train / teacher.input_dim * power / (teacher.noise + error)
            g = np.where(signal >= self.threshold, np.interp(signal, self.signal, self.g), 0.0)
            return error - np.sum(power * (self.total - g))

        grid = [0.0, *np.geomspace(self.total * (1 + 1e-12), 1e-9, scanned)[::-1]]
        values = [miss(error) for error in grid]
        pairs = [
            (a, b) for a, b, u, w in zip(grid[:-1], grid[1:], values[:-1], values[1:]) if u < 0 <= w
        ]
        return [brentq(miss, a, b, xtol=1e-15) for a, b in pairs]


def error(teacher: HierarchicalTeacher) -> jax.Array:
    return bayes_optimal(teacher).error


def timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - start


def interleaved(functions: dict[str, Callable[[], object]], repetitions: int) -> dict[str, float]:
    """Median seconds of each, after one warm-up call."""
    for function in functions.values():
        timed(function)
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repetitions):
        for name, function in functions.items():
            seconds[name].append(timed(function))
    return {name: median(values) for name, values in seconds.items()}


def theory(table: Table, repetitions: int) -> None:
    solver = ScipySolver()
    for width in (1_000, 1_000_000):
        teacher = HierarchicalTeacher(2 * width, width, 1.0, 0.01, 4.0 * width**2)
        found = interleaved(
            {
                "ours": partial(error, teacher),
                "one": partial(solver.errors, teacher, 1),
                "all": partial(solver.errors, teacher, 400),
            },
            repetitions,
        )
        deviation = solver.errors(teacher, 1)[0] / float(bayes_optimal(teacher).error) - 1
        what = f"theory, {width:,} features, one n"
        row(
            table,
            what,
            found,
            "one",
            f"scipy: any one root, off by {deviation:+.0e}, no choice between solutions",
        )
        row(table, what, found, "all", "scipy: all roots that a scan of 400 errors shows")
    teacher = HierarchicalTeacher(2000, 1000, 1.0, 0.01)
    grid = list(np.geomspace(1e6, 1e9, 64))
    many = jax.jit(jax.vmap(lambda n: bayes_optimal(teacher.with_(n_train=n)).error))
    found = interleaved(
        {
            "ours": lambda: many(jnp.asarray(grid)),
            "all": lambda: [solver.errors(teacher.with_(n_train=n), 400) for n in grid],
        },
        repetitions,
    )
    rate = len(grid) / found["ours"]
    row(
        table,
        "theory, 1,000 features, 64 n at once",
        found,
        "all",
        f"vmapped, {rate:.3g} points/s; scipy: all roots",
    )


def channel_by_roots(width_ratio: float, signals: np.ndarray, points: int = 400) -> np.ndarray:
    """The overlap m_S of the matrix channel for equal read-outs: one cubic for the spectral density
    at each point."""
    overlaps = []
    for signal in signals:
        c = np.sqrt(width_ratio * signal)
        middle, half = (c + c / width_ratio) / 2, 3 + c + c / width_ratio
        grid = np.linspace(middle - half, middle + half, points)
        cubics = (
            [-c, width_ratio + c * x, c * width_ratio - c - width_ratio * x, width_ratio]
            for x in grid
        )
        density = np.array([np.max(np.abs(np.roots(cubic).imag)) for cubic in cubics]) / np.pi
        overlaps.append(
            1 - (1 - 4 * np.pi**2 / 3 * np.sum(density**3) * (grid[1] - grid[0])) / signal
        )
    return np.array(overlaps)


def quadratic(table: Table, repetitions: int) -> None:
    """The table of the matrix channel, and the states that follow from it."""
    signals = np.expm1(np.linspace(0, np.log1p(200), 161))[1:]
    tables = {
        "ours": lambda: matrix_channel.__wrapped__(0.5).overlap_cells,
        "roots": lambda: channel_by_roots(0.5, signals),
    }
    found = interleaved(tables, 1)
    ours = np.asarray(matrix_channel(0.5).overlap(jnp.asarray(signals)))
    worst = np.max(np.abs(channel_by_roots(0.5, signals) - ours))
    row(
        table,
        "table of the matrix channel",
        found,
        "roots",
        f"numpy.roots, 160 signals of 400 points, off by {worst:.0e}",
    )
    teacher = QuadraticTeacher(200, 100, 0.1)
    grid = jnp.geomspace(2e4, 4e5, 64)
    many = jax.jit(jax.vmap(lambda n: quadratic_bayes_optimal(teacher.with_(n_train=n)).error))
    seconds = interleaved({"ours": lambda: many(grid)}, repetitions)["ours"]
    table.add_row(
        "quadratic component, 64 n at once",
        f"{seconds * 1e3:.4g} ms",
        "",
        "",
        "both branches, ReLU, equal read-outs",
    )


def published(table: Table, repetitions: int) -> None:
    """The published solver: an interpolated m(lambda), bisection on the error to 1e-6."""
    folder = os.environ.get(PUBLISHED)
    if not folder:
        table.add_row("published programs", "", "", "", f"skipped: {PUBLISHED} is not set")
        return
    program = _loaded(Path(folder) / "func.py")
    linear = float(hermite_coefficients(TANH_2, 2)[1])
    start = time.perf_counter()
    g, _, _, overlap, _, _ = program.sig_related(lambda x: np.tanh(2 * x) - linear * x)
    prepared = time.perf_counter() - start
    for width in (100, 1000):
        teacher = HierarchicalTeacher(2 * width, width, 1.0, 0.01, 8.0 * width**2)
        v = program.v_generate(width, 1.0)
        solve = partial(
            program.solve, teacher.n_train, teacher.input_dim, teacher.noise, v, g, overlap
        )
        found = interleaved({"ours": partial(error, teacher), "published": solve}, repetitions)
        deviation = float(solve()[0]) / float(error(teacher)) - 1
        what = f"theory, {width:,} features, one n"
        row(
            table,
            what,
            found,
            "published",
            f"published: off by {deviation:+.0e}, after {prepared:.2g} s of tables",
        )


def _loaded(path: Path) -> ModuleType:
    found = importlib.util.spec_from_file_location("published_program", path)
    if found is None or found.loader is None or not path.exists():
        raise SystemExit(f"{PUBLISHED}: there is no {path}")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def row(table: Table, what: str, seconds: dict[str, float], rival: str, remark: str) -> None:
    ratio = seconds[rival] / seconds["ours"]
    table.add_row(
        what,
        f"{seconds['ours'] * 1e3:.4g} ms",
        f"{seconds[rival] * 1e3:.4g} ms",
        f"{ratio:.3g}",
        remark,
    )


def posterior(table: Table, draws: int) -> None:
    """Effective samples of the Gibbs error, with rows rescaled by their posterior widths and
    without."""
    teacher = HierarchicalTeacher(30, 15, 1.0, 0.01, 7200)
    affine = affine_part(teacher.activation)
    data = draw(teacher, jax.random.key(0), affine)
    network = partial(output, teacher.activation, affine, teacher.readout)

    def log_posterior(weights: jax.Array) -> jax.Array:
        return (
            -jnp.sum((data.labels - network(weights, data.inputs)) ** 2) / (2 * teacher.noise)
            - jnp.sum(weights**2) / 2
        )

    def gibbs(weights: jax.Array) -> jax.Array:
        return jnp.mean((network(weights, data.test_inputs) - data.test_labels) ** 2)

    slope = 1 + teacher.n_train / teacher.input_dim * teacher.readout**2 * 0.5 / teacher.noise
    scale = jnp.broadcast_to(1 / jnp.sqrt(slope)[:, None], data.weights.shape)
    start = jnp.stack([data.weights, data.weights])
    gradient = jax.jit(jax.grad(log_posterior))
    per_gradient = interleaved({"ours": lambda: gradient(data.weights)}, 20)["ours"]
    effective = {}
    for name, rows in (("ours", scale), ("plain", None)):
        found = sample(
            log_posterior,
            start,
            jax.random.key(1),
            warmup=250,
            samples=draws,
            observe=gibbs,
            scale=rows,
        )
        effective[name] = float(found.estimates.effective_samples) / (2 * draws * 10 * per_gradient)
        table.add_row(
            f"HMC, {'rescaled rows' if rows is not None else 'as it is'}, step "
            f"{float(found.step_size.mean()):.3g}",
            f"{1 / per_gradient:.4g} gradients/s",
            f"{effective[name]:.3g} effective samples/s",
            f"{effective['ours'] / effective[name]:.3g}",
            f"d = 30, k = 15, n = 7200, R-hat {float(found.estimates.r_hat):.2f}",
        )


def main(full: bool = False) -> None:
    table = Table(title="Extensive width: Bayes-optimal theory and posterior sampling")
    for column in ("what", "ours", "straightforward", "ratio", "remark"):
        table.add_column(column)
    theory(table, 15 if full else 5)
    quadratic(table, 5 if full else 3)
    published(table, 15 if full else 5)
    posterior(table, 1000 if full else 250)
    Console(width=140).print(
        f"orderparam {op.__version__}, jax {jax.__version__}, {jax.devices()[0].device_kind}"
    )
    Console(width=140).print(table)


if __name__ == "__main__":
    main("--full" in sys.argv[1:])
