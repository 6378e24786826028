"""Kernel matrices of deep networks: orderparam against the same formulas in plain NumPy, time and
peak memory.

    python benchmarks/kernel_matrices.py
    NEURAL_TANGENTS_PYTHON=/path/to/python python benchmarks/kernel_matrices.py
        # an environment that has neural-tangents

The repetitions of the first two are interleaved and the medians compared, so that a busy machine
slows both; neural-tangents runs in a process of its own afterwards (float64, compiled). Memory is
the growth of the peak resident set in a fresh process.
"""

import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Case:
    activation: str
    depth: int
    examples: int
    grid: int = 0  # side of square images of three channels; 0: vectors of 784 entries
    readout: str = "flatten"
    ntk: bool = True
    repetitions: int = 3
    window: int = 3
    weight_variance: float = 2.0
    bias_variance: float = 0.1

    @property
    def name(self) -> str:
        network = f"conv {self.grid}x{self.grid} {self.readout}" if self.grid else "fully connected"
        return (
            f"{network}, {self.activation}, depth {self.depth}, n = {self.examples}, "
            f"{'NNGP + NTK' if self.ntk else 'NNGP'}"
        )

    def inputs(self) -> np.ndarray:
        shape = (self.grid, self.grid, 3) if self.grid else (784,)
        return np.random.default_rng(0).standard_normal((self.examples, *shape))


CASES = [
    *(Case("relu", depth, examples) for examples in (1000, 3000) for depth in (1, 3)),
    Case("erf", 3, 3000),
    Case("erf", 3, 3000, ntk=False),
    Case("relu", 2, 500, 8),
    Case("relu", 2, 250, 16),
    Case("relu", 2, 100, 8, "global_average"),
    Case("relu", 2, 30, 16, "global_average"),
]


def dual(
    case: Case, kernel: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """E phi(u) phi(v) and, where asked for, E phi'(u) phi'(v), of variances `first`, `second` and
    covariance `kernel`."""
    if case.activation == "erf":
        scale = np.sqrt((1 + 2 * first) * (1 + 2 * second))
        slope = 4 / np.pi / np.sqrt(scale**2 - 4 * kernel**2) if case.ntk else None
        return 2 / np.pi * np.arcsin(2 * kernel / scale), slope
    root = np.sqrt(np.maximum(first * second - kernel**2, 0))
    angle = np.arctan2(root, kernel)
    return (root + (np.pi - angle) * kernel) / (2 * np.pi), (np.pi - angle) / (2 * np.pi)


def dense_kernels(case: Case, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """The recursion as one would write it: K and (if asked for) Theta, all matrices at once."""
    kernel = case.bias_variance + case.weight_variance * (x @ x.T) / x.shape[1]
    tangent = kernel.copy()
    for _ in range(case.depth):
        variance = np.diag(kernel)
        value, slope = dual(case, kernel, variance[:, None], variance[None, :])
        kernel = case.bias_variance + case.weight_variance * value
        if case.ntk:
            tangent = kernel + case.weight_variance * slope * tangent
    return (kernel, tangent) if case.ntk else (kernel,)


def convolved(array: np.ndarray, window: int, pairs: bool) -> np.ndarray:
    """Mean over the window of (..., row, column) or, for pairs of pixels, (..., row, column, row',
    column'), zeros outside."""
    reach = window // 2
    axes = 4 if pairs else 2
    side = array.shape[-1]
    padded = np.pad(array, [(0, 0)] * (array.ndim - axes) + [(reach, reach)] * axes)
    total = np.zeros_like(array)
    for i in range(window):
        for j in range(window):
            shift = (slice(i, i + side), slice(j, j + side)) * (axes // 2)
            total += padded[(..., *shift)]
    return total / window**2


def convolutional_kernels(case: Case, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Covariances of all pixels (or pairs of pixels) of all pairs of images, layer by layer."""
    pairs = case.readout == "global_average"
    letters = "nabc,mdec->nmabde" if pairs else "nabc,mabc->nmab"
    kernel = np.einsum(letters, x, x, optimize=True) / x.shape[-1]
    variance = np.mean(x**2, axis=-1)
    tangent = np.zeros_like(kernel)
    for _ in range(case.depth):
        kernel = case.bias_variance + case.weight_variance * convolved(kernel, case.window, pairs)
        variance = case.bias_variance + case.weight_variance * convolved(
            variance, case.window, False
        )
        if case.ntk:
            tangent = kernel + case.weight_variance * convolved(tangent, case.window, pairs)
        if pairs:
            first, second = variance[:, None, :, :, None, None], variance[None, :, None, None, :, :]
        else:
            first, second = variance[:, None], variance[None, :]
        kernel, slope = dual(case, kernel, first, second)
        tangent = slope * tangent if case.ntk else tangent
        variance = dual(case, variance, variance, variance)[0]
    pixels = tuple(range(2, kernel.ndim))
    last = case.bias_variance + case.weight_variance * kernel.mean(pixels)
    return (last, last + case.weight_variance * tangent.mean(pixels)) if case.ntk else (last,)


def numpy_kernels(case: Case, x: np.ndarray) -> tuple[np.ndarray, ...]:
    return convolutional_kernels(case, x) if case.grid else dense_kernels(case, x)


def orderparam_kernels(case: Case, x: np.ndarray) -> tuple:
    import jax

    from orderparam.networks import convolutional, fully_connected

    variances = {"weight_variance": case.weight_variance, "bias_variance": case.bias_variance}
    if case.grid:
        architecture = convolutional(
            case.depth, None, case.window, case.activation, readout=case.readout, **variances
        )
    else:
        architecture = fully_connected(case.depth, None, case.activation, **variances)
    if case.ntk:
        kernels = jax.block_until_ready(architecture.kernel(x))
        return kernels.nngp, kernels.ntk
    return (jax.block_until_ready(architecture.nngp(x)),)


PROGRAMS: dict[str, Callable] = {"numpy": numpy_kernels, "orderparam": orderparam_kernels}


def peak_memory(job: tuple[str, Case]) -> float:
    """Megabytes by which one call raises the peak of a process that has already made the call on a
    few inputs."""
    program, case = job
    x = case.inputs()
    PROGRAMS[program](case, x[: 101 if not case.grid else 5])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    PROGRAMS[program](case, x)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def median_seconds(case: Case, x: np.ndarray) -> dict[str, float]:
    seconds: dict[str, list[float]] = {program: [] for program in PROGRAMS}
    for _ in range(case.repetitions):
        for program, run in PROGRAMS.items():
            start = time.perf_counter()
            run(case, x)
            seconds[program].append(time.perf_counter() - start)
    return {program: statistics.median(times) for program, times in seconds.items()}


def neural_tangents(results: dict[str, np.ndarray]) -> Iterator[tuple[str, float, float]]:
    """Name, seconds and deviation from our matrix of each case, from the interpreter that the user
    names."""
    interpreter = os.environ.get("NEURAL_TANGENTS_PYTHON")
    if interpreter is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "cases.json").write_text(
            json.dumps([{"name": case.name, **asdict(case)} for case in CASES])
        )
        for case in CASES:
            np.save(Path(folder) / f"{case.name}.npy", case.inputs())
        script = Path(__file__).parent / "peers" / "neural_tangents.py"
        subprocess.run([interpreter, str(script), folder], check=True)
        for name, seconds in json.loads((Path(folder) / "times.json").read_text()).items():
            matrix = np.load(Path(folder) / f"{name}.out.npy")
            yield name, seconds, float(np.abs(matrix - results[name]).max())


def main() -> None:
    # Memory first: a child inherits the peak of its parent, which must therefore still be small.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as fresh:
        jobs = [(program, case) for case in CASES for program in PROGRAMS]
        memory = dict(zip(jobs, fresh.map(peak_memory, jobs, chunksize=1)))
    table = Table(
        "kernels", title="float64; seconds, times faster than NumPy, peak memory, largest deviation"
    )
    for column in ("numpy", "orderparam", "ratio", "numpy", "orderparam", "deviation"):
        table.add_column(column, justify="right")
    ours, results = {}, {}
    for case in CASES:
        x = case.inputs()
        # compiles
        values = {program: np.asarray(run(case, x)[-1]) for program, run in PROGRAMS.items()}
        seconds = median_seconds(case, x)
        ours[case.name], results[case.name] = seconds["orderparam"], values["orderparam"]
        table.add_row(
            case.name,
            f"{seconds['numpy']:.3f} s",
            f"{seconds['orderparam']:.3f} s",
            f"{seconds['numpy'] / seconds['orderparam']:.1f}",
            f"{memory['numpy', case]:.0f} MB",
            f"{memory['orderparam', case]:.0f} MB",
            f"{np.abs(values['orderparam'] - values['numpy']).max():.0e}",
        )
    console = Console(width=150)
    console.print(table)
    peer = Table(
        "kernels",
        "neural-tangents",
        "orderparam",
        "ratio",
        "deviation",
        title="against neural-tangents",
    )
    for name, seconds, deviation in neural_tangents(results):
        peer.add_row(
            name,
            f"{seconds:.3f} s",
            f"{ours[name]:.3f} s",
            f"{seconds / ours[name]:.1f}",
            f"{deviation:.0e}",
        )
    console.print(
        peer
        if peer.row_count
        else "neural-tangents: set NEURAL_TANGENTS_PYTHON to an interpreter that has it"
    )


if __name__ == "__main__":
    main()
