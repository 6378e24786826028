"""Replica exchange in the weight of the likelihood, with or without a wall between two states."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.gaussian import Activation, expectation
from orderparam.gaussian.numerical import Numerical
from orderparam.systems.extensive_width.experiment import TeacherData, affine_part, output
from orderparam.systems.extensive_width.model import Teacher

# Replica r samples the density
#
#     exp(-l_r E(W) - |W|^2/2),    E = sum_mu (y_mu - f(x_mu))^2 / (2 Delta),
#
# with l = 0 for the first replica (the prior, which forgets the start) and geometric weights l up
# to 1 (the posterior). After each trajectory of Hamiltonian Monte Carlo neighbours exchange their
# states. Because
#
#     d ln Z / dl = -<E>_l,    d <E>_l / dl = -Var_l(E),
#
# the same run gives the free energy of the posterior by integration over l. The chains run in
# single precision; averages are accumulated in double precision.
#
# A wall confines the overlap q_1 of the strongest feature to one side of a value, so that ln Z is
# that of one of two competing states. Trajectories are reflected at the wall, which keeps their
# volume and their energy; Z at l = 0 is then the prior's probability of that side (derived for this
# package).

_FIRST_WEIGHT = 1.5  # times 1/n: the prior and this weight exchange readily
_SMALLEST_ROOM = 64
_ACCEPTANCE = 0.75
_FIRST_STEP = 0.2
_JITTER = 0.2


class Wall(NamedTuple):
    """The wall: trajectories keep side * (q_1 - place) >= 0; side 0 is no wall."""

    side: Array | float
    place: Array | float


FREE = Wall(0.0, 0.0)


class LikelihoodProblem(NamedTuple):
    """The data, padded so that few shapes are compiled, and what the learner knows."""

    inputs: Float[Array, "sample input"]
    labels: Float[Array, "sample"]
    counts: Float[Array, "sample"]
    truth: Float[Array, "feature input"]
    readout: Float[Array, "feature"]
    affine: tuple[Array, Array]
    noise: Array


class Averages(NamedTuple):
    """Averages over the draws of one ladder, or over each half of them. misfit, spread: mean and
    variance of E at every weight; the others are those of the posterior."""

    misfit: Float[Array, "weight"]
    spread: Float[Array, "weight"]
    overlap: Float[Array, "feature"]
    learned: Float[Array, ""]
    square: Float[Array, ""]
    largest: Float[Array, ""]
    coupling: Float[Array, ""]
    separate: Float[Array, ""]
    acceptance: Float[Array, ""]


def weights_of(count: int, samples: int) -> Float[Array, "weight"]:
    """The weights of the likelihood: zero, and geometric from 1.5/n to 1."""
    geometric = jnp.geomspace(min(0.5, _FIRST_WEIGHT / samples), 1.0, count - 1)
    return jnp.concatenate([jnp.zeros(1), geometric])


def prepared(teacher: Teacher, data: TeacherData) -> LikelihoodProblem:
    """The data in single precision, padded to a power of two."""
    samples = len(data.labels)
    room = _SMALLEST_ROOM
    while room < samples:
        room *= 2
    pad = room - samples
    problem = LikelihoodProblem(
        jnp.pad(data.inputs, ((0, pad), (0, 0))),
        jnp.pad(data.labels, (0, pad)),
        jnp.pad(jnp.ones(samples), (0, pad)),
        data.weights,
        jnp.asarray(teacher.readout),
        affine_part(teacher.activation),
        jnp.asarray(teacher.noise),
    )
    return jax.tree.map(lambda part: jnp.asarray(part, jnp.float32), problem)


def misfit(activation: Activation, problem: LikelihoodProblem, weights: Array) -> Float[Array, ""]:
    """E(W): the sum of squared residuals over twice the noise."""
    # activations other than functions of jax.numpy compute in double precision
    sigma: Any = activation.function if isinstance(activation, Numerical) else activation
    found = output(sigma, problem.affine, problem.readout, weights, problem.inputs)
    residual = problem.labels - found.astype(jnp.float32)
    return jnp.sum(problem.counts * residual**2) / (2 * problem.noise)


def scales(
    activation: Activation, problem: LikelihoodProblem, samples: int, ladder: Float[Array, "weight"]
) -> Float[Array, "weight feature 1"]:
    """Expected widths of the rows at every weight."""
    slope = expectation(
        lambda z: (activation.derivative(z) - problem.affine[1]) ** 2, 1.0, activation.kinks
    )
    stiffness = samples / problem.truth.shape[1] * problem.readout**2 * slope / problem.noise
    return jnp.asarray(1 / jnp.sqrt(1 + ladder[:, None] * stiffness), jnp.float32)[..., None]


class _State(NamedTuple):
    position: Array
    misfit: Array
    slope: Array


@partial(jax.jit, static_argnames=("activation", "sweeps", "leapfrog_steps"))
def exchange(
    activation: Activation,
    problem: LikelihoodProblem,
    ladder: Float[Array, "weight"],
    scale: Float[Array, "weight feature 1"],
    start: Float[Array, "weight feature input"],
    wall: Wall,
    threshold: Float[Array, ""] | float,
    key: PRNGKeyArray,
    sweeps: int,
    leapfrog_steps: int,
) -> Averages:
    """Averages over each half of a run of replica exchange, which has one replica for each weight
    of the likelihood. The first axis of every array is the half of the run.

    The first third of the sweeps adapts the step sizes and is discarded.

    Args:
        ladder: the weights, rising from 0 to 1.
        scale: expected widths of the rows.
        start: positions at the start, on the wall's side.
        threshold: overlap of the strongest feature above which it counts as learned.
    """
    dim = problem.truth.shape[1]
    norm = jnp.linalg.norm(problem.truth[0])
    towards = problem.truth[0] / norm
    # |w^0| = sqrt(d), so that q_1 = towards . w_1 / sqrt(d)
    side, edge = (jnp.asarray(part, jnp.float32) for part in (wall.side, wall.place * norm))
    weight = jnp.asarray(ladder, jnp.float32)
    value_and_slope = jax.value_and_grad(partial(misfit, activation, problem))
    diagonal = jnp.eye(problem.truth.shape[0], dtype=bool)
    warmup = sweeps // 3

    def trajectory(
        weight: Array, scale: Array, step: Array, key: PRNGKeyArray, state: _State
    ) -> tuple[_State, Array]:
        momentum_key, jitter_key, accept_key = jax.random.split(key, 3)
        step = step * jax.random.uniform(
            jitter_key, minval=1 - _JITTER, maxval=1 + _JITTER, dtype=jnp.float32
        )
        momentum = jax.random.normal(momentum_key, state.position.shape, jnp.float32)

        def kicked(momentum: Array, state: _State) -> Array:
            return momentum - step / 2 * scale * (weight * state.slope + state.position)

        def leap(_: int, moving: tuple[_State, Array]) -> tuple[_State, Array]:
            state, momentum = moving
            momentum = kicked(momentum, state)
            position = state.position + step * scale * momentum
            inside = edge - position[0] @ towards
            crossed = side * inside > 0
            back = jnp.where(crossed, 2 * inside, 0.0) * towards
            turn = jnp.where(crossed, -2 * (momentum[0] @ towards), 0.0) * towards
            position, momentum = position.at[0].add(back), momentum.at[0].add(turn)
            state = _State(position, *value_and_slope(position))
            return state, kicked(momentum, state)

        def energy(state: _State, momentum: Array) -> Array:
            return weight * state.misfit + jnp.sum(state.position**2 + momentum**2) / 2

        end, last = jax.lax.fori_loop(0, leapfrog_steps, leap, (state, momentum))
        chance = jnp.exp(jnp.minimum(0.0, energy(state, momentum) - energy(end, last)))
        chance = jnp.where(jnp.isfinite(chance), chance, 0.0)
        accepted = jax.random.uniform(accept_key) < chance
        return jax.tree.map(partial(jnp.where, accepted), end, state), chance

    def swapped(state: _State, number: Array, key: PRNGKeyArray) -> _State:
        # even and odd sweeps exchange the pairs (0, 1), (2, 3), ... and (1, 2), (3, 4), ...
        rung = jnp.arange(len(ladder))
        partner = jnp.where((rung + number) % 2 == 0, rung + 1, rung - 1)
        partner = jnp.where((partner < 0) | (partner >= len(ladder)), rung, partner)
        gain = (weight[partner] - weight) * (state.misfit[partner] - state.misfit)
        drawn = jnp.log(jax.random.uniform(key, (len(ladder),)))[jnp.minimum(rung, partner)]
        source = jnp.where(drawn < gain, partner, rung)
        return jax.tree.map(lambda part: part[source], state)

    def observed(state: _State, chance: Array) -> Averages:
        overlap = state.position[-1] @ problem.truth.T / dim
        other = jnp.where(diagonal, 0.0, overlap)
        readout, pairs = problem.readout, diagonal.size - len(diagonal)
        found = Averages(
            misfit=state.misfit,
            spread=state.misfit.astype(jnp.float64) ** 2,
            overlap=jnp.diagonal(overlap),
            learned=overlap[0, 0] > threshold,
            square=dim * jnp.sum(other**2) / max(pairs, 1),
            largest=jnp.max(jnp.abs(other)),
            coupling=(readout @ other**3 @ readout) ** 2,
            separate=readout**2 @ other**6 @ readout**2,
            acceptance=jnp.mean(chance),
        )
        return jax.tree.map(lambda part: part.astype(jnp.float64), found)

    def sweep(carry: tuple, step: tuple[Array, Array]) -> tuple[tuple, None]:
        state, log_step, total = carry
        key, number = step
        move_key, swap_key = jax.random.split(key)
        keys = jax.random.split(move_key, len(ladder))
        state, chance = jax.vmap(trajectory)(weight, scale, jnp.exp(log_step), keys, state)
        adapting = number < warmup
        gain = jnp.where(adapting, (10.0 + number) ** -0.6, 0.0).astype(jnp.float32)
        log_step = log_step + gain * (chance - _ACCEPTANCE)
        state = swapped(state, number, swap_key)
        now = observed(state, chance)
        half = jnp.where(2 * number < warmup + sweeps, 0, 1)
        total = jax.tree.map(lambda a, b: a.at[half].add(jnp.where(adapting, 0.0, b)), total, now)
        return (state, log_step, total), None

    position = jnp.asarray(start, jnp.float32)
    state = _State(position, *jax.vmap(value_and_slope)(position))
    shapes = jax.eval_shape(observed, state, ladder)
    none = jax.tree.map(lambda part: jnp.zeros((2, *part.shape)), shapes)
    log_step = jnp.full(len(ladder), jnp.log(_FIRST_STEP), jnp.float32)
    steps = jax.random.split(key, sweeps), jnp.arange(sweeps)
    (_, _, total), _ = jax.lax.scan(sweep, (state, log_step, none), steps)
    first = -(-(sweeps + warmup) // 2) - warmup
    counts = jnp.array([first, sweeps - warmup - first], float)
    mean: Averages = jax.tree.map(
        lambda part: part / counts.reshape(-1, *[1] * (part.ndim - 1)), total
    )
    return mean._replace(spread=mean.spread - mean.misfit**2)


def of_all(halves: Averages) -> Averages:
    """The averages over all draws, from those over each half; halves differ by one draw at most."""
    mean: Averages = jax.tree.map(lambda part: jnp.mean(part, axis=0), halves)
    return mean._replace(spread=mean.spread + jnp.var(halves.misfit, axis=0))


def log_evidence(ladder: Float[Array, "weight"], averages: Averages) -> Float[Array, "*half"]:
    """ln Z(1) - ln Z(0), by integration over the weights, for each half where there are two.

    The trapezoidal rule is corrected by the slopes at both ends of an interval, which the variances
    of E give; its error is of fourth order in the spacing.
    """
    step = jnp.diff(ladder)
    mean = (averages.misfit[..., 1:] + averages.misfit[..., :-1]) / 2
    return -jnp.sum(step * mean + step**2 / 12 * jnp.diff(averages.spread), axis=-1)
