"""Simulated perceptrons that learn from a teacher: by Hebb's rule, with the largest margin, as a
random consistent student, and as the worst consistent student."""

from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result, with_errors
from orderparam.core.verb import experiment
from orderparam.losses.margin import shortest_vector
from orderparam.systems.generalisation.model import PerceptronLearning

# Length of a step away from the teacher, in units of the student's length. For steps of length 1 or
# more the nearest point of the cone of consistent students may be w = 0.
_STEP = 0.9


class Learned(Result):
    """Overlaps and errors of students, averaged over independent data sets.

    Fields:
        overlap, overlap_error: mean cosine of the angle between student and teacher, and its
            standard error over data sets.
        error, error_error: mean probability of a wrong sign on a new input, which is
            arccos(cosine)/pi, and its standard error over data sets.
        training_error: mean fraction of training examples with a wrong sign.
        converged: whether the optimality conditions of the student of largest margin are satisfied
            to 1e-9; for Hebb's rule it is always true.
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
    r"""Error of a student of largest margin, or of Hebb's student, averaged over data sets.

    Args:
        learner: "Hebb" is $w = \sum_\mu y^\mu x^\mu$; "largest margin" is the student with the
            largest margin, which an active-set method finds exactly.
        data_sets: number of independent data sets and teachers in one run.

    Source: Vallet (1989); Opper, Kinzel, Kleinz, Nehl (1990).

    >>> import jax
    >>> found = trained_student(PerceptronLearning(2.0, 20), jax.random.key(0), data_sets=4)
    >>> bool(abs(found.error - 0.19) < 0.1), float(found.training_error)
    (True, 0.0)
    """
    teacher, signed = _data(key, *_sizes(system), data_sets)
    student, found = (
        (signed.sum(axis=1), True) if learner == "Hebb" else _largest_margin(np.asarray(signed))
    )
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
    r"""Mean error of random students without a training error, or the error of their majority vote.

    The students are drawn by hit-and-run sampling. A chain starts at the student of largest margin.
    Each step draws a random great circle through the student, and moves the student to a random
    point of the part of this circle on which no example is misclassified. The first quarter of the
    steps is discarded, and every tenth student of the other steps is used. There are two chains for
    every data set. If m and m' are the means of the normalised students of the two chains, the
    majority vote of infinitely many students has the overlap

    $$ R = \frac{(m + m') \cdot w_0}{2 \sqrt{m \cdot m'}} $$

    with the teacher $w_0$ of length one. The product $m \cdot m'$ is averaged over data sets; two
    independent chains make it an unbiased estimate of the squared length of the mean student.

    Args:
        learner: "Gibbs" for the mean error of the students, "Bayes" for the error of the vote.
        data_sets: number of independent data sets and teachers in one run.
        steps: number of steps of each chain; many more than $d^2$ are needed for equilibration.

    Source: Györgyi (1990) and Opper, Haussler (1991), for the theory that it tests; the estimator
    from two chains is derived here.

    >>> import jax
    >>> system = PerceptronLearning(2.0, input_dim=6)
    >>> found = sampled_students(system, jax.random.key(0), data_sets=4, steps=400)
    >>> bool(0 < found.error < 0.5), float(found.training_error)
    (True, 0.0)
    """
    for_data, for_chain = jax.random.split(key)
    teacher, signed = _data(for_data, *_sizes(system), data_sets)
    start, found = _largest_margin(np.asarray(signed))
    students = _hit_and_run(
        for_chain, jnp.tile(signed, (2, 1, 1)), jnp.tile(jnp.asarray(start), (2, 1)), steps
    )
    both = students.reshape(2, data_sets, *students.shape[1:])
    wrong = jnp.mean(jnp.stack([_wrong(signed, chain) for chain in both]))
    if learner == "Gibbs":
        return _summary(
            jnp.moveaxis(jnp.stack([_overlap(teacher, chain) for chain in both]), 0, 1),
            wrong,
            found,
        )
    first, second = both.mean(axis=2)
    alike = jnp.mean(jnp.sum(first * second, axis=1))
    vote = jnp.sum((first + second) * teacher, axis=1) / (2 * jnp.sqrt(alike))
    return _summary(vote, wrong, found)


@experiment
def worst_student(
    system: PerceptronLearning, key: PRNGKeyArray, *, data_sets: int = 8, rounds: int = 20
) -> Learned:
    r"""Error of a student without a training error that projected steps move as far from the
    teacher as possible.

    The search starts at the student of largest margin. Each step moves w away from the teacher
    $w_0$ (of length one), to $w/|w| - 0.9\, w_0$, and then to the nearest point of the cone of
    students without a training error. For n < 2d the worst student has a negative overlap with the
    teacher, and the search finds it. Otherwise the result is a lower bound on the worst error.

    Args:
        data_sets: number of independent data sets and teachers in one run.
        rounds: number of projected steps.

    Source: derived here.

    >>> import jax
    >>> system = PerceptronLearning(1.0, input_dim=10)
    >>> found = worst_student(system, jax.random.key(0), data_sets=2, rounds=5)
    >>> bool(found.error > 0.5), float(found.training_error)
    (True, 0.0)
    """
    teacher, signed = (np.asarray(x) for x in _data(key, *_sizes(system), data_sets))
    student, found = _largest_margin(signed)
    for _ in range(rounds):
        away = student / np.linalg.norm(student, axis=1, keepdims=True) - _STEP * teacher
        change, met = zip(*(shortest_vector(one, -one @ w) for one, w in zip(signed, away)))
        student, found = away + np.stack(change), found and all(met)
    return _summary(_overlap(teacher, student), _wrong(signed, student), found)


def _sizes(system: PerceptronLearning) -> tuple[int, int]:
    """Input dimension and number of examples, at least one."""
    d = system.size("input_dim")
    return d, max(1, round(float(system.sample_ratio) * d))


def _data(
    key: PRNGKeyArray, d: int, n: int, sets: int
) -> tuple[Float[Array, "set d"], Float[Array, "set n d"]]:
    """Teachers of length one, and inputs multiplied by their labels."""
    for_teacher, for_inputs = jax.random.split(key)
    teacher = jax.random.normal(for_teacher, (sets, d))
    teacher = teacher / jnp.linalg.norm(teacher, axis=1, keepdims=True)
    inputs = jax.random.normal(for_inputs, (sets, n, d))
    return teacher, inputs * jnp.sign(jnp.einsum("snd,sd->sn", inputs, teacher))[..., None]


def _largest_margin(signed: np.ndarray) -> tuple[np.ndarray, bool]:
    """Student of largest margin of each data set, and whether all were found."""
    ones = np.ones(signed.shape[1])
    students, found = zip(*(shortest_vector(one, ones) for one in signed))
    return np.stack(students), all(found)


def _overlap(teacher: Any, student: Any) -> Float[Array, "set *draw"]:
    """Cosine of the angle between teacher and student; `student` holds one student of each data
    set, or several along the axes after the first.
    """
    return jnp.einsum("sd,s...d->s...", teacher, student) / jnp.linalg.norm(student, axis=-1)


def _wrong(signed: Any, student: Any) -> Float[Array, ""]:
    """Fraction of examples with a wrong sign; an example on the decision boundary counts as
    right."""
    return jnp.mean(jnp.einsum("snd,s...d->sn...", signed, student) < -1e-9)


def _summary(overlap: Float[Array, "set *draw"], wrong: Float[Array, ""], found: bool) -> Learned:
    """Means over draws and data sets, with standard errors from the scatter over data sets."""
    error = jnp.arccos(jnp.clip(overlap, -1, 1)) / np.pi
    means = [x.reshape(len(x), -1).mean(axis=1) for x in (overlap, error)]
    cosine, mistakes = ((jnp.mean(x), _spread(x)) for x in means)
    return Learned(
        **with_errors(overlap=cosine, error=mistakes),
        training_error=wrong,
        converged=jnp.asarray(found),
    )


def _spread(values: Float[Array, "set"]) -> Float[Array, ""]:
    """Standard error of the mean over data sets; NaN for a single data set."""
    return (
        jnp.std(values, ddof=1) / jnp.sqrt(values.size) if values.size > 1 else jnp.asarray(jnp.nan)
    )


@partial(jax.jit, static_argnames=("steps",))
def _hit_and_run(
    key: PRNGKeyArray, signed: Float[Array, "set n d"], start: Float[Array, "set d"], steps: int
) -> Float[Array, "set draw d"]:
    """Students of each chain, normalised to length one: every tenth after the first quarter."""

    def step(state: tuple[Array, Array], key: PRNGKeyArray) -> tuple[tuple[Array, Array], Array]:
        student, fields = state
        for_direction, for_place = jax.random.split(key)
        direction = jax.random.normal(for_direction, student.shape)
        change = jnp.einsum("snd,sd->sn", signed, direction)
        # The student moves to student cos t + direction sin t. An example stays right, fields cos t
        # + change sin t >= 0, if t differs from the angle atan(change/fields) by at most pi/2.
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
