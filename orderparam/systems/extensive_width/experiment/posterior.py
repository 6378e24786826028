"""The posterior of an extensive-width teacher, sampled from several kinds of start."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.sampling.result import FromChains, of_chains
from orderparam.systems.extensive_width.experiment.chains import LEARNED, KnownNetwork, matched, mean_prediction_error, run
from orderparam.systems.extensive_width.experiment.data import affine_part, draw
from orderparam.systems.extensive_width.model import Teacher, WidthLimitedStudent
from orderparam.systems.extensive_width.theory.bayes import bayes_optimal
from orderparam.systems.extensive_width.theory.compression import compressed, effective_teacher

Start = Literal["informed", "partially_informed", "uninformed"]


class PosteriorAverages(FromChains):
    """Averages over posterior samples; the names it shares with `BayesOptimal` mean the same.

    overlap:              mean of w_i . w_i^0 / d after matching (see `posterior_hmc`).
    error:                half of the Gibbs error, which is the error of the posterior mean (Nishimori identity).
    gibbs_error:          mean of (f_W - f^0)^2 at new inputs over posterior samples W.
    posterior_mean_error: (<f_W> - f^0)^2 with the average over all draws: the same as `error` up to the draws' finite number.
    effective_width:      number of features with overlap above 1/2.
    chain_error, chain_width: the same two of every chain alone.
    coexisting:           whether chains hold different sets of features: at sizes where a feature is both stable and absent, each
                          chain samples a state of its own. R-hat then tells how far apart these are, and the averages weigh
                          them by how chains were started, not by their probabilities.
    r_hat, effective_samples, converged: of the Gibbs error, over the chains.
    """

    overlap: Float[Array, "feature"]
    error: Float[Array, ""]
    gibbs_error: Float[Array, ""]
    posterior_mean_error: Float[Array, ""]
    effective_width: Float[Array, ""]
    chain_error: Float[Array, "chain"]
    chain_width: Float[Array, "chain"]
    coexisting: Bool[Array, ""]


@experiment
def posterior_hmc(
    system: Teacher | WidthLimitedStudent,
    key: PRNGKeyArray,
    *,
    start: Start = "informed",
    chains: int = 4,
    warmup: int = 100,
    draws: int = 100,
    thin: int = 1,
    leapfrog_steps: int = 30,
) -> PosteriorAverages:
    """One teacher, one data set, and independent chains on its posterior.

    system: a teacher; or a student of limited width, which samples its strongest features only, with the others as noise
        (`effective_teacher`), on data of the whole teacher.
    start:  "informed", at the teacher: lands on the metastable branch where that exists (`informed_state`);
            "partially_informed", the features that the theory calls learned at the teacher and the others from the prior:
            tests that the predicted state is stable, not that it is selected;
            "uninformed", from the prior: stays far above the Bayes error while learning is computationally hard, as it is
            for every activation of information exponent >= 3 at these sample sizes.

    Rows are matched to the teacher's: a row whose mean overlap with another feature exceeds 1/2 is counted there. For an even
    activation, the sign of an overlap carries no meaning and is dropped. Raises `ValueError` for sizes that are not
    whole numbers.
    """
    teacher, seen = (system.teacher, effective_teacher(system)) if isinstance(system, WidthLimitedStudent) else (system, system)
    affine = affine_part(teacher.activation)
    data_key, start_key, chain_key = jax.random.split(key, 3)
    data = draw(teacher, data_key, affine)
    shown = np.asarray(seen.readout)
    rows = np.flatnonzero(shown != 0)
    truth = data.weights[rows]

    prior = jax.random.normal(start_key, (chains, *truth.shape))
    if start == "uninformed":
        positions = prior
    else:
        known = np.ones(len(rows), bool)
        if start == "partially_informed":
            solved = compressed(system) if isinstance(system, WidthLimitedStudent) else bayes_optimal(system)
            known = np.asarray(solved.overlap)[rows] > 0
        positions = jnp.where(known[:, None], truth, prior)

    network = KnownNetwork(teacher.activation, affine, jnp.asarray(shown[rows]), seen.noise)
    lengths = {"warmup": warmup, "samples": draws, "thin": thin, "leapfrog_steps": leapfrog_steps}
    samples = run(network, data, truth, positions, chain_key, **lengths)
    overlap = np.zeros((chains, *shown.shape))
    overlap[:, rows] = matched(np.asarray(samples.observables["overlaps"]), teacher.activation.parity == "even")
    estimate = samples.estimates["gibbs_error"]
    gibbs, left_out = jnp.mean(samples.observables["gibbs_error"], axis=1), seen.noise - teacher.noise
    learned = overlap > LEARNED
    mean = overlap.mean(axis=0)
    return PosteriorAverages(
        overlap=jnp.asarray(mean),
        error=(estimate.mean + left_out) / 2,  # features left out are missing once from the mean and from the sample
        gibbs_error=estimate.mean,
        posterior_mean_error=mean_prediction_error(samples, data),
        effective_width=jnp.asarray(float(np.sum(mean > LEARNED))),
        chain_error=(gibbs + left_out) / 2,
        chain_width=jnp.asarray(learned.sum(axis=1), float),
        coexisting=jnp.asarray(bool(np.any(learned != learned[0]))),
        **of_chains(samples, estimate),
    )
