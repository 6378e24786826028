"""The named figures of a pooled convolutional classifier of five layers: its layers against their
layer-wise prediction, and its accuracy when a layer keeps few directions."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.measured import dots, mean_and_error
from orderparam.plotting.style import COLOURS, GREY, ink
from orderparam.systems.kernel_adaptation.draw_readers import draw_learnability
from orderparam.systems.kernel_adaptation.pooled.experiment import pooled_layers
from orderparam.systems.kernel_adaptation.pooled.model import (
    CONVOLUTIONS,
    PooledClassifier,
    small_images,
)
from orderparam.systems.kernel_adaptation.pooled.pruning import pruned_pooled_classifier

LEAST = 3e-3  # density below which nothing is drawn
CLASSES = 10  # of CIFAR-10
LAYERS = {number + 1: f"layer {number + 1}" for number in range(CONVOLUTIONS)}


def draw_along_labels(axes: Any, comparison: Comparison) -> None:
    """Densities along the labels before and after training at the largest number of channels, one
    layer below the other, against the Gaussian of the layer-wise prediction."""
    (runs,) = comparison.experiments().values()
    at = runs.isel(channels=-1)
    x = np.linspace(-4, 4, 200)
    for number in range(at.sizes["layer"]):
        shift, here = 1000.0 ** (-number), at.isel(layer=number)
        centres = here["bin_centre"].values.reshape(-1, here.sizes["bin"])[0]
        law = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
        axes.plot(x, np.where(law > LEAST, shift * law, np.nan), color=GREY, zorder=1)
        for field, colour, filled in (("density_before", GREY, False), ("density", ink(), True)):
            mean, error = (part.ravel() for part in mean_and_error(here[field]))
            seen = mean > LEAST
            bars = shift * np.minimum(np.nan_to_num(error[seen]), 0.9 * mean[seen])
            face = colour if filled else "white"
            axes.errorbar(
                centres[seen],
                shift * mean[seen],
                bars,
                fmt="o",
                color=colour,
                markerfacecolor=face,
                markersize=2,
            )
        axes.annotate(LAYERS[number + 1], (0, shift * 0.7), ha="center", fontsize=7)
    axes.set(yscale="log", xlim=(-4, 4), xlabel="pre-activation / predicted deviation")
    axes.set_ylabel(f"density, $C$ = {int(runs['channels'].values[-1])}")


def draw_both(axes: Any, comparison: Comparison, quantity: str, label: str) -> None:
    """A quantity of every layer against the number of channels, after training (filled) and before
    (open)."""
    (runs,) = comparison.experiments().values()
    channels = runs["channels"].values
    for number in range(runs.sizes["layer"]):
        here, colour = runs.isel(layer=number), COLOURS[number]
        for field, filled, line in ((quantity, True, "-"), (f"{quantity}_before", False, ":")):
            dots(
                axes,
                channels * 1.03 ** (number - 1.5),
                here[field],
                number,
                LAYERS[number + 1] if filled and quantity == "label_variance" else None,
                colour=colour,
                filled=filled,
                linestyle=line,
            )
    kurtosis = quantity.endswith("kurtosis")
    if quantity != "kernel_distance":
        axes.axhline(0.0 if kurtosis else 1.0, color=GREY, linewidth=0.8, zorder=0)
    axes.set(xscale="log", xlabel="channels $C$", ylabel=label)
    axes.set_yscale("linear" if kurtosis else "log")


@study(
    "pooled-layers",
    title=(
        "After training the first layer of a pooled network has four to eight times the variance "
        "that is predicted from its input, and pre-activations whose excess kurtosis is at most "
        "0.3 in size"
    ),
    source="Seroussi, Naveh, Ringel 2023, arXiv 2112.15383",
    panels=[
        Freehand(partial(draw_both, quantity=quantity, label=label))
        for quantity, label in (
            ("label_variance", "variance along labels / prediction"),
            ("random_variance", "variance along random directions / prediction"),
            ("label_kurtosis", "excess kurtosis along labels"),
            ("random_kurtosis", "excess kurtosis along random directions"),
            ("kernel_distance", r"kernel, $|H-Q|/|Q|$"),
        )
    ]
    + [Freehand(draw_along_labels)],
    columns=3,
    caption=r"""
        CIFAR-10 averaged to 8 x 8 pixels, {n_train} images. Four convolutions of $C$ relu channels
        (3 x 3 pixels; 2 x 2 pixels averaged after layers 1 and 2, all at the end) and a read-out:
        {steps} steps of Adam on the squared error with weight decay towards the start, at
        temperature {temperature}$/\chi$, read-out variance $1/\chi$, $\chi$ = {chi}. Filled marks:
        trained, before the minimum is reached; open: before training, in the panel of kernels the
        scatter of $C$ channels. Panels 1 to 4: variance and excess kurtosis of pre-activations
        along the targets of a class, as a direction over images, and along random directions. Panel
        5: distance of the kernel $H$ of a layer from the kernel $Q$ of infinitely many channels on
        the same input. Prediction: Gaussian pre-activations with $Q$. Panel 6: densities along
        labels over the predicted standard deviation, shifted by three decades each; grey:
        prediction.
    """,
    seconds=(60, 900),
    observables=(),
    explained=(
        "With 48 channels the variance along labels is 5.5(1), 2.78(6), 1.50(4) and 1.20(3) times "
        "the prediction in layers 1 to 4, along random directions 4.13(5), 2.01(4), 1.17(2) and "
        "0.94(2) times; with 24 channels it is 7.4(3) and 5.4(1) times in layer 1. The excess "
        "kurtosis along labels is -0.23(8), 0.13(9), 0.01(7) and 0.02(6), along random directions "
        "-0.15(6), 0.00(4), 0.09(5) and 0.17(6); in layer 1 it is farther from zero with 48 "
        "channels than with 12 and 24, and with 12 channels it is -0.70(6) along labels in layer "
        "3. Kernels of layers 3 and 4 are as far from the prediction as 0.17(1) and 0.19(1), and "
        "before training 0.12(1) and 0.11(1). Training ends before the minimum. As a control four "
        "of these networks were trained for 1,000 steps: the training error fell from 0.146(6) to "
        "0.069(2), and the ratios of layer 1 changed from 5.97 to 6.04 and from 4.35 to 4.42, by "
        "less than their errors. No network was trained at other strengths or on more images."
    ),
    gallery={"channels": (12, 24, 48), "seeds": 16},
    full={"n_train": 1000, "channels": (8, 16, 32, 64, 128), "steps": 2000, "seeds": 32},
)
def pooled_layers_study(
    n_train: int = 128,
    n_test: int = 1000,
    channels: tuple[int, ...] = (12, 24),
    chi: float = 1.0,
    temperature: float = 0.02,
    steps: int = 300,
    seeds: int = 4,
) -> Iterator[Curve]:
    system = PooledClassifier(*small_images(n_train, n_test), chi=chi, temperature=temperature)
    trained = partial(pooled_layers, steps=steps)
    yield Curve("trained", trained, system, {"channels": channels}, seeds=seeds)


def draw_pruned(axes: Any, comparison: Comparison, layer: int) -> None:
    """Test accuracy of networks of which one layer keeps k directions, by way of choosing them, and
    of the Gaussian process that reads the same directions."""
    (runs,) = comparison.experiments().values()
    at = runs.isel(layer=layer)
    rank = at["rank"].values.reshape(-1, at.sizes["kept"])[0]
    names = {
        "accuracy": "leading directions",
        "magnitude_accuracy": "channels of largest outgoing weights",
        "random_accuracy": "random directions",
        "kernel_accuracy": "Gaussian process on leading directions",
    }
    for number, (name, label) in enumerate(names.items()):
        dots(
            axes,
            rank,
            at[name].squeeze(drop=True),
            number,
            label if layer == 0 else None,
            colour=COLOURS[number],
            linestyle="--" if name == "kernel_accuracy" else "-",
            filled=number == 0,
        )
    axes.axhline(1 / CLASSES, color=GREY, linewidth=0.8, zorder=0)
    axes.set(xscale="log", xlabel="directions or channels kept $k$", ylim=(0, None))
    axes.set_ylabel(f"test accuracy, layer {layer + 1}")


def draw_layers_learnability(axes: Any, comparison: Comparison) -> None:
    """Learnability of the labels from the kept directions of every layer."""
    (runs,) = comparison.experiments().values()
    layers = [runs.isel(layer=number) for number in range(runs.sizes["layer"])]
    rank = np.nanmax(runs["rank"].values.reshape(-1, runs.sizes["kept"]), axis=0)
    draw_learnability(axes, rank, [(one, COLOURS[at]) for at, one in enumerate(layers)])


@study(
    "pooled-pruning",
    title=(
        "Half of the directions of its first latent kernel, the leading ones, keep a pooled "
        "network's accuracy; half of its channels do not"
    ),
    source="Seroussi, Naveh, Ringel 2023, arXiv 2112.15383; Simonyan, Zisserman 2015",
    panels=[
        *(Freehand(partial(draw_pruned, layer=layer)) for layer in range(CONVOLUTIONS)),
        Panel(
            ("eigenvalue number", lambda data: np.arange(1, data.sizes["direction"] + 1)),
            "eigenvalues",
            by="layer",
            log="xy",
            ylabel="latent eigenvalue / trace",
            text=dict(enumerate(LAYERS.values())),
        ),
        Freehand(draw_layers_learnability),
    ],
    columns=3,
    caption="The pooled network of four convolutions and a read-out on CIFAR-10 at 8 x 8 pixels, "
    "{n_train} training and {n_test} test images, {channels} channels, {steps} steps of Adam, "
    "temperature {temperature}$/\\chi$, $\\chi$ = {chi}. One layer is projected on $k$ directions, "
    "without retraining: the leading ones of its latent kernel (the second moments of its "
    "activations over images and pixels), one draw of random ones in each of {seeds} networks, or "
    "the channels whose outgoing weights are the largest; the latter two lose the mean activation "
    "as well. Dashed: accuracy of the Gaussian process that reads the leading directions. Its "
    "learnability is the share of the test labels that it predicts (lower right: open, on the "
    "training images; filled, on as many images that have not trained the network, from one half "
    "of the test images and tested on the other; dashed, theory of the latter). Grey: chance.",
    seconds=(60, 900),
    observables=(),
    explained=(
        "With 12 of 24 leading directions the accuracy is .323(3), .303(4), .286(3) and .280(6) "
        "in layers 1 to 4, of .329(3) of the whole network: the first layer keeps 98 % of it. "
        "With 12 random directions it is .170(5), .149(7), .138(7), .148(7), with 12 channels "
        ".185(6), .142(8), .147(8), .173(9). The Gaussian process on the 12 leading directions "
        "has .313(3), .317(2), .311(3), .300(2). From two directions on theory is within 2.9 % of "
        "its learnability on images that have not trained the network. With all directions this "
        "is .190(2), .158(2), .152(2), .127(1); on the training images it is .190(1), .171(2), "
        ".184(2), .206(2): deeper layers have fitted them. The networks classify 89 % of their "
        "training set."
    ),
    gallery={"n_train": 512, "channels": 24, "n_test": 1024, "seeds": 16},
    full={"n_train": 2000, "channels": 64, "steps": 2000, "seeds": 16},
)
def pooled_pruning(
    n_train: int = 128,
    n_test: int = 500,
    channels: int = 16,
    chi: float = 1.0,
    temperature: float = 0.02,
    steps: int = 300,
    seeds: int = 4,
) -> Iterator[Curve]:
    system = PooledClassifier(
        *small_images(n_train, n_test), channels=channels, chi=chi, temperature=temperature
    )
    trained = partial(pruned_pooled_classifier, steps=steps)
    yield Curve("trained", trained, system, {"chi": [chi]}, seeds=seeds)
