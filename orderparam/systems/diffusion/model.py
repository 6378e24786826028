"""Diffusion models: the systems.

Noise is added to data until no information about them remains, and a model learns to reverse this
process. A backward trajectory has two characteristic times: at the speciation time it chooses its
class, and if the score is that of a finite training set, it chooses a training example at the
collapse time.
"""

from typing import Any, Self

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, structure


class TwoClasses(System):
    r"""Data of two Gaussian classes, diffused for a time t.

    Data are $x_0 \sim \pi N(\mu, C) + (1 - \pi) N(-\mu, C)$ with a covariance
    $C = \mathrm{diag}(l)$ that both classes share. The Ornstein-Uhlenbeck process turns them into

    $$ x_t = a x_0 + \sqrt D\, z, \qquad a = e^{-t}, \qquad D = 1 - e^{-2t}, \qquad
        z \sim N(0, 1) . $$

    A backward trajectory starts at $x_t$ and follows
    $dx = (x + 2 \nabla \ln p_t(x))\, dt' + \sqrt 2\, dW$ with $t' = -t$ until the time 0.
    """

    mean: Float[Array, "direction"] = parameter("mean mu of the first class; -mu of the second")
    variances: Float[Array, "direction"] = parameter(
        "variances l of each class along the directions", above=0
    )
    time: float = parameter("time t of the diffusion", above=0)
    class_share: float = parameter("share pi of the first class", minimum=0, maximum=1, default=0.5)
    steps: int = structure("steps of a backward trajectory", minimum=2, default=100)

    @property
    def speciation_time(self) -> Float[Array, ""]:
        r"""The speciation time, half the logarithm of the largest eigenvalue of the covariance of
        the data, $C + 4 \pi (1 - \pi) \mu \mu^T$."""
        share = 4 * self.class_share * (1 - self.class_share)
        covariance = jnp.diag(self.variances) + share * jnp.outer(self.mean, self.mean)
        return jnp.log(jnp.linalg.eigvalsh(covariance)[-1]) / 2

    @classmethod
    def isotropic(cls, input_dim: int, time: Any, variance: float = 1.0, **numbers: Any) -> Self:
        """Isotropic classes whose means have the squared length |mu|^2 = input_dim."""
        mean = np.sqrt(input_dim) * np.eye(input_dim)[0]
        return cls(mean, np.full(input_dim, variance), time, **numbers)


class StoredGaussians(System):
    r"""A diffusion whose score is that of n stored examples, drawn from a Gaussian.

    Examples are $x_\mu \sim N(0, \sigma^2 1_d)$, and the score is that of $\frac1n \sum_\mu N(x; a
    x_\mu, D)$ with $a = e^{-t}$, $D = 1 - e^{-2t}$.
    """

    input_dim: float = parameter("dimension d of the data", minimum=4, maximum=1000)
    n_train: float = parameter("number n of stored examples", minimum=1)
    time: float = parameter("time t of the diffusion", above=0)
    variance: float = parameter("variance sigma^2 of the data", above=0, default=1.0)
    steps: int = structure("steps of a backward trajectory", minimum=2, default=60)
    starts: int = structure("noisy examples of one run", minimum=1, default=256)


class StoredData(System):
    """A diffusion whose score is that of n examples, drawn from a pool of data without replacement.

    The columns of the pool have mean zero. `StoredData.from_pool` accepts any data: it subtracts
    the means, removes constant columns, and scales the mean variance to 1.
    """

    examples: Float[Array, "example direction"] = parameter("the pool, one example a row")
    labels: Float[Array, "example"] = parameter("class of every example of the pool")
    n_train: float = parameter("number n of stored examples", minimum=1)
    time: float = parameter("time t of the diffusion", above=0)
    steps: int = structure("steps of a backward trajectory", minimum=2, default=60)
    starts: int = structure("noisy examples of one run", minimum=1, default=256)

    @classmethod
    def from_pool(cls, examples: Any, labels: Any, n_train: Any, time: Any, **numbers: Any) -> Self:
        """The pool, centred and scaled.

        Raises:
            ValueError: for fewer examples than `n_train`, or examples that are all equal.
        """
        x = np.asarray(examples, float)
        x = x.reshape(len(x), -1)
        x = x[:, x.min(0) < x.max(0)]
        if not x.size:
            raise ValueError("examples: are all equal")
        if np.max(n_train) > len(x):
            raise ValueError(f"n_train = {np.max(n_train):g}: the pool has {len(x)} examples")
        x = x - x.mean(0)
        x = x / np.sqrt(np.mean(x**2))
        return cls(x, np.asarray(labels, float), n_train, time, **numbers)

    def two_classes(self, first: float, second: float) -> TwoClasses:
        """Gaussian classes with the means, the covariance within classes and the shares of two
        classes of the pool, in the eigenbasis of that covariance.

        A direction in which neither class varies is assigned 1e-6 of the mean variance.
        """
        x, labels = np.asarray(self.examples), np.asarray(self.labels)
        parts = [x[labels == label] for label in (first, second)]
        means = [part.mean(0) for part in parts]
        within = np.concatenate([part - mean for part, mean in zip(parts, means)])
        variances, basis = np.linalg.eigh(within.T @ within / len(within))
        floor = 1e-6 * variances.mean()
        return TwoClasses(
            basis.T @ (means[0] - means[1]) / 2,
            np.maximum(variances, floor),
            self.time,
            class_share=len(parts[0]) / len(within),
        )


def decay(time: Any) -> tuple[Any, Any]:
    """The factors a = e^{-t} and D = 1 - e^{-2t} of signal and noise."""
    return jnp.exp(-time), -jnp.expm1(-2 * time)
