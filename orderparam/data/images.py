"""Images of a standard data set as a pool to learn from, preprocessed as is usual for kernel
learning curves."""

import warnings

import numpy as np
from jaxtyping import Float

from orderparam.data.preprocess import centre, normalise
from orderparam.data.standard import load
from orderparam.data.subsample import subsample
from orderparam.data.tasks import apply_task


def image_task(dataset: str, task: str, pool: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets: the pool's mean image is subtracted and every image normalised to |x|^2 =
    input_dim; targets are ±1, or one-hot.

    pool: size of a random subset, 0 for all images; where only a part of a data set is present, all
    of it is the pool, with a warning.
    """
    chosen, targets = apply_task(load(dataset), task)
    if pool > chosen.examples:
        warnings.warn(
            f"{chosen.name}, {task}: {chosen.examples} images are here, not {pool}; all are taken",
            stacklevel=3,
        )
    elif pool:
        chosen, targets = apply_task(subsample(chosen, pool), task)
    return normalise(centre(chosen)).inputs, targets.values


def block_means(
    images: Float[np.ndarray, "example row column channel"], side: int
) -> Float[np.ndarray, "example side side channel"]:
    """Square images averaged over square blocks, to `side` pixels on a side. Raises `ValueError`
    for a number that does not divide that of the pixels on a side."""
    examples, whole, _, channels = images.shape
    if side < 1 or whole % side:
        raise ValueError(f"side = {side}: must divide {whole}, the pixels on a side of an image")
    block = whole // side
    return images.reshape(examples, side, block, side, block, channels).mean(axis=(2, 4))


def coarse(images: np.ndarray) -> Float[np.ndarray, "example 8 8 3"]:
    """Colour images of 32 x 32 pixels, averaged to 8 x 8 pixels; each has a mean square of 1."""
    blocks = block_means(images.reshape(-1, 32, 32, 3), 8)
    return blocks / np.sqrt(np.mean(blocks**2, axis=(1, 2, 3), keepdims=True))
