"""Real networks sampled from their posterior by Hamiltonian Monte Carlo and by the noisy gradient
descent of the papers.
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
from orderparam.kernels.readout import condition_readout
from orderparam.networks import Architecture, convolutional, fully_connected
from orderparam.networks.affine import Weights
from orderparam.sampling import Samples, sample
from orderparam.systems.proportional.deep import check_one_output
from orderparam.systems.proportional.kernels import data_term
from orderparam.systems.proportional.model import (
    BayesianNetwork,
    BayesianPatchNetwork,
    FullyConnected,
    LocallyConnected,
)
from orderparam.systems.proportional.results import OrderParameters, Similarity, alignment, losses

# ------------------------------------------------------------------------------------------------
# The real networks of the systems: architectures, the log densities that are sampled, and the observables of each draw.

Hidden = Any  # whitened weights of the layers before the read-out


def architecture(system: BayesianNetwork) -> Architecture:
    """The network of a system at its finite width, without biases.

    Variances are arrays, so that other variances need no new compilation.

    Raises:
        ValueError: for a width that is not an integer.
    """
    readout = float(system.readout_variance)
    if isinstance(system, FullyConnected):
        widths = [system.with_(width=float(width)).size("width") for width in system.widths]
        variances = [float(variance) for variance in system.variances]
        found = fully_connected(
            system.depth,
            widths,
            system.activation,
            variances,
            readout_variance=readout,
            outputs=system.outputs,
        )
    else:
        assert isinstance(system, BayesianPatchNetwork)
        found = convolutional(
            1,
            system.size("channels"),
            system.mask,
            system.activation,
            strides=system.steps,
            padding="valid",
            readout="global_average" if system.pooled else "flatten",
            shared=not isinstance(system, LocallyConnected),
            weight_variance=float(system.weight_variance),
            readout_variance=readout,
            outputs=system.outputs,
        )
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, found)


def deviations(whitened: Any, network: Architecture) -> Any:
    """The standard deviations of the weights in the units of the papers, where the factor 1 /
    sqrt(fan-in) is in the equations of the network.
    """

    def one(layer: Any, own: Any) -> Any:
        return Weights(jnp.sqrt(layer.weight_variance), None) if isinstance(own, Weights) else ()

    return tuple(one(layer, own) for layer, own in zip(network.layers.layers, whitened))


class ReadoutMoments(eqx.Module):
    """Averages over the read-out at given hidden weights, or values at given weights of all layers."""

    residual: Float[Array, "train output"]  # y - f
    mean: Float[Array, "test output"]
    variance: Float[Array, "test"]  # the same for every output
    train_error: Float[Array, ""]
    test_error: Float[Array, ""]
    length: Float[Array, ""]  # trace of `order`
    # v v^T / N for the read-outs of (place, output), the places slower
    order: Float[Array, "index other"]
    mean_scales: Float[Array, "index other"]  # their covariance over the units


class PosteriorProblem(eqx.Module):
    """A network with its data; images are padded with zeros. `places` is the number of places whose
    features are read out separately.
    """

    network: Architecture
    x: Float[Array, "train *input"]
    y: Float[Array, "train output"]
    test: Float[Array, "test *input"]
    test_y: Float[Array, "test output"]
    temperature: Float[Array, ""]
    places: int = eqx.field(static=True)

    @classmethod
    def of(cls, system: BayesianNetwork) -> "PosteriorProblem":
        """The network of a system and its data."""
        (x, y), (test, test_y) = system.train, system.test
        if isinstance(system, BayesianPatchNetwork):
            x, test = system.padded(x), system.padded(test)
        return cls(
            architecture(system), x, y, test, test_y, jnp.asarray(system.temperature), system.places
        )

    def draw(self, key: PRNGKeyArray) -> Any:
        """Whitened weights of all layers, drawn from the prior."""
        return self.network.draw(key, self.x.shape[1:])

    def moments(
        self,
        residual: Float[Array, "train output"],
        spread: Float[Array, ""],
        mean: Float[Array, "test output"],
        variance: Float[Array, "test"],
        order: Float[Array, "index other"],
        total: Float[Array, "index other"],
    ) -> ReadoutMoments:
        """The observables of one draw.

        Args:
            spread: sum_mu Var f(x_mu), summed over the outputs.
            total: (sum_c v_c) (sum_c v_c)^T / N.
        """
        units = jax.eval_shape(self.draw, jax.random.key(0))[-1].weight.size // order.shape[0]
        train_error = (jnp.sum(residual**2) + spread) / self.y.shape[0]
        test_error = jnp.mean(
            jnp.sum((mean - self.test_y) ** 2, axis=-1) + self.y.shape[1] * variance
        )
        covariance = (units * order - total) / (units - 1)  # NaN for a single unit
        return ReadoutMoments(
            residual, mean, variance, train_error, test_error, jnp.trace(order), order, covariance
        )


class Collapsed(eqx.Module):
    r"""The posterior of the hidden layers, with the read-out integrated out.

    $$ \log p(W) = -\tfrac12 |W|^2 - \tfrac12 \log\det(T + \Phi\Phi^T)
       - \tfrac12 y^T (T + \Phi\Phi^T)^{-1} y $$

    with W whitened. With D outputs the log det is multiplied by D. `readout` has the shape of the
    read-out.
    """

    problem: PosteriorProblem
    readout: Weights  # zeros of the shape of the read-out

    @classmethod
    def of(cls, system: BayesianNetwork) -> "Collapsed":
        """The collapsed posterior of a system's network."""
        problem = PosteriorProblem.of(system)
        shapes = jax.eval_shape(problem.draw, jax.random.key(0))
        return cls(problem, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), shapes[-1]))

    def draw(self, key: PRNGKeyArray) -> Hidden:
        """Hidden weights from the prior."""
        return self.problem.draw(key)[:-1]

    def features(
        self, hidden: Hidden, x: Float[Array, "example *input"]
    ) -> Float[Array, "example feature"]:
        """The features Phi(x) with f = Phi u, u the whitened read-out."""
        return self.problem.network.features((*hidden, self.readout), x)

    def __call__(self, hidden: Hidden) -> Float[Array, ""]:
        given = self.problem
        phi = self.features(hidden, given.x)
        noisy = phi @ phi.T + given.temperature * jnp.eye(phi.shape[0])
        return -data_term(noisy, given.y) / 2 + whitened_prior(hidden)

    def moments(self, hidden: Hidden) -> ReadoutMoments:
        """Averages over the read-out at these hidden weights."""
        given = self.problem
        phi, test = self.features(hidden, given.x), self.features(hidden, given.test)
        posterior = condition_readout(phi, given.y, given.temperature)
        outputs, places = given.y.shape[1], given.places
        # The read-out given the hidden weights is Gaussian, with the same covariance Cov(u_ic,
        # u_jd) = 1 - Phi^T A^{-1} Phi for every output.
        shared = posterior.half.reshape(phi.shape[0], places, -1)
        units = shared.shape[-1]
        over_units = jnp.sum(shared, axis=-1)
        own = jnp.eye(places) - jnp.einsum("mic,mjc->ij", shared, shared) / units
        total = jnp.eye(places) - over_units.T @ over_units / units
        order, total = (
            found + jnp.kron(covariance, jnp.eye(outputs))
            for found, covariance in zip(readout_products(posterior.mean, places), (own, total))
        )
        return given.moments(
            given.temperature * posterior.discrepancy,
            outputs * given.temperature * jnp.sum(posterior.half**2),  # tr Phi^T A^{-1} Phi
            test @ posterior.mean,
            posterior.variance(test),
            order,
            total,
        )

    def similarity_moments(
        self, hidden: Hidden
    ) -> tuple[Float[Array, "train train"], Float[Array, ""], Float[Array, "index other"]]:
        """The kernel Phi Phi^T, its alignment with the targets of one output, and the order
        parameters."""
        phi = self.features(hidden, self.problem.x)
        kernel = phi @ phi.T
        return kernel, alignment(kernel, self.problem.y[:, 0]), self.moments(hidden).order


class Full(eqx.Module):
    """The posterior of all weights of a network, log p(W) = -|y - f|^2 / (2T) - |W|^2 / 2 with W
    whitened.
    """

    problem: PosteriorProblem

    def __call__(self, whitened: Any) -> Float[Array, ""]:
        given = self.problem
        error = given.y - given.network.apply(whitened, given.x)
        return -jnp.sum(error**2) / (2 * given.temperature) + whitened_prior(whitened)

    def moments(self, whitened: Any) -> ReadoutMoments:
        """The observables of the network at these weights."""
        given = self.problem
        mean = given.network.apply(whitened, given.test)
        residual = given.y - given.network.apply(whitened, given.x)
        products = readout_products(whitened[-1].weight.T, given.places)
        return given.moments(residual, jnp.zeros(()), mean, jnp.zeros(mean.shape[0]), *products)


def whitened_prior(weights: Any) -> Float[Array, ""]:
    """The log density of the prior, -|u|^2 / 2."""
    return -sum((jnp.sum(leaf**2) for leaf in jax.tree.leaves(weights)), jnp.zeros(())) / 2


def readout_products(
    readout: Float[Array, "feature output"], places: int
) -> tuple[Float[Array, "index other"], Float[Array, "index other"]]:
    """The products (1/N_c) sum_c u_(i a)c u_(j b)c and (1/N_c) sum_cd u_(i a)c u_(j b)d of the
    read-out, with features numbered (place i, channel c).
    """
    by_channel = readout.reshape(places, -1, readout.shape[1])
    units = by_channel.shape[1]
    flat = jnp.moveaxis(by_channel, 1, 0).reshape(units, -1)
    over_units = jnp.sum(flat, axis=0)
    return flat.T @ flat / units, jnp.outer(over_units, over_units) / units


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

    >>> import jax
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> system = FullyConnected(x[:5], x[:5, 0], x[5:], x[5:, 0], width=4, temperature=0.5)
    >>> found = langevin_training(system, jax.random.key(0), chains=2, burn_in=20, samples=8, thin=1)
    >>> found.mean.shape
    (3, 1)
    """
    start_key, readout_key, run_key = jax.random.split(key, 3)
    collapsed = Collapsed.of(system)
    potential = Full(collapsed.problem)
    drawn = _prior(collapsed.problem, chains, readout_key)
    hidden = _starts(collapsed, chains, start_key)
    # The step du = -grad U dt + sqrt(2 dt) xi in the papers' units of the weights is the update of
    # the papers, with dt = eta T.
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


@experiment(check=check_one_output)
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

    The sampler is that of `sampled_network`. The renormalised kernel is the prior average of the
    features' products, weighted with the measured order parameters.

    Args:
        chains: number of chains. Default 4.
        warmup: steps of a chain that tune the step size and are discarded. Default 150.
        samples: draws of every chain. Default 200.
        leapfrog_steps: leapfrog steps of a trajectory. Default 8.

    Raises:
        ValueError: for several outputs, and for a width that is not an integer.

    Accuracy: statistical; see `r_hat` and `effective_samples`.

    Source: Aiudi et al. (2025).

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
    aligned = alignment(before, y), alignment(after, y)
    return SampledSimilarity(
        before,
        after,
        renormalised,
        *aligned,
        health.r_hat,
        health.effective_samples,
        health.reliable,
    )


def sampled_hidden(
    potential: Collapsed, chains: int, keys: Any, observe: Callable[..., Any], **lengths: Any
) -> Samples:
    """Chains of hidden weights, with the read-out integrated out."""
    density, starts = Partial(Collapsed.__call__, potential), _starts(potential, chains, keys[0])
    return sample(density, starts, keys[1], observe=Partial(observe, potential), **lengths)


@eqx.filter_jit
def _starts(potential: Collapsed, chains: int, key: PRNGKeyArray) -> Hidden:
    """Initial states of the chains: prior draws for one half; for the other half, prior draws
    followed by a descent of the energy to weights that fit the data."""
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
    """Averages of Phi Phi^T and of sum_ij Q_ij Phi_i Phi_j^T (i and j places) over the draws."""
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
