"""A target whose hardness is asked for, and what is found."""

from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import System, structure
from orderparam.gaussian.target import Target
from orderparam.systems.multi_index.formulas import formula

ORDERS = 4  # of the Hermite powers that are reported


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
