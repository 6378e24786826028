"""Kernel regression in which only the largest modes are kept and the others are integrated out."""

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
    r"""Kernel regression f = k_x^T (K + T)^-1 y on P random inputs, as a field theory of modes.

    The posterior mean is that of the action (replica indices are suppressed)

    $$ S[f] = \sum_{k \le \Lambda} \frac{f_k^2}{2 \lambda_k}
       - P \int d\mu_x\, e^{-(f(x) - y(x))^2 / 2T} $$

    with eigenvalues $\lambda_k$ and target powers $y_k^2$ of `spectrum`, kernel $K = \sum_k
    \lambda_k \phi_k \phi_k'$, $P$ = `n_train`, $T$ = `temperature` and $\Lambda$ = `cut`.

    Raises:
        ValueError: for an eigenvalue that is not positive (such a mode has no fluctuations that
            could be integrated out, and its target power must be given as `tail_power`), and for a
            cut beyond the
        number of modes.
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
    """`DecimatedRegression` on training sets drawn without replacement from a pool of real inputs.

    Every input of the pool has a target. `features` are the modes phi_k(x_i), normalised over the
    pool, in the order of the spectrum; `DecimatedPool.from_kernel` computes them.
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
        """The pool with a given kernel matrix and given targets; its modes come from one
        eigendecomposition (see `spectra.pool_modes`).
        """
        spectrum, features = pool_modes(kernel, targets)
        return cls(spectrum, n_train, temperature, features=features, targets=targets, **fields)


# ------------------------------------------------------------------------------------------------
# Pools of real images and of points on a circle, for which the decimation is studied.


@lru_cache(maxsize=8)
def image_kernel(
    dataset: str, task: str, activation: str = "relu", pool: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Kernel matrix of a pool of images of two classes, scaled to mean diagonal 1, and ±1 targets.

    The kernel is that of one hidden layer of infinite width with the given activation. `pool`:
    number of images, 0 for all.
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
    """Pool of images under the kernel of `image_kernel`, with all modes kept."""
    return DecimatedPool.from_kernel(
        *image_kernel(dataset, task, activation, pool), n_train, temperature
    )


def decimated_circle(
    points: int, decay: float, n_train: float = 50, temperature: float = 1e-8
) -> DecimatedPool:
    """Points on a circle under a kernel of their distance, with eigenvalues k^-decay of cos kx and
    sin kx and trace 1.

    The diagonal K_>(x, x) of the kernel that a cut removes is the same at all points, and K_>(x,
    x') is not small. The circle is a counter-example, in a low input dimension, in which the local
    ridge does not improve the prediction. The target is the sign of sin x + 0.6 sin(3 x + 1).
    """
    x = 2 * np.pi * np.arange(points) / points
    k = np.arange(1, points // 2)
    weight = k**-decay
    row, place = np.cos(np.outer(x, k)) @ (weight / weight.sum()), np.arange(points)
    kernel = row[np.abs(place[:, None] - place)]
    return DecimatedPool.from_kernel(
        kernel, np.sign(np.sin(x) + 0.6 * np.sin(3 * x + 1)), n_train, temperature
    )
