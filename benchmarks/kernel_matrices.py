"""Kernel matrices of deep networks: orderparam against the same formulas in plain NumPy, time and peak memory.

The repetitions of both are interleaved and the medians compared, so that a busy machine slows both. Memory is the growth of
the peak resident set in a fresh process.
"""

import multiprocessing
import resource
import statistics
import time

import numpy as np
from rich.console import Console
from rich.table import Table

EXAMPLES, INPUT_DIM, DEPTH, REPETITIONS = 2000, 784, 3, 5
WEIGHT_VARIANCE, BIAS_VARIANCE = 2.0, 0.1


def inputs() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((EXAMPLES, INPUT_DIM))


def numpy_kernels(activation: str, x: np.ndarray, ntk: bool) -> tuple[np.ndarray, ...]:
    """The recursion as one would write it: K and (if asked for) Theta, all matrices at once."""
    kernel = BIAS_VARIANCE + WEIGHT_VARIANCE * (x @ x.T) / x.shape[1]
    tangent = kernel.copy()
    for _ in range(DEPTH):
        variance = np.diag(kernel)
        if activation == "erf":
            scale = np.sqrt(np.outer(1 + 2 * variance, 1 + 2 * variance))
            value = 2 / np.pi * np.arcsin(2 * kernel / scale)
            slope = 4 / np.pi / np.sqrt(scale**2 - 4 * kernel**2) if ntk else None
        else:
            root = np.sqrt(np.maximum(np.outer(variance, variance) - kernel**2, 0))
            angle = np.arctan2(root, kernel)
            value = (root + (np.pi - angle) * kernel) / (2 * np.pi)
            slope = (np.pi - angle) / (2 * np.pi)
        kernel = BIAS_VARIANCE + WEIGHT_VARIANCE * value
        if ntk:
            tangent = kernel + WEIGHT_VARIANCE * slope * tangent
    return (kernel, tangent) if ntk else (kernel,)


def orderparam_kernels(activation: str, x: np.ndarray, ntk: bool) -> tuple:
    import jax

    from orderparam.networks import fully_connected

    architecture = fully_connected(DEPTH, None, activation, WEIGHT_VARIANCE, BIAS_VARIANCE)
    if ntk:
        kernels = jax.block_until_ready(architecture.kernel(x))
        return kernels.nngp, kernels.ntk
    return (jax.block_until_ready(architecture.nngp(x)),)


PROGRAMS = {"numpy": numpy_kernels, "orderparam": orderparam_kernels}


def peak_memory(case: tuple[str, str, bool]) -> float:
    """Megabytes by which one call raises the peak of a process that has already made the call on a few inputs."""
    program, activation, ntk = case
    x = inputs()
    PROGRAMS[program](activation, x[:101], ntk)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    PROGRAMS[program](activation, x, ntk)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def median_seconds(activation: str, x: np.ndarray, ntk: bool) -> dict[str, float]:
    seconds: dict[str, list[float]] = {program: [] for program in PROGRAMS}
    for _ in range(REPETITIONS):
        for program, run in PROGRAMS.items():
            start = time.perf_counter()
            run(activation, x, ntk)
            seconds[program].append(time.perf_counter() - start)
    return {program: statistics.median(times) for program, times in seconds.items()}


def main() -> None:
    cases = [(activation, ntk) for activation in ("erf", "relu") for ntk in (False, True)]
    # Memory first: a child inherits the peak of its parent, which must therefore still be small.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as fresh:
        jobs = [(program, *case) for case in cases for program in PROGRAMS]
        memory = dict(zip(jobs, fresh.map(peak_memory, jobs, chunksize=1)))
    table = Table(title=f"{EXAMPLES} inputs of dimension {INPUT_DIM}, depth {DEPTH}; medians of {REPETITIONS} interleaved runs")
    for column in ("kernels", "numpy", "orderparam", "ratio", "numpy", "orderparam", "deviation"):
        table.add_column(column, justify="right")
    x = inputs()
    for activation, ntk in cases:
        results = {program: run(activation, x, ntk)[-1] for program, run in PROGRAMS.items()}  # compiles
        seconds = median_seconds(activation, x, ntk)
        table.add_row(
            f"{activation} {'NNGP + NTK' if ntk else 'NNGP'}",
            f"{seconds['numpy']:.2f} s",
            f"{seconds['orderparam']:.2f} s",
            f"{seconds['numpy'] / seconds['orderparam']:.1f}",
            f"{memory['numpy', activation, ntk]:.0f} MB",
            f"{memory['orderparam', activation, ntk]:.0f} MB",
            f"{np.abs(np.asarray(results['orderparam']) - results['numpy']).max():.0e}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
