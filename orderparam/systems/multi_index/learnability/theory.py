"""The exponents of a target as a Result."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from orderparam.core.verb import theory
from orderparam.systems.multi_index.learnability.exponents import exponents
from orderparam.systems.multi_index.learnability.model import ORDERS, Hardness, WeakLearnability


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
        hermite_power=jnp.asarray(np.square(found.hermite[1 : ORDERS + 1])),
        converged=jnp.asarray(True),
    )
