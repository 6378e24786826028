"""What every prediction for a given training set returns, from theory or from sampling."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.result import Result
from orderparam.systems.kernel_adaptation.on_data.model import NetworkOnData


class OnTestSet(Result):
    """The posterior mean of the network's output at the test points, and how much of the target it holds.

    mean: at the test points. total_learnability: mean . y / y . y there. test_error: mean of (mean - y)^2, without the variance.
    projections: R_p = mean . He_p(z) / y . He_p(z) for p = 1, 2, 3 (normalised or not), z = w_* . x at the test points; the first
        input axis is w_*. Meaningless where the target has no such component.
    covariance: d Sigma / v of the input weights (v the weight variance); eigenvalues: its own, in decreasing order. 1 without
        adaptation; the first diagonal entry is what the other theories call `spread`.
    """

    mean: Float[Array, "test"]
    total_learnability: Float[Array, ""]
    test_error: Float[Array, ""]
    projections: Float[Array, "degree"]
    spread: Float[Array, ""]
    covariance: Float[Array, "input other"]
    eigenvalues: Float[Array, "input"]


def on_test_set(system: NetworkOnData, mean: Float[Array, "test"], covariance: Float[Array, "input other"]) -> dict[str, Array]:
    """The fields of `OnTestSet`."""
    y, z = system.test_targets, system.test_inputs[:, 0]
    polynomials = jnp.stack([z, z**2 - 1, z**3 - 3 * z])
    return {
        "mean": mean,
        "total_learnability": mean @ y / (y @ y),
        "test_error": jnp.mean((mean - y) ** 2),
        "projections": polynomials @ mean / (polynomials @ y),
        "spread": covariance[0, 0],
        "covariance": covariance,
        "eigenvalues": jnp.linalg.eigvalsh(covariance)[::-1],
    }
