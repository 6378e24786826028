"""A flow of 100 000 modes against a loop over modes in NumPy, and the fixed point of the potential with its exponents.

    python benchmarks/renormalization.py

The loop is of the usual form: the threshold by halving an interval, each step of which is a sum in NumPy, then one mode after the
other from the smallest, carrying ridge, noise and variance along. Compilation is told apart.
"""

import statistics
import time
from collections.abc import Callable

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import orderparam as op
from orderparam.kernels import Spectrum
from orderparam.systems.renormalization import DecimatedRegression, VectorMagnet, decimation_flow, local_potential

MODES, N_TRAIN, TEMPERATURE = 100_000, 1000.0, 0.05
REPEATS = 5


def loop(eigenvalues: np.ndarray, power: np.ndarray) -> dict[str, np.ndarray]:
    """Ridge and noise along the flow, to leading order and exactly, by a loop over modes."""
    low, high = -60.0, np.log((TEMPERATURE + eigenvalues.sum()) / N_TRAIN) + 1
    for _ in range(80):
        middle = (low + high) / 2
        kappa = np.exp(middle)
        low, high = (
            (middle, high) if TEMPERATURE / kappa + np.sum(eigenvalues / (eigenvalues + kappa)) > N_TRAIN else (low, middle)
        )
    learned = eigenvalues / (eigenvalues + kappa)
    noisy = np.sum((1 - learned) ** 2 * power) / (1 - np.sum(learned**2) / N_TRAIN)
    found = {name: np.empty(MODES) for name in ("ridge", "renormalized_noise", "exact_ridge", "exact_noise", "non_gaussianity")}
    ridge, noise, exact, heard, variance = TEMPERATURE, 0.0, TEMPERATURE, 0.0, kappa * learned.sum()
    for k in range(MODES - 1, -1, -1):
        found["ridge"][k], found["renormalized_noise"][k] = ridge, noise
        found["exact_ridge"][k], found["exact_noise"][k] = exact, heard
        found["non_gaussianity"][k] = variance / exact
        L = eigenvalues[k] / (eigenvalues[k] + kappa)
        ridge, noise = ridge + eigenvalues[k], noise + power[k]
        exact, variance = exact + kappa * L, variance - kappa * L
        heard = heard + (1 - L) ** 2 * power[k] + L**2 * noisy / N_TRAIN
    return found


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds of wall and of processor time of one call."""
    start = time.perf_counter(), time.process_time()
    jax.block_until_ready(run())
    return time.perf_counter() - start[0], time.process_time() - start[1]


def main() -> None:
    k = np.arange(1.0, MODES + 1)
    system = DecimatedRegression(Spectrum(k**-1.3, k**-1.3), N_TRAIN, TEMPERATURE)
    magnet = VectorMagnet()
    first = {"flow": timed(lambda: decimation_flow(system))[0], "potential": timed(lambda: local_potential(magnet))[0]}
    ours, theirs = decimation_flow(system), loop(k**-1.3, k**-1.3)
    apart = max(float(np.max(np.abs(np.asarray(getattr(ours, name)) / theirs[name] - 1)[: MODES - 1])) for name in theirs)
    taken: dict[str, list[float]] = {"flow": [], "loop": [], "potential": []}
    for _ in range(REPEATS):
        taken["flow"].append(timed(lambda: decimation_flow(system))[0])
        taken["loop"].append(timed(lambda: loop(k**-1.3, k**-1.3))[0])
        taken["potential"].append(timed(lambda: local_potential(magnet))[0])
    median = {name: statistics.median(times) for name, times in taken.items()}
    table = Table(title=f"orderparam {op.__version__}: flows")
    for column in ("what", "first call", "again", "loop in NumPy", "ratio", "largest relative difference"):
        table.add_column(column, justify="right")
    ratio = f"{median['loop'] / median['flow']:.0f}x"
    table.add_row(
        "100 000 modes",
        f"{first['flow']:.2f} s",
        f"{1e3 * median['flow']:.2f} ms",
        f"{median['loop']:.2f} s",
        ratio,
        f"{apart:.1e}",
    )
    table.add_row("potential, order 28", f"{first['potential']:.2f} s", f"{1e3 * median['potential']:.0f} ms", "–", "–", "–")
    Console().print(table)


if __name__ == "__main__":
    main()
