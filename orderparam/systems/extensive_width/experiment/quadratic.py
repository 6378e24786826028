"""The posterior of a teacher with a quadratic component, sampled from the teacher and from the prior."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.sampling.result import FromChains, of_chains
from orderparam.systems.extensive_width.experiment.chains import KnownNetwork, matched, mean_prediction_error, run
from orderparam.systems.extensive_width.experiment.data import affine_part, draw
from orderparam.systems.extensive_width.model import QuadraticTeacher


class CollectivePosterior(FromChains):
    """Averages over posterior samples; the names it shares with `CollectiveOptimal` mean the same.

    overlap:              mean of w_i . w_i^0 / |w_i^0|^2 after matching, in decreasing order of |v_i|.
    quadratic_overlap:    of the fluctuating part of S = sum_a v_a w_a w_a^T / sqrt(k d) with that of the teacher, relative to
                          the latter's square.
    error:                half of the Gibbs error, which is the error of the posterior mean (Nishimori identity).
    posterior_mean_error: (<f_W> - f^0)^2 with the average over all draws.
    r_hat, effective_samples, converged: of the Gibbs error, over the chains.
    """

    overlap: Float[Array, "feature"]
    quadratic_overlap: Float[Array, ""]
    error: Float[Array, ""]
    posterior_mean_error: Float[Array, ""]


@experiment
def quadratic_posterior_hmc(
    system: QuadraticTeacher,
    key: PRNGKeyArray,
    *,
    start: Literal["informed", "uninformed"] = "informed",
    chains: int = 4,
    warmup: int = 100,
    draws: int = 100,
    thin: int = 1,
    leapfrog_steps: int = 30,
) -> CollectivePosterior:
    """One teacher drawn from the prior, one data set, and independent chains on its posterior.

    Started at the teacher, chains stay in the specialised state where that exists; from the prior, they reach the universal one
    and take a time to specialise that grows fast with the dimension. A finite network also has Q = 0 only up to 1/sqrt(d), and
    an informed start keeps track of which row is which where the state is symmetric under their exchange.

    Raises `ValueError` for a number of samples that is not whole.
    """
    affine = affine_part(system.activation)
    data_key, start_key, chain_key = jax.random.split(key, 3)
    data = draw(system, data_key, affine, orthogonal=False)
    prior = jax.random.normal(start_key, (chains, *data.weights.shape))
    positions = jnp.broadcast_to(data.weights, prior.shape) if start == "informed" else prior
    network = KnownNetwork(system.activation, affine, system.readout, system.noise)
    lengths = {"warmup": warmup, "samples": draws, "thin": thin, "leapfrog_steps": leapfrog_steps}
    samples = run(network, data, data.weights, positions, chain_key, **lengths)
    own = data.weights @ data.weights.T / data.weights.shape[1]
    norm = system.readout @ own**2 @ system.readout - jnp.sum(system.readout) ** 2 / data.weights.shape[1]
    estimate = samples.estimates["gibbs_error"]
    overlap = matched(np.asarray(samples.observables["overlaps"]), system.activation.parity == "even")
    return CollectivePosterior(
        overlap=jnp.asarray(np.mean(overlap, axis=0)),
        quadratic_overlap=samples.estimates["quadratic"].mean / norm,
        error=estimate.mean / 2,
        posterior_mean_error=mean_prediction_error(samples, data),
        **of_chains(samples, estimate),
    )
