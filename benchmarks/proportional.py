"""Kernel renormalisation against the straightforward way: scipy's fsolve on the dense action, one
point at a time.

    python benchmarks/proportional.py
    ORDERPARAM_DEEPBAYS=/path/to/deepbays python benchmarks/proportional.py
        # the public package too; it needs torch

The dense way gets the kernel matrices for nothing. The ratio is of medians over interleaved
repetitions in one process, of processor time on all cores, which other programs on the machine do
not lengthen by waiting.
"""

import importlib
import os
import resource
import statistics
import sys
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import fsolve

import orderparam as op
from orderparam.systems.proportional import Convolutional, FullyConnected, finite_width
from orderparam.systems.proportional.deep import prior_kernels

WIDTHS = np.geomspace(20, 5000, 50)
DENSE_WIDTHS = WIDTHS[[5, 25, 45]]  # the dense way is timed on these; 50 widths cost 50/3 as much
REPETITIONS = 3
PEER = os.environ.get("ORDERPARAM_DEEPBAYS")


def problem(examples: int, pixels: int = 100, test: int = 300):
    """Gaussian inputs and a noisy quadratic target."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(examples + test, pixels))
    y = x @ rng.normal(size=pixels) / np.sqrt(pixels) + 0.3 * x[:, 0] * x[:, 1]
    return x[:examples], y[:examples], x[examples:], y[examples:]


def dense_point(kernel, rows, diagonal, y, test_y, temperature, width):
    """Q and the losses with dense algebra: a solve in every evaluation of the stationarity
    condition."""
    noise = temperature * np.eye(len(y))

    def stationarity(log_scale):
        scaled = np.exp(log_scale[0]) * kernel
        inverse = np.linalg.inv(scaled + noise)
        dual = inverse @ y
        return np.exp(log_scale) - 1 + (np.sum(inverse * scaled) - dual @ scaled @ dual) / width

    scale = np.exp(fsolve(stationarity, [0.0], xtol=1e-12)[0])
    solved = np.linalg.solve(scale * kernel + noise, np.column_stack([y, scale * rows.T]))
    mean = scale * rows @ solved[:, 0]
    variance = scale * diagonal - scale * np.sum(rows * solved[:, 1:].T, axis=1)
    return scale, np.mean((test_y - mean) ** 2 + variance)


def timed(function):
    """Processor seconds and result."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def peer_point(x, y, test_x, test_y, width):
    """Q and the test loss from deepbays (Baglioni et al. 2024): kernels, eigenvalues and
    minimisation for every width."""
    if PEER not in sys.path:
        sys.path.insert(0, PEER)
    theory = importlib.import_module("deepbays.rkgp.theory_1HL_FC_single_output").FC_1HL(
        int(width), 0.1
    )
    theory.preprocess(x, y)
    theory.optimize()
    theory.predict(test_x)
    return theory.optQ, theory.averageLoss(test_y)[0]


def row(table: Table, name: str, ours: float, theirs: float, error: float) -> None:
    table.add_row(name, f"{ours:.2f} s", f"{theirs:.1f} s", f"{theirs / ours:.0f}x", f"{error:.0e}")


def sweep_of_widths(table: Table, examples: int) -> None:
    x, y, tx, ty = problem(examples)
    system = FullyConnected(x, y, tx, ty, width=100, temperature=0.1)
    arrays = [np.asarray(a) for a in jax.jit(prior_kernels)(system)]
    scales = jnp.asarray(WIDTHS)
    # The data are arguments: nothing of the work, kernel and eigendecomposition included, is done
    # at compile time.
    ours_fn = eqx.filter_jit(
        lambda one, widths: jax.vmap(lambda n: finite_width(one.with_(width=n)))(widths)
    )
    system = jax.tree.map(jnp.asarray, system)
    jax.block_until_ready(ours_fn(system, scales))
    ours, theirs, peers = [], [], []
    for _ in range(REPETITIONS):
        seconds, result = timed(lambda: jax.block_until_ready(ours_fn(system, scales)))
        ours.append(seconds)
        seconds, reference = timed(
            lambda: [dense_point(*arrays, y, ty, 0.1, n) for n in DENSE_WIDTHS]
        )
        theirs.append(seconds * len(WIDTHS) / len(DENSE_WIDTHS))
        if PEER:
            seconds, peer = timed(
                lambda: [peer_point(x, y, tx, ty, round(n)) for n in DENSE_WIDTHS]
            )
            peers.append(seconds * len(WIDTHS) / len(DENSE_WIDTHS))
    name = f"one layer, P = {examples}, 50 widths (kernels and eigenvalues included)"
    error = max(
        abs(float(result.test_error[i]) / loss - 1) for i, (_, loss) in zip((5, 25, 45), reference)
    )
    row(
        table,
        f"{name}, against dense fsolve",
        statistics.median(ours),
        statistics.median(theirs),
        error,
    )
    if PEER:
        own = ours_fn(system, jnp.round(DENSE_WIDTHS)).test_error
        error = max(abs(float(a) / loss - 1) for a, (_, loss) in zip(own, peer))
        row(
            table,
            f"{name}, against deepbays",
            statistics.median(ours),
            statistics.median(peers),
            error,
        )


def single(table: Table, name: str, system) -> None:
    first, _ = timed(lambda: jax.block_until_ready(finite_width(system)))
    seconds, result = timed(lambda: jax.block_until_ready(finite_width(system)))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    compiled = f"compiled in {first - seconds:.0f} s"
    table.add_row(
        name,
        f"{seconds:.2f} s",
        f"peak {memory:.1f} GiB",
        compiled,
        f"{float(result.residual):.0e}",
    )


def main() -> None:
    table = Table(title=f"orderparam {op.__version__}: networks of finite width")
    for column in (
        "task",
        "orderparam",
        "the other / peak memory",
        "ratio / compilation",
        "deviation / residual",
    ):
        table.add_column(column)
    for examples in (200, 1000):
        sweep_of_widths(table, examples)
    x, y, tx, ty = problem(1000)
    single(
        table,
        "three layers, nested, P = 1000",
        FullyConnected(x, y, tx, ty, width=500, temperature=0.1, depth=3),
    )
    rng = np.random.default_rng(1)
    for examples in (100, 250):
        images = rng.normal(size=(examples + 100, 28, 28, 1))
        target = np.sign(images[:, :14, :14, 0].mean((1, 2)))
        fields = (images[:examples], target[:examples], images[examples:], target[examples:])
        single(
            table,
            f"convolution, 49 patches, P = {examples}",
            Convolutional(*fields, channels=100, temperature=0.01, mask=4),
        )
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
