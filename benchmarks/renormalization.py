"""A flow of 100 000 modes against a loop over modes in NumPy, and the fixed point of the potential
with its exponents.

    python benchmarks/renormalization.py

Both loops find the threshold by halving an interval, each step of which is a sum in NumPy. The one
of the usual form then takes, at every cut, the sums over the modes that are gone; the other carries
them along as Python numbers. Compilation is told apart.
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
from orderparam.systems.renormalization import (
    DecimatedRegression,
    VectorMagnet,
    decimation_flow,
    local_potential,
)

MODES, N_TRAIN, TEMPERATURE = 100_000, 1000.0, 0.05
REPEATS = 5
COUPLINGS = ("ridge", "renormalized_noise", "exact_ridge", "exact_noise", "non_gaussianity")


def solved(eigenvalues: np.ndarray, power: np.ndarray) -> tuple[float, np.ndarray, float]:
    """Threshold, learnabilities and the error against noisy targets."""
    low, high = -60.0, np.log((TEMPERATURE + eigenvalues.sum()) / N_TRAIN) + 1
    for _ in range(80):
        middle = (low + high) / 2
        kappa = np.exp(middle)
        low, high = (
            (middle, high)
            if TEMPERATURE / kappa + np.sum(eigenvalues / (eigenvalues + kappa)) > N_TRAIN
            else (low, middle)
        )
    learned = eigenvalues / (eigenvalues + kappa)
    return kappa, learned, np.sum((1 - learned) ** 2 * power) / (1 - np.sum(learned**2) / N_TRAIN)


def sums(eigenvalues: np.ndarray, power: np.ndarray) -> dict[str, np.ndarray]:
    """Ridge, noise and non-Gaussianity along the flow by sums at every cut."""
    kappa, learned, noisy = solved(eigenvalues, power)
    heard = (1 - learned) ** 2 * power + learned**2 * noisy / N_TRAIN
    found = {name: np.empty(MODES) for name in COUPLINGS}
    for k in range(MODES):
        found["ridge"][k] = TEMPERATURE + eigenvalues[k + 1 :].sum()
        found["renormalized_noise"][k] = power[k + 1 :].sum()
        found["exact_ridge"][k] = TEMPERATURE + kappa * learned[k + 1 :].sum()
        found["exact_noise"][k] = heard[k + 1 :].sum()
        found["non_gaussianity"][k] = kappa * learned[: k + 1].sum() / found["exact_ridge"][k]
    return found


def carried(eigenvalues: np.ndarray, power: np.ndarray) -> dict[str, np.ndarray]:
    """The same by numbers carried from mode to mode."""
    kappa, learned, noisy = solved(eigenvalues, power)
    found = {name: np.empty(MODES) for name in COUPLINGS}
    ridge, noise, exact, heard, variance = TEMPERATURE, 0.0, TEMPERATURE, 0.0, kappa * learned.sum()
    for k in range(MODES - 1, -1, -1):
        found["ridge"][k], found["renormalized_noise"][k] = ridge, noise
        found["exact_ridge"][k], found["exact_noise"][k] = exact, heard
        found["non_gaussianity"][k] = variance / exact
        ridge, noise = ridge + eigenvalues[k], noise + power[k]
        exact, variance = exact + kappa * learned[k], variance - kappa * learned[k]
        heard = heard + (1 - learned[k]) ** 2 * power[k] + learned[k] ** 2 * noisy / N_TRAIN
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
    first = {
        "flow": timed(lambda: decimation_flow(system))[0],
        "potential": timed(lambda: local_potential(magnet))[0],
    }
    spectrum = k**-1.3, k**-1.3
    start = time.perf_counter()
    theirs = sums(*spectrum)
    slow = time.perf_counter() - start
    ours = decimation_flow(system)
    apart = max(
        float(np.max(np.abs(np.asarray(getattr(ours, name))[:-1] / theirs[name][:-1] - 1)))
        for name in COUPLINGS
    )
    taken: dict[str, list[float]] = {"flow": [], "carried": [], "potential": []}
    for _ in range(REPEATS):
        taken["flow"].append(timed(lambda: decimation_flow(system))[0])
        taken["carried"].append(timed(lambda: carried(*spectrum))[0])
        taken["potential"].append(timed(lambda: local_potential(magnet))[0])
    median = {name: statistics.median(times) for name, times in taken.items()}
    table = Table(title=f"orderparam {op.__version__}: flows")
    for column in ("what", "first call", "again", "NumPy", "ratio", "apart"):
        table.add_column(column, justify="right")
    ours_again = f"{1e3 * median['flow']:.1f} ms"
    table.add_row(
        "100 000 modes, sums at every cut",
        f"{first['flow']:.1f} s",
        ours_again,
        f"{slow:.1f} s",
        f"{slow / median['flow']:.0f}x",
        f"{apart:.0e}",
    )
    table.add_row(
        "numbers carried along",
        "",
        ours_again,
        f"{median['carried']:.2f} s",
        f"{median['carried'] / median['flow']:.0f}x",
        "",
    )
    table.add_row(
        "potential, order 28, and exponents",
        f"{first['potential']:.1f} s",
        f"{1e3 * median['potential']:.0f} ms",
        "",
        "",
        "",
    )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
