"""The available priors, and their names."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from orderparam.core.names import near
from orderparam.core.system import parameter
from orderparam.priors.base import Components, Prior, PriorAverages
from orderparam.priors.names import law

_NODES = 128  # nodes on a half line, up to 9 deviations or to where 1/cosh x is 1e-16
_REACH, _FALLEN = 9.0, 37.0
# nodes for the normal density, of which one half is used by symmetry
_STEPS = np.full(_NODES, np.sqrt(2 / np.pi) / (_NODES - 1))
_STEPS[0] /= 2


class GaussianPrior(Prior):
    """w ~ N(0, variance)."""

    variance: float = parameter("variance of the weights", above=0, default=1.0)

    @property
    def components(self) -> Components:
        return _components([1.0], [0.0], [self.variance])


class Rademacher(Prior):
    """w = +-1 with equal probability: <w> = tanh b."""

    @property
    def components(self) -> Components:
        return _components([0.5, 0.5], [-1.0, 1.0], [0.0, 0.0])

    def averages(self, precision: Float[ArrayLike, "*batch"]) -> PriorAverages:
        r"""The averages over observations of precision a >= 0, elementwise, to 1e-13.

        For w = 1 the field b has mean and variance a. Then E f(b) = exp(-a/2) E exp(x) f(x) with x
        centred, and only the even part remains:

            error = exp(-a/2) E 1/cosh x,    overlap = exp(-a/2) E sinh^2 x / cosh x,
            ln 2 - information = E ln(1 + exp(-2b)).

        Their nearest poles are at x = +-i pi/2: equal steps in x are exact to rounding.
        """
        a = jnp.asarray(precision, jnp.float64)
        root = jnp.sqrt(a)[..., None]
        # x = root * t, up to where the density of b or 1/cosh x has vanished
        end = jnp.minimum(_REACH + root, _FALLEN / jnp.maximum(root, 1e-30))
        t = end * jnp.linspace(0.0, 1.0, _NODES)
        x = root * t
        weight = end * jnp.asarray(_STEPS) * jnp.exp(-(a[..., None] + t**2) / 2)
        fall = jnp.exp(-x)
        square = fall**2
        error = jnp.sum(weight * (2 * fall / (1 + square)), axis=-1)
        bend = jnp.sum(weight * ((1 - square) ** 2 / (2 * fall * (1 + square))), axis=-1)
        missing = jnp.sum(weight * ((fall + 1 / fall) / 2 * jnp.log1p(square) + x * fall), axis=-1)
        information = np.log(2) - missing
        # 1 - error loses digits where the overlap is small; its integral loses digits where it is
        # large.
        overlap = jnp.where(a < 1, bend, 1 - error)
        return PriorAverages(overlap, error, a / 2 - information, information)


class SparsePrior(Prior):
    """w ~ N(0, variance) with probability `density`, and zero otherwise (Bernoulli-Gauss)."""

    density: float = parameter(
        "probability that a weight is not zero", above=0, maximum=1, default=0.5
    )
    variance: float = parameter("variance of the weights that are not zero", above=0, default=1.0)

    @property
    def components(self) -> Components:
        return _components([1 - self.density, self.density], [0.0, 0.0], [0.0, self.variance])


class MixturePrior(Prior):
    """w ~ sum_k shares_k N(means_k, variances_k); a variance of zero is an atom. Shares are
    normalised."""

    shares: Float[Array, "component"] = parameter("share of each component", minimum=0)
    means: Float[Array, "component"] = parameter("mean of each component")
    variances: Float[Array, "component"] = parameter("variance of each component", minimum=0)

    def __check_init__(self) -> None:
        if any(
            isinstance(part, jax.core.Tracer) for part in (self.shares, self.means, self.variances)
        ):
            return
        if not np.any(np.asarray(self.shares) > 0):
            raise ValueError("MixturePrior.shares: must not all be zero")
        if not np.any(
            np.asarray(self.shares) * (np.asarray(self.means) ** 2 + np.asarray(self.variances)) > 0
        ):
            raise ValueError(
                "MixturePrior.variances: weights that are always zero cannot be learned"
            )

    @property
    def components(self) -> Components:
        return Components(self.shares / jnp.sum(self.shares), self.means, self.variances)


class SamplePrior(Prior):
    """Weights with the values of a given sample, each with the same probability."""

    values: Float[Array, "value"] = parameter("the sample")

    def __check_init__(self) -> None:
        if not isinstance(self.values, jax.core.Tracer) and not np.any(np.asarray(self.values)):
            raise ValueError("SamplePrior.values: weights that are always zero cannot be learned")

    @property
    def components(self) -> Components:
        size = self.values.shape[0]
        return Components(jnp.full(size, 1 / size), self.values, jnp.zeros(size))


def _components(*parts: list[Any]) -> Components:
    return Components(*(jnp.stack([jnp.asarray(x, jnp.float64) for x in part]) for part in parts))


_PRIORS: dict[str, Callable[[], Prior]] = {
    "gaussian": GaussianPrior,
    "rademacher": Rademacher,
    "sparse": SparsePrior,
}


def prior_names() -> list[str]:
    """The names that `prior` accepts."""
    return list(_PRIORS)


def prior(which: Any) -> Prior:
    """The prior of that name ("gaussian", "rademacher", "sparse") with its default numbers, or the
    `Prior` itself; "spherical" and "binary" are other words for the first two (see `names`).

    Raises `ValueError` for anything else.
    """
    if isinstance(which, Prior):
        return which
    which = law(*_PRIORS)(which)
    if not isinstance(which, str) or which not in _PRIORS:
        raise ValueError(
            f"there is no prior {which!r}: must be one of "
            f"{', '.join(_PRIORS)}{near(str(which), prior_names())}"
        )
    return _PRIORS[which]()
