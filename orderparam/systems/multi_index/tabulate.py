"""The exponents of a target as a Result, and the same moments measured on random samples."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.system import System, structure
from orderparam.core.verb import experiment, theory
from orderparam.gaussian.target import Target, target
from orderparam.systems.multi_index.exponents import exponents
from orderparam.systems.multi_index.model import formula
from orderparam.systems.multi_index.rules import hermite_values

_ORDERS = 4


class WeakLearnability(System):
    """A target whose hardness is asked for."""

    target: str | Target = structure("target g, see `exponents`", convert=formula, default="z")
    samples: int = structure("random inputs of a measurement", minimum=100, maximum=10**8, default=200_000)


class Hardness(Result):
    """information, leap, generative, generative_leap: the exponents, infinite when beyond order 8. degree: of a polynomial,
    infinite otherwise.

    threshold: n / d of weak recovery by the best algorithm. hermite_power: sum of c_a^2 over |a| = order, for orders 1
    .. 4.
    """

    information: Float[Array, ""]
    leap: Float[Array, ""]
    generative: Float[Array, ""]
    generative_leap: Float[Array, ""]
    degree: Float[Array, ""]
    threshold: Float[Array, ""]
    hermite_power: Float[Array, "order"]
    converged: Bool[Array, ""]


class HermitePower(Result):
    """hermite_power: sum of c_a^2 over |a| = order, for orders 1 .. 4, without bias."""

    hermite_power: Float[Array, "order"]


@theory(differentiable=False)
def hardness(system: WeakLearnability) -> Hardness:
    """`exponents` of the target, computed when the program is compiled."""
    found = exponents(system.target)

    def number(x: float | None) -> Array:
        return jnp.asarray(np.inf if x is None else float(x))

    return Hardness(
        information=number(found.information),
        leap=number(found.leap),
        generative=number(found.generative),
        generative_leap=number(found.generative_leap),
        degree=number(found.degree),
        threshold=number(found.threshold),
        hermite_power=jnp.asarray(np.square(found.hermite[1 : _ORDERS + 1])),
        converged=jnp.asarray(True),
    )


@experiment
def measured_hermite_power(system: WeakLearnability, key: PRNGKeyArray) -> HermitePower:
    """From samples (z, y): products of the averages of y h_a(z) over two halves."""
    g = target(system.target)
    z = np.asarray(jax.random.normal(key, (2, system.samples // 2, g.dimension)))
    features = np.ones((2, 1, z.shape[1]))
    degrees = np.zeros(1, int)
    for i in range(g.dimension):
        h = np.moveaxis(hermite_values(_ORDERS + 1, z[..., i]), 0, 1)
        features = (features[:, :, None] * h[:, None]).reshape(2, -1, z.shape[1])
        degrees = np.add.outer(degrees, np.arange(_ORDERS + 1)).ravel()
        features, degrees = features[:, degrees <= _ORDERS], degrees[degrees <= _ORDERS]
    means = np.mean(features * g(z)[:, None], axis=-1)
    return HermitePower(jnp.asarray([np.sum((means[0] * means[1])[degrees == k]) for k in range(1, _ORDERS + 1)]))
