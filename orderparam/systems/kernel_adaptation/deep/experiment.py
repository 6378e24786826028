"""Posteriors of deep networks on a training set, sampled by Hamiltonian Monte Carlo over all hidden
weights with the read-out integrated out exactly.

The sampler also solves the equations of kernel adaptation without an ansatz for the law of the
layers. Take R N_l units in layer l and the density

    prior(all weights) * p(y | K_R)^R,
    K_R the kernel of R N_L units,  p(y | K) = N(y; 0, K + T).

Given the layer below, the pre-activations of a layer are R N_l independent draws of N(0, Q_l).
Minus the logarithm of the density is therefore R times the free energy of `deep.theory`, with the
divergences of the layers' full laws in place of those of Gaussian laws. For R -> infinity the
density concentrates at the minimum of this free energy, where the units are independent of one
another in the mean field of all units. R = 1 is the network itself. Derived for this package.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment, theory
from orderparam.kernels.readout import condition_readout, log_evidence
from orderparam.sampling import Samples, estimate, sample
from orderparam.sampling.result import FromChains, of_chains
from orderparam.systems.kernel_adaptation.deep.model import DeepNetworkOnData
from orderparam.systems.kernel_adaptation.deep.theory import (
    DeepPrediction,
    deep_gaussian_layers,
    deep_gaussian_process,
)
from orderparam.systems.kernel_adaptation.gaussianity import along_directions
from orderparam.systems.kernel_adaptation.on_data.experiment import check_particles
from orderparam.systems.kernel_adaptation.on_data.model import OnTestSet, on_test_set

DIRECTIONS = (
    "weights, teacher",
    "weights, random",
    "pre-activations, target",
    "pre-activations, random",
)
BINS, REACH = 41, 4.0

HiddenWeights = tuple[Float[Array, "unit fan_in"], ...]


class _Recorded(eqx.Module):
    train_mean: Float[Array, "train"]
    mean: Float[Array, "test"]
    covariance: Float[Array, "input other"]
    preactivations: Float[Array, "layer train second"]
    weights: Float[Array, "unit two"]
    hidden: Float[Array, "unit two"]


class DeepPosterior(eqx.Module):
    """Log density of whitened weights u, with W_0 = sqrt(v/d) u_0 and W_l = sqrt(hidden variance /
    units below) u_l: the log prior plus `replicas` times the log evidence.
    """

    system: DeepNetworkOnData
    replicas: float | Float[Array, ""] = 1.0

    def layers(
        self, u: HiddenWeights, x: Float[Array, "example input"]
    ) -> list[Float[Array, "example unit"]]:
        """Pre-activations of all hidden layers."""
        system = self.system
        h = [jnp.sqrt(system.weight_variance / x.shape[1]) * x @ u[0].T]
        for weights in u[1:]:
            h.append(
                jnp.sqrt(system.hidden_variance / weights.shape[1])
                * system.activation(h[-1])
                @ weights.T
            )
        return h

    def features(self, last: Float[Array, "example unit"]) -> Float[Array, "example unit"]:
        """The features sqrt(read-out variance / N_L) phi(h_L), so that K = features features^T."""
        return jnp.sqrt(self.system.readout_variance / last.shape[1]) * self.system.activation(last)

    def __call__(self, u: HiddenWeights) -> Float[Array, ""]:
        system = self.system
        evidence = log_evidence(
            self.features(self.layers(u, system.inputs)[-1]),
            system.targets[:, None],
            system.temperature,
        )
        return self.replicas * evidence - sum(jnp.sum(part**2) for part in u) / 2

    def record(self, u: HiddenWeights) -> _Recorded:
        """The observables of one draw."""
        system = self.system
        h, h_test = self.layers(u, system.inputs), self.layers(u, system.test_inputs)
        features = self.features(h[-1])
        readout = condition_readout(features, system.targets[:, None], system.temperature).mean[
            :, 0
        ]
        inputs, points = directions(system)
        return _Recorded(
            train_mean=features @ readout,
            mean=self.features(h_test[-1]) @ readout,
            covariance=u[0].T @ u[0] / u[0].shape[0],
            preactivations=jnp.stack([layer @ layer.T / layer.shape[1] for layer in h[1:]]),
            weights=u[0] @ inputs,
            hidden=h[-1].T @ points,
        )

    def starts(self, chains: int, key: PRNGKeyArray) -> HiddenWeights:
        """Prior draws of all hidden weights, one for each chain."""
        widths = [round(float(self.replicas * width)) for width in self.system.widths]
        sizes = zip(
            jax.random.split(key, len(widths)), widths, [self.system.inputs.shape[1], *widths]
        )
        return tuple(
            jax.random.normal(own, (chains, width, fan_in)) for own, width, fan_in in sizes
        )


def directions(
    system: DeepNetworkOnData,
) -> tuple[Float[Array, "input two"], Float[Array, "train two"]]:
    """Unit vectors along which weights and pre-activations are observed: (w_*, random) for the
    input weights and (y/|y|, random) for the pre-activations. The random vectors are the same in
    every run.
    """
    first, second = jax.random.split(jax.random.key(2023))
    train, dim = system.inputs.shape
    random, other = jax.random.normal(first, (dim,)), jax.random.normal(second, (train,))
    inputs, points = (jnp.eye(dim)[0], random), (system.targets, other)
    on_inputs, on_points = (
        jnp.stack([v / jnp.linalg.norm(v) for v in pair], axis=1) for pair in (inputs, points)
    )
    return on_inputs, on_points


class SampledDeepNetwork(OnTestSet, FromChains):
    """Posterior averages of a deep network, with the laws of its weights and pre-activations along
    four directions.

    The directions are, for the weights of the first layer (times sqrt(d/v)), the teacher's
    direction (the first input axis) and a random unit vector; and, for the pre-activations of the
    last hidden layer, the target y/|y| and a random unit vector over the training set. Standard
    errors are those of the Markov chains.

    Fields:
        train_mean: posterior mean of f at the training points.
        train_learnability: train_mean . y / y . y.
        train_learnability_error: standard error of `train_learnability`.
        spread_error: standard error of `spread`.
        preactivations: covariances of the pre-activations of layers l = 2..L at the training
            points.
        on_target: y^T H_l y / y . y of these layers.
        on_target_error: standard error of `on_target`.
        deviation: |H - H_theory| / |H| (Frobenius norm) of each layer's pre-activations, with
            `deep_gaussian_layers` as the theory.
        prior_deviation: |H - H_prior| / |H| with the infinitely wide network as the theory.
        variance: variance over the sampled neurons along each direction.
        variance_error: standard error of `variance`.
        excess_kurtosis: excess kurtosis over the sampled neurons along each direction.
        kurtosis_error: its standard error.
        expected: variance along each direction that `deep_gaussian_layers` predicts.
        prior_variance: variance along each direction in the infinitely wide network.
        distance: distance of the Kolmogorov-Smirnov test against N(0, expected).
        independent: number of independent values in this test.
        p_value: p-value of this test.
        p_value_of_shape: p-value against a Gaussian of the sampled variance (see `gaussianity`).
        bin_centre: centres of bins of equal width over (-4, 4).
        density: density of the values divided by sqrt(expected), in these bins.
        r_hat: largest R-hat of learnabilities, spread, on_target and variance.
        effective_samples: smallest effective sample size of the same observables.
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
    excess_kurtosis: Float[Array, "direction"]
    kurtosis_error: Float[Array, "direction"]
    expected: Float[Array, "direction"]
    prior_variance: Float[Array, "direction"]
    distance: Float[Array, "direction"]
    independent: Float[Array, "direction"]
    p_value: Float[Array, "direction"]
    p_value_of_shape: Float[Array, "direction"]
    bin_centre: Float[Array, "bin"]
    density: Float[Array, "direction bin"]


def projected_variances(
    system: DeepNetworkOnData, prediction: DeepPrediction
) -> Float[Array, "direction"]:
    """Variances along `DIRECTIONS` that follow from the prediction of a theory."""
    inputs, points = directions(system)
    on_weights = jnp.einsum("ij,ia,ja->a", prediction.covariance, inputs, inputs)
    return jnp.concatenate(
        [on_weights, jnp.einsum("ij,ia,ja->a", prediction.preactivations[-1], points, points)]
    )


def _check(system: DeepNetworkOnData, **_: object) -> None:
    if system.depth < 2:
        raise ValueError(
            f"relative_widths = {system.relative_widths}: must have two hidden layers or more (see "
            "sampled_on_data)"
        )


@experiment(check=_check)
def sampled_deep_network(
    system: DeepNetworkOnData,
    key: PRNGKeyArray,
    *,
    chains: int = 2,
    warmup: int = 150,
    samples: int = 200,
    leapfrog_steps: int = 10,
) -> SampledDeepNetwork:
    r"""Posterior averages of a deep network on a given training set, by Hamiltonian Monte Carlo
    over all hidden weights.

    The read-out is integrated out exactly: the density is the prior of the hidden weights times the
    evidence $p(y \mid K) = N(y; 0, K + T)$, with K the kernel of the last hidden layer's features
    and T the `temperature`. Chains start from prior draws. The result is compared with
    `deep_gaussian_layers` and `deep_gaussian_process` on the same data.

    Args:
        chains: number of chains, at least 2 for `r_hat`. Default 2.
        warmup: steps of a chain that tune the step size and are discarded. Default 150.
        samples: draws of every chain. Default 200.
        leapfrog_steps: leapfrog steps of a trajectory. Default 10.

    Raises:
        ValueError: for a network with one hidden layer.

    Accuracy: statistical; see `r_hat` and `effective_samples`.

    Source: Seroussi, Naveh, Ringel (2023).

    >>> import jax
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> data = DeepNetworkOnData(x[:5], x[:5, 0], x[5:], x[5:, 0], 8, 0.5, activation="linear")
    >>> found = sampled_deep_network(data, jax.random.key(0), warmup=20, samples=8)
    >>> found.preactivations.shape, found.density.shape
    ((1, 5, 5), (4, 41))
    """
    lengths = {"warmup": warmup, "samples": samples, "leapfrog_steps": leapfrog_steps}
    return _summary(system, _run(system, 1.0, key, chains, lengths))


class ParticleLayers(OnTestSet, FromChains):
    """Averages over particles, which solve kernel adaptation of a deep network with the full law of
    every layer.

    Fields:
        train_learnability: train_mean . y / y . y.
        train_learnability_error: standard error of the Markov chains.
        total_learnability_error: standard error of the Markov chains.
        spread_error: standard error of the Markov chains.
        on_target: y^T H_l y / y . y of the layers l = 2..L.
        on_target_error: standard errors of the Markov chains.
        residual: largest of the relative standard errors.
        r_hat: largest R-hat of learnabilities, spread and on_target.
        effective_samples: smallest effective sample size of the same observables.
    """

    train_learnability: Float[Array, ""]
    train_learnability_error: Float[Array, ""]
    total_learnability_error: Float[Array, ""]
    spread_error: Float[Array, ""]
    on_target: Float[Array, "layer"]
    on_target_error: Float[Array, "layer"]
    residual: Float[Array, ""]


def _check_theory(system: DeepNetworkOnData, **options: Any) -> None:
    _check(system)
    check_particles(system, **options)


@theory(traced=False, differentiable=False, check=_check_theory)
def deep_adapted_layers(
    system: DeepNetworkOnData,
    *,
    particles: int = 160,
    chains: int = 2,
    warmup: int = 150,
    samples: int = 150,
    leapfrog_steps: int = 10,
    seed: int = 0,
) -> ParticleLayers:
    r"""Kernel adaptation of a deep network with the full law of every layer's units, by particles.

    With R = particles / width, the density of the weights of R N_l units in layer l is

    $$ \mathrm{prior}(\mathrm{all\ weights})\; p(y \mid K_R)^R, \qquad
       p(y \mid K) = N(y; 0, K + T) $$

    with $K_R$ the kernel of the R $N_L$ units of the last layer and T the `temperature`. In the
    limit R -> infinity this minimises the free energy of `deep_gaussian_layers` without its
    Gaussian ansatz.

    Args:
        particles: number R N of units in a layer of relative width 1, at least `width`. Default
            160.
        chains: even number of chains. Default 2.
        warmup: steps of a chain that tune the step size and are discarded. Default 150.
        samples: draws of every chain. Default 150.
        leapfrog_steps: leapfrog steps of a trajectory. Default 10.
        seed: seed of the random numbers, which are the same for every system. Default 0.

    Raises:
        ValueError: for a network with one hidden layer, for fewer particles than units, and for an
            odd number of chains.

    Accuracy: errors of order 1/R, plus those of the Markov chains. Not differentiable.

    Source: derived here.

    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> data = DeepNetworkOnData(x[:5], x[:5, 0], x[5:], x[5:, 0], 4, 0.5, activation="linear")
    >>> deep_adapted_layers(data, particles=8, warmup=20, samples=8).on_target.shape
    (1,)
    """
    lengths = {"warmup": warmup, "samples": samples, "leapfrog_steps": leapfrog_steps}
    run = _run(system, particles / system.width, jax.random.key(seed), chains, lengths)
    averages = jax.tree.map(lambda values: jnp.mean(values, axis=(0, 1)), run.observables)
    health = estimate(jnp.stack(_judged(system, run.observables), axis=-1))
    error = health.standard_error
    return ParticleLayers(
        **on_test_set(system, averages.mean, averages.covariance),
        **of_chains(run, health),
        train_learnability=health.mean[0],
        train_learnability_error=error[0],
        spread_error=error[1],
        total_learnability_error=error[2],
        on_target=health.mean[3:],
        on_target_error=error[3:],
        residual=jnp.max(error / jnp.maximum(jnp.abs(health.mean), 1e-300)),
    )


def _run(
    system: DeepNetworkOnData,
    replicas: Any,
    key: PRNGKeyArray,
    chains: int,
    lengths: dict[str, Any],
) -> Samples:
    start_key, run_key = jax.random.split(key)
    posterior = DeepPosterior(system, jnp.asarray(replicas))
    return sample(
        posterior, posterior.starts(chains, start_key), run_key, observe=posterior.record, **lengths
    )


def _judged(system: DeepNetworkOnData, recorded: _Recorded) -> list[Array]:
    """The monitored observables of every draw: learnability on the training set, spread,
    learnability on test points, and on_target of every layer.
    """
    y, y_test = system.targets, system.test_targets
    return [
        recorded.train_mean @ y / (y @ y),
        recorded.covariance[..., 0, 0],
        recorded.mean @ y_test / (y_test @ y_test),
        *jnp.moveaxis(jnp.einsum("cdlij,i,j->cdl", recorded.preactivations, y, y) / (y @ y), -1, 0),
    ]


def _summary(system: DeepNetworkOnData, run: Samples) -> SampledDeepNetwork:
    theory, prior, recorded = (
        deep_gaussian_layers(system),
        deep_gaussian_process(system),
        run.observables,
    )
    averages = jax.tree.map(lambda values: jnp.mean(values, axis=(0, 1)), recorded)
    values = [part[..., i] for part in (recorded.weights, recorded.hidden) for i in range(2)]
    first, layers = _judged(system, recorded), system.depth - 1
    health = estimate(
        jnp.stack([*first, *(jnp.mean(value**2, axis=-1) for value in values)], axis=-1)
    )
    expected = projected_variances(system, theory)
    against_theory, of_shape = along_directions(values, expected.tolist()), along_directions(values)
    edges = jnp.linspace(-REACH, REACH, BINS + 1)
    return SampledDeepNetwork(
        **on_test_set(system, averages.mean, averages.covariance),
        **of_chains(run, health),
        train_mean=averages.train_mean,
        train_learnability=health.mean[0],
        train_learnability_error=health.standard_error[0],
        spread_error=health.standard_error[1],
        preactivations=averages.preactivations,
        on_target=health.mean[3 : 3 + layers],
        on_target_error=health.standard_error[3 : 3 + layers],
        deviation=_distance(averages.preactivations, theory.preactivations),
        prior_deviation=_distance(averages.preactivations, prior.preactivations),
        variance=health.mean[-4:],
        variance_error=health.standard_error[-4:],
        excess_kurtosis=of_shape.excess_kurtosis,
        kurtosis_error=of_shape.kurtosis_error,
        expected=expected,
        prior_variance=projected_variances(system, prior),
        distance=against_theory.distance,
        independent=against_theory.effective_samples,
        p_value=against_theory.p_value,
        p_value_of_shape=of_shape.p_value,
        bin_centre=(edges[1:] + edges[:-1]) / 2,
        density=jnp.stack(
            [
                jnp.histogram(value.ravel() / jnp.sqrt(variance), edges)[0]
                / value.size
                / (edges[1] - edges[0])
                for value, variance in zip(values, expected)
            ]
        ),
    )


def _distance(found: Array, other: Array) -> Float[Array, "layer"]:
    def norm(matrices: Array) -> Array:
        return jnp.sqrt(jnp.sum(matrices**2, axis=(1, 2)))

    return norm(found - other) / norm(found)
