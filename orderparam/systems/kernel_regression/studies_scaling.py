"""Figure of the exponents of learning curves when spectrum and target are power laws."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import PRNGKeyArray

from orderparam.core.study import Comparison, Curve, study
from orderparam.kernels import Spectrum, power_law
from orderparam.plotting.curves import caption, plot_panel
from orderparam.systems.kernel_regression.experiment import gaussian_design
from orderparam.systems.kernel_regression.figures import sample_sizes
from orderparam.systems.kernel_regression.model import KernelRegression
from orderparam.systems.kernel_regression.theory import optimal_temperature, scaling_law, self_consistent

BEST = "best ridge"
_best_temperature = eqx.filter_jit(lambda system: optimal_temperature(system).temperature)


def scheduled(system: KernelRegression, *key: PRNGKeyArray, run: Callable, exponent: float) -> Any:
    """A theory or an experiment at ridge T = n n^-exponent (none for an infinite exponent)."""
    temperature = 0.0 * system.n_train if math.isinf(exponent) else system.n_train ** (1 - exponent)
    return run(system.with_(temperature=temperature), *key)


def at_best_ridge(system: KernelRegression, *key: PRNGKeyArray, run: Callable) -> Any:
    """The same at the temperature that minimises the self-consistent test error."""
    numbers = system.with_(n_train=jnp.asarray(system.n_train, float), noise=jnp.asarray(system.noise, float))
    return run(system.with_(temperature=_best_temperature(numbers)), *key)


def draw_regimes(comparison: Comparison) -> Any:
    """Excess error against examples in each regime with its asymptote; last the local slope at the best ridge."""
    p = comparison.parameters
    figure, grid = plt.subplots(2, 3, figsize=(9.4, 5.6), sharex=True)
    flat = list(grid.T.ravel())
    for axes, panel in zip(flat, comparison.panels):
        theories, experiments = comparison.theories(panel), comparison.experiments(panel)
        plot_panel(axes, theories, experiments, "n_train", "test_error", title=panel)
        line = next(iter(theories.values()))
        n = line["n_train"].values
        if panel == BEST:
            continue
        exponent, noise = _settings(p)[panel]
        law = scaling_law(jnp.asarray(n), p["capacity"], p["source"], noise=noise, ridge_exponent=exponent)
        axes.plot(n, law.test_error, color="0.55", linestyle=":", zorder=1)
        end = np.log(n) > np.log(n[-1]) - np.log(10)
        slope = np.polyfit(np.log(n[end]), np.log(line["test_error"].values[end]), 1)[0]
        power = f"$n^{{{-float(law.exponent):.3g}}}$" if law.exponent > 0 else f"{float(law.variance[-1]):.3g}"
        text = f"asymptote {power}\nslope at the end {slope:.3f}"
        if law.exponent == 0:  # a plateau: a decade of the axis, whose ticks are readable
            axes.set_ylim(float(law.variance[-1]) / 4, float(law.variance[-1]) * 4)
        axes.text(0.05, 0.06, text, transform=axes.transAxes, fontsize=8)
    best, slopes = flat[4], flat[5]
    line = next(iter(comparison.theories(BEST).values()))
    log_n, log_error = np.log(line["n_train"].values), np.log(line["test_error"].values)
    slopes.semilogx(line["n_train"], np.gradient(log_error, log_n))
    rates = {"noiseless": 2 * p["capacity"] * min(p["source"], 1)}
    rates["noisy"] = rates["noiseless"] / (1 + rates["noiseless"])
    for (name, rate), where in zip(rates.items(), (0.06, 0.93)):
        slopes.axhline(-rate, color="0.55", linestyle=":", zorder=1)
        side = "left" if where < 0.5 else "right"
        place = slopes.get_yaxis_transform()
        slopes.text(where, -rate, f"{name}: {-rate:.3g}", transform=place, va="bottom", ha=side, fontsize=8)
    slopes.set_title("local slope at the best ridge")
    slopes.set_ylabel("d log error / d log $n$")
    slopes.margins(y=0.12)
    for axes in flat:
        axes.set_xlabel("training examples $n$" if axes in grid[1] else "")
    for axes in flat[:5]:
        axes.set_ylabel("excess error")
    handles, _ = best.get_legend_handles_labels()
    figure.legend(
        [*handles, plt.Line2D([], [], color="0.55", linestyle=":")],
        ["self-consistent theory", "Gaussian features, measured", "asymptote"],
        loc="outside upper center", ncols=3,
    )  # fmt: skip
    caption(
        figure,
        rf"$\lambda_k = k^{{-\alpha}}$, $y_k^2 = k^{{-1-2r\alpha}}$, α = {p['capacity']:g}, r = {p['source']:g}; ridge "
        f"T = n · n^-l. Excess error over the label noise. Noisy panels: noise {p['noise']:g}; best ridge: noise "
        f"{p['small_noise']:g}. Dots: mean of {p['seeds']} "
        f"Gaussian designs with {p['modes']} modes and the rest as their tail, bars: standard error; their "
        "smallest sizes see a few modes only, and the theory is exact for many.",
        130,
    )
    return figure


def _settings(p: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Panel -> ridge exponent and noise, in the order down the columns."""
    small, large = p["ridge_exponents"]
    return {
        f"ridge, noiseless ($l$ = {small:g})": (small, 0.0),
        f"ridge, noisy ($l$ = {small:g})": (small, p["noise"]),
        f"ridgeless, noiseless ($l$ = {large:g})": (large, 0.0),
        f"ridgeless, noisy ($l$ = {large:g})": (large, p["noise"]),
    }


@study(
    "kernel-scaling-regimes",
    title="Power-law spectrum and target: four regimes of the excess error, and the crossover at the best ridge",
    source="Caponnetto, De Vito 2007; Spigler, Geiger, Wyart 2020; Cui, Loureiro, Krzakala, Zdeborova 2021",
    draw=draw_regimes,
    seconds=(70, 900),
    full={"n_train": (16, 32, 64, 128, 256, 512, 1024), "modes": 20_000, "seeds": 50},
)
def kernel_scaling_regimes(
    capacity: float = 1.5,
    source: float = 0.5,
    ridge_exponents: tuple[float, ...] = (1.0, 3.0),
    noise: float = 0.5,
    small_noise: float = 1e-3,
    n_train: tuple[int, ...] = (16, 32, 64, 128, 256),
    modes: int = 4000,
    largest: float = 1e6,
    seeds: int = 20,
) -> list[Curve]:
    small, large = ridge_exponents
    if not 0 < small < capacity < large:
        raise ValueError(f"ridge_exponents = {ridge_exponents}: one must be below and one above the capacity, {capacity}")
    infinite = power_law(capacity, source)
    rest, k = power_law(capacity, source, modes), np.arange(1.0, modes + 1)
    resolved = Spectrum(k**-capacity, k ** (-1 - 2 * source * capacity), tail=rest.tail, tail_power=rest.tail_power)
    grid = {"n_train": sample_sizes(largest, min(n_train), 60)}

    def curves(panel: str, level: float, wrapper: Callable, **options: float) -> list[Curve]:
        theory, design = KernelRegression(infinite, 10, 0.0, level), KernelRegression(resolved, 10, 0.0, level)
        return [
            Curve(f"self-consistent, {panel}", partial(wrapper, run=self_consistent, **options), theory, grid, panel=panel),
            Curve(
                f"Gaussian features, {panel}",
                partial(wrapper, run=gaussian_design, **options),
                design,
                {"n_train": n_train},
                seeds=seeds,
                panel=panel,
            ),
        ]

    settings = _settings({"ridge_exponents": ridge_exponents, "noise": noise})
    regimes = [
        curve for panel, (exponent, level) in settings.items() for curve in curves(panel, level, scheduled, exponent=exponent)
    ]
    return [*regimes, *curves(BEST, small_noise, at_best_ridge)]
