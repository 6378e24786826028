"""What every theory averaged over data returns, from the kernel on the modes."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import is_number
from orderparam.systems.kernel_adaptation.patches.model import PatchNetwork
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork

AveragedNetwork = TwoLayerNetwork | PatchNetwork
Theory = TypeVar("Theory", bound=Callable[..., Any])


def compiled(theory: Theory) -> Theory:
    """The theory compiled once for given options, whatever the numbers of the system."""
    inner = eqx.filter_jit(theory)

    @wraps(theory)
    def call(system: Any, *args: Any, **options: Any) -> Any:
        return inner(jax.tree.map(lambda leaf: jnp.asarray(leaf, float) if is_number(leaf) else leaf, system), *args, **options)

    return cast(Theory, call)


class Prediction(Result):
    """The mean output of the network on the modes h_k of the target direction.

    degree:       k of each mode.
    output:       f_k = E f h_k, f the posterior mean.
    learnability: f_k / y_k; NaN where the target has no such component.
    total_learnability: E f y / E y^2.
    spread:       d <rho^2> / weight_variance, 1 without adaptation.
    eigenvalue_ratio: of the kernel, on h_1 over on linear functions across w_*: 1 without adaptation; NaN where h_1 is not kept.
    ridge_ratio:  effective ridge over T/n: above 1.1 the bare ridge is not reliable (see `theory.ridge`).
    """

    degree: Float[Array, "mode"]
    output: Float[Array, "mode"]
    learnability: Float[Array, "mode"]
    total_learnability: Float[Array, ""]
    spread: Float[Array, ""]
    eigenvalue_ratio: Float[Array, ""]
    ridge_ratio: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def shares(system: TwoLayerNetwork, output: Float[Array, "mode"]) -> dict[str, Array]:
    """The fields that follow from f_k."""
    degrees = system.kept
    y = system.coefficients(degrees)
    return {
        "degree": jnp.asarray(degrees, float),
        "output": output,
        "learnability": jnp.where(y == 0, jnp.nan, output / jnp.where(y == 0, 1.0, y)),
        "total_learnability": output @ y / system.power,
    }


def eigenvalue_ratio(degrees: tuple[int, ...], kernel: Float[Array, "mode mode"], perpendicular: Array) -> Float[Array, ""]:
    """M_11 over the eigenvalue across w_*."""
    if 1 not in degrees:
        return jnp.asarray(jnp.nan)
    first = degrees.index(1)
    return kernel[first, first] / perpendicular


def regression(
    kernel: Float[Array, "mode mode"], y: Float[Array, "mode"], ridge: Float[Array, ""]
) -> tuple[Float[Array, "mode"], Float[Array, "mode"]]:
    """tau = (M + lambda)^{-1} y and f = y - lambda tau."""
    tau = jnp.linalg.solve(kernel + ridge * jnp.eye(y.shape[0]), y)
    return tau, kernel @ tau
