"""Self-consistent learning curves: points per second, and digits of accuracy, beside a loop over
SciPy's root finders.

    python benchmarks/learning_curves.py

All columns come from one run on one machine; read the ratios, not the absolute times.
"""

import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import bisect, brentq

from orderparam.kernels.compression import compress
from orderparam.kernels.spectra import power_law
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.kernel_regression import KernelRegression, self_consistent

CAPACITY, SOURCE, TEMPERATURE = 2.0, 0.4, 1e-6
SIZES = {1_000: 200, 100_000: 40}  # modes: grid points
REPEATS = 3


def error(eigenvalues: np.ndarray, power: np.ndarray, n_train: float, threshold: float) -> float:
    learned = eigenvalues / (eigenvalues + threshold)
    return float((1 - learned) ** 2 @ power / (1 - learned @ learned / n_train))


def with_brentq(eigenvalues: np.ndarray, power: np.ndarray, n_train: float) -> float:
    """The careful loop: a root in log kappa, bracketed as tightly as the package does."""

    def excess(u: float) -> float:
        threshold = np.exp(u)
        return np.log(
            (TEMPERATURE / threshold + np.sum(eigenvalues / (eigenvalues + threshold))) / n_train
        )

    upper = np.log((eigenvalues.sum() + TEMPERATURE) / n_train)
    return error(
        eigenvalues,
        power,
        n_train,
        np.exp(brentq(excess, np.log(TEMPERATURE / n_train), upper, xtol=1e-13)),
    )


def with_bisection(eigenvalues: np.ndarray, power: np.ndarray, n_train: float) -> float:
    """The usual loop: bisection of kappa itself, with SciPy's default absolute tolerance."""

    def excess(threshold: float) -> float:
        return TEMPERATURE / threshold + np.sum(eigenvalues / (eigenvalues + threshold)) - n_train

    return error(eigenvalues, power, n_train, bisect(excess, 1e-15, 1e10, maxiter=200))


def best_of(run: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """Shortest of a few times, after a first call that may compile."""
    values, seconds = run(), []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds), values


def main() -> None:
    table = Table(
        "modes",
        "points",
        "method",
        "points / s",
        "times brentq",
        "times bisect",
        "largest relative deviation",
    )
    for modes, points in SIZES.items():
        k = np.arange(1.0, modes + 1)
        eigenvalues, power = k**-CAPACITY, k ** (-1 - 2 * SOURCE * CAPACITY)
        grid = np.geomspace(10, modes / 5, points)

        def curve(spectrum: Spectrum, grid: np.ndarray = grid) -> Callable[[], np.ndarray]:
            def at(n_train: jax.Array, spectrum: Spectrum) -> jax.Array:
                return self_consistent(
                    KernelRegression(spectrum, n_train, jnp.asarray(TEMPERATURE))
                ).test_error

            batch = eqx.filter_jit(jax.vmap(at, in_axes=(0, None)))
            return lambda: np.asarray(batch(jnp.asarray(grid), spectrum))

        methods: dict[str, Callable[[], np.ndarray]] = {
            "scipy brentq, log kappa": lambda e=eigenvalues, y=power, g=grid: np.array(
                [with_brentq(e, y, p) for p in g]
            ),
            "scipy bisect, defaults": lambda e=eigenvalues, y=power, g=grid: np.array(
                [with_bisection(e, y, p) for p in g]
            ),
            "orderparam, mode by mode": curve(Spectrum(eigenvalues, power)),
            "orderparam, compressed": curve(compress(Spectrum(eigenvalues, power))),
            "orderparam, power_law levels": curve(
                power_law(CAPACITY, SOURCE, modes, infinite=False)
            ),
        }
        timed = {name: best_of(run) for name, run in methods.items()}
        reference, exact = timed["scipy brentq, log kappa"]
        usual = timed["scipy bisect, defaults"][0]
        for name, (seconds, values) in timed.items():
            deviation = np.max(np.abs(values / exact - 1))
            ratios = (f"{other / seconds:.1f}" for other in (reference, usual))
            table.add_row(
                f"{modes:,}",
                str(points),
                name,
                f"{points / seconds:,.0f}",
                *ratios,
                f"{deviation:.1e}",
            )
        table.add_section()
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
