"""The measured spectrum of the features of a training set, before and after the step."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.gaussian.draws import normal
from orderparam.systems.one_step.experiment import features, train_first_layer
from orderparam.systems.one_step.theory.conditional import moments
from orderparam.systems.one_step.theory.first_step import first_layer
from orderparam.systems.one_step.theory.spectrum import FeatureMatrix


class MeasuredSpectrum(Result):
    """Of one network and one training set; every observable means what it means in `BinnedSpectrum`."""

    eigenvalue: Float[Array, "bin"]
    density: Float[Array, "bin"]
    edge: Float[Array, ""]
    mean_eigenvalue: Float[Array, ""]


@experiment
def measured_spectrum(system: FeatureMatrix, key: PRNGKeyArray) -> MeasuredSpectrum:
    """Eigenvalues of (1/p) Phi^T Phi counted in bins: a real step on a real batch, then fresh inputs."""
    layer_key, input_key = jax.random.split(key)
    learner = system.learner
    taken = learner if system.trained else learner.with_(step=0.0)
    layer = train_first_layer(taken, layer_key)
    dimension = learner.size("input_dim")
    inputs = normal(input_key, max(1, round(float(learner.sample_ratio) * dimension)), dimension)
    matrix, _ = features(learner.activation, layer.weights, inputs)
    width = len(layer.weights)
    values = jnp.linalg.eigvalsh(matrix.T @ matrix)
    edges = system.edges
    counts = jnp.histogram(values, edges)[0]
    known = first_layer(taken)
    mean = moments(learner.activation, known.spikes * jnp.array([-1.0, 1.0]), known.bulk_norms).mean
    outlier = bool(jnp.max(jnp.abs(mean)) > 1e-8)
    return MeasuredSpectrum(
        eigenvalue=jnp.sqrt(edges[1:] * edges[:-1]),
        density=counts / (width * jnp.diff(edges)),
        edge=values[-2] if outlier else values[-1],
        mean_eigenvalue=values[-1] if outlier else jnp.zeros(()),
    )
