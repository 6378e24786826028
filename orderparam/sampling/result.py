"""The health of the Markov chains in every result of a sampler."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.sampling.estimate import Estimate
from orderparam.sampling.samples import Samples


class FromChains(Result):
    """Health of the chains. acceptance_rate: mean over the chains. r_hat, effective_samples: the
    worst over the observables that a result names. converged: R-hat < 1.05 and at least 100
    effective samples of all of them."""

    acceptance_rate: Float[Array, ""]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


def of_chains(run: Samples, health: Estimate) -> dict[str, Array]:
    """The fields of `FromChains`; observables that never change are left out."""
    both = ((health.r_hat, 1.0), (health.effective_samples, jnp.inf))
    r_hat, effective_samples = (jnp.where(health.constant, idle, part) for part, idle in both)
    return {
        "acceptance_rate": jnp.mean(run.acceptance_rate),
        "r_hat": jnp.max(r_hat),
        "effective_samples": jnp.min(effective_samples),
        "converged": jnp.all(health.reliable | health.constant),
    }
