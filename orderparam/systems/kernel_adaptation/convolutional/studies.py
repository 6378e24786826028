"""The named figure of a convolutional network that learns a teacher of its own architecture."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.measured import dots, mean_and_error
from orderparam.plotting.style import COLOURS, GREY, ink
from orderparam.systems.kernel_adaptation.convolutional.experiment import (
    DIRECTIONS,
    sampled_convolutional_network,
)
from orderparam.systems.kernel_adaptation.convolutional.model import (
    ConvolutionalOnData,
    teacher_data,
)
from orderparam.systems.kernel_adaptation.convolutional.theory import (
    convolutional_gaussian_layers,
    convolutional_gaussian_process,
)

LEAST = 1e-3  # density below which nothing is drawn


def draw_laws(axes: Any, comparison: Comparison) -> None:
    """Draw the densities along all directions, before and after training, for the largest number of
    channels, with the Gaussians of both theories. The directions are shifted by four decades
    each."""
    channels = max(comparison.parameters["measured_channels"])
    (runs,) = comparison.experiments().values()
    runs = runs.sel(channels=channels)
    wide, adapted = (
        np.sqrt(data.sel(channels=channels, method="nearest")["variance"].values.ravel())
        for data in comparison.theories().values()
    )
    x = np.linspace(-4, 4, 200)
    for number, name in enumerate(DIRECTIONS):
        shift, here = 10.0 ** (-4 * number), runs.isel(direction=number)
        centres = here["bin_centre"].values.reshape(-1, here.sizes["bin"])[0]
        for width, colour in ((wide[number], GREY), (adapted[number], COLOURS[0])):
            law = np.exp(-((x / width) ** 2) / 2) / np.sqrt(2 * np.pi) / width
            axes.plot(x, np.where(law > LEAST, shift * law, np.nan), color=colour, zorder=1)
        for field, colour in (("density_before", GREY), ("density", ink())):
            mean, error = (part.ravel() for part in mean_and_error(here[field]))
            seen = mean > LEAST
            bars = shift * np.minimum(np.nan_to_num(error[seen]), 0.9 * mean[seen])
            axes.errorbar(
                centres[seen], shift * mean[seen], bars, fmt="o", color=colour, markersize=1.5
            )
        axes.annotate(name, (0, shift * 1.5), ha="center", va="bottom", fontsize=6)
    axes.set(yscale="log", ylim=(3e-16, 30), xlim=(-4, 4), xlabel="value")
    axes.set_ylabel(f"density, $C$ = {channels}")


def draw_kurtosis(axes: Any, comparison: Comparison) -> None:
    """Draw the excess kurtosis along all directions against the number of channels, after training
    (filled) and before training (open)."""
    (runs,) = comparison.experiments().values()
    channels = runs["channels"].values
    for number, name in enumerate(DIRECTIONS):
        here, colour = runs.isel(direction=number), COLOURS[number]
        dots(
            axes,
            channels,
            here["excess_kurtosis"],
            number,
            name,
            colour=colour,
            filled=True,
            linestyle="-",
        )
        dots(axes, channels, here["excess_kurtosis_before"], number, colour=colour, linestyle=":")
    axes.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    axes.set(xscale="log", xlabel="channels $C$", ylabel="excess kurtosis")
    axes.legend(fontsize=6)
    for handle in axes.get_legend_handles_labels()[0]:
        handle.set_label("_")


@study(
    "convolutional-preactivations",
    title="With more channels the laws of a convolutional student become more Gaussian, and "
    "Gaussian layers predict their variances better",
    source="Seroussi, Naveh, Ringel 2023, arXiv 2112.15383",
    panels=[
        Panel(
            "channels",
            "total_learnability",
            log="x",
            xlabel="channels $C$",
            ylabel="learnability on test points",
        ),
        Panel(
            "channels",
            "variance",
            by="direction",
            log="xy",
            xlabel="channels $C$",
            ylabel="variance along a direction",
            text=dict(enumerate(DIRECTIONS)),
        ),
        Freehand(draw_kurtosis),
        Freehand(draw_laws),
    ],
    columns=2,
    caption="Two convolutions of $C$ {activation} channels and a read-out: filters on patches of "
    "{patch_dim} inputs that do not overlap, second filters on {group} patches each, {groups} such "
    "groups; {seeds} runs on one training set of $n$ = {n_train} Gaussian inputs. The teacher is "
    "the same network with one channel. $T = {temperature}/\\chi$, read-out variance $1/\\chi$, "
    "$\\chi$ = {chi}. Variances of filters are divided by their prior value, those of "
    "pre-activations of the second layer by their mean at infinite width. Teacher: the direction "
    "of the teacher's filters, or of its pre-activations; random: a random one. Learnability: "
    "projection of the mean output on the target. Open points and grey: before training; there "
    "thin lines join marks. Densities are shifted by four decades; blue lines: Gaussian layers, "
    "grey lines: infinite width.",
    seconds=(60, 900),
    observables=("total_learnability", "variance"),
    explained=(
        "Gaussian layers neglect the shape of the laws, and fluctuations at finite C. Along the "
        "teacher the variance of pre-activations lies 39, 18 and 5.6 % above theirs with 8, 24 and "
        "72 channels, where the excess kurtosis is -0.99(1), -0.46(1) and -0.21(1). With 72 "
        "channels 13 of 16 runs still reject a Gaussian along the teacher at the level of 1 %, and "
        "none does along a random direction of pre-activations. The learnability lies 2.6 % above "
        "at 8 channels and 1.4 % below at 72: fluctuations raise it and fall with C, the shape "
        "lowers it. Control: R C channels under the R-th power of the likelihood, which divides "
        "fluctuations by R and leaves this theory as it is, have 0.8455(4) for 0.867 at C = 8, R = "
        "4, and 0.7783(5) for 0.781 at C = 24, R = 3. In 1/R this extrapolates to 0.838 and 0.777, "
        "below the theory's 0.846 and 0.782. Chains from the teacher have 0.869(1) and 0.714(1) "
        "with 8 and 72 channels, those from the prior 0.867 and 0.713."
    ),
    gallery={"measured_channels": (8, 24, 72), "seeds": 16, "draws": 300},
    full={"measured_channels": (8, 24, 72, 216), "seeds": 32, "draws": 1000, "n_train": 80},
)
def convolutional_preactivations(
    groups: int = 2,
    group: int = 2,
    patch_dim: int = 8,
    n_train: int = 40,
    activation: str = "erf",
    temperature: float = 0.1,
    chi: float = 2.0,
    measured_channels: tuple[int, ...] = (8, 24),
    draws: int = 150,
    seeds: int = 4,
) -> Iterator[Curve]:
    """Curves of two theories and of sampled networks; `groups` is the number of groups, each of
    `group` patches."""
    data = teacher_data(n_train, 300, groups=groups, group=group, patch_dim=patch_dim)
    system = ConvolutionalOnData(
        *data,
        channels=24,
        temperature=temperature,
        hidden_variance=2.0,
        activation=activation,
    ).scaling(chi)
    places = np.geomspace(min(measured_channels), 20 * max(measured_channels), 9).tolist()
    grid = {"channels": sorted({*places, *map(float, measured_channels)})}
    measured = partial(sampled_convolutional_network, samples=draws)
    yield Curve("infinitely wide (GP)", convolutional_gaussian_process, system, grid, baseline=True)
    yield Curve("Gaussian layers", convolutional_gaussian_layers, system, grid)
    yield Curve("sampled network", measured, system, {"channels": measured_channels}, seeds=seeds)
