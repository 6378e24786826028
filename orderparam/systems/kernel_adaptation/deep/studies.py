"""The named figure of deep networks: the pre-activations of their layers turn towards the
target."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from orderparam.comparison import Comparison, Curve, between, study
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.measured import mean_and_error
from orderparam.plotting.style import COLOURS, GREY, ink
from orderparam.systems.kernel_adaptation.deep.experiment import (
    DIRECTIONS,
    deep_adapted_layers,
    sampled_deep_network,
)
from orderparam.systems.kernel_adaptation.deep.linear import exact_linear_network
from orderparam.systems.kernel_adaptation.deep.model import DeepNetworkOnData
from orderparam.systems.kernel_adaptation.deep.theory import (
    deep_gaussian_layers,
    deep_gaussian_process,
)

# ------------------------------------------------------------------------------------------------
# The laws of weights and pre-activations along one direction, many of which are drawn in one panel.

LEAST = 1e-3  # density below which nothing is drawn


def draw_laws(axes: Any, comparison: Comparison) -> None:
    """Draw the densities along all directions at the middle width, with the Gaussians of both
    theories. The directions are shifted by four decades each."""
    widths = comparison.parameters["measured_widths"]
    width = widths[len(widths) // 2]
    (runs,) = comparison.curves("experiment").values()
    at = runs.sel(width=width)
    centres = at["bin_centre"].values.reshape(-1, at.sizes["bin"])[0]
    x = np.linspace(-4, 4, 400)
    for number, name in zip(range(at.sizes["direction"]), DIRECTIONS):
        shift, here = 10.0 ** (-4 * number), at.isel(direction=number)
        ratio = float(np.sqrt((here["prior_variance"] / here["expected"]).mean()))
        for deviation, colour in ((ratio, GREY), (1.0, COLOURS[0])):
            law = np.exp(-((x / deviation) ** 2) / 2) / np.sqrt(2 * np.pi) / deviation
            axes.plot(x, np.where(law > LEAST, shift * law, np.nan), color=colour, zorder=1)
        mean, error = (part.ravel() for part in mean_and_error(here["density"]))
        seen = mean > LEAST
        bars = shift * np.minimum(np.nan_to_num(error[seen]), 0.9 * mean[seen])
        axes.errorbar(centres[seen], shift * mean[seen], bars, fmt="o", color=ink(), markersize=1.5)
        kurtosis, p_value = (
            float(here["excess_kurtosis"].mean()),
            float(here["p_value_of_shape"].median()),
        )
        axes.annotate(
            f"{name} ({kurtosis:+.2f}, p = {p_value:.2g})",
            (0, shift * 1.5),
            ha="center",
            va="bottom",
            fontsize=6,
        )
    axes.set(
        yscale="log", ylim=(3e-16, 30), xlim=(-4, 4), xlabel="value / standard deviation in theory"
    )
    axes.set_ylabel(f"density, $N$ = {width}")


Data = tuple[jax.Array, jax.Array, jax.Array, jax.Array]


def one_direction(input_dim: int, n_train: int, cubic: float, n_test: int = 500) -> Data:
    """Data x, y, x_test, y_test with x ~ N(0, 1) and y = He_1 + cubic He_3 of the first axis; every
    call returns the same draw."""
    random = np.random.default_rng(0)
    x, x_test = (
        jnp.asarray(random.standard_normal((count, input_dim))) for count in (n_train, n_test)
    )
    y, y_test = (z + cubic * (z**3 - 3 * z) for z in (x[:, 0], x_test[:, 0]))
    return x, y, x_test, y_test


@study(
    "deep-preactivations",
    title=(
        "A deep network adapts in its weights and last pre-activations; on one training set "
        "Gaussian layers learn 1.1 to 1.5 % too much, layers with their full law, solved for 40 "
        "and 80 units, at most 0.3 % too little"
    ),
    source="Seroussi, Naveh, Ringel 2023, arXiv 2112.15383",
    panels=[
        Panel("width", "total_learnability", log="x", ylabel="learnability on test points"),
        Panel("width", "spread", log="x", ylabel="variance of the weights along $w_*$ / prior"),
        Panel(
            "width",
            "on_target",
            where={"layer": -1},
            log="x",
            ylabel=r"variance along the target, $y^\top H_L\,y/|y|^2$",
        ),
        Freehand(draw_laws),
    ],
    columns=2,
    caption=r"""
        {depth} hidden layers of $N$ {activation} units, $d$ = {input_dim}, $n$ = {n_train} (one
        training set), $y = He_1 {cubic:+g} He_3$ of the first axis; $T = 0.1/\chi$, variance of
        $\sqrt{{N}}a$ $1/\chi$, $\chi$ = {chi}. Learnability: the share of the target that is
        learned. $H_L$: second moments of the pre-activations of the last layer over its units, on
        the training set. Bottom right: densities of weights of the first layer and of the last
        pre-activations along one direction, shifted by four decades each; grey: the prior, blue:
        Gaussian layers; brackets contain the excess kurtosis and the p-value of a Gaussian law. The
        theory with the full law uses {particles} units in each layer.
    """,
    seconds=(60, 3600),
    observables=("total_learnability", "train_learnability", "spread"),
    explained=(
        "On one training set the errors are those of the Markov chains alone, so that small "
        "deviations count. Gaussian layers learn 1.1, 1.4 and 1.5 % too much at 20, 40 and 80 "
        "units; a correction at finite width would fall to a quarter, so that the Gaussian ansatz "
        "is the cause. The networks' spread is 5.2 and 1.0 % above and 1.9 % below that of "
        "Gaussian layers. The theory with the full law neglects corrections at finite width: at 40 "
        "and 80 units its learnability is 0.21(6) and 0.08(7) % too small and its spread 5.4(5) "
        "and 3.0(5) %. Its 240 particles are only six and three times the units of a layer, which "
        "hides part of these corrections, and do not converge for 20 units. No other training set "
        "was run."
    ),
    gallery={"measured_widths": (20, 40, 80), "particles": 240, "seeds": 16},
    full={"measured_widths": (20, 40, 80, 160, 320), "particles": 1280, "draws": 1000},
)
def deep_preactivations(
    depth: int = 2,
    input_dim: int = 12,
    n_train: int = 40,
    cubic: float = -0.1,
    activation: str = "erf",
    chi: float = 20.0,
    measured_widths: tuple[int, ...] = (30, 80),
    particles: int = 160,
    draws: int = 200,
    seeds: int = 4,
) -> Iterator[Curve]:
    """Curves of three theories and of sampled networks; `particles` is the number of units of a
    layer in the theory with the full law, at least the largest width."""
    system = DeepNetworkOnData(
        *one_direction(input_dim, n_train, cubic),
        width=100,
        temperature=0.1,
        hidden_variance=2.0,
        activation=activation,
        relative_widths=(1.0,) * depth,
    ).scaling(chi)
    grid = {"width": np.geomspace(min(measured_widths) / 1.5, 3e4, 21).tolist()}
    measured = partial(sampled_deep_network, samples=draws, leapfrog_steps=14)
    full_law = partial(deep_adapted_layers, particles=particles)
    yield Curve("infinitely wide (GP)", deep_gaussian_process, system, grid, baseline=True)
    yield Curve("Gaussian layers", deep_gaussian_layers, system, grid)
    yield Curve("layers with their full law", full_law, system, {"width": measured_widths})
    yield Curve("sampled network", measured, system, {"width": measured_widths}, seeds=seeds)


@study(
    "linear-layers-calibration",
    title=(
        "Sampled linear networks of 5 to 45 units follow the exact averages, which the theory of "
        "Gaussian layers approaches as networks widen"
    ),
    source="Li, Sompolinsky 2021; Seroussi, Naveh, Ringel 2023; exact averages of the layers "
    "derived here from the evidence of Hanin, Zlokapa 2023",
    panels=[
        Panel("width", "train_learnability", log="x", ylabel="learnability on the training set"),
        Panel("width", "spread", log="x", ylabel="variance of the weights along $w_*$ / prior"),
        Panel(
            "width",
            "on_target",
            where={"layer": 0},
            log="x",
            ylabel=r"$y^\top H_2\,y/|y|^2$",
        ),
    ],
    columns=3,
    caption=r"""
        Two hidden layers of $N$ linear units each, $d$ = {input_dim} inputs, $n$ = {n_train}
        examples (one training set) of $y = w_*\cdot x$; temperature $0.1/\chi$, variance of
        $\sqrt{{N}}a$ for the read-outs $a$ $1/\chi$, $\chi$ = {chi}, other prior variances 1.
        Learnability: the share of the target that is learned. $H_2$: second moments of the
        pre-activations of the second layer over its units. Exact: average over the posterior at any
        width. Gaussian layers: the covariance of every layer adapts to its neighbours. Sampled:
        Hamiltonian Monte Carlo over all hidden weights, {seeds} runs.
    """,
    seconds=(60, 600),
    observables=("train_learnability", "spread", "on_target"),
    gallery={"measured_widths": (5, 15, 45), "draws": 800, "seeds": 16},
    full={"measured_widths": (5, 15, 45, 135), "draws": 2000, "seeds": 32},
)
def linear_layers_calibration(
    input_dim: int = 20,
    n_train: int = 16,
    chi: float = 10.0,
    measured_widths: tuple[int, ...] = (5, 15),
    draws: int = 300,
    seeds: int = 4,
) -> Iterator[Curve]:
    system = DeepNetworkOnData(
        *one_direction(input_dim, n_train, 0.0), width=100, temperature=0.1, activation="linear"
    ).scaling(chi)
    line = {"width": between((3.0, 1000.0, *measured_widths), 21)}
    measured = partial(sampled_deep_network, samples=draws, warmup=300, leapfrog_steps=17)
    yield Curve("exact", exact_linear_network, system, line)
    yield Curve("Gaussian layers", deep_gaussian_layers, system, line)
    yield Curve("infinitely wide (GP)", deep_gaussian_process, system, line, baseline=True)
    yield Curve("sampled network", measured, system, {"width": measured_widths}, seeds=seeds)
