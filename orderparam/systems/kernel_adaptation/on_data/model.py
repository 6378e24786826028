"""Bayesian two-layer networks on given training sets."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.fields import parameter
from orderparam.core.result import Result
from orderparam.systems.kernel_adaptation.network import AdaptiveNetwork


class NetworkOnData(AdaptiveNetwork):
    """f(x) = sum_c a_c phi(w_c . x) on a given training set, with test points; the weights' law is
    that of `network`.
    """

    inputs: Float[Array, "train input"] = parameter("training inputs")
    targets: Float[Array, "train"] = parameter("their targets")
    test_inputs: Float[Array, "test input"] = parameter("test inputs")
    test_targets: Float[Array, "test"] = parameter("their targets")
    width: float = parameter("number of hidden units N", above=0)
    temperature: float = parameter(
        "Langevin temperature T: variance of the observation noise", above=0
    )
    readout_variance: float = parameter("prior variance of sqrt(N) a_c", above=0, default=1.0)
    weight_variance: float = parameter("prior variance of |w_c|, E |w_c|^2", above=0, default=1.0)


def two_layers(system: NetworkOnData, **_: object) -> None:
    """Refuses the deeper networks that are built on this one, for what would see their first layer
    alone.
    """
    widths = getattr(system, "relative_widths", (1.0,))
    if widths != (1.0,):
        raise ValueError(
            f"{type(system).__name__}.relative_widths = {widths}: must be (1.0,), one hidden layer; deeper networks have the "
            "theories `deep_gaussian_layers` and `deep_gaussian_process`"
        )


# ------------------------------------------------------------------------------------------------
# What every prediction for a given training set returns, from theory or from sampling.


class OnTestSet(Result):
    """The posterior mean of the network's output at the test points, and how much of the target it
    holds.

    mean: at the test points. total_learnability: mean . y / y . y there. test_error: mean of (mean
    - y)^2, without the variance. projections: R_p = mean . He_p(z) / y . He_p(z) for p = 1, 2, 3
    (normalised or not), z = w_* . x at the test points; the first
        input axis is w_*. Meaningless where the target has no such component.
    covariance: d Sigma / v of the input weights (v the weight variance); eigenvalues: its own, in
    decreasing order. 1 without
        adaptation; the first diagonal entry is what the other theories call `spread`.
    """

    mean: Float[Array, "test"]
    total_learnability: Float[Array, ""]
    test_error: Float[Array, ""]
    projections: Float[Array, "degree"]
    spread: Float[Array, ""]
    covariance: Float[Array, "input other"]
    eigenvalues: Float[Array, "input"]


def on_test_set(
    system: NetworkOnData, mean: Float[Array, "test"], covariance: Float[Array, "input other"]
) -> dict[str, Array]:
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
