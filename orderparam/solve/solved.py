"""The result of every solver."""

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int, PyTree


class Solved(eqx.Module):
    """The result of a solver: the value, its residual (defined by each solver), `converged` if the
    residual is small enough, and the number of steps."""

    value: PyTree[Float[Array, "..."]]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    steps: Int[Array, ""]
