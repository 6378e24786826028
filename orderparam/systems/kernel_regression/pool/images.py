"""Real images as a pool to learn from, preprocessed as is usual for kernel learning curves."""

from functools import lru_cache

import jax.numpy as jnp

from orderparam.data.images import image_task
from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.kernel_regression.pool.model import NetworkRegression


@lru_cache(maxsize=8)
def image_pool(
    dataset: str,
    task: str,
    activation: str = "relu",
    depth: int = 1,
    pool: int = 0,
    n_train: float = 100,
    temperature: float = 0.1,
    width: int = 512,
) -> NetworkRegression:
    """Images of a standard data set with ±1 (or one-hot) targets, and the kernel of a fully connected network on them.

    Preprocessed by `orderparam.data.images.image_task`. The kernel is that of `depth` hidden layers with weight variance 1 and no
    biases (read-out variance 1).
    """
    inputs, targets = image_task(dataset, task, pool)
    architecture = fully_connected(depth, None, activation)
    return NetworkRegression.from_architecture(
        architecture, jnp.asarray(inputs), jnp.asarray(targets), n_train, temperature, width=width
    )
