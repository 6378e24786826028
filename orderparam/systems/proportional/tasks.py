"""Learning problems for the systems of this room: real images, and patches of which the target uses some."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from orderparam.core.system import nearest
from orderparam.data import Dataset, Targets, apply_task, load, standardise
from orderparam.systems.proportional.model import FullyConnected

# Name -> data set and learning problem. MNIST and CIFAR-10 are looked for in $ORDERPARAM_DATA (`orderparam.data.load`).
PROBLEMS = {"digits": ("digits", "even-odd"), "mnist": ("mnist", "0-vs-1"), "cifar10": ("cifar10", "automobile-vs-airplane")}


def split(dataset: Dataset, targets: Targets, n_train: int, n_test: int) -> dict[str, Any]:
    """The data fields of a system: the first n_train examples to train on, the last n_test to test on.

    Raises `ValueError` when there are not enough examples for both.
    """
    if n_train < 1 or n_test < 1 or n_train + n_test > dataset.examples:
        raise ValueError(f"n_train = {n_train}, n_test = {n_test}: must be at least 1, together at most {dataset.examples}")
    x, y = dataset.inputs, targets.values
    return {
        "inputs": jnp.asarray(x[:n_train]),
        "targets": jnp.asarray(y[:n_train]),
        "test_inputs": jnp.asarray(x[-n_test:]),
        "test_targets": jnp.asarray(y[-n_test:]),
    }


def image_data(name: str, n_train: int, n_test: int) -> tuple[dict[str, Any], tuple[int, ...]]:
    """The data fields of a system on "digits", "mnist" or "cifar10", and the shape (*grid, channel) of an image.

    Pixels are standardised with one mean and one deviation for the whole data set.
    """
    if name not in PROBLEMS:
        raise ValueError(f"data = {name!r}{nearest(name, list(PROBLEMS))}")
    data, problem = PROBLEMS[name]
    dataset, targets = apply_task(standardise(load(data)), problem)
    assert dataset.image_shape is not None
    shape = dataset.image_shape if len(dataset.image_shape) == 3 else (*dataset.image_shape, 1)
    return split(dataset, targets, n_train, n_test), shape


def as_images(fields: dict[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """The same data with inputs of shape (examples, *grid, channel)."""
    return {name: value.reshape(-1, *shape) if name.endswith("inputs") else value for name, value in fields.items()}


def dense(data: str, n_train: int, n_test: int, width: float, temperature: float, **options: Any) -> FullyConnected:
    """A fully connected network on real images; `options` are fields of `FullyConnected`."""
    return FullyConnected(**image_data(data, n_train, n_test)[0], width=width, temperature=temperature, **options)


def patch_teacher(target: str, n_train: int, n_test: int, patches: int = 4, pixels: int = 10, seed: int = 0) -> dict[str, Any]:
    """Inputs of `patches` independent Gaussian patches x_i; with one fixed unit vector w and s_i = w . x_i the target is

    "shared" sum_i s_i / sqrt(patches), "one" s_1, "antisymmetric" (s_1 - s_2) / sqrt 2.

    Data fields with inputs (examples, patches * pixels, 1): a signal of one channel, to be seen with a mask of `pixels`.
    """
    random = np.random.RandomState(seed)  # the stream with which the reference values were made
    direction = random.randn(pixels)
    direction /= np.linalg.norm(direction)
    x = random.randn(n_train + n_test, patches, pixels)
    s = x @ direction
    forms = {"shared": s.sum(1) / np.sqrt(patches), "one": s[:, 0], "antisymmetric": (s[:, 0] - s[:, 1]) / np.sqrt(2)}
    if target not in forms:
        raise ValueError(f"target = {target!r}{nearest(target, list(forms))}")
    signals, y = jnp.asarray(x.reshape(len(x), -1, 1)), jnp.asarray(forms[target])
    return {"inputs": signals[:n_train], "targets": y[:n_train], "test_inputs": signals[n_train:], "test_targets": y[n_train:]}


def flat(fields: dict[str, Any]) -> dict[str, Any]:
    """The same data with inputs as vectors, for fully connected networks."""
    return {name: value.reshape(value.shape[0], -1) if name.endswith("inputs") else value for name, value in fields.items()}
