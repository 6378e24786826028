"""Noisy training of a finite network on one fixed training set, and the Gaussian process that it samples at infinite width.

Langevin training at temperature T with weight decay T / (prior variance) on the loss L = 1/2 sum_mu (f(x_mu) - y_mu)^2,

    d theta = -(gamma theta + dL/d theta) dt + sqrt(2T) dB,

has the stationary density exp(-L/T) times the prior of the weights: the Bayesian posterior at noise variance T.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.system import System, parameter
from orderparam.kernels.gp import condition
from orderparam.networks.architecture import Architecture
from orderparam.sampling import sample
from orderparam.systems.kernel_regression.experiment import of_width


class NetworkTraining(System):
    """One training set, a network that learns it at a temperature, and the test points at which its output is recorded.

    inputs, targets: (train, input_dim) and (train,); test_inputs: (test, input_dim).
    architecture:    one output, in ntk scaling; where it leaves widths open, `width` fills them.
    """

    inputs: Float[Array, "train input"]
    targets: Float[Array, "train"]
    test_inputs: Float[Array, "test input"]
    architecture: Architecture
    temperature: float = parameter("Langevin temperature T, the noise variance of the posterior", above=0)
    width: int = parameter("width of all hidden layers that the architecture leaves open", minimum=1, integer=True, default=100)
    curvature_step: float = parameter(
        "Langevin step dt times the largest curvature, 1 + (largest eigenvalue of the tangent kernel)/T",
        above=0,
        below=2,
        default=0.1,
    )

    def __check_init__(self) -> None:
        shapes = {name: jnp.shape(getattr(self, name)) for name in ("inputs", "targets", "test_inputs")}
        train, targets, test = shapes.values()
        if len(train) != 2 or len(test) != 2 or targets != train[:1] or test[1:] != train[1:]:
            raise ValueError(
                f"NetworkTraining has arrays of shapes {shapes}: must be (train, input_dim), (train,) and (test, input_dim)"
            )


class FunctionPosterior(Result):
    """Posterior of the network's output f at the test points: its mean, its variance and its covariance."""

    mean: Float[Array, "test"]
    variance: Float[Array, "test"]
    covariance: Float[Array, "test other_test"]


class SampledPosterior(FunctionPosterior):
    """The same, from sampled networks.

    r_hat, ess: worst over test points. step_size: of the integrator. inflation: factor by which the Langevin step may inflate
    variances at most, 1/(1 - dt A/2) with A the largest curvature where the chains ended; 1 for exact methods.
    """

    r_hat: Float[Array, ""]
    ess: Float[Array, ""]
    step_size: Float[Array, ""]
    inflation: Float[Array, ""]
    converged: Bool[Array, ""]


def gaussian_process(system: NetworkTraining) -> FunctionPosterior:
    """Infinite width: mean k^T (K + T)^-1 y, covariance K(x, x') - k(x)^T (K + T)^-1 k(x') (Neal 1996; Williams 1997)."""
    kernel = system.architecture.nngp
    conditioned = condition(kernel(system.inputs), system.targets, system.temperature)
    cross = kernel(system.test_inputs, system.inputs)
    covariance = conditioned.covariance(cross, kernel(system.test_inputs))
    return FunctionPosterior(conditioned.mean(cross), jnp.diagonal(covariance), covariance)


def largest_curvature(system: NetworkTraining) -> Float[Array, ""]:
    """Of the potential L/T + |u|^2/2 in weights u of unit prior, all layers sampled: 1 + (largest eigenvalue of Theta)/T.

    Theta is the tangent kernel of the infinitely wide network on the training set. Sampling the read-out alone, K would stand in
    its place and the step could be longer.
    """
    tangent = system.architecture.kernel(system.inputs).ntk
    return 1 + jnp.linalg.eigvalsh(tangent)[-1] / system.temperature


def langevin(
    system: NetworkTraining, key: PRNGKeyArray, *, chains: int = 4, samples: int = 180, thin: int = 60, warmup: int = 2400
) -> SampledPosterior:
    """Euler steps u <- u - dt grad U + sqrt(2 dt) xi, every step taken, from independent prior draws.

    All weights are sampled, in units of their prior: theta = (prior standard deviation) u, U = L/T + |u|^2/2, which is the
    equation above with its time in units of 1/gamma. dt = curvature_step / A with A the `largest_curvature`: the discretisation
    inflates the variance of a mode of curvature A_i by 1/(1 - dt A_i/2), exactly so where the features are frozen. The slowest
    directions, held by the prior alone, are forgotten in one unit of time, 1/dt steps: `warmup` should be some 1/dt, `thin` a
    fraction of it.
    """
    step = float(system.curvature_step / largest_curvature(system))
    return _sampled(
        system, key, method="langevin", chains=chains, samples=samples, step_size=step, thin=thin, warmup=warmup
    )


def hamiltonian(system: NetworkTraining, key: PRNGKeyArray, *, chains: int = 4, samples: int = 400) -> SampledPosterior:
    """The same posterior by Hamiltonian Monte Carlo on all weights, without discretisation error."""
    return _sampled(system, key, method="hmc", chains=chains, samples=samples, warmup=200, leapfrog_steps=12)


def _sampled(system: NetworkTraining, key: PRNGKeyArray, **options: Any) -> SampledPosterior:
    architecture = of_width(system.architecture, int(system.width))
    problem = _Problem(architecture, system.inputs, system.targets, system.test_inputs, jnp.asarray(system.temperature, float))
    drawn = sample(
        jax.tree_util.Partial(_Problem.log_density, problem),
        lambda chain_key: architecture.draw(chain_key, int(system.inputs.shape[1])),
        key,
        observe=jax.tree_util.Partial(_Problem.outputs, problem),
        **options,
    )
    values = drawn.observables["test"].reshape(-1, system.test_inputs.shape[0])
    covariance = jnp.cov(values, rowvar=False, ddof=1)
    return SampledPosterior(
        mean=jnp.mean(values, axis=0),
        variance=jnp.diagonal(covariance),
        covariance=covariance,
        r_hat=jnp.max(drawn.r_hat["test"]),
        ess=jnp.min(drawn.ess["test"]),
        step_size=jnp.mean(drawn.step_size),
        inflation=jnp.max(drawn.variance_inflation),
        converged=drawn.converged,
    )


class _Problem(eqx.Module):
    architecture: Architecture
    inputs: Float[Array, "train input"]
    targets: Float[Array, "train"]
    test_inputs: Float[Array, "test input"]
    temperature: Float[Array, ""]

    def log_density(self, whitened: Any) -> Float[Array, ""]:
        loss = 0.5 * jnp.sum((self.architecture.apply(whitened, self.inputs)[:, 0] - self.targets) ** 2)
        return -loss / self.temperature - 0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(whitened))

    def outputs(self, whitened: Any) -> dict[str, Float[Array, "test"]]:
        return {"test": self.architecture.apply(whitened, self.test_inputs)[:, 0]}
