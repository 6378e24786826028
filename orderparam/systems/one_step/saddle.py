"""Asymptotics of a convex read-out on spiked features: the half of the equations that averages over
the data. The other half, the response of the bulk of the features, is an argument.

Given the projection k of an input on the spike, the features of group s are mu_0^s(k) + mu_1^s(k)
(bulk.x + its part along the spike, k w.v) + mu_2^s(k) xi, and the teacher's field is overlap k +
sqrt(1 - overlap^2) t. The read-out's field at a new example is then Gaussian given k, with

    mean               m.mu_0(k) + zeta.phi(k),      phi = k mu_1(k) + rho nu(k),
    variance           Q(k) = mu_1.q1.mu_1 + sum_s mu_2^2 q2,
    covariance with t  psi.mu_1(k),

and including an example in training moves this field with the response V(k) = mu_1.V1.mu_1 + sum_s
mu_2^2 V2. With the function g of `orderparam.losses.Channel` at every k and with load = n/p, the
averages over the data are

    M_st   = load E mu_1 mu_1 (-dg/dw)      L_s   = ridge + load E mu_2^2 (-dg/dw)
    qh1_st = load E mu_1 mu_1 g^2           qh2_s = load E mu_2^2 g^2
    zh_s   = load E phi g                   ph_s  = load E mu_1 (dg/dt)

and m solves E mu_0 g = 0, because its penalty is negligible (Cui, Pesce, Dandi, Krzakala, Lu,
Zdeborová, Loureiro 2024; Dandi, Pesce, Cui, Krzakala, Lu, Loureiro 2024, for rho = 0).

phi is the derivative of a feature's mean with respect to the overlap w.v of its row with the spike.
The overlap changes the field of the row by k w.v, and it changes the norm of the row if this norm
is c + rho w.v (derived here):

    d/d(w.v) E s(h + (c + rho w.v) z),  h = k (u + c w.v)   =   k mu_1 + rho nu,
    nu = E z s'(h + c z).

For a given layer the overlaps and the norms of the rows vary independently, so that there are two
functions phi: k mu_1 for the overlaps and nu for the norms.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.gaussian import Activation, standard_normal_rule
from orderparam.gaussian.quadrature import LEAN
from orderparam.losses import Channel, ChannelErrors, Fields, Labels, Loss, RealLabels, Square
from orderparam.solve.newton import newton_fixed_point
from orderparam.solve.solved import Solved

# ------------------------------------------------------------------------------------------------
# Features given the input's projection on the spike: their mean, their linear part, and the
# remainder.
#
# Let k = v.x be the projection of the input on the spike v, and let w.x have the variance c^2.
# Given k, the feature activation(w.x + u k) is equivalent to mu_0(k) + mu_1(k) w.x/c + mu_2(k) xi,
# where xi is fresh noise. The derivative of mu_0 is mu_1/c with respect to the shift u k, and nu
# with respect to the norm c.

Entry = Float[Array, "*#batch"]
Average = Float[Array, "*batch"]


class ConditionalMoments(NamedTuple):
    """The moments mu_0 = E s(h + c z), mu_1 = E z s(h + c z), mu_2^2 = E (s - mu_0 - mu_1 z)^2 and
    nu = d mu_0/dc = E (z^2 - 1) s(h + c z)/c of an activation s, for z ~ N(0, 1)."""

    mean: Average
    linear: Average
    rest: Average
    by_norm: Average


@eqx.filter_jit
def moments(activation: Activation, shift: Entry, norm: Entry) -> ConditionalMoments:
    """Moments of the activation at the shift h and the norm c > 0, elementwise."""
    shift, norm = jnp.broadcast_arrays(shift, norm)
    z, weight = standard_normal_rule(
        [(kink - shift) / norm for kink in {0.0, *activation.kinks}], LEAN
    )
    value = activation(shift[..., None] + norm[..., None] * z)
    mean, linear = jnp.sum(weight * value, axis=-1), jnp.sum(weight * value * z, axis=-1)
    rest = jnp.sum(weight * (value - mean[..., None] - linear[..., None] * z) ** 2, axis=-1)
    by_norm = jnp.sum(weight * value * (z**2 - 1), axis=-1) / norm
    return ConditionalMoments(mean, linear, rest, by_norm)


def projection_rule(
    labels: Labels, overlap: Float[Array, ""]
) -> tuple[Float[Array, "node"], Float[Array, "node"]]:
    """Quadrature nodes k and weights for a standard normal variable. The axis is divided at the
    values of k at which the label changes abruptly as the overlap approaches 1.
    """
    kinks = labels.link.kinks if isinstance(labels, RealLabels) else ()
    steep = jnp.where(jnp.abs(overlap) < 0.1, 0.1, overlap)
    return standard_normal_rule(
        [jnp.zeros(()), *(kink / steep for kink in kinks if kink != 0)], LEAN
    )


Scalar = Float[Array, ""]
Groups = Float[Array, "group"]
Matrix = Float[Array, "group other"]

# largest change of m in a step, in units of 1 + |m|: far from its kink a hinge loss does not limit
# it
_LONGEST = 0.5
# a combination of the features' means below this share of their mean square counts as zero
_SMALLEST = 1e-12


class Pull(NamedTuple):
    """Averages over the data: M, L, zh, ph, qh1, qh2 of the module.

    spike_stiffness is load E phi phi (-dg/dw), the rate at which zh falls as zeta rises. The
    fall may be steep: an iteration in which the bulk responds to the old zh, and not to zh -
    spike_stiffness (change of zeta), overshoots.
    """

    stiffness: Matrix
    penalty: Groups
    spike: Float[Array, "shift"]
    spike_stiffness: Float[Array, "shift other"]
    teacher: Groups
    power: Matrix
    rest_power: Groups


class Bulk(NamedTuple):
    """Response of the bulk of the features to the data: V1, V2, zeta, psi, q1, q2 of the module."""

    response: Matrix
    rest_response: Groups
    spike: Float[Array, "shift"]
    teacher: Groups
    power: Matrix
    rest_power: Groups


Answer = Callable[[Pull, Bulk, Any], Bulk]
State = tuple[Float[Array, "group"], Bulk]


class TabulatedLabels(Labels):
    """Labels whose moments given k are tabulated; least squares needs nothing else."""

    table: Any

    def moments(self, mean: Any, variance: Any) -> Any:
        return self.table

    def draw(self, field: Any, key: Any) -> Any:
        raise NotImplementedError("a table of moments has no labels to draw")


class FeatureLaw(eqx.Module):
    """Law of the features and of the labels at the nodes of k, with the load n/p and the ridge that
    is added to the summed loss.

    Columns of coefficients are combinations of the mu_0^s that are orthonormal under the law of k;
    the remaining columns are zero.
    """

    channel: Channel
    overlap: Scalar
    load: Scalar
    ridge: Scalar
    k: Float[Array, "node"]
    weight: Float[Array, "node"]
    mean: Float[Array, "group node"]
    linear: Float[Array, "group node"]
    rest: Float[Array, "group node"]
    shift: Float[Array, "shift node"]
    coefficients: Matrix

    @property
    def mean_basis(self) -> Float[Array, "group node"]:
        """The orthonormal combinations of the mu_0^s."""
        return self.coefficients.T @ self.mean


def teacher_rest(overlap: Scalar) -> Scalar:
    """1 - overlap^2."""
    return jnp.maximum((1 - overlap) * (1 + overlap), 1e-24)


def data(
    loss: Loss,
    labels: Labels,
    overlap: Any,
    load: Any,
    ridge: Any,
    features: Callable[[Float[Array, "node"]], ConditionalMoments],
    shift: Callable[[Float[Array, "node"], ConditionalMoments], Float[Array, "shift node"]],
) -> FeatureLaw:
    """Law of features, from a function of k that gives their moments, each of shape (group, node),
    and from a function of k and these moments that gives the functions phi."""
    overlap, load, ridge = (jnp.asarray(number, jnp.float64) for number in (overlap, load, ridge))
    k, weight = projection_rule(labels, overlap)
    at_k = features(k)
    mean, linear, rest = at_k.mean, at_k.linear, at_k.rest
    # Any basis of the span of the means gives the same result. Its derivative does not enter, and
    # may not exist.
    gram, scale = jax.lax.stop_gradient(
        ((mean * weight) @ mean.T, jnp.max((mean**2 + linear**2 + rest) @ weight))
    )
    values, vectors = jnp.linalg.eigh(gram)
    kept = values > _SMALLEST * scale
    coefficients = jnp.where(kept, vectors / jnp.sqrt(jnp.where(kept, values, 1.0)), 0.0)
    channel_labels = labels
    if isinstance(loss, Square):
        table = labels.moments(overlap * k, teacher_rest(overlap))
        channel_labels = TabulatedLabels(
            jax.tree.map(lambda part: jnp.asarray(part, jnp.float64), table)
        )
    return FeatureLaw(
        Channel(loss, channel_labels),
        overlap,
        load,
        ridge,
        k,
        weight,
        mean,
        linear,
        rest,
        shift(k, at_k),
        coefficients,
    )


def _paired(matrix: Matrix, functions: Float[Array, "group node"]) -> Float[Array, "node"]:
    return jnp.einsum("sn,st,tn->n", functions, matrix, functions)


def fields(data: FeatureLaw, state: State) -> tuple[Float[Array, "node"], Fields]:
    """Response V(k), and the joint law of the read-out's field and the teacher's field given k."""
    level, bulk = state
    centre = level @ data.mean_basis + bulk.spike @ data.shift
    variance = _paired(bulk.power, data.linear) + bulk.rest_power @ data.rest
    rest = teacher_rest(data.overlap)
    covariance = jnp.sqrt(rest) * (bulk.teacher @ data.linear)
    response = _paired(bulk.response, data.linear) + bulk.rest_response @ data.rest
    return response, Fields(variance, rest, covariance, centre, data.overlap * data.k)


def pull(data: FeatureLaw, state: State) -> tuple[Groups, Pull]:
    """Next value of m in the orthonormal basis, and the averages over the data."""
    response, law = fields(data, state)
    averages = data.channel.averages(response, law)
    first, rest, basis = data.linear, data.rest, data.mean_basis
    stiffness, power = data.weight * averages.stiffness, data.weight * averages.power
    mean = data.weight * averages.mean
    bending = (basis * stiffness) @ basis.T
    missing = (data.coefficients == 0).all(axis=0)
    longest = _LONGEST * (1 + jnp.linalg.norm(state[0]))
    move = jnp.clip(
        jnp.linalg.solve(bending + jnp.diag(missing.astype(float)), basis @ mean), -longest, longest
    )
    asked = Pull(
        stiffness=data.load * (first * stiffness) @ first.T,
        penalty=data.ridge + data.load * rest @ stiffness,
        spike=data.load * data.shift @ mean,
        spike_stiffness=data.load * (data.shift * stiffness) @ data.shift.T,
        teacher=data.load
        * jnp.sqrt(teacher_rest(data.overlap))
        * first
        @ (data.weight * averages.alignment),
        power=data.load * (first * power) @ first.T,
        rest_power=data.load * rest @ power,
    )
    return jnp.where(missing, 0.0, state[0] + move), asked


@eqx.filter_jit
def solve(data: FeatureLaw, answer: Answer, shares: Groups, features: Any = None) -> Solved:
    """Fixed point at which the averages over the data and the response of the bulk agree. The fixed
    point is unique, because the minimisation is convex. `answer` computes the response of the bulk,
    and `features` is passed on to it.
    """

    def update(state: State, args: tuple) -> State:
        data, features = args
        level, asked = pull(data, _unpacked(state))
        return _packed((level, answer(asked, _unpacked(state)[1], features)))

    count = shares.size
    bulk = Bulk(
        response=jnp.diag(shares),
        rest_response=shares,
        spike=jnp.zeros(len(data.shift)),
        teacher=jnp.zeros(count),
        power=0.5 * jnp.diag(shares),
        rest_power=0.5 * shares,
    )
    found = newton_fixed_point(
        update, _packed((jnp.zeros(count), bulk)), (data, features), tolerance=1e-11
    )
    return Solved(_unpacked(found.value), found.residual, found.converged, found.steps)


def _packed(state: State) -> State:
    """The unknowns of the solver: logarithms of positive unknowns, upper triangles of matrices."""
    level, bulk = state
    return level, bulk._replace(
        response=_triangle(bulk.response),
        power=_triangle(bulk.power),
        rest_response=jnp.log(bulk.rest_response),
        rest_power=jnp.log(bulk.rest_power),
    )


def _unpacked(state: State) -> State:
    level, bulk = state
    count = bulk.rest_power.size
    return level, bulk._replace(
        response=_matrix(bulk.response, count),
        power=_matrix(bulk.power, count),
        rest_response=jnp.exp(bulk.rest_response),
        rest_power=jnp.exp(bulk.rest_power),
    )


def _triangle(matrix: Matrix) -> Float[Array, "entry"]:
    count = len(matrix)
    entries = jnp.where(
        jnp.eye(count, dtype=bool),
        jnp.log(jnp.where(jnp.eye(count, dtype=bool), matrix, 1.0)),
        matrix,
    )
    return entries[jnp.triu_indices(count)]


def _matrix(entries: Float[Array, "entry"], count: int) -> Matrix:
    upper = jnp.zeros((count, count)).at[jnp.triu_indices(count)].set(entries)
    diagonal = jnp.exp(jnp.diag(upper))
    return upper + upper.T + jnp.diag(diagonal - 2 * jnp.diag(upper))


class ProjectedErrors(NamedTuple):
    """Averages over k of the errors, and the moments of the read-out's field."""

    errors: ChannelErrors
    teacher_overlap: Scalar
    self_overlap: Scalar
    effective_share: Scalar


@eqx.filter_jit
def errors(data: FeatureLaw, state: State, labels: Labels) -> ProjectedErrors:
    """Errors at the fixed point. `labels` are the original labels, not tables. effective_share is
    the effective number of parameters divided by n.
    """
    response, law = fields(data, state)
    at_k = Channel(data.channel.loss, labels).errors(response, law)
    averages = data.channel.averages(response, law)
    averaged = jax.tree.map(lambda part: part @ data.weight, at_k)
    centre = law.student_mean
    return ProjectedErrors(
        averaged,
        (law.teacher_mean * centre + law.covariance) @ data.weight,
        (centre**2 + law.student_variance) @ data.weight - (centre @ data.weight) ** 2,
        (averages.stiffness * response) @ data.weight,
    )
