"""What one gradient step makes of the first layer: a bulk and a spike, exactly as the input dimension grows.

With y the labels, c_1 = E[y theta.x], Y_2 = E y^2 and N_v = sqrt(c_1^2 + Y_2 d/n_B), the sum of y_i x_i over the batch has
the direction v with v.theta = c_1/N_v, and neuron j becomes

    w_j = bulk + u_j v,      u_j = step a_j^0 E[s'(z)] N_v,
    |bulk|^2 = c_j^2 = (1 + step a_j^0 E[y] E[z s'(z)])^2 + (step a_j^0)^2 Y_2 Var[s'(z)] d/n_B,      z ~ N(0, 1).

Ba, Erdogdu, Suzuki, Wang, Wu, Yang 2022 (arXiv:2205.01445); Dandi, Krzakala, Loureiro, Pesce, Stephan 2023
(arXiv:2305.18270); Cui et al. 2024 (arXiv:2402.04980). The bulk is not isotropic. The noise of the gradient is a matrix of rank
n_B: the bulk rows' covariance has eigenvalues of the relative variance `anisotropy`, which vanishes with large batches or small
steps. And where E[z s'(z)] and E[y ((theta.x)^2 - 1)] differ from 0, as for relu and labels that are not odd, rows are stretched
along the teacher by the share `stretch`, whatever the batch. Theories of an isotropic bulk are exact only as both vanish.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import expectation
from orderparam.losses import RealLabels, SignLabels
from orderparam.systems.one_step.model import OneStep, SpikedFeatures
from orderparam.systems.one_step.theory.curve import ReadoutCurve
from orderparam.systems.one_step.theory.isotropic import spiked_asymptotics

ISOTROPIC_BELOW = 0.05  # anisotropy at which errors of the isotropic theory reach a percent or two
STRETCH_BELOW = 0.1


class FirstLayer(Result):
    """The first layer after the step.

    spike_overlap: v.theta. spikes, bulk_norms: u_s and c_s of the groups of neurons.
    anisotropy:    variance of the eigenvalues of the bulk rows' covariance over their squared mean, the largest of the groups.
    stretch:       step a_j^0 E[z s'(z)] E[y ((theta.x)^2 - 1)] over the bulk's norm, the largest of the groups.
    isotropic:     whether the first is below 0.05 and the second below 0.1.
    learns:        whether E[y theta.x] and E[s'] differ from 0, without which the spike knows nothing of the teacher.
    unfitted_mean: mean of the labels that an odd activation cannot fit, otherwise 0.
    """

    spike_overlap: Float[Array, ""]
    spikes: Float[Array, "group"]
    bulk_norms: Float[Array, "group"]
    anisotropy: Float[Array, ""]
    stretch: Float[Array, ""]
    isotropic: Bool[Array, ""]
    learns: Bool[Array, ""]
    unfitted_mean: Float[Array, ""]


@theory
def first_layer(system: OneStep) -> FirstLayer:
    """The spike and the bulk of the module's equations, and whether they can be trusted."""
    labels = system.labels.moments(0.0, 1.0)
    linear, power, mean = labels.slope, labels.power, labels.mean
    slope, tilt, spread = _slopes(system)
    reach = jnp.sqrt(linear**2 + power / system.batch_ratio)
    pushes = system.step * system.readout
    noise = pushes**2 * power * spread / system.batch_ratio
    bulk = (1 + pushes * mean * tilt) ** 2 + noise
    quadratic, fourth = _even_moments(system)
    # Rows have the covariance (1 + b S_1)^2 + e S_2 with S_k = mean of y^k x x^T over the batch, b = push E z s', e = noise/Y_2.
    bend = pushes * tilt
    wavering = noise**2 * fourth / power**2 + 4 * bend**2 * (1 + bend * mean) ** 2 * power
    anisotropy = jnp.max(wavering / system.batch_ratio / bulk**2)
    stretch = jnp.max(jnp.abs(bend * quadratic) / jnp.sqrt(bulk))
    odd = system.activation.parity == "odd"
    return FirstLayer(
        spike_overlap=linear / reach,
        spikes=pushes * slope * reach,
        bulk_norms=jnp.sqrt(bulk),
        anisotropy=anisotropy,
        stretch=stretch,
        isotropic=(anisotropy < ISOTROPIC_BELOW) & (stretch < STRETCH_BELOW),
        learns=(jnp.abs(linear) > 1e-10) & (jnp.abs(slope) > 1e-10),
        unfitted_mean=jnp.where(odd & (jnp.abs(mean) > 1e-10), mean, 0.0),
    )


def spiked(system: OneStep) -> SpikedFeatures:
    """The features after the step, their bulk taken to be isotropic."""
    layer = first_layer(system)
    return SpikedFeatures(
        system.sample_ratio,
        system.width_ratio,
        layer.spike_overlap,
        layer.spikes,
        layer.bulk_norms,
        ridge=system.ridge,
        activation=system.activation,
        labels=system.labels,
        loss=system.loss,
        penalty=system.penalty,
        fractions=system.fractions,
        input_dim=system.input_dim,
    )


def untrained(system: OneStep) -> SpikedFeatures:
    """The features before the step: random ones."""
    layer = first_layer(system)
    still, unit = jnp.zeros_like(layer.spikes), jnp.ones_like(layer.spikes)
    changes = {"spikes": still, "bulk_norms": unit}
    return spiked(system).with_(**changes)


@theory
def one_step_asymptotics(system: OneStep) -> ReadoutCurve:
    """The read-out's errors after the step, in the limit of large sizes and for an isotropic bulk: see `first_layer`."""
    return spiked_asymptotics(spiked(system))


@theory
def no_step_asymptotics(system: OneStep) -> ReadoutCurve:
    """The read-out's errors without the step: random features."""
    return spiked_asymptotics(untrained(system))


class LinearLimit(Result):
    """test_error: of the best linear predictor of the labels, noise included: what no fixed kernel beats with n ~ d examples."""

    test_error: Float[Array, ""]


@theory
def best_linear(system: OneStep) -> LinearLimit:
    """E y^2 - (E[y theta.x])^2, and less (E y)^2 where the activation is not odd, so that the read-out fits a mean."""
    labels = system.labels.moments(0.0, 1.0)
    fitted = 0.0 if system.activation.parity == "odd" else labels.mean**2
    return LinearLimit(jnp.asarray(labels.power - labels.slope**2 - fitted))


def _slopes(system: OneStep) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """E s', E z s', Var s' - what a step with the derivative of s on every example sees (at a jump: nothing of it)."""
    activation = system.activation
    first = expectation(activation.derivative, 1.0, activation.kinks)
    tilt = expectation(lambda z: z * activation.derivative(z), 1.0, activation.kinks)
    spread = expectation(lambda z: (activation.derivative(z) - first) ** 2, 1.0, activation.kinks)
    return first, tilt, spread


def _even_moments(system: OneStep) -> tuple[Any, Any]:
    """E[y ((theta.x)^2 - 1)] and E y^4."""
    labels = system.labels
    if isinstance(labels, SignLabels):
        return 0.0, 1.0
    assert isinstance(labels, RealLabels)
    kinks, noise = labels.link.kinks, labels.noise
    quadratic = expectation(lambda z: labels.link(z) * (z**2 - 1), 1.0, kinks)
    power, fourth = (labels.link.moment(n, 1.0) for n in (2, 4))
    return quadratic, fourth + 6 * power * noise + 3 * noise**2
