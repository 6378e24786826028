"""Perceptrons that really learn from a teacher: by Hebb's rule, by the largest margin, at random, and as badly as possible."""

from functools import partial
from typing import Literal

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
    return _summary(teacher, student, signed, found)


@experiment
def sampled_students(
    system: PerceptronLearning,
    key: PRNGKeyArray,
    *,
    learner: Literal["Gibbs", "Bayes"] = "Gibbs",
    data_sets: int = 8,
    steps: int = 4000,
) -> Learned:
    """Students drawn uniformly from those without a training error: the mean of their errors, or the error of their mean.

    Hit and run: from the student of largest margin, `steps` times, to a random point of the part of a random great circle on
    which no example is misclassified; the first quarter is left out. Needs many more than d^2 steps.
    """
    for_data, for_chain = jax.random.split(key)
    teacher, signed = _data(for_data, *_sizes(system), data_sets)
    start, found = _largest_margin(np.asarray(signed))
    students = _hit_and_run(for_chain, signed, jnp.asarray(start), steps)
    return _summary(teacher, students.mean(axis=1) if learner == "Bayes" else students, signed, found)


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
    return _summary(jnp.asarray(teacher), jnp.asarray(student), jnp.asarray(signed), found)


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


def _summary(teacher: Array, student: Array, signed: Array, found: bool) -> Learned:
    """student: one of each data set, or several in a dimension after the first."""
    overlap = jnp.einsum("sd,s...d->s...", teacher, student) / jnp.linalg.norm(student, axis=-1)
    error = jnp.arccos(jnp.clip(overlap, -1, 1)) / np.pi
    wrong = jnp.mean(jnp.einsum("snd,s...d->sn...", signed, student) < -1e-9)
    found_values = [x.reshape(len(teacher), -1).mean(axis=1) for x in (overlap, error)]
    pairs = [(jnp.mean(x), _spread(x)) for x in found_values]
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
