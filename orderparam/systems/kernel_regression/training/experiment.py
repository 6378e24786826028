"""Networks of finite width sampled from the posterior by noisy training, and without its
discretisation error.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.networks.architecture import Architecture
from orderparam.sampling import sample
from orderparam.systems.kernel_regression.training.model import (
    FunctionPosterior,
    NetworkTraining,
    of_width,
)
from orderparam.systems.kernel_regression.training.theory import largest_curvature


class SampledPosterior(FunctionPosterior):
    """The same, from sampled networks.

    r_hat, effective_samples: worst over test points. step_size: of the integrator. inflation:
    factor by which the Langevin step may inflate variances at most, 1/(1 - dt A/2) with A the
    largest curvature where the chains ended; 1 for exact methods.
    """

    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    step_size: Float[Array, ""]
    inflation: Float[Array, ""]


@experiment
def langevin(
    system: NetworkTraining,
    key: PRNGKeyArray,
    *,
    chains: int = 4,
    draws: int = 180,
    thin: int = 60,
    warmup: int = 2400,
) -> SampledPosterior:
    """Euler steps u <- u - dt grad U + sqrt(2 dt) xi, every step taken, from independent prior
    draws.

    All weights are sampled, in units of their prior: theta = (prior standard deviation) u, U = L/T
    + |u|^2/2, which is the equation of `training.model` with its time in units of 1/gamma. dt =
    curvature_step / A with A the `largest_curvature`: the discretisation inflates the variance of a
    mode of curvature A_i by 1/(1 - dt A_i/2), exactly so where the features are frozen. The slowest
    directions, held by the prior alone, are forgotten in one unit of time, 1/dt steps: `warmup`
    should be some 1/dt, `thin` a fraction of it.
    """
    step = float(system.curvature_step / largest_curvature(system))
    return _sampled(
        system,
        key,
        method="langevin",
        chains=chains,
        samples=draws,
        step_size=step,
        thin=thin,
        warmup=warmup,
    )


@experiment
def hamiltonian(
    system: NetworkTraining, key: PRNGKeyArray, *, chains: int = 4, draws: int = 400
) -> SampledPosterior:
    """The same posterior by Hamiltonian Monte Carlo on all weights, without discretisation
    error."""
    return _sampled(
        system, key, method="hmc", chains=chains, samples=draws, warmup=200, leapfrog_steps=12
    )


def _sampled(system: NetworkTraining, key: PRNGKeyArray, **options: Any) -> SampledPosterior:
    architecture = of_width(system.architecture, system.size("width"))
    problem = _Problem(
        architecture, system.inputs, system.targets, system.test_inputs, system.temperature
    )
    drawn = sample(
        jax.tree_util.Partial(_Problem.log_density, problem),
        lambda chain_key: architecture.draw(chain_key, system.inputs.shape[1]),
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
        effective_samples=jnp.min(drawn.effective_samples["test"]),
        step_size=jnp.mean(drawn.step_size),
        inflation=jnp.max(drawn.variance_inflation),
        converged=drawn.converged,
    )


class _Problem(eqx.Module):
    architecture: Architecture
    inputs: Float[Array, "train input"]
    targets: Float[Array, "train"]
    test_inputs: Float[Array, "test input"]
    temperature: Float[Array, ""] | float

    def log_density(self, whitened: Any) -> Float[Array, ""]:
        loss = 0.5 * jnp.sum(
            (self.architecture.apply(whitened, self.inputs)[:, 0] - self.targets) ** 2
        )
        return -loss / self.temperature - 0.5 * sum(
            jnp.sum(leaf**2) for leaf in jax.tree.leaves(whitened)
        )

    def outputs(self, whitened: Any) -> dict[str, Float[Array, "test"]]:
        return {"test": self.architecture.apply(whitened, self.test_inputs)[:, 0]}
