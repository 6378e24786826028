"""Kernel regression on random subsets of a finite pool of real inputs, and finite networks that
learn these subsets.
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
    """Kernel regression on training sets drawn without replacement from a finite pool of real
    inputs.

    All inputs of the pool have a target; a training set holds `n_train` of them. `spectrum` is the
    spectrum of the kernel over the pool. `PoolRegression.from_kernel` computes it from the kernel
    and the targets.

    Raises:
        ValueError: where the spectrum does not belong to the kernel and the targets, or where
            n_train leaves no point of the pool to test on.

    Source: Canatar, Bordelon, Pehlevan (2021).

    >>> pool = PoolRegression.from_kernel(np.eye(3), [1.0, 0.0, -1.0], n_train=2, temperature=0.1)
    >>> pool.pool_size
    3
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
                    f"PoolRegression.spectrum {words.format(found, expected)}: build the system "
                    "with PoolRegression.from_kernel"
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
        """The pool with the given kernel matrix and targets.

        Args:
            kernel: kernel matrix K(x, x') of all inputs of the pool.
            targets: targets without noise, shape (pool,) or (pool, output).
            n_train: number of inputs in a training set.
            temperature: ridge T.
            noise: variance of the label noise, summed over outputs. Default 0.
            fields: fields that a subclass adds.

        Raises:
            ValueError: for a matrix that is not a kernel, or targets that do not fit it.

        Cost: one eigendecomposition, O(pool^3).
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
        """The number M of inputs in the pool."""
        return self.kernel.shape[-1]

    @property
    def columns(self) -> Float[Array, "pool output"]:
        """The targets, with one column for each output."""
        return self.targets.reshape(self.pool_size, -1)

    @property
    def sampled_fraction(self) -> Float[Array, ""]:
        """The fraction p = n_train / pool_size of the pool that a training set takes."""
        return jnp.asarray(self.n_train, jnp.float64) / self.pool_size


class NetworkRegression(PoolRegression):
    """A pool together with a finite network that learns it.

    `kernel` is the NNGP kernel of the network at infinite width. `from_architecture` computes it.

    Source: Neal (1996); Lee et al. (2018).

    >>> from orderparam.networks import fully_connected
    >>> network = NetworkRegression.from_architecture(
    ...     fully_connected(1, None, "relu"), np.eye(3), [1.0, 0.0, -1.0], 2, 0.1, width=8
    ... )
    >>> network.kernel.shape
    (3, 3)
    """

    inputs: Float[Array, "pool *input"] = parameter("the inputs of the pool", kw_only=True)
    architecture: Architecture = part(
        "architecture of the network; `width` fills the widths that it leaves open", kw_only=True
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
        """The pool with the kernel of the infinitely wide network.

        Args:
            architecture: architecture of the network; `width` fills the widths that it leaves open.
            inputs: the inputs of the pool, one in each row.
            targets: targets without noise, shape (pool,) or (pool, output).
            n_train: number of inputs in a training set.
            temperature: ridge T.
            noise: variance of the label noise. Default 0.
            width: width of the hidden layers. Default 512.

        Cost: one kernel matrix and one eigendecomposition, O(pool^3).
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
    """Images of a standard data set with targets ±1 (or one-hot), and the kernel of a fully
    connected network on them.

    Images are preprocessed by `orderparam.data.images.image_task`. The kernel is that of `depth`
    hidden layers with weight variance 1, read-out variance 1 and no biases.

    Args:
        dataset: name of the data set, such as "digits", "mnist" or "cifar10".
        task: the classes, such as "even-odd" or "3-vs-8".
        activation: activation of the network. Default "relu".
        depth: number of hidden layers. Default 1.
        pool: number of images; 0 (default) takes all.
        n_train: number of images in a training set. Default 100.
        temperature: ridge T. Default 0.1.
        width: width of the finite network. Default 512.
    """
    inputs, targets = image_task(dataset, task, pool)
    architecture = fully_connected(depth, None, activation)
    return NetworkRegression.from_architecture(
        architecture, jnp.asarray(inputs), jnp.asarray(targets), n_train, temperature, width=width
    )
