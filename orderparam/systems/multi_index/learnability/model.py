"""A target whose hardness is asked for, and what is found."""

from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import System, parameter, structure
from orderparam.gaussian.target import Target
from orderparam.systems.multi_index.formulas import formula

ORDERS = 4  # of the Hermite powers that are reported
STAIRS = "z1**2 + sign(z1*z2*z3)"  # a target of two stairs


class WeakLearnability(System):
    """A target whose hardness is asked for."""

    target: str | Target = structure("target g, see `exponents`", convert=formula, default="z")
    samples: int = structure("random inputs of a measurement", minimum=100, maximum=10**8, default=200_000)


class LearnedTarget(System):
    """Optimal estimates of the directions of a target y = g(z), from n = sample_ratio * d inputs x ~ N(0, 1_d)."""

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0)
    target: str | Target = structure("target g, see `exponents`", convert=formula, default=STAIRS)
    input_dim: float = parameter("input dimension d of a run", minimum=10, integer=True, default=500)


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


class Climb(Result):
    """overlap: E z_i <z_i>, of the field along each coordinate of the target with its estimate; 1 where it is known.

    next_threshold: n / d from which an estimate with these overlaps sees another direction, infinite where there is none to see;
    NaN in a measurement, which does not know it.
    """

    overlap: Float[Array, "index"]
    next_threshold: Float[Array, ""]
    converged: Bool[Array, ""]
    residual: Float[Array, ""]
