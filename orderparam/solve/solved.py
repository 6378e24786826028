"""What every solver returns."""

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int, PyTree


class Solved(eqx.Module):
    """What was found, what is left of the equation there (each solver says how that is measured),
    whether it is small enough, and the number of steps taken."""

    value: PyTree[Float[Array, "..."]]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    steps: Int[Array, ""]
