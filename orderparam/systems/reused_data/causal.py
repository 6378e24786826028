r"""Solution of the equations of dynamical mean-field theory in one causal sweep, with sampled
examples.

As $d \to \infty$ one example and one weight obey, with p x p matrices R (response), C (correlation)
and $\Gamma$,

    h_t = zeta_t + sum_{s<t} R(t,s) g_s,
        E zeta_t zeta_s^T = C(t,s),  E zeta_t h*^T = M_t,
    v_t = u_t + sum_{s<=t} Gamma(t,s) w_s + G_t w*,
        E u_t u_s^T = alpha E g_t g_s^T,
    w_{t+1} = (1 - eta lambda + beta) w_t - beta w_{t-1} - eta v_t + sqrt(2 eta T) xi_t,

where g_t is the slope of the loss of the example at step t (divided by b if the example is in the
batch, 0 otherwise), Gamma(t,r) = alpha E[dg_t/dzeta_r] is a total derivative and G_t = alpha E[g_t
h*^T] - sum_s Gamma(t,s) M_s. Every quantity of a step depends on those of earlier steps only, so
that nothing is iterated.

The equation of the weights is linear. The weights are represented by their coefficients on an
orthonormal basis of Gaussian directions: the direction of the teacher, the direction of the start,
one direction for each new slope g_t (found by Gram-Schmidt over the sampled examples) and one for
each Langevin step. The field zeta of a sampled example is the sum of these coefficients times the
components of the example, so that the covariances are positive by construction. The components are
whitened over the samples, so that every average is exact for linear slopes.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.systems.reused_data.model import LearningTask

# If the part of a new slope outside the span of the earlier slopes is smaller than this share of
# the slope, the slope counts as a combination of the earlier ones.
_NEGLIGIBLE = 1e-10
# Number of steps in a block in which the responses of an example are summed, as products of
# matrices.
_BLOCK = 16


class Path(NamedTuple):
    """Overlaps, losses, correlation and response of one sweep, from the start to the last step."""

    overlap: Float[Array, "time student teacher"]
    self_overlap: Float[Array, "time student other"]
    train_loss: Float[Array, "time"]
    correlation: Float[Array, "time earlier student other"]
    response: Float[Array, "time earlier student other"]


class _Drawn(NamedTuple):
    """The random numbers of a sweep; none of them depends on a parameter of the system."""

    basis: Float[Array, "direction sample"]
    noise: Float[Array, "sample"]
    masks: Float[Array, "time sample"]


class _State(NamedTuple):
    weights: Float[Array, "time student direction"]
    slopes: Float[Array, "time student sample"]
    bends: Float[Array, "time student student sample"]
    frame: Float[Array, "slope sample"]
    response: Float[Array, "time student time student"]


def directions(students: int, teachers: int, steps: int) -> int:
    """Number of Gaussian directions of a sweep; the number of samples must exceed it by more than
    two."""
    return teachers + students + 2 * students * steps


def start_rows(overlap: Array, self_overlap: Array) -> Float[Array, "student axis"]:
    """Weights divided by sqrt(d) at the start, on one axis for each teacher and then one for each
    student."""
    across = self_overlap - overlap @ overlap.T
    if len(across) > 1:
        return jnp.concatenate([overlap, jnp.linalg.cholesky(across)], axis=1)
    # Where the argument of the root is 0, the student starts on the teacher's axis, and the
    # derivative of the root is set to 0.
    safe = jnp.where(across > 0, across, 1.0)
    return jnp.concatenate([overlap, jnp.where(across > 0, jnp.sqrt(safe), 0.0)], axis=1)


def causal_sweep(
    system: Any, problem: LearningTask, key: PRNGKeyArray, samples: int, steps: int
) -> Path:
    """Overlaps, losses, correlation and response along the steps, from one set of samples.

    system: a `ReusedData` or `ReusedCommittee`; its fields `sample_ratio`, `learning_rate`,
    `weight_decay`, `momentum`, `temperature`, `batch_fraction` and `start` are used.
    """
    m0, q0 = system.start
    students, teachers = m0.shape
    drawn = _draw(key, directions(students, teachers, steps), samples, steps)
    label = problem.label(drawn.basis[:teachers], drawn.noise)
    alpha, rate = system.sample_ratio, system.learning_rate
    kept = 1 - rate * system.weight_decay + system.momentum
    times = -(-(steps + 1) // _BLOCK) * _BLOCK
    first = teachers + students  # index of the first direction of a slope
    total = students * steps

    beginning = jnp.zeros((students, len(drawn.basis)))
    beginning = beginning.at[:, :first].set(start_rows(m0, q0))
    empty = _State(
        jnp.zeros((times, students, len(drawn.basis))).at[0].set(beginning),
        jnp.zeros((times, students, samples)),
        jnp.zeros((times, students, students, samples)),
        jnp.zeros((total, samples)),
        jnp.zeros((times, students, times, students)),
    )

    def step(state: _State, t: Array) -> tuple[_State, Array]:
        weights = state.weights
        zeta = weights[t] @ drawn.basis
        seen = state.response[t].reshape(students, -1) @ state.slopes.reshape(-1, samples)
        field = zeta + seen
        train_loss = jnp.mean(problem.loss(field, label))

        # The batch of a step is independent of everything before it. Averages that are linear in
        # g_t are therefore taken over the slopes of all examples, which have less scatter. The
        # field of an example and u_t contain the slope only if the example is in the batch.
        share = system.batch_fraction
        mask = (drawn.masks[jnp.minimum(t, steps - 1)] < share) / share
        whole, bend = _slope_and_bend(problem, field, label)
        slope = whole * mask
        slopes, bends = state.slopes.at[t].set(slope), state.bends.at[t].set(bend * mask)
        gamma = alpha * _total_derivatives(state.response, bends, bend, t)

        # the coefficients of u_t on the orthonormal frame of slopes, and alpha E g_t h*^T
        frame, new = _extend(state.frame, slope, jnp.minimum(t, steps - 1) * students)
        teacher_pull = alpha * whole @ drawn.basis[:teachers].T / samples
        overlaps = weights[:, :, :teachers]
        pull = teacher_pull - jnp.einsum("asb,sbr->ar", gamma, overlaps)
        v = jnp.einsum("asb,sbk->ak", gamma, weights)
        v = v.at[:, :teachers].add(pull).at[:, first : first + total].add(jnp.sqrt(alpha) * new)

        before = weights[jnp.maximum(t - 1, 0)]  # w_{-1} = w_0
        following = kept * weights[t] - system.momentum * before - rate * v
        hot = jnp.sqrt(jnp.where(system.temperature > 0, 2 * rate * system.temperature, 1.0))
        hot = jnp.where(system.temperature > 0, hot, 0.0)
        at = first + total + jnp.minimum(t, steps - 1) * students
        place = at + jnp.arange(students)
        following = following.at[jnp.arange(students), place].add(hot)

        response = state.response
        back = jnp.where(t > 0, response[jnp.maximum(t - 1, 0)], 0.0)
        ahead = kept * response[t] - system.momentum * back
        ahead = ahead - rate * jnp.einsum("asb,sbrc->arc", gamma, response)
        ahead = ahead.at[:, t].add(-rate * jnp.eye(students))
        # the weights after the last step are not needed, and are dropped
        weights = weights.at[t + 1].set(following, mode="drop")
        response = response.at[t + 1].set(ahead, mode="drop")
        return _State(weights, slopes, bends, frame, response), train_loss

    state, train_loss = jax.lax.scan(step, empty, jnp.arange(steps + 1))
    weights = state.weights[: steps + 1]
    correlation = jnp.einsum("tak,sbk->tsab", weights, weights)
    response = jnp.transpose(state.response, (0, 2, 1, 3))[: steps + 1, : steps + 1]
    own = jnp.einsum("ttab->tab", correlation)
    return Path(weights[:, :, :teachers], own, train_loss, correlation, response)


def _draw(key: PRNGKeyArray, count: int, samples: int, steps: int) -> _Drawn:
    """Components of the samples, whitened and with mean 0, and a stratified uniform number for
    every sample and step: the sample is in the batch of the step if the number is below b.
    """
    normal_key, mask_key = jax.random.split(key)
    normals = jax.random.normal(normal_key, (samples, count + 1))
    columns = jnp.concatenate([jnp.ones((samples, 1)), normals], axis=1)
    white, _ = jnp.linalg.qr(columns)
    white = white[:, 1:].T * jnp.sqrt(samples)

    def strata(key: PRNGKeyArray) -> Array:
        order_key, shift_key = jax.random.split(key)
        order = jax.random.permutation(order_key, samples)
        return (order + jax.random.uniform(shift_key, (samples,))) / samples

    masks = jax.vmap(strata)(jax.random.split(mask_key, steps))
    return _Drawn(white[:count], white[count], masks)


def _slope_and_bend(problem: LearningTask, field: Array, label: Array) -> tuple[Array, Array]:
    """The slope g (student, sample) of the loss and its derivative dg/dh (student, by student,
    sample)."""
    columns = []
    for unit in jnp.eye(len(field)):
        direction = jnp.broadcast_to(unit[:, None], field.shape)
        slope, column = jax.jvp(lambda h: problem.slope(h, label), (field,), (direction,))
        columns.append(column)
    return slope, jnp.stack(columns, axis=1)


def _total_derivatives(response: Array, bends: Array, bend: Array, t: Array) -> Array:
    """E[dg_t/dzeta_r] (student, time, student), computed from r = t back to 0 with X_t = J_t and

        X_r = sum_{r<s<=t} X_s R(s,r) J_r,

    for a block of times r at once. The contribution of the later blocks is one product of matrices.
    """
    times, students, _, samples = bends.shape
    # X, with its second index next to the time: (time, student, first student, sample)
    seed = jnp.swapaxes(bend, 0, 1)
    flat = response.reshape(times * students, times, students)

    def block(x: Array, low: Array) -> Array:
        into = jax.lax.dynamic_slice_in_dim(flat, low, _BLOCK, axis=1)
        later = into.reshape(times * students, -1).T @ x.reshape(times * students, -1)
        later = later.reshape(_BLOCK, students, students, samples)
        inside = into.reshape(times, students, _BLOCK, students)
        inside = jax.lax.dynamic_slice_in_dim(inside, low, _BLOCK, axis=0)
        local = jax.lax.dynamic_slice_in_dim(bends, low, _BLOCK, axis=0)

        def one(own: Array, back: Array) -> tuple[Array, None]:
            r = _BLOCK - 1 - back
            sums = later[r] + jnp.einsum("sbc,sban->can", inside[:, :, r], own)
            first = jnp.where(low + r == t, seed, 0.0)
            return own.at[r].set(first + jnp.einsum("can,cdn->dan", sums, local[r])), None

        own, _ = jax.lax.scan(one, jnp.zeros_like(later), jnp.arange(_BLOCK))
        return jax.lax.dynamic_update_slice_in_dim(x, own, low, axis=0)

    def visit(x: Array, low: Array) -> tuple[Array, None]:
        return jax.lax.cond(low <= t, block, lambda x, low: x, x, low), None

    start = jnp.zeros((times, students, students, samples))
    x, _ = jax.lax.scan(visit, start, jnp.arange(0, times, _BLOCK)[::-1])
    return jnp.transpose(jnp.mean(x, axis=-1), (2, 0, 1))


def _extend(frame: Array, slope: Array, place: Array) -> tuple[Array, Array]:
    """The orthonormal frame, extended by the directions of the new slopes, and the coefficients of
    these slopes on the frame.

    Gram-Schmidt is applied twice, against rounding, with the mean over samples as the inner
    product; a slope in the span of earlier ones adds no direction.
    """
    samples = slope.shape[1]
    rows = []
    for number, one in enumerate(slope):
        coefficient = jnp.zeros(len(frame))
        rest = one
        for _ in range(2):
            part = frame @ rest / samples
            rest = rest - part @ frame
            coefficient = coefficient + part
        left, whole = jnp.mean(rest**2), jnp.mean(one**2)
        has = left > _NEGLIGIBLE**2 * whole
        length = jnp.sqrt(jnp.where(has, left, 1.0))
        unit = jnp.where(has, rest / length, 0.0)
        frame = frame.at[place + number].set(unit)
        rows.append(coefficient.at[place + number].add(jnp.where(has, length, 0.0)))
    return frame, jnp.stack(rows)
