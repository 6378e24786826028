"""A pool of real examples with one target each, given by their kernel matrix."""

from typing import Any, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter
from orderparam.data import apply_task, centre, load, normalise, subsample
from orderparam.kernels.gram import checked_gram
from orderparam.kernels.spectrum import Spectrum
from orderparam.networks.fully_connected import fully_connected


class ScaleFreeData(System):
    """A pool of M examples, given by their kernel matrix, and their targets.

    P = `n_train` examples of the pool are learned by kernel regression with `ridge` added to the
    diagonal of their kernel matrix.

    Raises:
        ValueError: for a matrix that is not a kernel matrix, for targets that do not fit it, and
            for an `n_train` that leaves no example of the pool for testing.
    """

    gram: Float[Array, "pool pool"] = parameter("kernel matrix K of the pool")
    targets: Float[Array, "pool"] = parameter("targets of the pool")
    n_train: float = parameter(
        "number of training examples P, drawn from the pool", minimum=1, default=100
    )
    ridge: float = parameter("added to the diagonal of the kernel matrix", minimum=0, default=1e-6)

    def __check_init__(self) -> None:
        if any(isinstance(x, jax.core.Tracer) for x in (self.gram, self.n_train)):
            return
        checked_gram(self.gram, self.targets, "gram", outputs=False)
        if np.max(np.asarray(self.n_train)) >= len(self.gram):
            raise ValueError(
                f"{type(self).__name__}.n_train = {float(np.max(np.asarray(self.n_train))):g}: "
                f"must leave some of the pool of {len(self.gram)} for testing"
            )

    @classmethod
    def of(
        cls,
        data: str,
        pool: int,
        task: str = "even-odd",
        kernel: Literal["linear", "erf", "relu"] = "relu",
        **fields: Any,
    ) -> Self:
        """A pool of random examples of a data set, or of a file that `orderparam.data.load` reads.

        Each column is centred and every row scaled to the length sqrt(d). `task`: see
        `orderparam.data.apply_task`. `kernel`: "linear" is x.x'/d; "relu" and "erf" are the kernels
        of one hidden layer of infinite width with weights of variance one and no biases.
        """
        chosen, _ = apply_task(load(data), task)
        few, targets = apply_task(subsample(chosen, min(pool, chosen.examples)), task)
        inputs = jnp.asarray(normalise(centre(few)).inputs)
        linear = kernel == "linear"
        gram = (
            inputs @ inputs.T / inputs.shape[1]
            if linear
            else fully_connected(1, None, kernel).kernel(inputs).nngp
        )
        return cls(gram, targets.values, **fields)

    @property
    def spectrum(self) -> Spectrum:
        """Eigenvalues of K/M in increasing order, and the target's power on each. The pool is
        treated as the population.
        """
        size = len(self.gram)
        eigenvalues, vectors = jnp.linalg.eigh(self.gram / size)
        return Spectrum(jnp.maximum(eigenvalues, 0.0), (vectors.T @ self.targets) ** 2 / size)
