"""What one gradient step makes of the first layer, and the errors of a read-out on it: in closed
form, and for drawn layers.
"""

from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Num

from orderparam.core.result import Result
from orderparam.core.system import parameter, part, structure
from orderparam.core.verb import theory
from orderparam.gaussian import Activation, activation_names
from orderparam.gaussian import activation as find_activation
from orderparam.gaussian.quadrature import expectation
from orderparam.losses import Labels, PenalisedRisk, Penalty, RealLabels, SignLabels
from orderparam.losses.fitted import FittedErrors
from orderparam.solve.solved import Solved
from orderparam.systems.one_step.model import OneStep, SpikedFeatures
from orderparam.systems.one_step.saddle import Bulk, FeatureLaw, Pull, data, errors, moments, solve

# ------------------------------------------------------------------------------------------------
# What the theories of a read-out on spiked features predict.


class FittedReadout(FittedErrors):
    """What theories and experiments of the read-out have in common.

    effective_share:         (1/n) tr F (F^T H F + ridge)^-1 F^T H, H = diag l'': effective parameters per training example.
    spike_overlap:           v.theta; spikes, bulk_norms: u_s and c_s of the groups of neurons.
    mean_weight:             m_s = sum over the group of a_j/sqrt(p).
    spike_weight:            zeta_s = sum of a_j w_j.v/sqrt(p), teacher_weight: psi_s = sum of a_j w_j.t/sqrt(p), with w_j the
                             bulk in units of its norm and t the direction of the teacher orthogonal
                             to v.
    residual, converged:     of the equations that were solved, or of the minimisation.
    """

    effective_share: Float[Array, ""]
    spike_overlap: Float[Array, ""]
    spikes: Float[Array, "group"]
    bulk_norms: Float[Array, "group"]
    mean_weight: Float[Array, "group"]
    spike_weight: Float[Array, "group"]
    teacher_weight: Float[Array, "group"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class ReadoutCurve(FittedReadout):
    """A theory's. linear_response, rest_response, linear_power, rest_power: V1, V2, q1, q2 of
    `saddle`.
    """

    linear_response: Float[Array, "group other"]
    rest_response: Float[Array, "group"]
    linear_power: Float[Array, "group other"]
    rest_power: Float[Array, "group"]


def curve(
    data: FeatureLaw, found: Solved, labels: Labels, overlap: Any, spikes: Any, bulk_norms: Any
) -> ReadoutCurve:
    """The result at a fixed point of `saddle.solve`."""
    level, bulk = found.value
    of = errors(data, found.value, labels)
    return ReadoutCurve(
        **vars(of.errors),
        teacher_overlap=of.teacher_overlap,
        self_overlap=of.self_overlap,
        weight_power=jnp.sum(bulk.rest_power),
        effective_share=of.effective_share,
        spike_overlap=jnp.asarray(overlap, jnp.float64),
        spikes=jnp.asarray(spikes, jnp.float64),
        bulk_norms=jnp.asarray(bulk_norms, jnp.float64),
        mean_weight=data.coefficients @ level,
        spike_weight=bulk.spike,
        teacher_weight=bulk.teacher,
        linear_response=bulk.response,
        rest_response=bulk.rest_response,
        linear_power=bulk.power,
        rest_power=bulk.rest_power,
        residual=found.residual,
        converged=found.converged,
    )


# ------------------------------------------------------------------------------------------------
# Exact asymptotics of spiked features with an isotropic bulk, for any groups of neurons and any of the losses.
#
# The answer of a bulk of independent rows on the unit sphere, beta = p/d, fractions pi_s. Gamma_s,
# the mean of (D^-1)_jj over group s times pi_s, solves
#
#     Gamma_s = pi_s / (L_s + K_ss),    K = M (1 + beta diag(Gamma) M)^-1,
#
# and V2 = Gamma, V1 = (diag(1/Gamma) + beta M)^-1, zeta_s = beta Gamma_s zh_s, psi = beta V1 ph.
# The powers are minus the derivatives of V1 and V2 as M changes by qh1 + beta ph ph^T and L by qh2
# + beta zh^2.

_INNER_STEPS = 3


class IsotropicBulk(eqx.Module):
    """beta and pi_s."""

    aspect: Float[Array, ""] | float
    fractions: Float[Array, "group"]


@theory
def spiked_asymptotics(system: SpikedFeatures) -> ReadoutCurve:
    """Errors and order parameters of the read-out as d, p, n grow in proportion. `converged` is
    False where iteration failed.
    """
    problem = spiked_data(system)
    bulk = IsotropicBulk(system.width_ratio, system.shares)
    found = solve(problem, answer, bulk.fractions, bulk)
    return curve(problem, found, system.labels, system.overlap, system.spikes, system.norms)


def spiked_data(system: SpikedFeatures) -> FeatureLaw:
    """The features of the system at nodes of k, with its labels and penalties."""
    spikes, norms = (part[:, None] for part in (system.spikes, system.norms))
    return data(
        system.loss,
        system.labels,
        system.overlap,
        system.load,
        system.summed_ridge,
        lambda k: moments(system.activation, spikes * k, norms),
    )


def answer(asked: Pull, before: Bulk, features: Any) -> Bulk:
    """One step of the equation for Gamma, and everything else from it."""
    beta, fractions = features.aspect, features.fractions
    stiffness, identity = asked.stiffness, jnp.eye(fractions.size)
    gamma = before.rest_response
    for _ in range(_INNER_STEPS):
        # (1 + beta M diag(Gamma))^-1 M
        screened = jnp.linalg.solve(identity + beta * stiffness * gamma, stiffness)
        gamma = fractions / (asked.penalty + jnp.diag(screened))
    propagator = jnp.linalg.inv(identity + beta * gamma[:, None] * stiffness)
    screened = stiffness @ propagator
    response = propagator * gamma  # (diag(1/Gamma) + beta M)^-1
    reach = identity + beta * gamma[:, None] * asked.spike_stiffness
    spike = jnp.linalg.solve(
        reach, beta * gamma * (asked.spike + asked.spike_stiffness @ before.spike)
    )
    spike_pull = spike / (beta * gamma)
    change = asked.power + beta * jnp.outer(asked.teacher, asked.teacher)
    rest_change = asked.rest_power + beta * spike_pull**2
    squares = gamma**2 / fractions
    fed_back = identity - beta * squares[:, None] * screened**2
    rest_power = jnp.linalg.solve(
        fed_back, squares * (rest_change + jnp.diag(propagator.T @ change @ propagator))
    )
    return Bulk(
        response=response,
        rest_response=gamma,
        spike=spike,
        teacher=beta * response @ asked.teacher,
        power=response @ (jnp.diag(rest_power / gamma**2) + beta * change) @ response,
        rest_power=rest_power,
    )


# ------------------------------------------------------------------------------------------------
# What one gradient step makes of the first layer: a bulk and a spike, exactly as the input dimension grows.
#
# With y the labels, c_1 = E[y theta.x], Y_2 = E y^2 and N_v = sqrt(c_1^2 + Y_2 d/n_B), the sum of
# y_i x_i over the batch has the direction v with v.theta = c_1/N_v, and neuron j becomes
#
#     w_j = bulk + u_j v,      u_j = step a_j^0 E[s'(z)] N_v,
#     |bulk|^2 = c_j^2 = (1 + step a_j^0 E[y] E[z s'(z)])^2 + (step a_j^0)^2 Y_2 Var[s'(z)] d/n_B,      z ~ N(0, 1).
#
# Ba, Erdogdu, Suzuki, Wang, Wu, Yang 2022 (arXiv:2205.01445); Dandi, Krzakala, Loureiro, Pesce,
# Stephan 2023 (arXiv:2305.18270); Cui et al. 2024 (arXiv:2402.04980). The bulk is not isotropic.
# The noise of the gradient is a matrix of rank n_B: the bulk rows' covariance has eigenvalues of
# the relative variance `anisotropy`, which vanishes with large batches or small steps. And where
# E[z s'(z)] and E[y ((theta.x)^2 - 1)] differ from 0, as for relu and labels that are not odd, rows
# are stretched along the teacher by the share `stretch`, whatever the batch. Theories of an
# isotropic bulk are exact only as both vanish.

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
    # Rows have the covariance (1 + b S_1)^2 + e S_2 with S_k = mean of y^k x x^T over the batch, b
    # = push E z s', e = noise/Y_2.
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
    """The read-out's errors after the step, in the limit of large sizes and for an isotropic bulk:
    see `first_layer`.
    """
    return spiked_asymptotics(spiked(system))


@theory
def no_step_asymptotics(system: OneStep) -> ReadoutCurve:
    """The read-out's errors without the step: random features."""
    return spiked_asymptotics(untrained(system))


class LinearLimit(Result):
    """test_error: of the best linear predictor of the labels, noise included: what no fixed kernel
    beats with n ~ d examples.
    """

    test_error: Float[Array, ""]


@theory
def best_linear(system: OneStep) -> LinearLimit:
    """E y^2 - (E[y theta.x])^2, and less (E y)^2 where the activation is not odd, so that the
    read-out fits a mean.
    """
    labels = system.labels.moments(0.0, 1.0)
    fitted = 0.0 if system.activation.parity == "odd" else labels.mean**2
    return LinearLimit(jnp.asarray(labels.power - labels.slope**2 - fitted))


def _slopes(system: OneStep) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """E s', E z s', Var s' - what a step with the derivative of s on every example sees (at a jump:
    nothing of it).
    """
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


# ------------------------------------------------------------------------------------------------
# The read-out's errors for a first layer that has been trained already: no average over it, no assumption on its bulk.
#
# Rows W (p x d) with u_j = w_j.v along a direction v of the inputs: r = mean u_j, h_j = u_j - r,
# the rest of the row W' = W - u v^T, c its root mean square norm, and q_j = w_j'.t with t the
# teacher's direction orthogonal to v. With x_i the eigenvalues of W' W'^T/c^2, hh_i and qq_i the
# components of h/c and q/c there, D_i = L + M x_i, A_i = (zh hh_i + ph qq_i)/D_i,
#
#     V1 = (1/p) sum x/D      zeta = sum hh A      q1 = (1/p) sum (qh1 x + qh2) x/D^2 + sum x A^2
#     V2 = (1/p) sum 1/D      psi = sum qq A       q2 = (1/p) sum (qh1 x + qh2)/D^2 + sum A^2
#
# answer the data as `saddle` says. One eigendecomposition serves every n, ridge and loss. The
# spread h of the spikes counts to first order, for which it must be small beside c. Under an odd
# activation a neuron may be turned over with its weight in the read-out, and all are turned to u_j
# >= 0; under another one, neurons with spikes of different signs are beyond this theory.

WIDEST = 0.5  # standard deviation of the spikes over the bulk's norm


class LayerModes(NamedTuple):
    """x_i, hh_i and qq_i of the module."""

    eigenvalues: Float[Array, "neuron"]
    along_spike: Float[Array, "neuron"]
    along_teacher: Float[Array, "neuron"]


class TrainedLayer(PenalisedRisk):
    """A first layer and the training of a read-out on it. Build it with
    `TrainedLayer.from_weights`.

    spike_overlap = v.theta, spike = r, bulk_norm = c, modes: see the module.
    """

    n_train: float = parameter("training examples of the read-out; need not be an integer", above=0)
    spike_overlap: float = parameter("overlap of the spike with the teacher", minimum=-1, maximum=1)
    spike: float = parameter("mean projection of the rows on the spike")
    bulk_norm: float = parameter("root mean square norm of the rows without it", above=0)
    modes: LayerModes = part("the modes of the rows, and the projections on them")
    activation: Activation = structure(
        "nonlinearity",
        convert=find_activation,
        choices=activation_names,
        default="tanh",
        kw_only=True,
    )

    @property
    def examples(self) -> Any:
        return self.n_train

    @classmethod
    def from_weights(
        cls,
        weights: Num[ArrayLike, "neuron input"],
        spike: Num[ArrayLike, "input"],
        teacher: Num[ArrayLike, "input"],
        n_train: Any,
        ridge: Any,
        activation: Any = "tanh",
        labels: Labels | None = None,
        loss: Any = "square",
        penalty: Penalty = "sum",
    ) -> Self:
        """From the weights (p, d) that act on standard normal inputs, and the directions v and
        theta (d numbers, any length).

        v: where the rows share a component: sum of y_i x_i over the batch after one step, or the
        mean row. Raises `ValueError` for arrays that do not fit or are not finite, and for spikes
        that are spread by more than half the bulk's norm.
        """
        rows, v, theta = (np.asarray(part, np.float64) for part in (weights, spike, teacher))
        if (
            rows.ndim != 2
            or rows.size == 0
            or v.shape != rows.shape[1:]
            or theta.shape != rows.shape[1:]
        ):
            raise ValueError(
                f"weights has shape {rows.shape}, spike {v.shape} and teacher {theta.shape}: must be (p, d), (d,) and (d,)"
            )
        if (
            not all(np.isfinite(part).all() for part in (rows, v, theta))
            or not v.any()
            or not theta.any()
        ):
            raise ValueError(
                "weights, spike and teacher must be finite numbers, and the directions not zero"
            )
        nonlinearity = find_activation(activation)
        if nonlinearity.parity == "odd":
            rows = rows * np.where(rows @ v < 0, -1.0, 1.0)[:, None]
        overlap, strength, norm, modes = (
            jax.tree.map(np.asarray, part) for part in _decompose(rows, v, theta)
        )
        spread = float(np.linalg.norm(modes.along_spike) / np.sqrt(len(rows)))
        if spread > WIDEST:
            raise ValueError(
                f"weights: their projections on the spike are spread by {spread:.2g} times the norm of the rest: must be at most "
                f"{WIDEST} (see the module)"
            )
        numbers = (float(np.clip(overlap, -1, 1)), float(strength), float(norm))
        return cls(
            n_train,
            *numbers,
            modes,
            ridge=ridge,
            activation=nonlinearity,
            labels=labels or RealLabels(),
            loss=loss,
            penalty=penalty,
        )


@jax.jit
def _decompose(
    rows: Float[Array, "neuron input"], spike: Float[Array, "input"], teacher: Float[Array, "input"]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""], LayerModes]:
    """v.theta, r, c and the modes."""
    v, theta = spike / jnp.linalg.norm(spike), teacher / jnp.linalg.norm(teacher)
    overlap = v @ theta
    along = rows @ v
    bulk = rows - along[:, None] * v
    norm = jnp.sqrt(jnp.mean(jnp.sum(bulk**2, axis=1)))
    rest = theta - overlap * v
    direction = rest / jnp.maximum(jnp.linalg.norm(rest), 1e-30)
    values, vectors = jnp.linalg.eigh(bulk @ bulk.T / norm**2)
    projections = vectors.T @ jnp.stack([along - jnp.mean(along), bulk @ direction], axis=1) / norm
    return (
        overlap,
        jnp.mean(along),
        norm,
        LayerModes(jnp.maximum(values, 0.0), projections[:, 0], projections[:, 1]),
    )


@theory
def given_layer(system: TrainedLayer) -> ReadoutCurve:
    """Errors and order parameters of the read-out on this very layer, for large p and n. Groups are
    one.
    """
    spike, norm, modes = jnp.asarray(system.spike), jnp.asarray(system.bulk_norm), system.modes
    load = system.n_train / modes.eigenvalues.size
    problem = data(
        system.loss,
        system.labels,
        system.spike_overlap,
        load,
        system.summed_ridge,
        lambda k: moments(system.activation, spike * k[None], norm),
    )
    found = solve(problem, layer_answer, jnp.ones(1), modes)
    return curve(problem, found, system.labels, system.spike_overlap, spike[None], norm[None])


def layer_answer(asked: Pull, before: Bulk, modes: LayerModes) -> Bulk:
    """The sums over modes; zh as it will be once zeta has moved."""
    x, along, teacher = modes
    inverse = 1 / (asked.penalty[0] + asked.stiffness[0, 0] * x)
    own, mixed = jnp.sum(along**2 * inverse), jnp.sum(along * teacher * inverse)
    bend, pull = asked.spike_stiffness[0, 0], asked.teacher[0]
    spike = (own * (asked.spike[0] + bend * before.spike[0]) + mixed * pull) / (1 + own * bend)
    spike_pull = asked.spike[0] + bend * (before.spike[0] - spike)
    amplitude = (spike_pull * along + pull * teacher) * inverse
    power = (asked.power[0, 0] * x + asked.rest_power[0]) * inverse**2
    return Bulk(
        response=jnp.mean(x * inverse)[None, None],
        rest_response=jnp.mean(inverse)[None],
        spike=spike[None],
        teacher=jnp.sum(teacher * amplitude)[None],
        power=(jnp.mean(power * x) + jnp.sum(x * amplitude**2))[None, None],
        rest_power=(jnp.mean(power) + jnp.sum(amplitude**2))[None],
    )
