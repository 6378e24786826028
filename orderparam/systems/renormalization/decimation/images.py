"""Pools of real images, and of points on a circle, to be decimated."""

from functools import lru_cache

import jax.numpy as jnp
import numpy as np

from orderparam.data.images import image_task
from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.renormalization.decimation.model import DecimatedPool


@lru_cache(maxsize=8)
def image_kernel(dataset: str, task: str, activation: str = "relu", pool: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Kernel of one hidden layer at infinite width on images of two classes, scaled to trace 1 over the pool, and ±1 targets."""
    inputs, targets = image_task(dataset, task, pool)
    kernel = np.asarray(fully_connected(1, None, activation).kernel(jnp.asarray(inputs)).nngp)
    return kernel / np.mean(np.diag(kernel)), targets


@lru_cache(maxsize=8)
def decimated_images(
    dataset: str, task: str, activation: str = "relu", pool: int = 0, n_train: float = 50, temperature: float = 1e-8
) -> DecimatedPool:
    """Images under the kernel of `image_kernel`, all modes kept."""
    return DecimatedPool.from_kernel(*image_kernel(dataset, task, activation, pool), n_train, temperature)


def decimated_circle(points: int, decay: float, n_train: float = 50, temperature: float = 1e-8) -> DecimatedPool:
    """Points on a circle under a kernel of their distance alone, with eigenvalues k^-decay of cos k x and sin k x, trace 1.

    K_>(x, x) is the same everywhere, and K_>(x, x') is not small: the counter-example of small input dimension. The target is the
    sign of sin x + 0.6 sin(3 x + 1).
    """
    x = 2 * np.pi * np.arange(points) / points
    k = np.arange(1, points // 2)
    weight = k**-decay
    row, place = np.cos(np.outer(x, k)) @ (weight / weight.sum()), np.arange(points)
    kernel = row[np.abs(place[:, None] - place)]
    return DecimatedPool.from_kernel(kernel, np.sign(np.sin(x) + 0.6 * np.sin(3 * x + 1)), n_train, temperature)
