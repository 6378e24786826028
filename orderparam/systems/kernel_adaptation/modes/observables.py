"""What theories and experiments averaged over the input distribution have in common."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.result import Result
from orderparam.systems.kernel_adaptation.modes.network import HiddenLayer


class OnModes(Result):
    """The mean output of the network on the modes h_k of the target's direction, and the weights along it.

    degree:       k of each mode.
    output:       f_k = E f h_k, f the posterior mean.
    learnability: f_k / y_k; NaN where the target has no such component.
    total_learnability: E f y / E y^2.
    spread:       d <rho^2> / weight_variance, 1 without adaptation.
    """

    degree: Float[Array, "mode"]
    output: Float[Array, "mode"]
    learnability: Float[Array, "mode"]
    total_learnability: Float[Array, ""]
    spread: Float[Array, ""]


def on_modes(layer: HiddenLayer, output: Float[Array, "mode"], spread: Float[Array, ""]) -> dict[str, Array]:
    """The fields of `OnModes`."""
    y = layer.y
    return {
        "degree": jnp.asarray(layer.degrees, float),
        "output": output,
        "learnability": over(output, y),
        "total_learnability": output @ y / layer.target.power,
        "spread": spread,
    }


def over(output: Float[Array, "*batch mode"], y: Float[Array, "mode"]) -> Float[Array, "*batch mode"]:
    """output / y, NaN where y is zero."""
    return jnp.where(y == 0, jnp.nan, output / jnp.where(y == 0, 1.0, y))
