"""The named figures of trained networks."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from orderparam.comparison import Curve, study
from orderparam.data.images import coarse, image_task
from orderparam.networks.architecture import Architecture
from orderparam.networks.convolutional import convolutional
from orderparam.networks.fully_connected import fully_connected
from orderparam.plotting import Panel, horizontal
from orderparam.systems.trained_networks.experiment import inspected_network
from orderparam.systems.trained_networks.model import InspectedTraining
from orderparam.systems.trained_networks.theory import infinite_width, permuted_targets

WHEN = {0: "start", 1: "early", 2: "late"}
TRAINED = {0: "early", 1: "late"}  # index of a level -> its name; the start is left out
LAYER = (
    "hidden layer",
    lambda data: xr.DataArray(
        [str(layer + 1) for layer in range(data.sizes["layer"])], dims=["layer"]
    ),
)
SOURCE = "Chizat, Oyallon, Bach 2019 (arXiv:1812.07956)"


def split(name: str, task: str, n_train: int, n_test: int) -> tuple[np.ndarray, ...]:
    """Training and test images, centred and normalised, with their targets. They are the same in
    every run."""
    x, y = image_task(name, task, n_train + n_test)
    y = np.asarray(y, float).reshape(-1)
    return x[:n_train], y[:n_train], x[n_train:], y[n_train:]


def dense(depth: int) -> Architecture:
    return fully_connected(depth, None, "erf_scaled", weight_variance=1.5, readout_variance=1.0)


def small_convolutional(channels: int) -> Architecture:
    """A network of two convolutional layers with 3 x 3 filters at every second pixel."""
    return convolutional(
        2, channels, 3, "erf_scaled", strides=2, weight_variance=1.5, readout_variance=1.0
    )


@study(
    "networks-lazy-to-rich",
    title=(
        "At small richness the distance of a network from its linearisation is about "
        "proportional to the richness"
    ),
    source=SOURCE,
    panels=[
        Panel(
            "richness",
            "lazy_to_rich",
            facet="network",
            by="level",
            where={"level": slice(1, None)},
            log="xy",
            reference=[horizontal(0.1), horizontal(0.3)],
            fit=r"\gamma",
            fit_to=0.1,
            ylabel=r"lazy-to-rich number $\Lambda$",
            text=TRAINED,
        ),
        Panel(
            "richness",
            "shape_drift",
            facet="network",
            by="level",
            where={"level": slice(1, None)},
            log="xy",
            fit=r"\gamma",
            fit_to=0.1,
            ylabel=r"shape drift $1 - U$ of the tangent kernel",
            text=TRAINED,
        ),
        Panel(
            "richness",
            "test_error",
            facet="network",
            by="level",
            where={"level": slice(1, None)},
            log="x",
            text=TRAINED,
        ),
    ],
    columns=3,
    caption=r"""
        Even against odd digits, with {n_train} training and {n_test} test images. Networks have
        {width} erf units in each of 1 or {depth} hidden layers and, as a control at some values of
        the richness $\gamma$, {control} units. The output is $f = (g - g_0)/(\gamma \sqrt{{N}})$
        with $g$ the network, $g_0$ the network at its start and $N$ its number of units. Gradient
        descent ends when the training error is 0.5 (early) or 0.1 (late) of that at the start;
        {seeds} networks at each point. First row: $\Lambda = |f - f_{{lin}}| / |f_{{lin}}|$ on the
        test images, with $f_{{lin}}$ the network that is linearised at its start and trained to the
        same training error; networks are lazy below 0.1 and rich above 0.3 (dotted). $U$ is the
        similarity (CKA) of the tangent kernel to that at the start. Exponents with 95 % intervals
        are those of power laws that are fitted to the points with $\gamma \leq 0.1$. At infinite
        width the first two rows are 0.
    """,
    seconds=(60, 2400),
    observables=("lazy_to_rich", "shape_drift", "test_error"),
    explained=(
        "The theory is that of infinite width, which is lazy: the first two rows measure the "
        "distance from it. Exponents of the first row are 0.96 to 0.99, but 0.87(9) late in 3"
        " hidden layers of 64 units, where the number has reached 0.08 at a richness of 0.1 "
        "and bends as it does above. Those of the second row are 1.93 to 2.10, but 2.33(10) "
        "late at 256 units, from two points: the change of the kernel has a part of order "
        "richness / sqrt(width) and one of order richness^2 at every width "
        "(benchmarks/kernel_change_parity.py), so that the shape drift turns from the square "
        "of the richness to its fourth power, in wider networks earlier. The late test error "
        "of 3 hidden layers of 64 units is 4 to 6 % above that of infinite width up to a "
        "richness of 0.3; the control of 256 units is 1.4 and 1.9 % above it (z = 1.4 and "
        "1.8)."
    ),
    gallery={
        "n_train": 100,
        "width": 64,
        "control": 256,
        "richnesses": (0.01, 0.03, 0.1, 0.3, 1.0),
        "control_richnesses": (0.01, 0.1),
        "seeds": 16,
    },
    full={
        "n_train": 400,
        "n_test": 800,
        "width": 256,
        "control": 1024,
        "richnesses": (0.01, 0.03, 0.1, 0.3, 1.0),
        "control_richnesses": (0.01, 0.03, 0.1, 0.3, 1.0),
        "seeds": 64,
    },
)
def networks_lazy_to_rich(
    n_train: int = 60,
    n_test: int = 300,
    width: int = 32,
    depth: int = 3,
    control: int = 64,
    richnesses: tuple[float, ...] = (0.03, 0.3),
    control_richnesses: tuple[float, ...] = (0.03, 0.3),
    learning_rate: float = 0.02,
    seeds: int = 4,
) -> Iterator[Curve]:
    data = split("digits", "even-odd", n_train, n_test)
    cases = (1, width, richnesses), (depth, width, richnesses), (depth, control, control_richnesses)
    for layers, units, values in cases:
        over = {"richness": values}
        system = InspectedTraining(*data, dense(layers), units, learning_rate=learning_rate)
        facets = {"network": f"{layers} hidden layer{'s' * (layers > 1)}, {units} units"}
        yield Curve("infinite width", infinite_width, system, over, facets=facets)
        yield Curve("network", inspected_network, system, over, seeds, facets=facets)


@study(
    "networks-layers",
    title=(
        "Rich layers gain 0.16 to 0.80 in alignment with the target in training, lazy ones at most "
        "0.03"
    ),
    source=SOURCE,
    panels=[
        Panel(
            LAYER,
            "wide_alignment",
            facet="case",
            by="level",
            ylabel="alignment with the target",
            text=WHEN,
        ),
        Panel(
            LAYER,
            "similarity",
            facet="case",
            by="level",
            ylabel="similarity to the start",
            text=WHEN,
        ),
    ],
    columns=2,
    caption=r"""
        Networks of {depth} hidden layers of {width} erf units learn even against odd digits of
        MNIST, and networks of two convolutional layers of {channels} channels, with 3 x 3 filters
        at every second pixel, learn airplanes against frogs of CIFAR-10 on 8 x 8 pixels. There are
        {n_train} training images, and gradient descent ends when the training error is 0.5 (early)
        or 0.1 (late) of that at the start. The richness is {lazy} for lazy and {rich} for rich
        networks. Marks: {seeds} networks. Above: alignment, the cosine of a layer's kernel with
        that of the targets, corrected for the bias of few examples and of few neurons; in up to two
        of the networks of a mean, which are left out, it is not determined, because the interval of
        a denominator reaches zero. Below: similarity, the cosine (CKA) of the layer's kernel with
        that at the start. Lines: infinite width, the same at all times. Grey: the alignment that
        one in a hundred permutations of the targets exceeds.
    """,
    seconds=(60, 2400),
    observables=("wide_alignment", "similarity"),
    explained=(
        "The lines are those of lazy networks. Rich ones leave them because they learn features; "
        "lazy ones are the control. At the start the third layer of 256 units lies 10(6) and 16(3) "
        "% below the line, and that of 64 units lay 41 % below it, because it stands on a few "
        "units of the layers before: on other digits (alignment-of-few-neurons) it lies 26 % below "
        "at 32 units, 2.4 % at 256, so that a part of the 16 % has no explanation."
    ),
    gallery={"n_train": 100, "width": 256, "channels": 16, "seeds": 16},
    full={"n_train": 400, "n_test": 800, "width": 256, "channels": 64, "seeds": 64},
)
def networks_layers(
    n_train: int = 60,
    n_test: int = 100,
    width: int = 32,
    depth: int = 3,
    channels: int = 16,
    lazy: float = 0.03,
    rich: float = 1.0,
    seeds: int = 4,
) -> Iterator[Curve]:
    x, y, fresh, y_fresh = split("cifar10", "airplane-vs-frog", n_train, n_test)
    digits = split("mnist", "even-odd", n_train, n_test)
    networks = {
        "MNIST, dense": InspectedTraining(*digits, dense(depth), width),
        "CIFAR-10, convolutional": InspectedTraining(
            coarse(x), y, coarse(fresh), y_fresh, small_convolutional(channels)
        ),
    }
    for name, system in networks.items():
        for regime, richness in (("lazy", lazy), ("rich", rich)):
            facets, at = {"case": f"{name}, {regime}"}, {"richness": [richness]}
            yield Curve("infinite width", infinite_width, system, at, facets=facets)
            yield Curve(
                "permuted targets", permuted_targets, system, at, facets=facets, baseline=True
            )
            yield Curve("network", inspected_network, system, at, seeds, facets=facets)


@study(
    "alignment-of-few-neurons",
    title=(
        "Corrected for few neurons, the alignment of a first layer with the target is that of"
        " infinite width at every width"
    ),
    source="Chun, Canatar, Chung, Lee 2025 (arXiv:2502.15104); Song et al. 2012",
    panels=[
        Panel("width", quantity, by="layer", log="x", xlabel="width $N$", ylabel=label)
        for quantity, label in (
            ("alignment", "alignment of the layer"),
            ("wide_alignment", "the same without equal neurons"),
        )
    ],
    columns=2,
    caption=r"""
        Alignment: cosine of the kernel of hidden layer $l$ with that of the targets, at the start,
        for even against odd digits and {n_train} images. Networks have {depth} hidden layers of N
        erf units; {seeds} networks at each point. The lines of the three layers nearly coincide.
        Left: corrected for the bias of few examples. Right: corrected also for the bias of few
        neurons in the layer, as products of a neuron with itself are left out ("without equal
        neurons"); the bias that remains in deeper layers is due to few neurons in the layers
        before.
    """,
    seconds=(30, 1200),
    observables=("alignment", "wide_alignment"),
    explained=(
        "The number on the left is biased by 1/N. On the right the first layer is the control; "
        "deeper ones stand on N units of the layer before, which no estimator of theirs can undo."
    ),
    gallery={"n_train": 200, "widths": (32, 64, 128, 256, 512), "seeds": 160},
    full={"n_train": 400, "widths": (32, 64, 128, 256, 512, 1024), "seeds": 200},
)
def alignment_of_few_neurons(
    n_train: int = 60,
    depth: int = 3,
    widths: tuple[int, ...] = (32, 128),
    seeds: int = 16,
) -> Iterator[Curve]:
    data = split("digits", "even-odd", n_train, 8)
    system, over = InspectedTraining(*data, dense(depth), levels=(1.0,)), {"width": widths}
    yield Curve("infinite width", infinite_width, system, over)
    yield Curve("network", inspected_network, system, over, seeds)
