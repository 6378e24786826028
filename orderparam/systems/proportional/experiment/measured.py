"""What is measured on sampled networks, under the names of the theory."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.sampling import Samples, estimate
from orderparam.systems.proportional.experiment.potentials import Moments
from orderparam.systems.proportional.model import FullyConnected, Network
from orderparam.systems.proportional.theory.losses import Prediction, PredictionOfSeveral, losses


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


class SampledPatchOutputs(PredictionOfSeveral):
    """As `SampledPatches` with several outputs: Q of (patch i, output a) and (patch j, output b), in this order of the axes."""

    order_parameters: Float[Array, "patch output other_patch other_output"]
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
    train_error = (jnp.sum(recorded.residual**2, axis=(2, 3)) + recorded.spread) / count
    train_bias = jnp.sum(residual**2) / count
    variance = average(recorded.variance[..., None] + (recorded.mean - mean) ** 2)
    test_error = jnp.mean(jnp.sum((recorded.mean - flat_targets) ** 2, axis=-1) + outputs * recorded.variance, axis=-1)
    trace = jnp.trace(recorded.order, axis1=-2, axis2=-1)
    health = estimate(jnp.stack([train_error, test_error, trace], axis=-1))
    shape = test_targets.shape
    fields = {
        **losses(
            train_bias, jnp.mean(train_error) - train_bias, mean.reshape(shape), variance.reshape(shape), test_targets
        ),
        "r_hat": jnp.max(health.r_hat),
        "effective_samples": jnp.min(health.ess),
        "converged": jnp.all(health.reliable),
    }
    order = average(recorded.order)
    several = system.targets.ndim == 2
    if isinstance(system, FullyConnected):
        if several:
            return SampledOutputs(**fields, order_parameters=order)
        return SampledNetwork(**fields, order_parameters=jnp.full(system.depth, jnp.nan).at[-1].set(order[0, 0]))
    patches = system.patch_count
    if system.pooled:
        order = jnp.kron(jnp.ones((patches, patches)) / patches, order)
    if several:
        return SampledPatchOutputs(**fields, order_parameters=order.reshape(patches, outputs, patches, outputs))
    return SampledPatches(**fields, order_parameters=order)
