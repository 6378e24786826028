"""Perceptrons that really learn from a teacher: by Hebb's rule, by the largest margin, at random, and as badly as possible."""

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.losses.margin import margin_dual
from orderparam.systems.generalisation.perceptron.model import PerceptronLearning

_STEP = 2.0  # away from the teacher, in units of its length, before a worst student is put back among the consistent ones


class Learned(Result):
    """Means over independent data sets. overlap with the teacher and error, each with its standard error; training_error.

    converged: the optimality conditions of what was optimised hold to 1e-6.
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
    return _trained(key, *_sizes(system), learner == "Hebb", data_sets)


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
    return _sampled(key, *_sizes(system), learner == "Bayes", data_sets, steps)


@experiment
def worst_student(system: PerceptronLearning, key: PRNGKeyArray, *, data_sets: int = 8, rounds: int = 20) -> Learned:
    """A student without a training error that is as far from the teacher as projected steps away from it lead.

    From the largest margin on, w <- the point nearest to w - 2 w_0 of the cone of consistent students, `rounds` times. Where
    the worst student points away from the teacher, for n < 2d, it is found; elsewhere others may be worse.
    """
    return _worst(key, *_sizes(system), data_sets, rounds)


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


def _largest_margin(signed: Float[Array, "set n d"]) -> tuple[Float[Array, "set d"], Bool[Array, "set"]]:
    dual, found = margin_dual(signed @ signed.swapaxes(1, 2), jnp.ones(signed.shape[:2]))
    return jnp.einsum("sn,snd->sd", dual, signed), found


def _summary(teacher: Array, student: Array, signed: Array, found: Array) -> Learned:
    overlap = jnp.einsum("sd,s...d->s...", teacher, student) / jnp.linalg.norm(student, axis=-1)
    error = jnp.arccos(jnp.clip(overlap, -1, 1)) / np.pi
    while overlap.ndim > 1:
        overlap, error = overlap.mean(axis=-1), error.mean(axis=-1)
    wrong = jnp.mean(jnp.einsum("snd,s...d->sn...", signed, student) < 0)
    count = overlap.size
    spread = [jnp.std(x, ddof=1) / jnp.sqrt(count) if count > 1 else jnp.asarray(jnp.nan) for x in (overlap, error)]
    return Learned(jnp.mean(overlap), spread[0], jnp.mean(error), spread[1], wrong, jnp.all(found))


@partial(jax.jit, static_argnames=("d", "n", "hebb", "sets"))
def _trained(key: PRNGKeyArray, d: int, n: int, hebb: bool, sets: int) -> Learned:
    teacher, signed = _data(key, d, n, sets)
    student, found = (jnp.sum(signed, axis=1), jnp.asarray(True)) if hebb else _largest_margin(signed)
    return _summary(teacher, student, signed, found)


@partial(jax.jit, static_argnames=("d", "n", "vote", "sets", "steps"))
def _sampled(key: PRNGKeyArray, d: int, n: int, vote: bool, sets: int, steps: int) -> Learned:
    for_data, for_chain = jax.random.split(key)
    teacher, signed = _data(for_data, d, n, sets)
    start, found = _largest_margin(signed)
    start = start / jnp.linalg.norm(start, axis=1, keepdims=True) * np.sqrt(d)

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

    fields = jnp.einsum("snd,sd->sn", signed, start)
    _, path = jax.lax.scan(step, (start, fields), jax.random.split(for_chain, steps))
    kept = jnp.moveaxis(path[steps // 4 :: 10], 0, 1)
    kept = kept / jnp.linalg.norm(kept, axis=-1, keepdims=True)
    student = jnp.mean(kept, axis=1) if vote else kept
    return _summary(teacher, student, signed, found)


@partial(jax.jit, static_argnames=("d", "n", "sets", "rounds"))
def _worst(key: PRNGKeyArray, d: int, n: int, sets: int, rounds: int) -> Learned:
    teacher, signed = _data(key, d, n, sets)
    gram = signed @ signed.swapaxes(1, 2)

    def round_(student: Array, _: None) -> tuple[Array, Array]:
        student = student / jnp.linalg.norm(student, axis=1, keepdims=True) - _STEP * teacher
        dual, found = margin_dual(gram, -jnp.einsum("snd,sd->sn", signed, student))
        return student + jnp.einsum("sn,snd->sd", dual, signed), found

    first, margin_found = _largest_margin(signed)
    student, found = jax.lax.scan(round_, first, None, length=rounds)
    return _summary(teacher, student, signed, margin_found & found[-1])
