"""Prediction, for data of your own, of how much a finite width improves or worsens a Bayesian
network compared with infinite width.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.core.registry import tool
from orderparam.data import Dataset, Targets
from orderparam.running.sweep import sweep
from orderparam.systems.proportional.model import (
    BayesianNetwork,
    Convolutional,
    FullyConnected,
    LocallyConnected,
    as_images,
    split,
)
from orderparam.systems.proportional.theory import finite_width, infinite_width

# Below this temperature, with many examples per hidden unit, the theory deviates from sampled
# networks by 5 to 20 %.
LOW_TEMPERATURE = 0.05
# fields of the theory's result that the report contains
_KEPT = [
    "test_error",
    "test_bias",
    "test_variance",
    "train_error",
    "accuracy",
    "log_evidence",
    "order_parameters",
    "status",
]


@tool
def predict_width(
    dataset: Dataset,
    targets: Targets,
    widths: Sequence[float] = (20, 50, 100, 200, 500, 1000),
    *,
    n_train: int | None = None,
    n_test: int | None = None,
    temperature: float = 0.1,
    depth: int = 1,
    activation: str = "erf",
    architecture: str = "dense",
    mask: int = 4,
    weight_variance: float = 1.0,
    readout_variance: float = 1.0,
) -> xr.Dataset:
    """Predicted test error of a Bayesian network on data of your own, as a function of its width.

    The first n_train examples are the training set, the last n_test the test set. The test error is
    the squared error of one network from the posterior, summed over the outputs. The test error is
    the sum of test_bias, which is the error of the average network (kernel regression), and of
    test_variance.

    Args:
        dataset: data set from `orderparam.data.apply_task`, with standardised inputs.
        targets: targets from `orderparam.data.apply_task`.
        widths: hidden widths, or numbers of channels.
        n_train: number of training examples. Default: four fifths of the examples, at most 1000.
        n_test: number of test examples. Default: the others, at most 1000.
        temperature: temperature T, the variance of the observation noise. Default 0.1.
        depth: number of hidden layers of a "dense" network. Default 1.
        activation: activation of the hidden units. Default "erf".
        architecture: "dense" (default), or on images "convolutional" or "locally-connected".
        mask: side of the patches. Default 4.
        weight_variance: prior variance of the weights into hidden units. Default 1.
        readout_variance: prior variance of the read-out weights. Default 1.

    Returns:
        A data set over `width`: test_error, test_bias, test_variance, train_error, accuracy,
            log_evidence, order_parameters, samples_per_unit = n_train / width, gain = 1 -
            test_error / (test error at infinite width), trusted (False where n_train > width and T
            < 0.05), and the numbers infinite_test_error and infinite_test_bias. The attribute
            `verdict` is a sentence.

    Raises:
        ValueError: for an unknown architecture, for data that are not images if images are needed,
        and for inconsistent sizes.

    Source: Pacelli et al. (2023), by `finite_width`.
    """
    examples = dataset.examples
    train = min(1000, examples * 4 // 5) if n_train is None else n_train
    test = min(1000, examples - train) if n_test is None else n_test
    shared: dict[str, Any] = {
        "temperature": temperature,
        "activation": activation,
        "weight_variance": weight_variance,
        "readout_variance": readout_variance,
    }
    system, axis = _network(
        dataset, split(dataset, targets, train, test), architecture, depth, mask, shared
    )
    # "nested" exists for one output only, "common" for several outputs at any depth
    theory = partial(finite_width, closure="nested" if system.outputs == 1 else "common")
    found = sweep(theory, system, {axis: [float(width) for width in widths]}).rename(
        {axis: "width"}
    )
    infinite = infinite_width(system)
    limit = float(infinite.test_error)
    report = found[_KEPT].assign(
        samples_per_unit=train / found["width"],
        gain=1 - found["test_error"] / limit,
        trusted=(found["width"] >= train) | (temperature >= LOW_TEMPERATURE),
        infinite_test_error=limit,
        infinite_test_bias=float(infinite.test_bias),
    )
    report.attrs = {
        "verdict": _verdict(report),
        "n_train": train,
        "n_test": test,
        "temperature": temperature,
        "data": dataset.name,
    }
    return report


def _network(
    dataset: Dataset,
    fields: dict[str, Any],
    architecture: str,
    depth: int,
    mask: int,
    shared: dict[str, Any],
) -> tuple[BayesianNetwork, str]:
    """Network with width 1 or with one channel, and the name of the field that sets this number."""
    patches = {"convolutional": Convolutional, "locally-connected": LocallyConnected}
    if architecture not in ("dense", *patches):
        raise ValueError(
            f"architecture = {architecture!r}: must be one of dense, {', '.join(patches)}"
        )
    if architecture == "dense":
        return FullyConnected(**fields, **shared, width=1.0, depth=depth), "width"
    if dataset.image_shape is None:
        raise ValueError(
            f"architecture = {architecture!r}: needs images, but {dataset.name} has rows without a "
            "shape"
        )
    shape = dataset.image_shape if len(dataset.image_shape) == 3 else (*dataset.image_shape, 1)
    images = as_images(fields, shape)
    return patches[architecture](**images, **shared, channels=1.0, mask=mask), "channels"


def _verdict(report: xr.Dataset) -> str:
    """Sentence that compares the smallest test error over all widths with that of infinite
    width."""
    best = int(np.argmin(report["test_error"].values))
    width, gain = float(report["width"][best]), float(report["gain"][best])
    if gain > 0.005:
        return (
            f"finite width helps: at width {width:g} the test error is {gain:.1%} below that of "
            "infinite width"
        )
    if gain < -0.005:
        return (
            f"finite width hurts: even at width {width:g} the test error is {-gain:.1%} above that "
            "of infinite width"
        )
    return (
        f"width hardly matters: the best test error, at width {width:g}, is within 0.5 % of "
        "that of infinite width"
    )
