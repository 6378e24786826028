"""The posterior of a real network, sampled at equilibrium: Hamiltonian Monte Carlo and the papers' noisy gradient descent."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.kernels.readout import condition_readout
from orderparam.sampling import Samples, estimate, sample
from orderparam.systems.proportional.model import FullyConnected, Network
from orderparam.systems.proportional.network import Features, Weights, build, draw
from orderparam.systems.proportional.theory.hidden_kernel import Similarity, alignment
from orderparam.systems.proportional.theory.losses import Prediction, PredictionOfSeveral, losses

_DESCENT_STEPS = 150


class SampledNetwork(Prediction):
    """What was measured on a fully connected network; the names are those of the theory.

    order_parameters: |v|^2 / (N r) of the read-out at the last place; NaN for the layers below, whose order parameters are no
    plain average over weights. r_hat, effective_samples: the worst of the losses and the order parameter, over chains that
    started at random and chains that started at the bottom of the energy. converged: r_hat < 1.05 and 100 effective samples.
    """

    order_parameters: Float[Array, "layer"]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


class SampledOutputs(PredictionOfSeveral):
    """As `SampledNetwork`, with order_parameters v_a . v_b / (N r) of the outputs."""

    order_parameters: Float[Array, "output other"]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


class SampledPatches(Prediction):
    """As `SampledNetwork`, with order_parameters (1 / (N_c r)) sum_c v_ci v_cj of the patches."""

    order_parameters: Float[Array, "patch other"]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


class Moments(eqx.Module):
    """Averages over the read-out at given hidden weights, or values at given weights of all layers."""

    residual: Float[Array, "train output"]  # y - f
    spread: Float[Array, ""]  # sum_mu Var f(x_mu), over the outputs too
    mean: Float[Array, "test output"]
    variance: Float[Array, "test"]
    order: Float[Array, "*index"]


class Collapsed(eqx.Module):
    """Hidden layers of a network whose read-out is averaged over its posterior, which is Gaussian:

    log p(W) = -|W|^2 / 2 - (1/2) log det(T + Phi Phi^T) - (1/2) y^T (T + Phi Phi^T)^{-1} y   (W whitened; D outputs: D log det).
    """

    features: Features
    x: Float[Array, "train *input"]
    y: Float[Array, "train output"]
    test: Float[Array, "test *input"]
    temperature: Float[Array, ""]

    def __call__(self, weights: Weights) -> Float[Array, ""]:
        phi = self.features(weights, self.x).reshape(self.y.shape[0], -1)
        evidence = condition_readout(phi, self.y, self.temperature).log_evidence
        return evidence - sum(jnp.sum(w**2) for w in weights) / 2

    def moments(self, weights: Weights) -> Moments:
        """Averages over the read-out at these hidden weights."""
        local = self.features(weights, self.x)
        count, outputs = self.y.shape
        test = self.features(weights, self.test).reshape(self.test.shape[0], -1)
        posterior = condition_readout(local.reshape(count, -1), self.y, self.temperature)
        readout, half = posterior.mean, posterior.half  # |half|^2 = tr Phi^T A^{-1} Phi
        units = local.shape[1]
        if local.ndim == 3:  # (example, channel, patch): read-outs of two patches, averaged over the channels
            own = readout.reshape(units, -1)
            shared = half.reshape(count, units, -1)
            order = jnp.eye(own.shape[1]) + (own.T @ own - jnp.einsum("ncp,ncq->pq", shared, shared)) / units
        else:
            order = readout.T @ readout / units + (1 - jnp.sum(half**2) / units) * jnp.eye(outputs)
        residual, spread = self.temperature * posterior.discrepancy, outputs * self.temperature * jnp.sum(half**2)
        return Moments(residual, spread, test @ readout, posterior.variance(test), order)


class Full(eqx.Module):
    """All weights of a network in their own units: log p(W) = -|y - f|^2 / (2T) - (1/2) sum_l |W^l|^2 / variance_l.

    The Langevin step du = -grad U dt + sqrt(2 dt) xi with dt = eta T is that of the papers,
    W <- W (1 - eta T lambda) - eta grad loss + sqrt(2 eta T) xi.
    """

    features: Features
    deviations: Float[Array, "layer"]
    x: Float[Array, "train *input"]
    y: Float[Array, "train output"]
    test: Float[Array, "test *input"]
    temperature: Float[Array, ""]

    def _outputs(self, weights: tuple[Weights, Array], x: Array) -> tuple[Array, Array]:
        """f(x), and the whitened read-out (column, output)."""
        hidden, readout = weights
        whitened = tuple(w / deviation for w, deviation in zip(hidden, self.deviations))
        phi = self.features(whitened, x)
        return phi.reshape(x.shape[0], -1) @ readout / self.deviations[-1], readout / self.deviations[-1]

    def __call__(self, weights: tuple[Weights, Array]) -> Float[Array, ""]:
        f, readout = self._outputs(weights, self.x)
        prior = sum(jnp.sum((w / s) ** 2) for w, s in zip(weights[0], self.deviations)) + jnp.sum(readout**2)
        return -jnp.sum((self.y - f) ** 2) / (2 * self.temperature) - prior / 2

    def moments(self, weights: tuple[Weights, Array]) -> Moments:
        """The network as it is."""
        f, readout = self._outputs(weights, self.x)
        mean, _ = self._outputs(weights, self.test)
        patches = 1 if self.features.kind in ("dense", "pooled") else self.x.shape[1]
        own = readout.reshape(-1, patches) if patches > 1 else readout
        order = own.T @ own / own.shape[0]
        return Moments(self.y - f, jnp.zeros(()), mean, jnp.zeros(mean.shape[0]), order)


def _targets(system: Network) -> tuple[Float[Array, "train output"], Float[Array, "test output"]]:
    y, test = system.train[1], jnp.asarray(system.test_targets, float)
    return y.reshape(y.shape[0], -1), test.reshape(test.shape[0], -1)


@eqx.filter_jit
def _descend(potential: Collapsed, start: Weights) -> Weights:
    """From prior draws (leading chain axis) downhill: starts that fit the data."""
    optimiser = optax.adam(0.05)

    def one(weights: Weights) -> Weights:
        def step(_: int, state: tuple) -> tuple:
            weights, memory = state
            updates, memory = optimiser.update(jax.grad(lambda w: -potential(w))(weights), memory)
            return optax.apply_updates(weights, updates), memory

        return jax.lax.fori_loop(0, _DESCENT_STEPS, step, (weights, optimiser.init(weights)))[0]

    return jax.vmap(one)(start)


def _starts(potential: Collapsed, shapes: tuple, chains: int, key: PRNGKeyArray) -> Weights:
    """Half of the chains start from the prior, the others at the bottom of the energy."""
    random = jax.vmap(partial(draw, shapes))(jax.random.split(key, chains))
    trained = _descend(potential, random)
    first = jnp.arange(chains) < (chains + 1) // 2
    return jax.tree.map(lambda a, b: jnp.where(first.reshape(-1, *(1,) * (a.ndim - 1)), a, b), random, trained)


def _moments(potential: Any, weights: Any) -> Moments:
    return potential.moments(weights)


def _summary(system: Network, run: Samples) -> SampledNetwork | SampledOutputs | SampledPatches:
    """Posterior averages from the recorded moments."""
    y, test_targets = _targets(system)
    recorded: Moments = run.observables
    count = y.shape[0]

    def average(values: Array) -> Array:
        return jnp.mean(values, axis=(0, 1))

    residual, mean = average(recorded.residual), average(recorded.mean)
    train_error = (jnp.sum(recorded.residual**2, axis=(2, 3)) + recorded.spread) / count
    train_bias = jnp.sum(residual**2) / count
    variance = average(recorded.variance[..., None] + (recorded.mean - mean) ** 2)
    test_error = jnp.mean(jnp.sum((recorded.mean - test_targets) ** 2, axis=-1) + y.shape[1] * recorded.variance, axis=-1)
    trace = jnp.trace(recorded.order, axis1=-2, axis2=-1)
    health = estimate(jnp.stack([train_error, test_error, trace], axis=-1))
    shape = system.test_targets.shape
    fields = {
        **losses(
            train_bias, jnp.mean(train_error) - train_bias, mean.reshape(shape), variance.reshape(shape),
            test_targets.reshape(shape),
        ),
        "r_hat": jnp.max(health.r_hat),
        "effective_samples": jnp.min(health.ess),
        "converged": jnp.all(health.reliable),
    }  # fmt: skip
    order = average(recorded.order)
    if isinstance(system, FullyConnected):
        if system.targets.ndim == 2:
            return SampledOutputs(**fields, order_parameters=order)
        return SampledNetwork(**fields, order_parameters=jnp.full(system.depth, jnp.nan).at[-1].set(order[0, 0]))
    patches = system.patch_count
    if order.shape[0] != patches:  # average pooling
        order = order[0, 0] * jnp.ones((patches, patches)) / patches
    return SampledPatches(**fields, order_parameters=order)


def _collapsed(system: Network) -> tuple[Collapsed, tuple]:
    features, x, test, shapes = build(system)
    return Collapsed(features, x, _targets(system)[0], test, jnp.asarray(system.temperature, float)), shapes


def posterior(
    system: Network,
    key: PRNGKeyArray,
    chains: int = 4,
    warmup: int = 150,
    samples: int = 200,
    leapfrog_steps: int = 15,
) -> SampledNetwork | SampledOutputs | SampledPatches:
    """Hidden weights by Hamiltonian Monte Carlo with the read-out averaged analytically: no discretisation error.

    Half of the chains start from the prior, half at the bottom of the energy; R-hat over all says whether the start is forgotten.
    samples: draws of every chain. Every draw enters with its exact averages over the read-out (Rao-Blackwell).
    """
    start_key, run_key = jax.random.split(key)
    potential, shapes = _collapsed(system)
    run = sample(
        jax.tree_util.Partial(_log_density, potential),
        _starts(potential, shapes, chains, start_key),
        run_key,
        warmup=warmup,
        samples=samples,
        leapfrog_steps=leapfrog_steps,
        observe=jax.tree_util.Partial(_moments, potential),
    )
    return _summary(system, run)


def _log_density(potential: Any, weights: Any) -> Float[Array, ""]:
    return potential(weights)


def langevin(
    system: Network,
    key: PRNGKeyArray,
    learning_rate: float | None = None,
    chains: int = 4,
    burn_in: int = 20_000,
    samples: int = 400,
    thin: int = 100,
) -> SampledNetwork | SampledOutputs | SampledPatches:
    """All weights by noisy full-batch gradient descent, W <- W (1 - eta T lambda) - eta grad loss + sqrt(2 eta T) xi, with the
    loss (1/2) sum_mu |y - f|^2 (Pacelli et al. 2023; Baglioni, Pacelli, Aiudi, Di Renzo, Vezzani, Burioni, Rotondo 2024).

    learning_rate: eta; None takes 0.1 / (largest curvature of the energy / T) / T. The discretisation error is of order eta.
    burn_in, samples, thin: steps before the first record, records of every chain, steps between them. The directions that the
    prior alone holds take 1/(eta T lambda) steps to relax.
    """
    start_key, readout_key, run_key = jax.random.split(key, 3)
    collapsed, shapes = _collapsed(system)
    variances = system.variances if isinstance(system, FullyConnected) else jnp.asarray(system.weight_variance, float)[None]
    deviations = jnp.sqrt(jnp.append(variances, jnp.asarray(system.readout_variance, float)))
    potential = Full(collapsed.features, deviations, collapsed.x, collapsed.y, collapsed.test, collapsed.temperature)
    hidden = _starts(collapsed, shapes, chains, start_key)
    columns = collapsed.features(jax.tree.map(lambda w: w[0], hidden), collapsed.x[:1]).size
    readout = deviations[-1] * jax.random.normal(readout_key, (chains, columns, collapsed.y.shape[1]))
    physical = tuple(w * deviation for w, deviation in zip(hidden, deviations))
    run = sample(
        jax.tree_util.Partial(_log_density, potential),
        (physical, readout),
        run_key,
        method="langevin",
        step_size=None if learning_rate is None else learning_rate * collapsed.temperature,
        warmup=burn_in,
        samples=samples,
        thin=thin,
        observe=jax.tree_util.Partial(_moments, potential),
    )
    return _summary(system, run)


def sampled_similarity(
    system: Network, key: PRNGKeyArray, chains: int = 4, warmup: int = 150, samples: int = 100, leapfrog_steps: int = 15
) -> Similarity:
    """Similarity matrices of the hidden layer averaged over the prior and over the posterior, measured.

    The renormalised kernel is the average over hidden layers times the measured order parameter.
    """
    start_key, run_key, prior_key = jax.random.split(key, 3)
    potential, shapes = _collapsed(system)
    run = sample(
        jax.tree_util.Partial(_log_density, potential),
        _starts(potential, shapes, chains, start_key),
        run_key,
        warmup=warmup,
        samples=samples,
        leapfrog_steps=leapfrog_steps,
        observe=jax.tree_util.Partial(_kernel_and_order, potential),
    )
    after, order = (jnp.mean(values, axis=(0, 1)) for values in run.observables)
    draws = jax.vmap(partial(draw, shapes))(jax.random.split(prior_key, chains * samples))
    before = jnp.mean(jax.lax.map(partial(_kernel, potential), draws), axis=0)
    y = potential.y[:, 0]
    return Similarity(before, after, order * before, alignment(before, y), alignment(after, y))


def _kernel(potential: Collapsed, weights: Weights) -> Float[Array, "train train"]:
    phi = potential.features(weights, potential.x).reshape(potential.y.shape[0], -1)
    return phi @ phi.T


def _kernel_and_order(potential: Collapsed, weights: Weights) -> tuple[Float[Array, "train train"], Float[Array, ""]]:
    order = potential.moments(weights).order
    return _kernel(potential, weights), jnp.trace(order) / order.shape[0]
