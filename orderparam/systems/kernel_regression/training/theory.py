"""The Gaussian process that noisy training samples at infinite width, and the largest curvature of
its posterior.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.kernels.gp import condition
from orderparam.systems.kernel_regression.training.model import FunctionPosterior, NetworkTraining


@theory
def gaussian_process(system: NetworkTraining) -> FunctionPosterior:
    r"""Posterior of the output of an infinitely wide network at the test points.

    $$ E f(x) = k(x)^T (K + T)^{-1} y, \qquad
       \mathrm{Cov}(f(x), f(x')) = K(x, x') - k(x)^T (K + T)^{-1} k(x') $$

    with K the NNGP kernel of `architecture` on the training inputs, k(x) the vector of kernel
    values of x with them, y = `targets` and T the `temperature`. `mean` and `covariance` are these
    functions at `test_inputs`.

    Accuracy: exact at infinite width, to rounding.

    Source: Neal (1996); Lee et al. (2018).

    >>> import numpy as np
    >>> from orderparam.networks import fully_connected
    >>> network = fully_connected(1, None, "relu")
    >>> training = NetworkTraining(np.eye(2), [1.0, -1.0], np.eye(2), network, 0.5)
    >>> np.asarray(gaussian_process(training).mean).round(6).tolist()
    [0.254202, -0.254202]
    """
    kernel = system.architecture.nngp
    conditioned = condition(kernel(system.inputs), system.targets, system.temperature)
    cross = kernel(system.test_inputs, system.inputs)
    covariance = conditioned.covariance(cross, kernel(system.test_inputs))
    found = jnp.isfinite(conditioned.log_evidence)
    return FunctionPosterior(
        mean=conditioned.mean(cross),
        variance=jnp.diagonal(covariance),
        covariance=covariance,
        converged=found,
    )


def largest_curvature(system: NetworkTraining) -> Float[Array, ""]:
    r"""Largest curvature of the potential L/T + |u|^2/2, with weights u of unit prior variance and
    all layers sampled.

    $$ A = 1 + \lambda_{\max}(\Theta) / T $$

    with $\Theta$ the tangent kernel of the infinitely wide network on the training set. If only the
    read-out were sampled, the NNGP kernel would replace $\Theta$, and the step could be longer.

    Source: derived here.
    """
    tangent = system.architecture.kernel(system.inputs).ntk
    return 1 + jnp.linalg.eigvalsh(tangent)[-1] / system.temperature
