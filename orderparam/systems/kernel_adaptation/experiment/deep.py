"""The posterior of a deep network on its training set, by HMC over all hidden weights; the read-out is integrated exactly."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.kernels.readout import condition_readout, log_evidence
from orderparam.sampling import estimate, sample
from orderparam.systems.kernel_adaptation.gaussianity import gaussianity_of_all
from orderparam.systems.kernel_adaptation.model_deep import DeepNetwork
from orderparam.systems.kernel_adaptation.theory.deep import DeepPrediction
from orderparam.systems.kernel_adaptation.theory.given_data import OnTestSet, on_test_set

DIRECTIONS = ("weights, teacher", "weights, random", "pre-activations, target", "pre-activations, random")

Weights = tuple[Float[Array, "unit fan_in"], ...]


class DeepPosterior(eqx.Module):
    """Log density of whitened weights: W_0 = sqrt(v/d) u_0, W_l = sqrt(hidden variance / N_l) u_l."""

    system: DeepNetwork

    def layers(self, u: Weights, x: Float[Array, "example input"]) -> list[Float[Array, "example unit"]]:
        """Pre-activations of all hidden layers."""
        system = self.system
        h = [jnp.sqrt(jnp.asarray(system.weight_variance, float) / x.shape[1]) * x @ u[0].T]
        for weights in u[1:]:
            h.append(jnp.sqrt(jnp.asarray(system.hidden_variance, float) / weights.shape[1]) * system.phi(h[-1]) @ weights.T)
        return h

    def features(self, last: Float[Array, "example unit"]) -> Float[Array, "example unit"]:
        """sqrt(read-out variance / N_L) phi(h_L), so that K = features features^T."""
        return jnp.sqrt(jnp.asarray(self.system.readout_variance, float) / last.shape[1]) * self.system.phi(last)

    def __call__(self, u: Weights) -> Float[Array, ""]:
        system = self.system
        evidence = log_evidence(self.features(self.layers(u, system.inputs)[-1]), system.targets[:, None], system.temperature)
        return evidence - sum(jnp.sum(part**2) for part in u) / 2


class _Recorded(eqx.Module):
    train_mean: Float[Array, "train"]
    mean: Float[Array, "test"]
    covariance: Float[Array, "input other"]
    preactivations: Float[Array, "layer train second"]
    weights: Float[Array, "unit two"]
    hidden: Float[Array, "unit two"]


class SampledDeepNetwork(OnTestSet):
    """Posterior averages; fields as in `theory.deep.DeepPrediction`. Error bars are those of the Markov chains.

    deviation: |H - H_theory| / |H_theory| (Frobenius norm) of each layer's pre-activations; prior_deviation: the same against
        the infinitely wide network.
    Directions: weights of the first layer along the teacher (the first input axis) and along a random unit vector, times
    sqrt(d/v); pre-activations of the last hidden layer along the target y/|y| and along a random unit vector of the training set.
        variance, variance_error, kurtosis, kurtosis_error: of the sampled neurons. expected: variance in theory; prior_variance:
        that of the infinitely wide network. distance, effective_values, p_value: test against N(0, expected), see `Gaussianity`.
        density: in bins of equal width over +-4 standard deviations of the theory.
    r_hat, effective_samples: worst over learnabilities, spread and on_target. converged: R-hat < 1.05, 100 effective samples.
    """

    train_mean: Float[Array, "train"]
    train_learnability: Float[Array, ""]
    train_learnability_error: Float[Array, ""]
    spread_error: Float[Array, ""]
    preactivations: Float[Array, "layer train second"]
    on_target: Float[Array, "layer"]
    on_target_error: Float[Array, "layer"]
    deviation: Float[Array, "layer"]
    prior_deviation: Float[Array, "layer"]
    variance: Float[Array, "direction"]
    variance_error: Float[Array, "direction"]
    kurtosis: Float[Array, "direction"]
    kurtosis_error: Float[Array, "direction"]
    expected: Float[Array, "direction"]
    prior_variance: Float[Array, "direction"]
    distance: Float[Array, "direction"]
    effective_values: Float[Array, "direction"]
    p_value: Float[Array, "direction"]
    density: Float[Array, "direction bin"]
    acceptance: Float[Array, ""]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


BINS = 41
REACH = 4.0


def directions(system: DeepNetwork) -> tuple[Float[Array, "input two"], Float[Array, "train two"]]:
    """Unit vectors: (w_*, random) for the input weights and (y/|y|, random) for the pre-activations; random but always the same."""
    first, second = jax.random.split(jax.random.key(2023))
    train, dim = system.inputs.shape
    random, other = jax.random.normal(first, (dim,)), jax.random.normal(second, (train,))
    y = jnp.asarray(system.targets, float)
    unit = [jnp.eye(dim)[0], random / jnp.linalg.norm(random)], [y / jnp.linalg.norm(y), other / jnp.linalg.norm(other)]
    return jnp.stack(unit[0], axis=1), jnp.stack(unit[1], axis=1)


def projected_variances(system: DeepNetwork, prediction: DeepPrediction) -> Float[Array, "direction"]:
    """Variances along `DIRECTIONS` in theory."""
    inputs, points = directions(system)
    on_weights = jnp.einsum("ij,ia,ja->a", prediction.covariance, inputs, inputs)
    return jnp.concatenate([on_weights, jnp.einsum("ij,ia,ja->a", prediction.preactivations[-1], points, points)])


def sampled_deep_network(
    system: DeepNetwork,
    key: PRNGKeyArray,
    theory: DeepPrediction,
    prior: DeepPrediction,
    chains: int = 2,
    warmup: int = 200,
    samples: int = 300,
    leapfrog_steps: int = 10,
) -> SampledDeepNetwork:
    """The network itself, with at least two hidden layers, chains from prior draws.

    theory, prior: `deep_gaussian_layers(system)` and `deep_gaussian_process(system)`, with which the samples are compared.
    Raises `ValueError` for a network of one hidden layer.
    """
    if system.depth < 2:
        raise ValueError(
            f"relative_widths = {system.relative_widths}: must have at least two hidden layers (see sampled_network)"
        )
    start_key, run_key = jax.random.split(key)
    posterior = DeepPosterior(system)
    run = sample(
        jax.tree_util.Partial(_log_density, posterior),
        _starts(system, chains, start_key),
        run_key,
        warmup=warmup,
        samples=samples,
        leapfrog_steps=leapfrog_steps,
        observe=jax.tree_util.Partial(_record, posterior),
    )
    return _summary(system, run.observables, run.acceptance_rate, theory, prior)


def _log_density(posterior: DeepPosterior, u: Weights) -> Array:
    return posterior(u)


def _starts(system: DeepNetwork, chains: int, key: PRNGKeyArray) -> Weights:
    widths = [round(float(width)) for width in system.widths]
    sizes = zip(jax.random.split(key, len(widths)), widths, [system.inputs.shape[1], *widths])
    return tuple(jax.random.normal(own, (chains, width, fan_in)) for own, width, fan_in in sizes)


def _record(posterior: DeepPosterior, u: Weights) -> _Recorded:
    system = posterior.system
    h, h_test = posterior.layers(u, system.inputs), posterior.layers(u, system.test_inputs)
    features = posterior.features(h[-1])
    readout = condition_readout(features, system.targets[:, None], system.temperature).mean[:, 0]
    inputs, points = directions(system)
    return _Recorded(
        train_mean=features @ readout,
        mean=posterior.features(h_test[-1]) @ readout,
        covariance=u[0].T @ u[0] / u[0].shape[0],
        preactivations=jnp.stack([layer @ layer.T / layer.shape[1] for layer in h[1:]]),
        weights=u[0] @ inputs,
        hidden=h[-1].T @ points,
    )


def _summary(
    system: DeepNetwork, recorded: _Recorded, acceptance: Array, theory: DeepPrediction, prior: DeepPrediction
) -> SampledDeepNetwork:
    y = jnp.asarray(system.targets, float)
    averages = jax.tree.map(lambda values: jnp.mean(values, axis=(0, 1)), recorded)
    learned = recorded.train_mean @ y / (y @ y)
    on_target = jnp.einsum("cdlij,i,j->cdl", recorded.preactivations, y, y) / (y @ y)
    tested = recorded.mean @ system.test_targets / (system.test_targets @ system.test_targets)
    spread = recorded.covariance[..., 0, 0]
    health = estimate(jnp.concatenate([jnp.stack([learned, spread, tested], axis=-1), on_target], axis=-1))
    expected, wide = projected_variances(system, theory), projected_variances(system, prior)
    parts = [
        gaussianity_of_all(recorded.weights, expected[:2]),
        gaussianity_of_all(recorded.hidden, expected[2:]),
    ]
    tests = {name: jnp.concatenate([getattr(part, name) for part in parts]) for name in type(parts[0]).dims()}
    projections = [recorded.weights[..., 0], recorded.weights[..., 1], recorded.hidden[..., 0], recorded.hidden[..., 1]]
    return SampledDeepNetwork(
        **on_test_set(system, averages.mean, averages.covariance),
        train_mean=averages.train_mean,
        train_learnability=health.mean[0],
        train_learnability_error=health.standard_error[0],
        spread_error=health.standard_error[1],
        preactivations=averages.preactivations,
        on_target=health.mean[3:],
        on_target_error=health.standard_error[3:],
        deviation=_distance(averages.preactivations, theory.preactivations),
        prior_deviation=_distance(averages.preactivations, prior.preactivations),
        **tests,
        prior_variance=wide,
        density=jnp.stack([_histogram(values, jnp.sqrt(e)) for values, e in zip(projections, expected)]),
        acceptance=jnp.mean(acceptance),
        r_hat=jnp.max(health.r_hat),
        effective_samples=jnp.min(health.ess),
        converged=jnp.all(health.reliable),
    )


def _distance(found: Float[Array, "layer train second"], other: Float[Array, "layer train second"]) -> Float[Array, "layer"]:
    def norm(matrices: Array) -> Array:
        return jnp.sqrt(jnp.sum(matrices**2, axis=(1, 2)))

    return norm(found - other) / norm(other)


def _histogram(values: Array, deviation: Array) -> Float[Array, "bin"]:
    edges = deviation * jnp.linspace(-REACH, REACH, BINS + 1)
    return jnp.histogram(values.ravel(), edges)[0] / values.size / (edges[1] - edges[0])
