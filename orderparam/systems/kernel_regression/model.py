"""Kernel (Gaussian-process) regression on random training sets: a spectrum or a pool of real data, a sample size, a temperature.

The predictor is the posterior mean f(x) = k_x^T (K + T I)^-1 y of a Gaussian process with kernel K whose weights are sampled at
temperature T from exp(-L/T), with L = 1/2 sum_mu (f(x_mu) - y_mu)^2. The temperature is thus the ridge added to the Gram matrix.
"""

import dataclasses
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Num

from orderparam.core.system import System, is_number, parameter
from orderparam.kernels.gram import checked_gram
from orderparam.kernels.spectrum import Spectrum


class KernelRegression(System):
    """Training sets of n_train independent inputs from a measure over which the kernel and the target have the given spectrum.

    Other conventions: a loss averaged instead of summed over the samples has T = n_train * ridge; a loss without the factor 1/2
    has T = ridge / 2; `alpha` of scikit-learn's KernelRidge is T.
    """

    spectrum: Spectrum
    n_train: float = parameter("number of training samples P; need not be an integer", above=0)
    temperature: float = parameter("Langevin temperature T, the ridge added to the Gram matrix", minimum=0)
    noise: float = parameter("variance of the label noise (summed over the outputs, as all errors are)", minimum=0, default=0.0)

    def __check_init__(self) -> None:
        if not isinstance(self.spectrum, Spectrum):
            raise ValueError(f"{type(self).__name__}.spectrum = {self.spectrum!r}: must be a Spectrum")

    @property
    def sampled_fraction(self) -> Float[Array, ""]:
        """Share of the population that a training set takes up: 0 for an infinite population."""
        return jnp.zeros_like(jnp.asarray(self.n_train, jnp.float64))


class HeteroscedasticRegression(KernelRegression):
    """Ridge and label noise that depend on where an input falls: region i has probability `weights[i]`.

    extra_temperature, extra_noise: (region,) added to `temperature` and `noise` for inputs of the region, >= 0.
    weights:                        (region,) probabilities that sum to 1.
    """

    weights: Float[Array, "region"] = dataclasses.field(kw_only=True)
    extra_temperature: Float[Array, "region"] = dataclasses.field(kw_only=True)
    extra_noise: Float[Array, "region"] = dataclasses.field(kw_only=True)

    def __check_init__(self) -> None:
        arrays = {name: getattr(self, name) for name in ("weights", "extra_temperature", "extra_noise")}
        if any(isinstance(array, jax.core.Tracer) for array in arrays.values()):
            return
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray | jax.Array) or array.ndim != 1 or array.shape != self.weights.shape:
                raise ValueError(f"HeteroscedasticRegression.{name} = {array!r}: must be an array of shape (region,)")
            if not np.all(np.isfinite(np.asarray(array))) or np.any(np.asarray(array) < 0):
                raise ValueError(f"HeteroscedasticRegression.{name} = {array}: must be finite and >= 0")
        total = np.asarray(self.weights).sum()
        if abs(total - 1) > 1e-9:
            raise ValueError(f"HeteroscedasticRegression.weights sum to {total:.12g}: must sum to 1")


class PoolRegression(KernelRegression):
    """Training sets drawn without replacement from a finite pool of real inputs, all of which have a target.

    kernel:  (pool, pool) kernel matrix of all inputs.
    targets: (pool,) or (pool, outputs), without noise.
    `PoolRegression.from_kernel` computes the spectrum from the two. Raises `ValueError` when the three do not belong together, or
    when n_train leaves no point of the pool to test on.
    """

    kernel: Float[Array, "pool pool"] = dataclasses.field(kw_only=True)
    targets: Float[Array, "pool *output"] = dataclasses.field(kw_only=True)

    def __check_init__(self) -> None:
        arrays = (self.kernel, self.targets, *jax.tree.leaves(self.spectrum))
        if any(isinstance(array, jax.core.Tracer) for array in arrays):
            return
        size = self.pool_size
        if self.kernel.shape != (size, size) or self.targets.ndim not in (1, 2) or self.targets.shape[0] != size:
            raise ValueError(
                f"PoolRegression.kernel has shape {self.kernel.shape} and targets {self.targets.shape}: must be (pool, pool) and "
                "(pool,) or (pool, outputs)"
            )
        # In NumPy: inside a compiled function JAX would trace the check although its arrays are concrete.
        spectrum = jax.tree.map(np.asarray, self.spectrum)
        total = spectrum.eigenvalues @ spectrum.multiplicities + spectrum.tail
        trace = np.trace(np.asarray(self.kernel)) / size
        if not np.allclose(total, trace, rtol=1e-6):
            raise ValueError(
                f"PoolRegression.spectrum sums to {total:g}, the kernel's mean diagonal is {trace:g}: "
                "build the system with PoolRegression.from_kernel"
            )
        total_power = spectrum.target_power.sum() + spectrum.tail_power
        power = np.sum(np.asarray(self.targets) ** 2) / size
        if not np.allclose(total_power, power, rtol=1e-6):
            raise ValueError(
                f"PoolRegression.spectrum has target power {total_power:g}, the targets' mean square is {power:g}: "
                "build the system with PoolRegression.from_kernel"
            )
        if is_number(self.n_train) and self.n_train >= size:  # a traced or batched value passes
            raise ValueError(f"PoolRegression.n_train = {self.n_train}: must be < {size}, the size of the pool")

    @classmethod
    def from_kernel(
        cls,
        kernel: Num[ArrayLike, "pool pool"],
        targets: Num[ArrayLike, "pool *output"],
        n_train: Any,
        temperature: Any,
        noise: Any = 0.0,
    ) -> Self:
        """The pool with this kernel matrix and these targets; one eigendecomposition, of cost O(pool^3)."""
        gram, labels = checked_gram(kernel, targets)
        return cls(Spectrum.from_pool(gram, labels), n_train, temperature, noise, kernel=gram, targets=labels)

    @property
    def pool_size(self) -> int:
        return self.kernel.shape[-1]

    @property
    def sampled_fraction(self) -> Float[Array, ""]:
        """n_train / pool_size."""
        return jnp.asarray(self.n_train, jnp.float64) / self.pool_size
