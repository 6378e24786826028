"""Real images as a pool to learn from, preprocessed as is usual for kernel learning curves."""

import warnings
from functools import lru_cache

import jax.numpy as jnp

from orderparam.data import apply_task, centre, load, normalise, subsample
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

    The pool's mean image is subtracted and every image normalised to |x|^2 = input_dim. The kernel is that of `depth` hidden
    layers with weight variance 1 and no biases (read-out variance 1). pool: size of a random subset, 0 for all images; where only
    a part of a data set is present, all of it is the pool, with a warning.
    """
    chosen, targets = apply_task(load(dataset), task)
    if pool > chosen.examples:
        warnings.warn(f"{chosen.name}, {task}: {chosen.examples} images are here, not {pool}; all are taken", stacklevel=2)
    elif pool:
        chosen, targets = apply_task(subsample(chosen, pool), task)
    inputs = jnp.asarray(normalise(centre(chosen)).inputs)
    architecture = fully_connected(depth, None, activation)
    labels = jnp.asarray(targets.values)
    return NetworkRegression.from_architecture(architecture, inputs, labels, n_train, temperature, width=width)
