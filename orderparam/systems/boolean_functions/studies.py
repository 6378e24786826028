"""The named figures of Boolean functions."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from orderparam.comparison import Comparison, Curve, study
from orderparam.networks.fully_connected import fully_connected
from orderparam.plotting import Freehand, Panel
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS, ink
from orderparam.systems.boolean_functions.experiment import trained_functions
from orderparam.systems.boolean_functions.model import BooleanTraining
from orderparam.systems.boolean_functions.theory import (
    label_posterior,
    regression_posterior,
    tangent_kernel_law,
    wide_distances,
)

# the eight functions that are shown are 1 on the last input; all others have 1 % together
_SHOWN = slice(1, None, 2)
LAWS = {
    "tangent kernel": tangent_kernel_law,
    "regression posterior": regression_posterior,
    "label posterior": label_posterior,
}


def draw_functions(axes: Any, comparison: Comparison) -> None:
    """Draw the probabilities of functions in networks as marks, beside bars for the three laws."""
    (networks,) = comparison.experiments(quantity="functions").values()
    theories = comparison.theories(quantity="functions").values()
    laws = {data.attrs["facets"]["reference"]: data for data in theories if data.attrs["facets"]}
    numbers = np.arange(networks.sizes["pattern"])[_SHOWN]
    places = np.arange(len(numbers))
    for number, name in enumerate(LAWS):
        height = np.ravel(laws[name]["probability"].isel(pattern=_SHOWN))
        axes.bar(places + 0.27 * (number - 1), height, 0.25, color=COLOURS[number], label=name)
    shown = networks["probability"].isel(pattern=_SHOWN)
    dots(axes, places, shown, 0, "networks", colour=ink(), filled=True)
    signs = [f"{number:04b}".replace("0", "−").replace("1", "+") for number in numbers]
    axes.set_xticks(places, signs, fontsize=7, rotation=90)
    axes.tick_params(axis="x", length=0)
    axes.set(xlabel="function: its signs", ylabel="probability of the function")


def three_bits(width: int, **fields: object) -> BooleanTraining:
    """The system of the study: labels -1, 1, 1, 1 on four of the eight inputs of three bits, and
    erf units whose weights have variance 6 and whose biases have variance 1."""
    x = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    network = fully_connected(
        1,
        None,
        "erf_scaled",
        weight_variance=6.0,
        bias_variance=(1.0, 0.0),
        readout_variance=1.0,
    )
    train, test = [0, 3, 5, 6], [1, 2, 4, 7]
    return BooleanTraining(
        x[train], np.array([-1.0, 1.0, 1.0, 1.0]), x[test], network, width, **fields
    )


@study(
    "sgd-against-bayes",
    title="On three bits, wide networks follow the law of their tangent kernel, not a posterior",
    source="Mingard et al. 2021 (arXiv:2006.15191); Lee et al. 2019 (arXiv:1902.06720)",
    panels=[
        Freehand(draw_functions),
        Panel(
            "width",
            "squared_distance",
            by="law",
            where={"quantity": "distance"},
            log="x",
            xlabel="width $N$",
            ylabel="squared distance from the law",
            text={number: law for number, law in enumerate(LAWS)} | {"infinite width": ""},
        ),
    ],
    columns=2,
    caption=r"""
        Three bits: networks with one hidden layer of erf units fit labels on four inputs by
        gradient descent on all layers; a function is the pattern of signs on the other four.
        Tangent kernel: law of infinitely wide networks after training. Regression posterior: the
        Gaussian process of the prior, given that its outputs equal the labels. Label posterior: the
        same, given only that its signs equal the labels. Left: the eight most
        frequent functions, for {networks} networks of {width} units in each of {seeds} runs (marks)
        and in the three laws (bars). Right: squared distance of the law of networks from each of
        the three (colours), without the bias of a finite number of networks; lines: infinite
        width.
    """,
    seconds=(120, 900),
    observables=("likely",),
    explained="Both posteriors are rejected. Networks of finite width differ from the law of the "
    "tangent kernel, and less the wider they are.",
    gallery={"widths": (8, 16, 32, 64), "width": 128, "networks": 250, "seeds": 16},
    full={"widths": (8, 16, 32, 64, 128, 256), "width": 256, "networks": 2000, "seeds": 16},
)
def sgd_against_bayes(
    widths: tuple[int, ...] = (8, 32),
    width: int = 64,
    networks: int = 250,
    seeds: int = 16,
) -> Iterator[Curve]:
    system = three_bits(width, networks=networks)
    for name, law in LAWS.items():
        facets = {"quantity": "functions", "reference": name}
        posterior = name != "tangent kernel"
        yield Curve(name, law, system, {}, facets=facets, baseline=posterior)
    functions = {"quantity": "functions"}
    yield Curve("networks", trained_functions, system, {}, seeds, facets=functions)
    distance = {"quantity": "distance"}
    over = {"width": widths}
    yield Curve("infinite width", wide_distances, system, over, facets=distance)
    yield Curve("networks", trained_functions, system, over, seeds, facets=distance)
