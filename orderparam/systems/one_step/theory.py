"""The first layer after one gradient step, and the errors of a read-out on it, in closed form for
an isotropic bulk.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import expectation
from orderparam.losses import Labels, RealLabels, SignLabels
from orderparam.losses.fitted import FittedErrors
from orderparam.solve.solved import Solved
from orderparam.systems.one_step.model import OneStep, SpikedFeatures
from orderparam.systems.one_step.saddle import Bulk, FeatureLaw, Pull, data, errors, moments, solve

# ------------------------------------------------------------------------------------------------
# The results of theories of a read-out on spiked features.


class FittedReadout(FittedErrors):
    """Observables that theories and experiments of the read-out share.

    Fields:
        effective_share: (1/n) tr F (F^T H F + ridge)^-1 F^T H with H = diag l'', the effective
            number of parameters per training example.
        spike_overlap: overlap v.theta of the spike with the teacher.
        spikes: spike u_s of each group of neurons.
        bulk_norms: norm c_s of the bulk's rows in each group.
        mean_weight: m_s, the sum over the group of a_j/sqrt(p).
        spike_weight: zeta_s, the sum over the group of a_j w_j.v/sqrt(p), with w_j the row of the
            bulk in units of its norm.
        teacher_weight: psi_s, the sum over the group of a_j w_j.t/sqrt(p), with t the direction of
            the teacher orthogonal to v.
        residual: residual of the equations of a theory, or of the minimisation in an experiment.
        converged: whether these were solved.
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
    """Errors and order parameters of the read-out in a theory; names in brackets are those of the
    module `saddle`.

    Fields:
        linear_response: response V1 of the linear part of the features.
        rest_response: response V2 of the remainder of the features.
        linear_power: q1, from which mu_1.q1.mu_1 is the variance of the read-out's field due to the
            linear part of the features.
        rest_power: q2, from which sum_s mu_2^2 q2 is the variance due to their remainder.
    """

    linear_response: Float[Array, "group other"]
    rest_response: Float[Array, "group"]
    linear_power: Float[Array, "group other"]
    rest_power: Float[Array, "group"]


def curve(
    data: FeatureLaw, found: Solved, labels: Labels, overlap: Any, spikes: Any, bulk_norms: Any
) -> ReadoutCurve:
    """`ReadoutCurve` of a fixed point that `saddle.solve` has found."""
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
        spike_weight=bulk.spike[: jnp.size(spikes)],
        teacher_weight=bulk.teacher,
        linear_response=bulk.response,
        rest_response=bulk.rest_response,
        linear_power=bulk.power,
        rest_power=bulk.rest_power,
        residual=found.residual,
        converged=found.converged,
    )


# ------------------------------------------------------------------------------------------------
# Exact asymptotics of spiked features with an isotropic bulk, for any groups of neurons and all
# losses.
#
# The bulk consists of independent rows on the unit sphere; beta = p/d, and pi_s is the fraction of
# the neurons in group s. Let Gamma_s be pi_s times the mean of (D^-1)_jj over group s. It solves
#
#     Gamma_s = pi_s / (L_s + K_ss),    K = M (1 + beta diag(Gamma) M)^-1,
#
# and V2 = Gamma, V1 = (diag(1/Gamma) + beta M)^-1, zeta_s = beta Gamma_s zh_s, psi = beta V1 ph.
# The powers are minus the derivatives of V1 and V2 as M changes by qh1 + beta ph ph^T and L by qh2
# + beta zh^2.

_INNER_STEPS = 3


class IsotropicBulk(eqx.Module):
    """The ratio beta and the fractions pi_s of the groups."""

    aspect: Float[Array, ""] | float
    fractions: Float[Array, "group"]


@theory
def spiked_asymptotics(system: SpikedFeatures) -> ReadoutCurve:
    r"""Errors and order parameters of a read-out on spiked features, in the limit of proportionally
    large sizes.

    With $k = v \cdot x$ each feature acts as $\mu_0(k) + \mu_1(k)\, (\text{linear}) + \mu_2(k)\,
    \xi$, and the data determine, with $g = -\ell'(y, \mathrm{prox})$,

    $$ M_{st} = \tfrac np E \mu_1 \mu_1 (-\partial_w g) , \qquad
       L_s = \lambda + \tfrac np E \mu_2^2 (-\partial_w g) , \qquad
       \hat\zeta_s = \tfrac np E\, \varphi g , \qquad
       \hat\psi_s = \tfrac np E \mu_1 \partial_t g , $$

    where $\varphi_s(k) = k \mu_1 + \rho_s E[z \sigma'(u_s k + c_s z)]$ is the change of a feature's
    mean with the overlap $w_j \cdot v$, and $\rho_s$ = `norm_slopes`. An isotropic bulk responds
    with

    $$ \Gamma_s = \frac{\pi_s}{L_s + [M (1 + \beta\, \mathrm{diag}(\Gamma) M)^{-1}]_{ss}} , \quad
       V_2 = \Gamma , \quad V_1 = (\mathrm{diag}(1/\Gamma) + \beta M)^{-1} , \quad
       \zeta = \beta \Gamma \hat\zeta , \quad \psi = \beta V_1 \hat\psi , $$

    with $\lambda$ = `ridge`, $\beta = p/d$, fractions $\pi_s$, $V_1$ = `linear_response`, $V_2$ =
    `rest_response`, $\zeta$ = `spike_weight` and $\psi$ = `teacher_weight`. The problem is convex
    and has one solution.

    Accuracy: exact as d, p and n grow in proportion. Close to n = p at tiny ridges the iteration
    may fail, and `converged` is False.

    Source: Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro (2024); Dandi, Pesce, Cui,
    Krzakala, Lu, Loureiro (2024) for groups; the term of the norms is derived here.

    >>> curve = spiked_asymptotics(SpikedFeatures(2.0, 1.0, 0.9, (1.0,), ridge=0.1))
    >>> round(float(curve.test_error), 5), round(float(curve.spike_weight[0]), 4)
    (0.125, -0.0697)
    """
    problem = spiked_data(system)
    bulk = IsotropicBulk(system.width_ratio, system.shares)
    found = solve(problem, answer, bulk.fractions, bulk)
    return curve(problem, found, system.labels, system.overlap, system.spikes, system.norms)


def spiked_data(system: SpikedFeatures) -> FeatureLaw:
    """Law of the system's features at the nodes of k, with the system's labels and penalties."""
    spikes, norms = (part[:, None] for part in (system.spikes, system.norms))
    return data(
        system.loss,
        system.labels,
        system.overlap,
        system.load,
        system.summed_ridge,
        lambda k: moments(system.activation, spikes * k, norms),
        lambda k, at_k: k * at_k.linear + system.slopes[:, None] * at_k.by_norm,
    )


def answer(asked: Pull, before: Bulk, features: Any) -> Bulk:
    """Response of the bulk after one step of the iteration for Gamma, from which all other unknowns
    of the bulk follow."""
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
# The first layer after one gradient step: a bulk and a spike, exact in the limit of large input
# dimension.
#
# With y the labels, c_1 = E[y theta.x], Y_2 = E y^2 and N_v = sqrt(c_1^2 + Y_2 d/n_B), the sum of
# y_i x_i over the batch has the direction v with v.theta = c_1/N_v, and neuron j becomes
#
#     w_j = bulk + u_j v,      u_j = step a_j^0 E[s'(z)] N_v,
#     |bulk|^2 = c_j^2 = (1 + step a_j^0 E[y] E[z s'(z)])^2
#                        + (step a_j^0)^2 Y_2 Var[s'(z)] d/n_B,      z ~ N(0, 1).
#
# (Ba et al. 2022; Dandi, Krzakala, Loureiro, Pesce, Stephan 2023; Cui et al. 2024). The step also
# moves row j along itself by the amount
#
#     step a_j^0 (1/n_B) sum_i y_i s'(z_i) z_i,    z_i = w_j.x_i,
#
# of which the part linear in z_i is
#
#     step a_j^0 N_v w_j.v E[s' z^2] = u_j w_j.v + rho_j w_j.v,
#     rho_j = step a_j^0 E[s' (z^2 - 1)] N_v.
#
# The first term is the contribution of the row itself to the spike. The second term changes the
# row's norm. This change is of order 1/sqrt(d), but it is proportional to w_j.v in all neurons, so
# that its effect on the errors is of order one (derived here). The bulk's row is (1 + b E y + rho_j
# w_j.v) w_j plus noise of the gradient, with b = step a_j^0 E[z s']; noise has overlaps with v too,
# and the slope of the norm on the overlap of the bulk's unit row with v is rho_j (1 + b E
# y)^2/c_j^2. The bulk is not isotropic, because the noise of the gradient is a matrix of rank n_B.
# `anisotropy` is the relative variance of the eigenvalues of the covariance of the bulk's rows; it
# vanishes for large batches and for small steps. Where E[z s'(z)] and E[y ((theta.x)^2 - 1)] differ
# from 0, as for relu and labels that are not odd, rows are also stretched along the teacher by the
# relative amount `stretch`, at every batch size. Theories of an isotropic bulk are exact only if
# both vanish.

ISOTROPIC_BELOW = 0.05  # anisotropy at which the isotropic theory is wrong by one or two percent
STRETCH_BELOW = 0.1


class FirstLayer(Result):
    """The first layer after the step.

    Fields:
        spike_overlap: overlap v.theta of the spike with the teacher.
        spikes: spike u_s of each group of neurons.
        bulk_norms: norm c_s of the bulk's rows in each group.
        norm_slopes: rho_s, the change of a row's norm per overlap with the spike, in each group.
        anisotropy: variance of the eigenvalues of the covariance of the bulk's rows divided by
            their squared mean; the largest over the groups.
        stretch: step a_j^0 E[z s'(z)] E[y ((theta.x)^2 - 1)] divided by the bulk's norm; the
            largest over the groups.
        isotropic: whether anisotropy is below 0.05 and stretch below 0.1.
        learns: whether E[y theta.x] and E[s'] differ from 0; otherwise the spike has no overlap
            with the teacher.
        unfitted_mean: mean of the labels that an odd activation cannot fit, otherwise 0.
    """

    spike_overlap: Float[Array, ""]
    spikes: Float[Array, "group"]
    bulk_norms: Float[Array, "group"]
    norm_slopes: Float[Array, "group"]
    anisotropy: Float[Array, ""]
    stretch: Float[Array, ""]
    isotropic: Bool[Array, ""]
    learns: Bool[Array, ""]
    unfitted_mean: Float[Array, ""]


@theory
def first_layer(system: OneStep) -> FirstLayer:
    r"""Spike and bulk of the first layer after the step, and whether the bulk is approximately
    isotropic.

    With $c_1 = E[y\, \theta \cdot x]$, $Y_2 = E y^2$, $N_v^2 = c_1^2 + Y_2 d / n_B$ and $z \sim
    N(0, 1)$, neuron $j$ becomes a bulk of norm $c_j$ plus $u_j v$, where

    $$ v \cdot \theta = \frac{c_1}{N_v} , \qquad u_j = \eta a_j^0 E[\sigma'(z)]\, N_v , $$

    $$ c_j^2 = \big( 1 + \eta a_j^0 E[y] E[z \sigma'(z)] \big)^2
       + (\eta a_j^0)^2 Y_2 \mathrm{Var}[\sigma'(z)] \frac{d}{n_B} . $$

    The norm of the bulk's row changes with its overlap with $v$ by

    $$ \rho_j = \eta a_j^0 E[(z^2 - 1) \sigma'(z)]\, N_v
       \big( 1 + \eta a_j^0 E[y] E[z \sigma'(z)] \big)^2 / c_j^2 $$

    times the overlap,

    with $v \cdot \theta$ = `spike_overlap`, $u$ = `spikes`, $c$ = `bulk_norms`, $\rho$ =
    `norm_slopes`, $\eta$ = `step` and $n_B/d$ = `batch_ratio`.

    Accuracy: exact in the limit of large d. Theories that assume an isotropic bulk are exact only
    if `anisotropy` and `stretch` vanish.

    Source: Ba et al. (2022); Dandi, Krzakala, Loureiro, Pesce, Stephan (2023); Cui et al. (2024);
    the slope of the norms and the two measures of validity are derived here.

    >>> layer = first_layer(OneStep(2.0, 1.0, 8.0, 3.0, ridge=0.1))
    >>> round(float(layer.spike_overlap), 4), np.round(layer.spikes, 4), bool(layer.isotropic)
    (0.9428, Array([1.9273], dtype=float64), True)
    """
    labels = system.labels.moments(0.0, 1.0)
    linear, power, mean = labels.slope, labels.power, labels.mean
    slope, tilt, bend, spread = _slopes(system)
    reach = jnp.sqrt(linear**2 + power / system.batch_ratio)
    pushes = system.step * system.readout
    noise = pushes**2 * power * spread / system.batch_ratio
    own = (1 + pushes * mean * tilt) ** 2
    bulk = own + noise
    quadratic, fourth = _even_moments(system)
    # Rows have the covariance (1 + b S_1)^2 + e S_2 with S_k = mean of y^k x x^T over the batch, b
    # = push E z s', e = noise/Y_2.
    tilted = pushes * tilt
    wavering = noise**2 * fourth / power**2 + 4 * tilted**2 * own * power
    anisotropy = jnp.max(wavering / system.batch_ratio / bulk**2)
    stretch = jnp.max(jnp.abs(tilted * quadratic) / jnp.sqrt(bulk))
    odd = system.activation.parity == "odd"
    return FirstLayer(
        spike_overlap=linear / reach,
        spikes=pushes * slope * reach,
        bulk_norms=jnp.sqrt(bulk),
        norm_slopes=pushes * bend * reach * own / bulk,
        anisotropy=anisotropy,
        stretch=stretch,
        isotropic=(anisotropy < ISOTROPIC_BELOW) & (stretch < STRETCH_BELOW),
        learns=(jnp.abs(linear) > 1e-10) & (jnp.abs(slope) > 1e-10),
        unfitted_mean=jnp.where(odd & (jnp.abs(mean) > 1e-10), mean, 0.0),
    )


def spiked(system: OneStep) -> SpikedFeatures:
    """Features after the step, with their bulk taken to be isotropic."""
    layer = first_layer(system)
    return SpikedFeatures(
        system.sample_ratio,
        system.width_ratio,
        layer.spike_overlap,
        layer.spikes,
        layer.bulk_norms,
        norm_slopes=layer.norm_slopes,
        ridge=system.ridge,
        activation=system.activation,
        labels=system.labels,
        loss=system.loss,
        penalty=system.penalty,
        fractions=system.fractions,
        input_dim=system.input_dim,
    )


def untrained(system: OneStep) -> SpikedFeatures:
    """Features before the step, which are random features."""
    layer = first_layer(system)
    still, unit = jnp.zeros_like(layer.spikes), jnp.ones_like(layer.spikes)
    changes = {"spikes": still, "bulk_norms": unit, "norm_slopes": still}
    return spiked(system).with_(**changes)


@theory
def one_step_asymptotics(system: OneStep) -> ReadoutCurve:
    """Errors of the read-out after the step for an isotropic bulk, in the limit of large sizes.

    These are the equations of `spiked_asymptotics` for the spike, the bulk norms and their slopes
    of `first_layer`.

    Accuracy: exact in the limit of large sizes if the bulk is isotropic (see `first_layer`). Wrong
    by up to 10 % for batches below 2 d.

    Source: Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro (2024); Ba et al. (2022); the slope
    of the norms is derived here.

    >>> curve = one_step_asymptotics(OneStep(2.0, 1.0, 8.0, 3.0, ridge=0.1))
    >>> round(float(curve.test_error), 5)
    0.14799
    """
    return spiked_asymptotics(spiked(system))


@theory
def no_step_asymptotics(system: OneStep) -> ReadoutCurve:
    """Errors of the read-out without the step (random features), in the limit of large sizes.

    These are the equations of `spiked_asymptotics` with spikes $u_s = 0$ and bulk norms $c_s = 1$.

    Accuracy: exact in the limit of large sizes.

    Source: Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro (2024); random features as in
    Gerace et al. (2020).

    >>> curve = no_step_asymptotics(OneStep(2.0, 1.0, 8.0, 3.0, ridge=0.1))
    >>> round(float(curve.test_error), 5)
    0.40649
    """
    return spiked_asymptotics(untrained(system))


class LinearLimit(Result):
    """Error of the best linear predictor.

    Fields:
        test_error: E (y - f)^2, label noise included (no factor 1/2).
    """

    test_error: Float[Array, ""]


@theory
def best_linear(system: OneStep) -> LinearLimit:
    r"""Error of the best linear predictor, a lower bound on the error of every fixed kernel with n
    of order d.

    $$ \text{test\_error} = E y^2 - (E[y\, \theta \cdot x])^2 - (E y)^2 , $$

    without the last term if the activation is odd, because the read-out then cannot fit a mean.

    Source: Ba et al. (2022); Cui et al. (2024).

    >>> system = OneStep(2.0, 1.0, 8.0, 3.0, ridge=0.1, labels=SignLabels())
    >>> round(float(best_linear(system).test_error), 5)
    0.36338
    """
    labels = system.labels.moments(0.0, 1.0)
    fitted = 0.0 if system.activation.parity == "odd" else labels.mean**2
    return LinearLimit(test_error=jnp.asarray(labels.power - labels.slope**2 - fitted))


def _slopes(system: OneStep) -> tuple[Float[Array, ""], ...]:
    """Averages E s', E z s', E (z^2 - 1) s' and Var s' of the derivative s' of the activation that
    the gradient step uses. At a jump of s the step takes s' = 0.
    """
    slope, kinks = system.activation.derivative, system.activation.kinks
    first = expectation(slope, 1.0, kinks)
    tilt = expectation(lambda z: z * slope(z), 1.0, kinks)
    bend = expectation(lambda z: (z**2 - 1) * slope(z), 1.0, kinks)
    spread = expectation(lambda z: (slope(z) - first) ** 2, 1.0, kinks)
    return first, tilt, bend, spread


def _even_moments(system: OneStep) -> tuple[Any, Any]:
    """The moments E[y ((theta.x)^2 - 1)] and E y^4 of the labels."""
    labels = system.labels
    if isinstance(labels, SignLabels):
        return 0.0, 1.0
    assert isinstance(labels, RealLabels)
    kinks, noise = labels.link.kinks, labels.noise
    quadratic = expectation(lambda z: labels.link(z) * (z**2 - 1), 1.0, kinks)
    power, fourth = (labels.link.moment(n, 1.0) for n in (2, 4))
    return quadratic, fourth + 6 * power * noise + 3 * noise**2
