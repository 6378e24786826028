"""Perceptrons that really learn from a teacher: by Hebb's rule, by the largest margin, at random, and as badly as possible."""

from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.losses.margin import shortest_vector
from orderparam.systems.generalisation.perceptron.model import PerceptronLearning

_STEP = 0.9  # away from the teacher; from 1 on the consistent student nearest to it may be the origin


class Learned(Result):
    """Means over independent data sets. overlap with the teacher and error, each with its standard error; training_error.

    converged: what was optimised meets its conditions to 1e-9.
    """

    overlap: Float[Array, ""]
    overlap_error: Float[Array, ""]
    error: Float[Array, ""]
    error_error: Float[Array, ""]
    training_error: Float[Array, ""]
    converged: Bool[Array, ""]


@experiment
def trained_student(
    system: PerceptronLearning,
    key: PRNGKeyArray,
    *,
    learner: Literal["Hebb", "largest margin"] = "largest margin",
    data_sets: int = 8,
) -> Learned:
    """w = sum_mu y_mu x_mu, or the student of largest margin."""
    teacher, signed = _data(key, *_sizes(system), data_sets)
    student, found = (signed.sum(axis=1), True) if learner == "Hebb" else _largest_margin(np.asarray(signed))
    return _summary(_overlap(teacher, student), _wrong(signed, student), found)


@experiment
def sampled_students(
    system: PerceptronLearning,
    key: PRNGKeyArray,
    *,
    learner: Literal["Gibbs", "Bayes"] = "Gibbs",
    data_sets: int = 8,
    steps: int = 4000,
) -> Learned:
    """Students drawn uniformly from those without a training error: the mean of their errors, or the error of their vote.

    Hit and run: from the student of largest margin, `steps` times, to a random point of the part of a random great circle on
    which no example is misclassified; the first quarter is left out. Two chains for every data set: with the means m and
    m' of their students (of length one), the mean of infinitely many has the overlap (m + m').w_0/(2 sqrt(m.m')) with the
    teacher, m.m' averaged over data sets. The chains need many more than d^2 steps to forget their start.
    """
    for_data, for_chain = jax.random.split(key)
    teacher, signed = _data(for_data, *_sizes(system), data_sets)
    start, found = _largest_margin(np.asarray(signed))
    students = _hit_and_run(for_chain, jnp.tile(signed, (2, 1, 1)), jnp.tile(jnp.asarray(start), (2, 1)), steps)
    both = students.reshape(2, data_sets, *students.shape[1:])
    wrong = jnp.mean(jnp.stack([_wrong(signed, chain) for chain in both]))
    if learner == "Gibbs":
        return _summary(jnp.moveaxis(jnp.stack([_overlap(teacher, chain) for chain in both]), 0, 1), wrong, found)
    first, second = both.mean(axis=2)
    alike = jnp.mean(jnp.sum(first * second, axis=1))
    vote = jnp.sum((first + second) * teacher, axis=1) / (2 * jnp.sqrt(alike))
    return _summary(vote, wrong, found)


@experiment
def worst_student(system: PerceptronLearning, key: PRNGKeyArray, *, data_sets: int = 8, rounds: int = 20) -> Learned:
    """A student without a training error that is as far from the teacher as projected steps away from it lead.

    From the largest margin on, w <- the point nearest to w/|w| - 0.9 w_0 of the cone of consistent students, `rounds` times.
    Where the worst student points away from the teacher, for n < 2d, it is found; elsewhere others may be worse.
    """
    teacher, signed = (np.asarray(x) for x in _data(key, *_sizes(system), data_sets))
    student, found = _largest_margin(signed)
    for _ in range(rounds):
        away = student / np.linalg.norm(student, axis=1, keepdims=True) - _STEP * teacher
        change, met = zip(*(shortest_vector(one, -one @ w) for one, w in zip(signed, away)))
        student, found = away + np.stack(change), found and all(met)
    return _summary(_overlap(teacher, student), _wrong(signed, student), found)


def _sizes(system: PerceptronLearning) -> tuple[int, int]:
    d = system.size("input_dim")
    return d, max(1, round(float(system.sample_ratio) * d))


def _data(key: PRNGKeyArray, d: int, n: int, sets: int) -> tuple[Float[Array, "set d"], Float[Array, "set n d"]]:
    """Teachers of length one, and examples multiplied by their labels."""
    for_teacher, for_inputs = jax.random.split(key)
    teacher = jax.random.normal(for_teacher, (sets, d))
    teacher = teacher / jnp.linalg.norm(teacher, axis=1, keepdims=True)
    inputs = jax.random.normal(for_inputs, (sets, n, d))
    return teacher, inputs * jnp.sign(jnp.einsum("snd,sd->sn", inputs, teacher))[..., None]


def _largest_margin(signed: np.ndarray) -> tuple[np.ndarray, bool]:
    """The student of largest margin of each data set, and whether all were found."""
    ones = np.ones(signed.shape[1])
    students, found = zip(*(shortest_vector(one, ones) for one in signed))
    return np.stack(students), all(found)


def _overlap(teacher: Any, student: Any) -> Float[Array, "set *draw"]:
    """student: one of each data set, or several in a dimension after the first."""
    return jnp.einsum("sd,s...d->s...", teacher, student) / jnp.linalg.norm(student, axis=-1)


def _wrong(signed: Any, student: Any) -> Float[Array, ""]:
    """The share of examples with the wrong sign; those on the border are right."""
    return jnp.mean(jnp.einsum("snd,s...d->sn...", signed, student) < -1e-9)


def _summary(overlap: Float[Array, "set *draw"], wrong: Float[Array, ""], found: bool) -> Learned:
    error = jnp.arccos(jnp.clip(overlap, -1, 1)) / np.pi
    means = [x.reshape(len(x), -1).mean(axis=1) for x in (overlap, error)]
    pairs = [(jnp.mean(x), _spread(x)) for x in means]
    return Learned(*pairs[0], *pairs[1], wrong, jnp.asarray(found))


def _spread(values: Float[Array, "set"]) -> Float[Array, ""]:
    return jnp.std(values, ddof=1) / jnp.sqrt(values.size) if values.size > 1 else jnp.asarray(jnp.nan)


@partial(jax.jit, static_argnames=("steps",))
def _hit_and_run(
    key: PRNGKeyArray, signed: Float[Array, "set n d"], start: Float[Array, "set d"], steps: int
) -> Float[Array, "set draw d"]:
    """Every tenth student of the chains, the first quarter left out, of length one."""

    def step(state: tuple[Array, Array], key: PRNGKeyArray) -> tuple[tuple[Array, Array], Array]:
        student, fields = state
        for_direction, for_place = jax.random.split(key)
        direction = jax.random.normal(for_direction, student.shape)
        change = jnp.einsum("snd,sd->sn", signed, direction)
        # fields cos t + change sin t >= 0 for t within pi/2 of atan(change/fields)
        places = jnp.arctan2(change, fields)
        low, high = jnp.max(places, axis=1) - np.pi / 2, jnp.min(places, axis=1) + np.pi / 2
        t = (low + (high - low) * jax.random.uniform(for_place, low.shape))[:, None]
        student = student * jnp.cos(t) + direction * jnp.sin(t)
        fields = jnp.maximum(fields * jnp.cos(t) + change * jnp.sin(t), 0.0)
        return (student, fields), student

    start = start / jnp.linalg.norm(start, axis=1, keepdims=True) * np.sqrt(start.shape[1])
    fields = jnp.einsum("snd,sd->sn", signed, start)
    _, path = jax.lax.scan(step, (start, fields), jax.random.split(key, steps))
    kept = jnp.moveaxis(path[steps // 4 :: 10], 0, 1)
    return kept / jnp.linalg.norm(kept, axis=-1, keepdims=True)
