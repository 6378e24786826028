"""Noisy training of a finite network on one fixed training set. At infinite width this training
samples a Gaussian process.

Langevin training at temperature T with weight decay T / (prior variance) on the loss L = 1/2 sum_mu
(f(x_mu) - y_mu)^2,

    d theta = -(gamma theta + dL/d theta) dt + sqrt(2T) dB,

has the stationary density exp(-L/T) times the prior of the weights: the Bayesian posterior at noise
variance T.
"""

from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import System, parameter, part
from orderparam.networks.architecture import Architecture


class NetworkTraining(System):
    r"""One training set, a finite network that learns it at a temperature, and test points at which
    its output is recorded.

    Langevin training with weight decay $\gamma$ = T / (prior variance) on the loss $L = \frac12
    \sum_\mu (f(x_\mu) - y_\mu)^2$,

    $$ d\theta = -(\gamma \theta + \nabla L)\, dt + \sqrt{2T}\, dB, $$

    has the stationary density $e^{-L/T}$ times the prior of the weights: the posterior at noise
    variance T (`temperature`).

    Source: Naveh et al. (2021).

    >>> import numpy as np
    >>> from orderparam.networks import fully_connected
    >>> network = fully_connected(1, None, "relu")
    >>> training = NetworkTraining(np.eye(2), [1.0, -1.0], np.eye(2), network, 0.5)
    >>> float(training.curvature_step)
    0.1
    """

    inputs: Float[Array, "train input"] = parameter("training inputs")
    targets: Float[Array, "train"] = parameter("their targets")
    test_inputs: Float[Array, "test input"] = parameter("inputs at which the output is recorded")
    architecture: Architecture = part(
        "one output, ntk scaling; where it leaves widths open, `width` fills them"
    )
    temperature: float = parameter(
        "Langevin temperature T, the noise variance of the posterior", above=0
    )
    width: int = parameter(
        "width of all hidden layers that the architecture leaves open",
        minimum=1,
        integer=True,
        default=100,
    )
    curvature_step: float = parameter(
        "Langevin step dt times the largest curvature A = 1 + (largest eigenvalue of the tangent "
        "kernel)/T",
        above=0,
        below=2,
        default=0.1,
    )


class FunctionPosterior(Result):
    """Posterior of the network's output f at the test points.

    Fields:
        mean: posterior mean of f at every test point.
        variance: posterior variance of f at every test point.
        covariance: posterior covariance of f at every pair of test points.
        converged: for the Gaussian process, whether K + T could be factorised; for sampled
            networks, whether the chains mixed.
    """

    mean: Float[Array, "test"]
    variance: Float[Array, "test"]
    covariance: Float[Array, "test other_test"]
    converged: Bool[Array, ""]
