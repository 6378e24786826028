"""Convolutional networks of three layers, sampled from their posterior by Hamiltonian Monte Carlo
over all filters, with the read-out integrated out exactly."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.needs import at_least
from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.kernels.readout import condition_readout, log_evidence
from orderparam.sampling import estimate, sample
from orderparam.sampling.result import FromChains, of_chains
from orderparam.systems.kernel_adaptation.convolutional.model import ConvolutionalOnData
from orderparam.systems.kernel_adaptation.convolutional.theory import directions, wide_scale
from orderparam.systems.kernel_adaptation.gaussianity import along_directions

DIRECTIONS = (
    "filters, teacher",
    "filters, random",
    "pre-activations, teacher",
    "pre-activations, random",
)
BINS, REACH = 31, 4.0
PRIOR_NETWORKS = 400  # networks before training, in every run

Filters = tuple[Float[Array, "channel input"], Float[Array, "channel weight"]]


class _Recorded(eqx.Module):
    test: Float[Array, ""]
    train: Float[Array, ""]
    values: Float[Array, "direction channel"]


class ConvolutionalPosterior(eqx.Module):
    """Log density of the whitened filters of both layers: the log prior plus the log evidence of
    the features of the second layer. `unit` is the mean variance of a pre-activation of the second
    layer at infinite width."""

    system: ConvolutionalOnData
    unit: Float[Array, ""]

    def second(
        self, u: Filters, x: Float[Array, "example patch input"]
    ) -> Float[Array, "example group channel"]:
        """Pre-activations of the second layer."""
        system, examples = self.system, x.shape[0]
        h = jnp.sqrt(system.weight_variance / x.shape[2]) * x @ u[0].T
        below = system.activation(h).reshape(examples, system.groups, -1)
        return jnp.sqrt(system.hidden_variance / below.shape[2]) * below @ u[1].T

    def features(
        self, layer: Float[Array, "example group channel"]
    ) -> Float[Array, "example feature"]:
        """Features Phi that the read-out sees; Phi Phi^T is the kernel of the output."""
        phi = self.system.activation(layer).reshape(layer.shape[0], -1)
        return jnp.sqrt(self.system.readout_variance / phi.shape[1]) * phi

    def __call__(self, u: Filters) -> Float[Array, ""]:
        system = self.system
        features = self.features(self.second(u, system.inputs))
        evidence = log_evidence(features, system.targets[:, None], system.temperature)
        return evidence - sum(jnp.sum(part**2) for part in u) / 2

    def values(
        self, u: Filters, layer: Float[Array, "example group channel"]
    ) -> Float[Array, "direction channel"]:
        """Components along `DIRECTIONS` of the filters of the first layer and of the
        pre-activations of the second layer."""
        of_filters, of_points = directions(self.system)
        on_points = layer.reshape(-1, layer.shape[2]).T @ of_points / jnp.sqrt(self.unit)
        return jnp.concatenate([(u[0] @ of_filters).T, on_points.T])

    def record(self, u: Filters) -> _Recorded:
        """The observables of one draw."""
        system, y, y_test = self.system, self.system.targets, self.system.test_targets
        layer = self.second(u, system.inputs)
        features = self.features(layer)
        readout = condition_readout(features, y[:, None], system.temperature).mean[:, 0]
        test = self.features(self.second(u, system.test_inputs)) @ readout
        return _Recorded(
            test @ y_test / (y_test @ y_test),
            features @ readout @ y / (y @ y),
            self.values(u, layer),
        )

    def draw(self, count: int, key: PRNGKeyArray) -> Filters:
        """The filters of `count` networks of the prior."""
        channels = self.system.size("channels")
        _, patches, dim = self.system.inputs.shape
        weights = channels * patches // self.system.groups
        first, second = jax.random.split(key)
        return (
            jax.random.normal(first, (count, channels, dim)),
            jax.random.normal(second, (count, channels, weights)),
        )


class SampledConvolutional(FromChains, Result):
    """Posterior averages of a convolutional network, with the laws of its filters and of the
    pre-activations of its second layer along the four directions of `ConvolutionalPrediction`.

    "Before" are networks of the prior with the same number of channels.

    Fields:
        total_learnability: mean . y / y . y of the posterior mean at the test points.
        train_learnability: this ratio at the training points.
        variance: variance over channels and draws along each direction, in the units of
            `ConvolutionalPrediction`.
        variance_before: `variance` before training.
        excess_kurtosis: excess kurtosis along each direction, 0 for a Gaussian law.
        excess_kurtosis_before: `excess_kurtosis` before training.
        distance: largest difference between the distribution function of the values along each
            direction and that of a Gaussian of equal mean and variance.
        p_value: p-value of this distance (see `gaussianity`).
        bin_centre: centres of bins of equal width over (-4, 4).
        density: density along each direction in these bins.
        density_before: `density` before training.
        r_hat: largest R-hat of learnabilities and variances.
        effective_samples: smallest effective sample size of the same observables.
    """

    total_learnability: Float[Array, ""]
    train_learnability: Float[Array, ""]
    variance: Float[Array, "direction"]
    variance_before: Float[Array, "direction"]
    excess_kurtosis: Float[Array, "direction"]
    excess_kurtosis_before: Float[Array, "direction"]
    distance: Float[Array, "direction"]
    p_value: Float[Array, "direction"]
    bin_centre: Float[Array, "bin"]
    density: Float[Array, "direction bin"]
    density_before: Float[Array, "direction bin"]


@experiment(needs={"samples": at_least(4)})  # a kurtosis and its error
def sampled_convolutional_network(
    system: ConvolutionalOnData,
    key: PRNGKeyArray,
    *,
    chains: int = 2,
    warmup: int = 150,
    samples: int = 150,
    leapfrog_steps: int = 12,
) -> SampledConvolutional:
    r"""Posterior averages of a convolutional network of three layers on a given training set, by
    Hamiltonian Monte Carlo over the filters of both layers.

    The read-out is integrated out exactly: the density is the prior of the filters times the
    evidence $N(y; 0, K + T)$, with K the kernel of the second layer's features and T the
    `temperature`. Chains start from draws of the prior.

    Args:
        chains: number of chains, at least 2 for `r_hat`. Default 2.
        warmup: steps of a chain that tune the step size and are discarded. Default 150.
        samples: draws of every chain. Default 150.
        leapfrog_steps: leapfrog steps of a trajectory. Default 12.

    Raises:
        ValueError: for fewer than 4 draws.

    Accuracy: statistical; see `r_hat` and `effective_samples`.

    Source: Seroussi, Naveh, Ringel (2023).

    >>> import jax
    >>> from orderparam.systems.kernel_adaptation import teacher_data
    >>> data = ConvolutionalOnData(*teacher_data(5, 3, groups=2, group=2, patch_dim=3), 4, 0.5)
    >>> found = sampled_convolutional_network(data, jax.random.key(0), warmup=50, samples=40)
    >>> found.variance.shape, found.density.shape
    ((4,), (4, 31))
    """
    start_key, run_key, prior_key = jax.random.split(key, 3)
    posterior = ConvolutionalPosterior(system, wide_scale(system))
    run = sample(
        posterior,
        posterior.draw(chains, start_key),
        run_key,
        warmup=warmup,
        samples=samples,
        leapfrog_steps=leapfrog_steps,
        observe=posterior.record,
    )
    recorded = run.observables
    # directions first, (chain, draw, channel) each
    after = jnp.moveaxis(recorded.values, 2, 0)
    before = _before(posterior, posterior.draw(PRIOR_NETWORKS, prior_key))
    monitored = [recorded.test, recorded.train, *jnp.mean(after**2, axis=-1)]
    health = estimate(jnp.stack(monitored, axis=-1))
    shape, shape_before = along_directions(list(after)), along_directions(list(before))
    edges = jnp.linspace(-REACH, REACH, BINS + 1)
    return SampledConvolutional(
        **of_chains(run, health),
        total_learnability=health.mean[0],
        train_learnability=health.mean[1],
        variance=health.mean[2:],
        variance_before=jnp.mean(before**2, axis=(1, 2, 3)),
        excess_kurtosis=shape.excess_kurtosis,
        excess_kurtosis_before=shape_before.excess_kurtosis,
        distance=shape.distance,
        p_value=shape.p_value,
        bin_centre=(edges[1:] + edges[:-1]) / 2,
        density=_densities(after, edges),
        density_before=_densities(before, edges),
    )


@eqx.filter_jit
def _before(
    posterior: ConvolutionalPosterior, drawn: Filters
) -> Float[Array, "direction one network channel"]:
    def values(u: Filters) -> Array:
        return posterior.values(u, posterior.second(u, posterior.system.inputs))

    return jnp.moveaxis(jax.lax.map(values, drawn), 1, 0)[:, None]


def _densities(
    values: Float[Array, "direction chain draw channel"], edges: Float[Array, "edge"]
) -> Float[Array, "direction bin"]:
    width = edges[1] - edges[0]
    return jnp.stack([jnp.histogram(one.ravel(), edges)[0] / one.size / width for one in values])
