"""Kernel regression of which only the largest modes are kept; the others are integrated out."""

import math
from functools import lru_cache
from typing import Any, Self

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Num

from orderparam.core.system import System, parameter, part
from orderparam.data.images import image_task
from orderparam.kernels.spectrum import Spectrum
from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.renormalization.spectra import check_pool, check_positive, pool_modes


class DecimatedRegression(System):
    """Posterior mean of kernel regression, f = k_x^T (K + T)^-1 y, on n_train random inputs,
    written as a field theory of modes,

        S[f] = sum_{k <= cut} f_k^2 / (2 lambda_k) - P int dmu_x exp(-(f - y)^2 / (2 T))      (replica indices left out)

    with lambda_k and y_k^2 of the spectrum, K = sum_k lambda_k phi_k phi_k'. Raises `ValueError`
    for a spectrum with an eigenvalue that is not positive (such a mode is no part of the theory:
    its target belongs to `tail_power`), and for a cut outside of it.
    """

    spectrum: Spectrum = part(
        "spectrum of the kernel over the inputs, with the target's power on it"
    )
    n_train: float = parameter("number of training samples P; need not be an integer", above=0)
    temperature: float = parameter(
        "Langevin temperature T, the ridge added to the Gram matrix", minimum=0
    )
    noise: float = parameter("variance of the label noise", minimum=0, default=0.0)
    cut: float = parameter(
        "number of modes that are kept; inf for all", minimum=1, infinite=True, default=math.inf
    )

    def __check_init__(self) -> None:
        check_positive(self)


class DecimatedPool(DecimatedRegression):
    """Training sets drawn without replacement from a pool of real inputs, all of which have a
    target.

    features: phi_k(x_i), normalised over the pool, in the order of the spectrum.
    `DecimatedPool.from_kernel` makes them.
    """

    features: Float[Array, "pool mode"] = parameter(
        "values of the modes at all inputs", kw_only=True
    )
    targets: Float[Array, "pool"] = parameter("targets of all inputs, without noise", kw_only=True)

    def __check_init__(self) -> None:
        check_positive(self)
        check_pool(self)

    @classmethod
    def from_kernel(
        cls,
        kernel: Num[ArrayLike, "pool pool"],
        targets: Num[ArrayLike, "pool"],
        n_train: Any,
        temperature: Any,
        **fields: Any,
    ) -> Self:
        """The pool with this kernel matrix and these targets; one eigendecomposition (see
        `spectra.pool_modes`).
        """
        spectrum, features = pool_modes(kernel, targets)
        return cls(spectrum, n_train, temperature, features=features, targets=targets, **fields)


# ------------------------------------------------------------------------------------------------
# Pools of real images, and of points on a circle, to be decimated.


@lru_cache(maxsize=8)
def image_kernel(
    dataset: str, task: str, activation: str = "relu", pool: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Kernel of one hidden layer at infinite width on images of two classes, scaled to trace 1 over
    the pool, and ±1 targets.
    """
    inputs, targets = image_task(dataset, task, pool)
    kernel = np.asarray(fully_connected(1, None, activation).kernel(jnp.asarray(inputs)).nngp)
    return kernel / np.mean(np.diag(kernel)), targets


@lru_cache(maxsize=8)
def decimated_images(
    dataset: str,
    task: str,
    activation: str = "relu",
    pool: int = 0,
    n_train: float = 50,
    temperature: float = 1e-8,
) -> DecimatedPool:
    """Images under the kernel of `image_kernel`, all modes kept."""
    return DecimatedPool.from_kernel(
        *image_kernel(dataset, task, activation, pool), n_train, temperature
    )


def decimated_circle(
    points: int, decay: float, n_train: float = 50, temperature: float = 1e-8
) -> DecimatedPool:
    """Points on a circle under a kernel of their distance alone, with eigenvalues k^-decay of cos k
    x and sin k x, trace 1.

    K_>(x, x) is the same everywhere, and K_>(x, x') is not small: the counter-example of small
    input dimension. The target is the sign of sin x + 0.6 sin(3 x + 1).
    """
    x = 2 * np.pi * np.arange(points) / points
    k = np.arange(1, points // 2)
    weight = k**-decay
    row, place = np.cos(np.outer(x, k)) @ (weight / weight.sum()), np.arange(points)
    kernel = row[np.abs(place[:, None] - place)]
    return DecimatedPool.from_kernel(
        kernel, np.sign(np.sin(x) + 0.6 * np.sin(3 * x + 1)), n_train, temperature
    )
