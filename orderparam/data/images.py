"""Images of a standard data set as a pool to learn from, preprocessed as is usual for kernel
learning curves."""

import warnings

import numpy as np

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
