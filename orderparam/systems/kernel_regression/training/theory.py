"""The Gaussian process that noisy training samples at infinite width, and how stiff its posterior
is.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.kernels.gp import condition
from orderparam.systems.kernel_regression.training.model import FunctionPosterior, NetworkTraining


@theory
def gaussian_process(system: NetworkTraining) -> FunctionPosterior:
    """Infinite width: mean k^T (K + T)^-1 y, covariance K(x, x') - k(x)^T (K + T)^-1 k(x') (Neal
    1996; Williams 1997).
    """
    kernel = system.architecture.nngp
    conditioned = condition(kernel(system.inputs), system.targets, system.temperature)
    cross = kernel(system.test_inputs, system.inputs)
    covariance = conditioned.covariance(cross, kernel(system.test_inputs))
    found = jnp.isfinite(conditioned.log_evidence)
    return FunctionPosterior(conditioned.mean(cross), jnp.diagonal(covariance), covariance, found)


def largest_curvature(system: NetworkTraining) -> Float[Array, ""]:
    """Of the potential L/T + |u|^2/2 in weights u of unit prior, all layers sampled: 1 + (largest
    eigenvalue of Theta)/T.

    Theta is the tangent kernel of the infinitely wide network on the training set. Sampling the
    read-out alone, K would stand in its place and the step could be longer.
    """
    tangent = system.architecture.kernel(system.inputs).ntk
    return 1 + jnp.linalg.eigvalsh(tangent)[-1] / system.temperature
