"""Random features of real images, as a pool to learn from."""

from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from orderparam.data import apply_task, centre, load
from orderparam.gaussian import activation as find_activation
from orderparam.systems.random_features.model import FeaturePool, Penalty


@lru_cache(maxsize=4)
def image_features(
    dataset: str = "digits",
    task: str = "even-odd",
    activation: Any = "erf",
    width: int = 300,
    n_train: float = 300,
    ridge: float = 0.01,
    split: str | None = None,
    seed: int = 0,
    penalty: Penalty = "sum",
    loss: str = "square",
) -> FeaturePool:
    """activation(W x) for all images of a standard data set, with the ±1 targets of a task of `orderparam.data`.

    The mean image is subtracted and the pixels are scaled together to mean square 1; W_ij ~ N(0, 1/input_dim), `width` rows.
    """
    chosen, targets = apply_task(load(dataset, split), task)
    if targets.values.ndim != 1:
        raise ValueError(f"task = {task!r}: must have one output")
    x = centre(chosen).inputs
    x = x / np.sqrt(np.mean(x**2))
    rows = np.random.default_rng(seed).standard_normal((width, x.shape[1])) / np.sqrt(x.shape[1])
    features = find_activation(activation)(jnp.asarray(x @ rows.T))
    return FeaturePool.from_data(features, targets.values, n_train, ridge, loss=loss, penalty=penalty)
