"""Kernel regression on random subsets of a finite pool of real inputs, and the finite networks that
learn the same subsets.
"""

from functools import lru_cache
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Num

from orderparam.core.system import parameter, part
from orderparam.data.images import image_task
from orderparam.kernels.gram import checked_gram
from orderparam.kernels.spectrum import Spectrum
from orderparam.networks.architecture import Architecture
from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.kernel_regression.spectrum.model import KernelRegression


class PoolRegression(KernelRegression):
    """Training sets drawn without replacement from a finite pool of real inputs, all of which have
    a target.

    `PoolRegression.from_kernel` computes the spectrum from the kernel and the targets. Raises
    `ValueError` when the three do not belong together, or when n_train leaves no point of the pool
    to test on.
    """

    kernel: Float[Array, "pool pool"] = parameter("kernel matrix of all inputs", kw_only=True)
    targets: Float[Array, "pool"] | Float[Array, "pool output"] = parameter(
        "targets of all inputs, without noise", kw_only=True
    )

    def __check_init__(self) -> None:
        if any(
            isinstance(leaf, jax.core.Tracer)
            for leaf in jax.tree.leaves((self.kernel, self.targets, self.spectrum))
        ):
            return
        # In NumPy: inside a compiled function JAX would trace the check although its arrays are
        # concrete.
        spectrum, size = jax.tree.map(np.asarray, self.spectrum), self.pool_size
        sums = {
            "sums to {:g}, the kernel's mean diagonal is {:g}": (
                spectrum.eigenvalues @ spectrum.multiplicities + spectrum.tail,
                np.trace(np.asarray(self.kernel)) / size,
            ),
            "has target power {:g}, the targets' mean square is {:g}": (
                spectrum.target_power.sum() + spectrum.tail_power,
                np.sum(np.asarray(self.targets) ** 2) / size,
            ),
        }
        for words, (found, expected) in sums.items():
            if not np.allclose(found, expected, rtol=1e-6):
                raise ValueError(
                    f"PoolRegression.spectrum {words.format(found, expected)}: build the system with PoolRegression.from_kernel"
                )
        n_train: Any = self.n_train  # one number, or a batch of them
        if not isinstance(n_train, jax.core.Tracer) and np.any(np.asarray(n_train) >= size):
            raise ValueError(
                f"PoolRegression.n_train = {n_train}: must be < {size}, the size of the pool"
            )

    @classmethod
    def from_kernel(
        cls,
        kernel: Num[ArrayLike, "pool pool"],
        targets: Num[ArrayLike, "pool *output"],
        n_train: Any,
        temperature: Any,
        noise: Any = 0.0,
        **fields: Any,
    ) -> Self:
        """The pool with this kernel matrix and these targets; one eigendecomposition, of cost
        O(pool^3).

        fields: those that a subclass adds. Raises `ValueError` for a matrix that is no kernel, or
        targets that do not fit it.
        """
        gram, labels = checked_gram(kernel, targets)
        return cls(
            Spectrum.from_pool(gram, labels),
            n_train,
            temperature,
            noise,
            kernel=gram,
            targets=labels,
            **fields,
        )

    @property
    def pool_size(self) -> int:
        return self.kernel.shape[-1]

    @property
    def columns(self) -> Float[Array, "pool output"]:
        """The targets, one column an output."""
        return self.targets.reshape(self.pool_size, -1)

    @property
    def sampled_fraction(self) -> Float[Array, ""]:
        """n_train / pool_size."""
        return jnp.asarray(self.n_train, jnp.float64) / self.pool_size


class NetworkRegression(PoolRegression):
    """A pool together with a finite network that learns it; the kernel is that of the network at
    infinite width.
    """

    inputs: Float[Array, "pool *input"] = parameter("the inputs of the pool", kw_only=True)
    architecture: Architecture = part(
        "of the network; where it leaves widths open, `width` fills them", kw_only=True
    )
    width: int = parameter(
        "width of all hidden layers that the architecture leaves open",
        minimum=1,
        integer=True,
        default=512,
    )

    @classmethod
    def from_architecture(
        cls,
        architecture: Architecture,
        inputs: Float[Array, "pool *input"],
        targets: Float[Array, "pool *output"],
        n_train: Any,
        temperature: Any,
        noise: Any = 0.0,
        width: int = 512,
    ) -> Self:
        """The pool with the kernel of the infinitely wide network; one kernel matrix and one
        eigendecomposition.
        """
        kernel = architecture.kernel(jnp.asarray(inputs)).nngp
        return cls.from_kernel(
            kernel,
            targets,
            n_train,
            temperature,
            noise,
            inputs=inputs,
            architecture=architecture,
            width=width,
        )


# ------------------------------------------------------------------------------------------------
# Real images as a pool to learn from, preprocessed as is usual for kernel learning curves.


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
    """Images of a standard data set with ±1 (or one-hot) targets, and the kernel of a fully
    connected network on them.

    Preprocessed by `orderparam.data.images.image_task`. The kernel is that of `depth` hidden layers
    with weight variance 1 and no biases (read-out variance 1).
    """
    inputs, targets = image_task(dataset, task, pool)
    architecture = fully_connected(depth, None, activation)
    return NetworkRegression.from_architecture(
        architecture, jnp.asarray(inputs), jnp.asarray(targets), n_train, temperature, width=width
    )
