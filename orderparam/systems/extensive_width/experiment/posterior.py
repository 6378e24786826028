"""Sampling the posterior of an extensive-width teacher with Hamiltonian Monte Carlo.

    ln p(W | data) = -sum_mu (y_mu - sum_i v_i sigma(w_i . x_mu / sqrt(d)))^2 / (2 Delta) - |W|^2 / 2

without the constant and the linear part of sigma. The rows are rescaled by their expected posterior widths, 1/sqrt(1 + n v_i^2
E sigma'^2 / (d Delta)): the step size is then the same at every size and hierarchy (derived for this package).
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from scipy.optimize import linear_sum_assignment

from orderparam.core.result import Result
from orderparam.core.system import nearest
from orderparam.gaussian import Activation, expectation
from orderparam.sampling import sample
from orderparam.systems.extensive_width.experiment.data import affine_part, draw, output
from orderparam.systems.extensive_width.model import Teacher, WidthLimitedStudent
from orderparam.systems.extensive_width.theory.bayes import bayes_optimal
from orderparam.systems.extensive_width.theory.compression import compressed, effective_teacher

Start = Literal["informed", "partially_informed", "uninformed"]
STARTS = ("informed", "partially_informed", "uninformed")
# A learned feature appears with an overlap of 0.64 (h_3) or more, an unlearned one fluctuates by 1/sqrt(d).
LEARNED = 0.5


class Posterior(Result):
    """Averages over posterior samples; the names it shares with `BayesOptimal` mean the same.

    overlap:              mean of w_i . w_i^0 / d after matching (see `posterior_hmc`).
    error:                half of the Gibbs error, which is the error of the posterior mean (Nishimori identity).
    gibbs_error:          mean of (f_W - f^0)^2 at new inputs over posterior samples W.
    posterior_mean_error: (<f_W> - f^0)^2 with the average over all draws: the same as `error` up to the draws' finite number.
    effective_width:      number of features with overlap above 1/2.
    r_hat, effective_samples: of the Gibbs error, over the chains.
    converged:            R-hat below 1.05 and at least 100 effective samples, of the Gibbs error.
    """

    overlap: Float[Array, "feature"]
    error: Float[Array, ""]
    gibbs_error: Float[Array, ""]
    posterior_mean_error: Float[Array, ""]
    effective_width: Float[Array, ""]
    acceptance: Float[Array, ""]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


def posterior_hmc(
    system: Teacher | WidthLimitedStudent,
    key: PRNGKeyArray,
    start: Start = "informed",
    chains: int = 2,
    warmup: int = 150,
    draws: int = 100,
    thin: int = 2,
    leapfrog_steps: int = 10,
) -> Posterior:
    """One teacher, one data set, and independent chains on its posterior.

    system: a teacher; or a student of limited width, which samples its strongest features only, with the others as noise
        (`effective_teacher`), on data of the whole teacher.
    start:  "informed", at the teacher: lands on the metastable branch where that exists (`informed_state`);
            "partially_informed", the features that the theory calls learned at the teacher and the others from the prior:
            tests that the predicted state is stable, not that it is selected;
            "uninformed", from the prior: stays far above the Bayes error while learning is computationally hard, as it is
            for every activation of information exponent >= 3 at these sample sizes.

    Rows are matched to the teacher's: a row whose mean overlap with another feature exceeds 1/2 is counted there. For an even
    activation, the sign of an overlap carries no meaning and is dropped. Raises `ValueError` for an unknown start or sizes
    that are not integers.
    """
    if start not in STARTS:
        raise ValueError(f"start = {start!r} does not exist{nearest(str(start), list(STARTS))}")
    teacher, seen = (system.teacher, effective_teacher(system)) if isinstance(system, WidthLimitedStudent) else (system, system)
    affine = affine_part(teacher.activation)
    data_key, start_key, chain_key = jax.random.split(key, 3)
    data = draw(teacher, data_key, affine)
    shown = np.asarray(seen.readout)
    rows = np.flatnonzero(shown != 0)
    readout = jnp.asarray(shown[rows])
    truth = data.weights[rows]

    prior = jax.random.normal(start_key, (chains, *truth.shape))
    if start == "uninformed":
        positions = prior
    else:
        known = np.ones(len(rows), bool) if start == "informed" else np.asarray(_predicted_overlap(system))[rows] > 0
        positions = jnp.where(known[:, None], truth, prior)

    slope = expectation(lambda z: (teacher.activation.derivative(z) - affine[1]) ** 2, 1.0, teacher.activation.kinks)
    stiffness = teacher.n_train / teacher.input_dim * readout**2 * slope / seen.noise
    samples = sample(
        Partial(_log_posterior, teacher.activation, affine, readout, jnp.asarray(seen.noise), data.inputs, data.labels),
        positions,
        chain_key,
        method="hmc",
        warmup=warmup,
        samples=draws,
        thin=thin,
        leapfrog_steps=leapfrog_steps,
        scale=jnp.broadcast_to(1 / jnp.sqrt(1 + stiffness)[:, None], truth.shape),
        observe=Partial(_observe, teacher.activation, affine, readout, truth, data.test_inputs, data.test_labels),
    )
    seen_by_draw = samples.observables
    overlap = np.zeros(shown.shape)
    overlap[rows] = _matched(np.asarray(seen_by_draw["overlaps"]), teacher.activation.parity == "even")
    estimate = samples.estimates["gibbs_error"]
    gibbs, left_out = estimate.mean, seen.noise - teacher.noise
    return Posterior(
        overlap=jnp.asarray(overlap),
        error=(gibbs + left_out) / 2,  # features left out are missing once from the mean and from the sample
        gibbs_error=gibbs,
        posterior_mean_error=jnp.mean((jnp.mean(seen_by_draw["prediction"], axis=(0, 1)) - data.test_labels) ** 2),
        effective_width=jnp.asarray(float(np.sum(overlap > LEARNED))),
        acceptance=jnp.mean(samples.acceptance_rate),
        r_hat=estimate.r_hat,
        effective_samples=estimate.ess,
        converged=estimate.reliable,
    )


def _predicted_overlap(system: Teacher | WidthLimitedStudent) -> Float[Array, "feature"]:
    return compressed(system).overlap if isinstance(system, WidthLimitedStudent) else bayes_optimal(system).overlap


def _log_posterior(
    activation: Activation,
    affine: tuple[Array, Array],
    readout: Array,
    noise: Array,
    inputs: Array,
    labels: Array,
    weights: Float[Array, "feature input"],
) -> Float[Array, ""]:
    misfit = labels - output(activation, affine, readout, weights, inputs)
    return -jnp.sum(misfit**2) / (2 * noise) - jnp.sum(weights**2) / 2


def _observe(
    activation: Activation,
    affine: tuple[Array, Array],
    readout: Array,
    truth: Array,
    inputs: Array,
    labels: Array,
    weights: Float[Array, "feature input"],
) -> dict[str, Array]:
    prediction = output(activation, affine, readout, weights, inputs)
    return {
        "overlaps": weights @ truth.T / truth.shape[1],
        "gibbs_error": jnp.mean((prediction - labels) ** 2),
        "prediction": prediction,
    }


def _matched(overlaps: np.ndarray, even: bool) -> np.ndarray:
    """Mean overlap of each teacher feature with the row that stands for it; overlaps: (chain, draw, row, feature)."""
    found = []
    for one in overlaps.mean(axis=1):
        size = np.abs(one) if even else one
        identity = 1e-3 * np.eye(len(one))  # rows that stand for no feature keep their own
        row, feature = linear_sum_assignment(np.where(size > LEARNED, size, 0.0) + identity, maximize=True)
        matched = np.empty(len(one))
        matched[feature] = size[row, feature]
        found.append(matched)
    return np.mean(found, axis=0)


