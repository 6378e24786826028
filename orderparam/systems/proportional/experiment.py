"""Experiments: real networks, sampled from their posterior by Hamiltonian Monte Carlo and by the
noisy gradient descent that the cited papers use.
"""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.sampling import Samples, sample
from orderparam.systems.proportional.deep import ONE_OUTPUT
from orderparam.systems.proportional.model import (
    BayesianNetwork,
)
from orderparam.systems.proportional.posterior import (
    Collapsed,
    Full,
    Hidden,
    PosteriorProblem,
    ReadoutMoments,
    deviations,
)
from orderparam.systems.proportional.results import OrderParameters, Similarity, alignment, losses

_DESCENT_STEPS = 150


class SampledNetwork(OrderParameters):
    """Losses, predictions and order parameters measured on sampled networks.

    Fields:
        order_parameters: Q of the read-out, in the last layer; NaN for the layers below, whose
            order parameters are not averages over weights.
        mean_scales: kappa of the read-out, in the last layer; NaN for the layers below.
        r_hat: largest R-hat of the losses and the order parameter, over chains that started from
            the prior and chains that started at a minimum of the energy.
        effective_samples: smallest effective sample size of the same observables.
        converged: whether r_hat < 1.05 and there are at least 100 effective samples.
    """

    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]


class SampledSimilarity(Similarity):
    """Kernels of the hidden layer measured on sampled networks.

    Fields:
        r_hat: R-hat of the alignment after learning.
        effective_samples: effective sample size of the alignment after learning.
        converged: whether the alignment after learning has converged.
    """

    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


@experiment
def sampled_network(
    system: BayesianNetwork,
    key: PRNGKeyArray,
    *,
    chains: int = 4,
    warmup: int = 150,
    samples: int = 250,
    leapfrog_steps: int = 8,
    method: Literal["hmc", "mala", "nuts"] = "hmc",
) -> SampledNetwork:
    r"""Posterior averages of a Bayesian network on given data, by Hamiltonian Monte Carlo on its
    hidden weights.

    $$ \log p(W) = -\tfrac12 |W|^2 - \tfrac12 \log\det(T + \Phi\Phi^T)
       - \tfrac12 y^T (T + \Phi\Phi^T)^{-1} y $$

    with W the whitened hidden weights, $\Phi$ the features that the read-out sees and T the
    `temperature`. The average over the read-out is exact in every draw. Half of the chains start
    from the prior, half at a minimum of the energy; R-hat over all chains shows whether they have
    forgotten their initial states.

    Args:
        chains: number of chains. Default 4.
        warmup: steps of a chain that tune the step size and are discarded. Default 150.
        samples: draws of every chain. Default 250.
        leapfrog_steps: leapfrog steps of a trajectory. Default 8, which gives trajectories of
            length about pi/2 at the tuned step size of 0.15 to 0.3; longer ones cost more and do
            not decorrelate better.
        method: sampler of `orderparam.sampling.sample`: "hmc" (default), "mala" or "nuts".

    Raises:
        ValueError: for a width that is not an integer.

    Accuracy: statistical, without discretisation error; see `r_hat` and `effective_samples`.

    Source: Pacelli et al. (2023) for the posterior; the collapsed density is derived here.

    >>> from orderparam.systems.proportional import FullyConnected
    >>> import jax
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> system = FullyConnected(x[:5], x[:5, 0], x[5:], x[5:, 0], width=4, temperature=0.5)
    >>> found = sampled_network(system, jax.random.key(0), chains=2, warmup=20, samples=8)
    >>> found.mean.shape
    (3, 1)
    """
    lengths = {"warmup": warmup, "samples": samples, "leapfrog_steps": leapfrog_steps}
    potential, keys = Collapsed.of(system), jax.random.split(key)
    return _summary(
        system,
        sampled_hidden(potential, chains, keys, Collapsed.moments, method=method, **lengths),
    )


@experiment
def langevin_training(
    system: BayesianNetwork,
    key: PRNGKeyArray,
    *,
    learning_rate: float | None = None,
    chains: int = 4,
    burn_in: int = 20_000,
    samples: int = 400,
    thin: int = 100,
) -> SampledNetwork:
    r"""Posterior averages of a Bayesian network on given data, by noisy full-batch gradient descent
    on all weights.

    $$ W \leftarrow W (1 - \eta T \lambda) - \eta \nabla L + \sqrt{2 \eta T}\, \xi, \qquad
       L = \tfrac12 \sum_\mu |y_\mu - f(x_\mu)|^2 $$

    with $\eta$ = `learning_rate`, T the `temperature` and $\lambda$ the inverse prior variance of a
    weight.

    Args:
        learning_rate: learning rate eta. Default None: 0.1 / (T times the largest curvature of the
            energy divided by T).
        chains: number of chains. Default 4.
        burn_in: steps before the first record. Directions that only the prior constrains take
            1/(eta T lambda) steps to relax. Default 20 000.
        samples: records of every chain. Default 400.
        thin: steps between records. Default 100.

    Raises:
        ValueError: for a width that is not an integer.

    Accuracy: the discretisation error is of order eta; see also `r_hat`.

    Source: Pacelli et al. (2023); Baglioni, Pacelli et al. (2024).

    >>> from orderparam.systems.proportional import FullyConnected
    >>> import jax
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> system = FullyConnected(x[:5], x[:5, 0], x[5:], x[5:, 0], width=4, temperature=0.5)
    >>> found = langevin_training(
    ...     system, jax.random.key(0), chains=2, burn_in=20, samples=8, thin=1
    ... )
    >>> found.mean.shape
    (3, 1)
    """
    start_key, readout_key, run_key = jax.random.split(key, 3)
    collapsed = Collapsed.of(system)
    potential = Full(collapsed.problem)
    drawn = _prior(collapsed.problem, chains, readout_key)
    hidden = _starts(collapsed, chains, start_key)
    # In the papers' units of the weights the step du = -grad U dt + sqrt(2 dt) xi is the update of
    # the papers if dt = eta T.
    scale = jax.tree.map(
        lambda deviation: 1 / deviation, deviations(drawn, potential.problem.network)
    )
    run = sample(
        Partial(Full.__call__, potential),
        (*hidden, drawn[-1]),
        run_key,
        method="langevin",
        step_size=None if learning_rate is None else learning_rate * potential.problem.temperature,
        warmup=burn_in,
        samples=samples,
        thin=thin,
        observe=Partial(Full.moments, potential),
        scale=scale,
    )
    return _summary(system, run)


@experiment(needs=ONE_OUTPUT)
def sampled_similarity(
    system: BayesianNetwork,
    key: PRNGKeyArray,
    *,
    chains: int = 4,
    warmup: int = 150,
    samples: int = 200,
    leapfrog_steps: int = 8,
) -> SampledSimilarity:
    """Similarity matrices of the hidden layer averaged over the prior and over the posterior,
    measured on sampled networks.

    The sampler is that of `sampled_network`. The renormalised kernel is measured as the prior
    average of the products of features, weighted with the measured order parameters.

    Args:
        chains: number of chains. Default 4.
        warmup: steps of a chain that tune the step size and are discarded. Default 150.
        samples: draws of every chain. Default 200.
        leapfrog_steps: leapfrog steps of a trajectory. Default 8.

    Raises:
        ValueError: for several outputs, and for a width that is not an integer.

    Accuracy: statistical; see `r_hat` and `effective_samples`.

    Source: Aiudi et al. (2025).

    >>> from orderparam.systems.proportional import FullyConnected
    >>> import jax
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> system = FullyConnected(x[:5], x[:5, 0], x[5:], x[5:, 0], width=4, temperature=0.5)
    >>> found = sampled_similarity(system, jax.random.key(0), chains=2, warmup=20, samples=8)
    >>> found.posterior.shape
    (5, 5)
    """
    *keys, prior_key = jax.random.split(key, 3)
    potential = Collapsed.of(system)
    lengths = {"warmup": warmup, "samples": samples, "leapfrog_steps": leapfrog_steps}
    run = sampled_hidden(potential, chains, keys, Collapsed.similarity_moments, **lengths)
    after, _, order = (jnp.mean(values, axis=(0, 1)) for values in run.observables)
    health: Any = run.estimates[1]
    draws = _prior(potential, chains * samples, prior_key)
    before, renormalised = _prior_kernels(potential, draws, order)
    y = potential.problem.y[:, 0]
    return SampledSimilarity(
        prior=before,
        posterior=after,
        renormalised=renormalised,
        prior_alignment=alignment(before, y),
        posterior_alignment=alignment(after, y),
        r_hat=health.r_hat,
        effective_samples=health.effective_samples,
        converged=health.reliable,
    )


def sampled_hidden(
    potential: Collapsed, chains: int, keys: Any, observe: Callable[..., Any], **lengths: Any
) -> Samples:
    """Markov chains of the hidden weights, whose posterior has the read-out integrated out, with
    the observables `observe` of every draw."""
    density, starts = Partial(Collapsed.__call__, potential), _starts(potential, chains, keys[0])
    return sample(density, starts, keys[1], observe=Partial(observe, potential), **lengths)


@eqx.filter_jit
def _starts(potential: Collapsed, chains: int, key: PRNGKeyArray) -> Hidden:
    """Initial states of the chains. One half are draws from the prior. The other half are draws
    from the prior after a descent of the energy to weights that fit the data."""
    optimiser = optax.adam(0.05)

    def descend(weights: Hidden) -> Hidden:
        def step(_: int, state: tuple) -> tuple:
            weights, memory = state
            updates, memory = optimiser.update(jax.grad(lambda w: -potential(w))(weights), memory)
            return optax.apply_updates(weights, updates), memory

        return jax.lax.fori_loop(0, _DESCENT_STEPS, step, (weights, optimiser.init(weights)))[0]

    random = _prior(potential, chains, key)
    first = jnp.arange(chains) < (chains + 1) // 2
    return jax.tree.map(
        lambda a, b: jnp.where(first.reshape(-1, *(1,) * (a.ndim - 1)), a, b),
        random,
        jax.vmap(descend)(random),
    )


@eqx.filter_jit
def _prior(potential: Collapsed | PosteriorProblem, draws: int, key: PRNGKeyArray) -> Any:
    """Whitened weights from the prior, with a leading axis, drawn in one call of the generator,
    which compiles several times faster."""
    shapes = jax.eval_shape(potential.draw, key)
    flat, one = ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), shapes))
    return jax.vmap(one)(jax.random.normal(key, (draws, flat.size)))


@eqx.filter_jit
def _prior_kernels(
    potential: Collapsed, draws: Hidden, order: Float[Array, "place other"]
) -> tuple[Float[Array, "train train"], Float[Array, "train train"]]:
    """Averages over the draws of Phi Phi^T and of sum_ij Q_ij Phi_i Phi_j^T, with i and j the
    places of the features."""
    places, examples = potential.problem.places, potential.problem.x.shape[0]

    def add(total: Float[Array, "place other train train"], hidden: Hidden) -> tuple[Array, None]:
        own = potential.features(hidden, potential.problem.x).reshape(examples, places, -1)
        return total + jnp.einsum("mic,njc->ijmn", own, own), None

    count = jax.tree.leaves(draws)[0].shape[0]
    total = jax.lax.scan(add, jnp.zeros((places, places, examples, examples)), draws)[0] / count
    return jnp.einsum("iimn->mn", total), jnp.einsum("ij,ijmn->mn", order, total)


@eqx.filter_jit
def _summary(system: BayesianNetwork, run: Samples) -> SampledNetwork:
    """Posterior averages from the recorded `ReadoutMoments`."""
    (_, y), (_, test_y) = system.train, system.test
    recorded: ReadoutMoments = run.observables
    count, outputs = y.shape
    residual, mean, order, mean_scales = (
        jnp.mean(values, axis=(0, 1))
        for values in (recorded.residual, recorded.mean, recorded.order, recorded.mean_scales)
    )
    train_bias = jnp.sum(residual**2) / count
    spread = recorded.mean - mean
    variance = jnp.mean(recorded.variance[..., None] + spread**2, axis=(0, 1))
    covariance = (
        jnp.mean(jnp.einsum("...ta,...tb->...ab", spread, spread), axis=(0, 1)) / mean.shape[0]
    )
    covariance += jnp.mean(recorded.variance) * jnp.eye(outputs)
    train_variance = jnp.mean(recorded.train_error) - train_bias
    estimates: ReadoutMoments = run.estimates
    health: list[Any] = [estimates.train_error, estimates.test_error, estimates.length]
    shape = system.depth, *(system.places, outputs) * 2
    unknown = jnp.full(shape, jnp.nan)
    fields = losses(train_bias, train_variance, mean, variance, covariance, test_y)
    return SampledNetwork(
        **fields | {"converged": jnp.all(jnp.stack([one.reliable for one in health]))},
        order_parameters=unknown.at[-1].set(order.reshape(shape[1:])),
        mean_scales=unknown.at[-1].set(mean_scales.reshape(shape[1:])),
        r_hat=jnp.max(jnp.stack([one.r_hat for one in health])),
        effective_samples=jnp.min(jnp.stack([one.effective_samples for one in health])),
    )
