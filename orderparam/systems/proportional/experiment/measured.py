"""What is measured on sampled networks, under the names of the theory."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.sampling import Samples
from orderparam.systems.proportional.experiment.potentials import Moments
from orderparam.systems.proportional.model import FullyConnected, Network
from orderparam.systems.proportional.theory.hidden_kernel import Similarity
from orderparam.systems.proportional.theory.losses import Prediction, PredictionOfSeveral, losses


class SampledNetwork(Prediction):
    """What was measured on a fully connected network; the names are those of the theory.

    order_parameters: |v|^2 / (N r) of the read-out at the last place; NaN for the layers below, whose order parameters are no
    plain average over weights. mean_scales: (v_i^2 - v_i v_j) / r, i and j different units, the same way.
    r_hat, effective_samples: the worst of the losses and the order parameter, over chains that started at random and chains
    that started at the bottom of the energy. converged: r_hat < 1.05 and 100 effective samples.
    """

    order_parameters: Float[Array, "layer"]
    mean_scales: Float[Array, "layer"]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


class SampledOutputs(PredictionOfSeveral):
    """As `SampledNetwork`, with order_parameters v_a . v_b / (N r) of the outputs.

    covariance: posterior covariance of the outputs, averaged over the test points.
    """

    order_parameters: Float[Array, "output other"]
    mean_scales: Float[Array, "output other"]
    covariance: Float[Array, "output other"]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


class SampledPatches(Prediction):
    """As `SampledNetwork`, with order_parameters (1 / (N_c r)) sum_c v_ci v_cj of the patches."""

    order_parameters: Float[Array, "patch other"]
    mean_scales: Float[Array, "patch other"]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


class SampledPatchOutputs(PredictionOfSeveral):
    """As `SampledPatches` with several outputs: Q of (patch i, output a) and (patch j, output b), in this order of the axes."""

    order_parameters: Float[Array, "patch output other_patch other_output"]
    mean_scales: Float[Array, "patch output other_patch other_output"]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


class SampledSimilarity(Similarity):
    """Measured similarity matrices. r_hat, effective_samples, converged: of the alignment after learning."""

    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


Measured = SampledNetwork | SampledOutputs | SampledPatches | SampledPatchOutputs


def summary(system: Network, run: Samples) -> Measured:
    """Posterior averages from the recorded `Moments`."""
    y = system.train[1]
    test_targets = jnp.asarray(system.test_targets, float)
    flat_targets = test_targets.reshape(test_targets.shape[0], -1)
    recorded: Moments = run.observables
    count, outputs = y.shape[0], flat_targets.shape[1]

    def average(values: Array) -> Array:
        return jnp.mean(values, axis=(0, 1))

    residual, mean = average(recorded.residual), average(recorded.mean)
    train_bias = jnp.sum(residual**2) / count
    variance = average(recorded.variance[..., None] + (recorded.mean - mean) ** 2)
    estimates: Moments = run.estimates
    health: list[Any] = [estimates.train_error, estimates.test_error, estimates.length]
    shape = test_targets.shape
    fields = {
        **losses(
            train_bias, jnp.mean(recorded.train_error) - train_bias, mean.reshape(shape), variance.reshape(shape), test_targets
        ),
        "r_hat": jnp.max(jnp.stack([one.r_hat for one in health])),
        "effective_samples": jnp.min(jnp.stack([one.ess for one in health])),
        "converged": jnp.all(jnp.stack([one.reliable for one in health])),
    }
    scales = {"order_parameters": average(recorded.order), "mean_scales": average(recorded.mean_scales)}
    several = system.targets.ndim == 2
    if isinstance(system, FullyConnected):
        if several:
            spread = recorded.mean - mean
            covariance = average(jnp.einsum("...ta,...tb->...ab", spread, spread)) / mean.shape[0]
            covariance += jnp.mean(recorded.variance) * jnp.eye(outputs)
            return SampledOutputs(**fields, **scales, covariance=covariance)
        unknown = jnp.full(system.depth, jnp.nan)
        return SampledNetwork(**fields, **{name: unknown.at[-1].set(value[0, 0]) for name, value in scales.items()})
    patches = system.patch_count
    if system.pooled:
        scales = {name: jnp.kron(jnp.ones((patches, patches)) / patches, value) for name, value in scales.items()}
    if several:
        form = (patches, outputs, patches, outputs)
        return SampledPatchOutputs(**fields, **{name: value.reshape(form) for name, value in scales.items()})
    return SampledPatches(**fields, **scales)
