"""The posterior of an extensive-width teacher, sampled by Hamiltonian Monte Carlo from informed,
partially informed or uninformed initial states.
"""

from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.late import linear_sum_assignment
from orderparam.core.verb import experiment
from orderparam.gaussian import Activation, expectation
from orderparam.sampling import doubled, sample
from orderparam.sampling.result import FromChains, of_chains
from orderparam.sampling.samples import Samples
from orderparam.systems.extensive_width.experiment import (
    Affine,
    TeacherData,
    affine_part,
    draw,
    output,
)
from orderparam.systems.extensive_width.model import QuadraticTeacher, Teacher, WidthLimitedStudent
from orderparam.systems.extensive_width.theory import bayes_optimal, compressed, effective_teacher

# ------------------------------------------------------------------------------------------------
# Hamiltonian Monte Carlo on the posterior of a network with known read-outs.
#
#     ln p(W | data) = -sum_mu (y_mu - sum_i v_i (sigma(z_i) - c_0 - c_1 z_i))^2 / (2 Delta)
#                      - |W|^2 / 2
#
# with z_i = w_i . x_mu / sqrt(d). The rows are rescaled by their expected posterior widths,
# 1/sqrt(1 + n v_i^2 E (sigma' - c_1)^2 / (d Delta)): the step size is then the same at every size
# and hierarchy, about 0.35. An unlearned row still has the width of the prior, which is many step
# sizes, so that a trajectory needs a few tens of leapfrog steps to move it by its width (derived
# for this package).
#
# Residuals and gradient are computed in single precision, the sum of squares in double precision:
# ln p then has an error of 3e-5 to 5e-5 (28 to 140 inputs, 1000 to 2000 samples), where it
# fluctuates by about 10, and chains take 0.6 to 0.8 of the time.

# A learned feature appears with an overlap of 0.64 (for h_3) or more; the overlap of an unlearned
# feature fluctuates by 1/sqrt(d).
LEARNED = 0.5
PREDICTED = 2000  # test points at which predictions are kept, for the posterior mean
_BLOCK = 256
_SMALLEST = 4096


class KnownNetwork(NamedTuple):
    """The parts of the network that the learner knows: the activation, the read-outs, and the
    variance of the noise.
    """

    activation: Activation
    affine: Affine
    readout: Float[Array, "feature"]
    noise: Float[Array, ""] | float


def run(
    network: KnownNetwork,
    data: TeacherData,
    truth: Float[Array, "feature input"],
    positions: Float[Array, "chain feature input"],
    key: PRNGKeyArray,
    *,
    warmup: int,
    draws: int,
    thin: int,
    leapfrog_steps: int,
    doublings: int = 0,
) -> Samples:
    """Markov chains on the posterior from given positions.

    Observables are `overlaps` with the rows of `truth`, `gibbs_error` and `quadratic`; averages are
    the predictions at the first test points.

    Args:
        warmup, draws, thin, leapfrog_steps: lengths of the chains, as in
            `orderparam.sampling.sample`.
        doublings: how often a run whose Gibbs error has not converged becomes twice as long.
    """
    activation, affine, readout, noise = network
    samples, dim = data.inputs.shape
    slope = expectation(
        lambda z: (activation.derivative(z) - affine[1]) ** 2, 1.0, activation.kinks
    )
    stiffness = samples / dim * readout**2 * slope / noise
    shared = (affine, readout)
    chains = partial(
        sample,
        Partial(_log_posterior, activation, shared, noise, _padded(data)),
        method="hmc",
        scale=jnp.broadcast_to(1 / jnp.sqrt(1 + stiffness)[:, None], truth.shape),
        observe=Partial(_observe, activation, shared, truth, data.test_inputs, data.test_labels),
        average=Partial(_predict, activation, shared, data.test_inputs[:PREDICTED]),
        thin=thin,
        leapfrog_steps=leapfrog_steps,
    )

    def go_on(done: Samples, key: PRNGKeyArray, draws: int) -> Samples:
        return chains(done.position, key, warmup=0, samples=draws, step_size=done.step_size)

    return doubled(
        chains(positions, key, warmup=warmup, samples=draws),
        go_on,
        key,
        doublings=doublings,
        converged=lambda run: run.estimates["gibbs_error"].reliable,
    )


Known = tuple[Affine, Float[Array, "feature"]]


class _Blocks(NamedTuple):
    """Samples in blocks of fixed number and size, in single precision, so that only a few sizes are
    compiled; only the first `samples` are used."""

    inputs: Float[Array, "block sample input"]
    labels: Float[Array, "block sample"]
    samples: Array


def _padded(data: TeacherData) -> _Blocks:
    samples, dim = data.inputs.shape
    room = _SMALLEST
    while room < samples:
        room *= 4
    inputs = jnp.zeros((room, dim), jnp.float32).at[:samples].set(_single(data.inputs))
    labels = jnp.zeros(room, jnp.float32).at[:samples].set(_single(data.labels))
    return _Blocks(
        inputs.reshape(-1, _BLOCK, dim), labels.reshape(-1, _BLOCK), jnp.asarray(samples)
    )


def _log_posterior(
    activation: Activation, shared: Known, noise: Array, data: _Blocks, weights: Array
) -> Float[Array, ""]:
    return -_misfit(activation, shared, data, weights) / noise - jnp.sum(weights**2) / 2


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _misfit(
    activation: Activation, shared: Known, data: _Blocks, weights: Array
) -> Float[Array, ""]:
    """Half the sum of squared residuals, computed block by block over the blocks that contain
    samples."""
    return _misfit_and_slope(activation, shared, data, weights)[0]


def _misfit_and_slope(
    activation: Activation, shared: Known, data: _Blocks, weights: Array
) -> tuple[Array, Array]:
    single: Known = _single(shared)

    def of_block(weights: Array, number: Array) -> Array:
        residual = data.labels[number] - output(activation, *single, weights, data.inputs[number])
        counts = number * _BLOCK + jnp.arange(_BLOCK) < data.samples
        return jnp.sum(jnp.where(counts, residual, 0.0).astype(float) ** 2) / 2

    def add(number: Array, total: tuple[Array, Array]) -> tuple[Array, Array]:
        value, slope = jax.value_and_grad(of_block)(_single(weights), number)
        return total[0] + value, total[1] + slope

    blocks = (data.samples + _BLOCK - 1) // _BLOCK
    return jax.lax.fori_loop(0, blocks, add, (jnp.zeros(()), jnp.zeros_like(weights)))


def _single(numbers: Any) -> Any:
    """The same numbers in single precision."""
    return jax.tree.map(lambda x: x.astype(jnp.float32), numbers)


def _backward(activation: Activation, slope: Array, cotangent: Array) -> tuple[Any, Any, Array]:
    return None, None, cotangent * slope


_misfit.defvjp(_misfit_and_slope, _backward)


def _observe(
    activation: Activation,
    shared: Known,
    truth: Array,
    inputs: Array,
    labels: Array,
    weights: Float[Array, "feature input"],
) -> dict[str, Array]:
    prediction = output(activation, *shared, weights, inputs)
    readout, dim = shared[1], truth.shape[1]
    overlaps = weights @ truth.T / dim
    return {
        "overlaps": overlaps / jnp.mean(truth**2, axis=1),
        "gibbs_error": jnp.mean((prediction - labels) ** 2),
        # tr (S - E S)(S^0 - E S) / d
        "quadratic": readout @ overlaps**2 @ readout - jnp.sum(readout) ** 2 / dim,
    }


def _predict(
    activation: Activation,
    shared: Known,
    inputs: Array,
    weights: Float[Array, "feature input"],
) -> Float[Array, "test"]:
    return output(activation, *shared, weights, inputs)


def mean_prediction_error(samples: Samples, data: TeacherData) -> Float[Array, ""]:
    """The error (<f_W> - f^0)^2, with <f_W> the average over all draws of all chains."""
    mean = jnp.mean(samples.averages, axis=0)
    return jnp.mean((mean - data.test_labels[:PREDICTED]) ** 2)


def matched(overlaps: np.ndarray, even: bool) -> np.ndarray:
    """The mean overlap of each teacher feature with the row that is assigned to it, shape (chain,
    feature).

    A row whose mean overlap with another feature exceeds 1/2 is assigned to that feature; every
    other row is assigned to its own feature. For an even activation the sign of an overlap carries
    no meaning and is dropped.

    Args:
        overlaps: shape (chain, draw, row, feature).
    """
    found = []
    for one in overlaps.mean(axis=1):
        size = np.abs(one) if even else one
        identity = 1e-3 * np.eye(len(one))
        row, feature = linear_sum_assignment(
            np.where(size > LEARNED, size, 0.0) + identity, maximize=True
        )
        one_by_feature = np.empty(len(one))
        one_by_feature[feature] = size[row, feature]
        found.append(one_by_feature)
    return np.array(found)


# ------------------------------------------------------------------------------------------------
# Posterior averages for an extensive-width teacher.

Start = Literal["informed", "partially_informed", "uninformed"]


class PosteriorAverages(FromChains):
    """Averages over posterior samples of a network with known read-outs.

    Fields:
        overlap: mean of w_i . w_i^0 / d after matching (see `posterior_hmc`).
        error: half of the Gibbs error, which is the error of the posterior mean (Nishimori
            identity).
        gibbs_error: mean of (f_W - f^0)^2 at new inputs over posterior samples W.
        posterior_mean_error: (<f_W> - f^0)^2 with the average over all draws, which equals `error`
            up to the finite number of draws.
        effective_width: number of features with overlap above 1/2.
        chain_error: `error` of each chain separately.
        chain_width: `effective_width` of each chain separately.
        coexisting: whether chains have learned different sets of features. Where the states with
            and without a feature are both metastable, each chain samples one of them; R-hat then
            measures the distance between these states, and the averages weight them by the initial
            states of the chains, not by their probabilities.
        r_hat: R-hat of the Gibbs error over the chains.
        effective_samples: effective sample size of the Gibbs error.
        converged: whether the Gibbs error has converged.
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
    doublings: int = 0,
) -> PosteriorAverages:
    r"""Posterior averages for one random teacher and one data set, by Hamiltonian Monte Carlo.

    $$ \ln p(W \mid \mathrm{data}) = -\frac{1}{2\Delta} \sum_\mu \Big( y_\mu
       - \sum_i v_i (\sigma(z_i) - c_0 - c_1 z_i) \Big)^2 - \tfrac12 |W|^2,
       \qquad z_i = w_i \cdot x_\mu / \sqrt d $$

    with the read-outs v and the noise $\Delta$ known. A `WidthLimitedStudent` samples only its
    strongest features and treats the others as noise (`effective_teacher`), on data of the whole
    teacher. Rows are matched to the teacher's features: a row whose mean overlap with another
    feature exceeds 1/2 is assigned to that feature. For an even activation the sign of an overlap
    is dropped.

    Args:
        start: "informed" (default) starts at the teacher and stays on the metastable branch where
            it exists (`informed_state`). "partially_informed" starts the features that the theory
            predicts to be learned at the teacher and the others from the prior: it tests that the
            predicted state is stable, not that it is selected. "uninformed" starts from the prior
            and stays far above the Bayes error where learning is computationally hard, which holds
            for every activation of information exponent >= 3 at these sample sizes.
        chains: number of independent chains. Default 4.
        warmup: steps of a chain that tune the step size and are discarded. Default 100.
        draws: draws of every chain. Default 100.
        thin: trajectories between draws. Default 1.
        leapfrog_steps: leapfrog steps of a trajectory. Default 30, because an unlearned row has the
            width of the prior, which is many step sizes.
        doublings: how often a run whose Gibbs error has not converged goes on until it is twice as
            long. Default 0.

    Raises:
        ValueError: for sizes that are not integers.

    Accuracy: statistical; see `r_hat` and `effective_samples`. Residuals and gradients are
    computed in single precision, which changes ln p by less than 1e-4.

    Source: Nguyen, Barbier (2026).

    >>> import jax
    >>> from orderparam.systems.extensive_width import HierarchicalTeacher
    >>> teacher = HierarchicalTeacher(6, 2, 1.0, 0.1, n_train=40)
    >>> found = posterior_hmc(teacher, jax.random.key(0), chains=2, warmup=20, draws=8)
    >>> found.overlap.shape, found.chain_error.shape
    ((2,), (2,))
    """
    teacher, seen = (
        (system.teacher, effective_teacher(system))
        if isinstance(system, WidthLimitedStudent)
        else (system, system)
    )
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
        at_teacher = np.ones(len(rows), bool)
        if start == "partially_informed":
            solved = (
                compressed(system)
                if isinstance(system, WidthLimitedStudent)
                else bayes_optimal(system)
            )
            at_teacher = np.asarray(solved.overlap)[rows] > 0
        positions = jnp.where(at_teacher[:, None], truth, prior)

    network = KnownNetwork(teacher.activation, affine, jnp.asarray(shown[rows]), seen.noise)
    samples = run(
        network,
        data,
        truth,
        positions,
        chain_key,
        warmup=warmup,
        draws=draws,
        thin=thin,
        leapfrog_steps=leapfrog_steps,
        doublings=doublings,
    )
    overlap = np.zeros((chains, *shown.shape))
    overlap[:, rows] = matched(
        np.asarray(samples.observables["overlaps"]), teacher.activation.parity == "even"
    )
    estimate = samples.estimates["gibbs_error"]
    gibbs, left_out = (
        jnp.mean(samples.observables["gibbs_error"], axis=1),
        seen.noise - teacher.noise,
    )
    learned = overlap > LEARNED
    mean = overlap.mean(axis=0)
    return PosteriorAverages(
        overlap=jnp.asarray(mean),
        # Features that are not represented contribute the same error to the mean and to a single
        # sample.
        error=(estimate.mean + left_out) / 2,
        gibbs_error=estimate.mean,
        posterior_mean_error=mean_prediction_error(samples, data),
        effective_width=jnp.asarray(float(np.sum(mean > LEARNED))),
        chain_error=(gibbs + left_out) / 2,
        chain_width=jnp.asarray(learned.sum(axis=1), float),
        coexisting=jnp.asarray(bool(np.any(learned != learned[0]))),
        **of_chains(samples, estimate),
    )


# ------------------------------------------------------------------------------------------------
# The posterior of a teacher with a quadratic component, sampled from starts at the teacher and in
# the prior.


class CollectivePosterior(FromChains):
    """Averages over posterior samples for a teacher with a quadratic component.

    Fields:
        overlap: mean of w_i . w_i^0 / |w_i^0|^2 after matching, in decreasing order of |v_i|.
        quadratic_overlap: overlap of the fluctuating part of S = sum_a v_a w_a w_a^T / sqrt(k d)
            with the fluctuating part of the teacher's S, divided by the squared norm of the
            teacher's part.
        error: half of the Gibbs error, which is the error of the posterior mean (Nishimori
            identity).
        posterior_mean_error: (<f_W> - f^0)^2 with the average over all draws.
        r_hat: R-hat of the Gibbs error over the chains.
        effective_samples: effective sample size of the Gibbs error.
        converged: whether the Gibbs error has converged.
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
    doublings: int = 0,
) -> CollectivePosterior:
    """Posterior averages for one random teacher with a quadratic component and one data set, by
    Hamiltonian Monte Carlo.

    The density is that of `posterior_hmc`; the teacher is drawn from the prior.

    Args:
        start: "informed" (default) starts at the teacher, where chains stay in the specialised
            state if it exists; "uninformed" starts from the prior, and the chains then reach the
            universal state; the time until they specialise grows rapidly with the dimension.
        chains: number of independent chains. Default 4.
        warmup: steps of a chain that tune the step size and are discarded. Default 100.
        draws: draws of every chain. Default 100.
        thin: trajectories between draws. Default 1.
        leapfrog_steps: leapfrog steps of a trajectory. Default 30.
        doublings: how often a run whose Gibbs error has not converged goes on until it is twice as
            long. Default 0.

    Raises:
        ValueError: for a number of samples that is not an integer.

    Accuracy: statistical. In a finite network Q vanishes only up to terms of order 1/sqrt(d). An
    informed start keeps the assignment of rows to features even where the state is symmetric under
    their exchange.

    Source: Barbier et al. (2025).

    >>> import jax
    >>> teacher = QuadraticTeacher(6, 2, noise=0.5, n_train=40)
    >>> found = quadratic_posterior_hmc(teacher, jax.random.key(0), chains=2, warmup=20, draws=8)
    >>> found.overlap.shape
    (2,)
    """
    affine = affine_part(system.activation)
    data_key, start_key, chain_key = jax.random.split(key, 3)
    data = draw(system, data_key, affine, orthogonal=False)
    prior = jax.random.normal(start_key, (chains, *data.weights.shape))
    positions = jnp.broadcast_to(data.weights, prior.shape) if start == "informed" else prior
    network = KnownNetwork(system.activation, affine, system.readout, system.noise)
    samples = run(
        network,
        data,
        data.weights,
        positions,
        chain_key,
        warmup=warmup,
        draws=draws,
        thin=thin,
        leapfrog_steps=leapfrog_steps,
        doublings=doublings,
    )
    own = data.weights @ data.weights.T / data.weights.shape[1]
    norm = (
        system.readout @ own**2 @ system.readout
        - jnp.sum(system.readout) ** 2 / data.weights.shape[1]
    )
    estimate = samples.estimates["gibbs_error"]
    overlap = matched(
        np.asarray(samples.observables["overlaps"]), system.activation.parity == "even"
    )
    return CollectivePosterior(
        overlap=jnp.asarray(np.mean(overlap, axis=0)),
        quadratic_overlap=samples.estimates["quadratic"].mean / norm,
        error=estimate.mean / 2,
        posterior_mean_error=mean_prediction_error(samples, data),
        **of_chains(samples, estimate),
    )
