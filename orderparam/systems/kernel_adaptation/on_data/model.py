"""Bayesian two-layer networks on given training sets."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.fields import parameter
from orderparam.core.result import Result
from orderparam.systems.kernel_adaptation.network import AdaptiveNetwork


class NetworkOnData(AdaptiveNetwork):
    r"""A Bayesian two-layer network on a given training set, with test points.

    $$ f(x) = \sum_{c=1}^{N} a_c\, \phi(w_c \cdot x), \qquad w_c \sim N(0, v/d), \qquad
       a_c \sim N(0, s/N) $$

    with N = `width`, v = `weight_variance`, s = `readout_variance`, and the likelihood
    $\exp\{-\sum_\mu (f(x_\mu) - y_\mu)^2 / (2T)\}$ at T = `temperature`. The first input axis is
    called the teacher's direction $w_*$.

    Source: Seroussi, Naveh, Ringel (2023).

    >>> data = NetworkOnData(np.eye(3), [1.0, 0.0, -1.0], np.eye(3), [1.0, 0.0, -1.0], 8, 0.1)
    >>> data.inputs.shape
    (3, 3)
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
    """Refuse networks with several hidden layers, of which a two-layer theory would use the first
    layer alone.

    Raises:
        ValueError: for such a network.
    """
    widths = getattr(system, "relative_widths", (1.0,))
    if widths != (1.0,):
        raise ValueError(
            f"{type(system).__name__}.relative_widths = {widths}: must be (1.0,), one hidden "
            "layer; deeper networks have the theories `deep_gaussian_layers` and "
            "`deep_gaussian_process`"
        )


# ------------------------------------------------------------------------------------------------
# The observables of every prediction for a given training set, from a theory or from sampling.


class OnTestSet(Result):
    """The posterior mean of the network's output at the test points, and the covariance of its
    input weights.

    Fields:
        mean: posterior mean of f at the test points.
        total_learnability: mean . y / y . y at the test points.
        test_error: mean of (mean - y)^2, without the posterior variance.
        projections: R_p = mean . He_p(z) / y . He_p(z) for p = 1, 2, 3, with z = w_* . x at the
            test points and w_* the first input axis. R_p has no meaning if the target has no
            component He_p.
        spread: first diagonal entry of `covariance`.
        covariance: d Sigma / v of the input weights, with Sigma their covariance and v the weight
            variance; the unit matrix without adaptation.
        eigenvalues: eigenvalues of `covariance` in decreasing order.
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
