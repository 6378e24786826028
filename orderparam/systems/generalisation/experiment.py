"""Simulated perceptrons that learn from a teacher in several ways, and networks that are trained
from random starts and from starts that have memorised random labels.
"""

from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result, with_errors
from orderparam.core.verb import experiment
from orderparam.losses.margin import shortest_vector
from orderparam.systems.generalisation.model import ImageClassifier, PerceptronLearning

# ------------------------------------------------------------------------------------------------
# Perceptrons that learn from a teacher: by Hebb's rule, with the largest margin, as a random
# consistent student, and as the worst consistent student.

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
    Each step draws a random great circle through the student and moves to a random point of the
    part of it on which no example is misclassified. The first quarter of the steps is discarded,
    and of the rest every tenth student is used. There are two chains for every data set. If m and
    m' are the means of the normalised students of the two chains, the majority vote of infinitely
    many students has the overlap

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
    r"""Error of a student without a training error that projected steps move as far from the teacher
    as possible.

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
    """Fraction of examples with a wrong sign; an example on the decision boundary counts as right."""
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


# ------------------------------------------------------------------------------------------------
# Networks that are trained from a random start, and from a start that has memorised random labels,
# with and without regularisation.
#
# The protocol is that of Liu, Papailiopoulos and Achlioptas (2019). Weights are in float32, and
# their first values are normal with variance 2/(number of inputs of the layer), He's law. There are
# no biases.

ARMS = (
    "random start",
    "adversarial start",
    "adversarial start, regularised",
    "random start, regularised",
)
_CLASSES = 10
_EVERY = 10  # epochs between two evaluations of the training error

Weights = tuple[Array, ...]


class Trained(Result):
    """A network trained from a random start.

    Fields:
        error: fraction of test pictures with a wrong label.
        train_error: fraction of training pictures with a wrong label.
        converged: whether `train_error` is zero.
    """

    error: Float[Array, ""]
    train_error: Float[Array, ""]
    converged: Bool[Array, ""]


class Arms(Result):
    """One network that is trained in each of the four ways of `ARMS`.

    Fields:
        error: fraction of test pictures with a wrong label.
        train_error: fraction of training pictures with a wrong label.
        weight_norm: Euclidean norm of all weights together.
        distance: Euclidean distance of all weights from the random start.
        memorised: fraction of the random labels that the adversarial start reproduces.
        converged: whether all four ways of training end without a training error.
    """

    error: Float[Array, "arm"]
    train_error: Float[Array, "arm"]
    weight_norm: Float[Array, "arm"]
    distance: Float[Array, "arm"]
    memorised: Float[Array, ""]
    converged: Bool[Array, ""]


class _Rates(NamedTuple):
    """Numbers of a training by SGD."""

    learning_rate: Float[Array, ""] | float
    momentum: Float[Array, ""] | float
    weight_decay: Float[Array, ""] | float


@experiment
def trained_network(
    system: ImageClassifier, key: PRNGKeyArray, *, max_epochs: int = 500
) -> Trained:
    """Test error of a network that plain SGD trains from a random start until no training example
    is wrong.

    Args:
        max_epochs: largest number of epochs; the training error is evaluated every 10 epochs.

    Source: Liu, Papailiopoulos, Achlioptas (2019), for the protocol.

    >>> import jax
    >>> x = np.random.default_rng(0).normal(size=(30, 8))
    >>> y = (x[:, 0] > 0).astype(int)
    >>> system = ImageClassifier(x, y, n_train=20, width=8, learning_rate=0.2, batch_size=5)
    >>> float(trained_network(system, jax.random.key(0), max_epochs=200).train_error)
    0.0
    """
    train, test, start, key = _prepared(system, key)
    rates = _Rates(system.learning_rate, jnp.zeros(()), jnp.zeros(()))
    weights = _sgd(start, train, rates, key, system.size("batch_size"), 0, max_epochs)
    wrong = _wrong_share(weights, *train)
    return Trained(error=_wrong_share(weights, *test), train_error=wrong, converged=wrong == 0)


@experiment
def bad_minima(
    system: ImageClassifier,
    key: PRNGKeyArray,
    *,
    max_epochs: int = 600,
    regularised_epochs: int = 400,
) -> Arms:
    """Test errors of one network that is trained to zero training error in four ways, from random
    and from adversarial starts.

    To prepare the adversarial start, the network at the random start is trained with momentum on
    `copies` copies of each training picture with random labels, until it reproduces all these
    labels or for `max_epochs` epochs. A random fraction `dropped` of the pixels of each copy is set
    to zero. From either start the network is then trained on the true labels, by plain SGD or by
    SGD with momentum and weight decay, until no training example is wrong. `ARMS` names the four
    ways.

    Args:
        max_epochs: largest number of epochs of each training; errors are evaluated every 10 epochs.
        regularised_epochs: smallest number of epochs with momentum and weight decay; up to
            `max_epochs` more epochs follow while a training example is wrong.

    Source: Liu, Papailiopoulos, Achlioptas (2019).

    >>> import jax
    >>> x = np.random.default_rng(0).normal(size=(20, 4))
    >>> y = (x[:, 0] > 0).astype(int)
    >>> system = ImageClassifier(x, y, n_train=10, width=8, copies=1, batch_size=5)
    >>> found = bad_minima(system, jax.random.key(0), max_epochs=20, regularised_epochs=10)
    >>> found.error.shape == (len(ARMS),)
    True
    """
    train, test, random, key = _prepared(system, key)
    for_copies, for_labels, *keys = jax.random.split(key, 7)
    copies = jnp.tile(train[0], (system.size("copies"), 1))
    copies = jnp.where(
        jax.random.uniform(for_copies, copies.shape) < system.dropped, 0.0, copies
    ).astype(jnp.float32)
    noise = copies, jax.random.randint(for_labels, (len(copies),), 0, _CLASSES)
    batch, zero = system.size("batch_size"), jnp.zeros(())
    plain = _Rates(system.learning_rate, zero, zero)
    careful = _Rates(system.learning_rate, system.momentum, system.weight_decay)
    memorise = _Rates(system.learning_rate, system.momentum, zero)
    adversarial = _sgd(random, noise, memorise, keys[0], batch, 0, max_epochs)
    ways = [
        (random, plain, 0),
        (adversarial, plain, 0),
        (adversarial, careful, regularised_epochs),
        (random, careful, regularised_epochs),
    ]
    ends = [
        _sgd(start, train, rates, k, batch, least, max_epochs + least)
        for (start, rates, least), k in zip(ways, keys[1:])
    ]
    train_error = jnp.stack([_wrong_share(end, *train) for end in ends])
    return Arms(
        error=jnp.stack([_wrong_share(end, *test) for end in ends]),
        train_error=train_error,
        weight_norm=jnp.stack([_norm(end) for end in ends]),
        distance=jnp.stack([_norm(jax.tree.map(jnp.subtract, end, random)) for end in ends]),
        memorised=1 - _wrong_share(adversarial, *noise),
        converged=jnp.all(train_error == 0),
    )


def _prepared(system: ImageClassifier, key: PRNGKeyArray) -> tuple:
    """Training and test examples, a network at its random start, and a key for the training."""
    n, width, pixels = system.size("n_train"), system.size("width"), system.inputs.shape[1]
    inputs, labels = system.inputs.astype(jnp.float32), system.labels.astype(int)
    for_weights, key = jax.random.split(key)
    shapes = (pixels, width), (width, width), (width, _CLASSES)
    start = tuple(
        jax.random.normal(k, shape, jnp.float32) * jnp.sqrt(2 / shape[0]).astype(jnp.float32)
        for k, shape in zip(jax.random.split(for_weights, 3), shapes)
    )
    return (inputs[:n], labels[:n]), (inputs[n:], labels[n:]), start, key


def _outputs(
    weights: Weights, inputs: Float[Array, "example pixel"]
) -> Float[Array, "example class"]:
    first, second, last = weights
    return jax.nn.relu(jax.nn.relu(inputs @ first) @ second) @ last


@jax.jit
def _wrong_share(weights: Weights, inputs: Array, labels: Array) -> Float[Array, ""]:
    return jnp.mean((jnp.argmax(_outputs(weights, inputs), axis=1) != labels).astype(float))


def _norm(weights: Weights) -> Float[Array, ""]:
    return optax.tree.norm(jax.tree.map(lambda leaf: leaf.astype(float), weights))


@partial(jax.jit, static_argnames=("batch",))
def _sgd(
    start: Weights,
    data: tuple[Array, Array],
    rates: _Rates,
    key: PRNGKeyArray,
    batch: int,
    least: int,
    most: int,
) -> Weights:
    """Weights after SGD on random batches until no example is wrong.

    There are at least `least` and about `most` epochs, because errors are evaluated every `_EVERY`
    epochs. Examples that are left over when an epoch is divided into batches are not used in it.
    """
    inputs, labels = data
    rates = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), rates)
    batch = min(batch, len(labels))
    batches = len(labels) // batch

    def loss(weights: Weights, chosen: Array) -> Float[Array, ""]:
        outputs = _outputs(weights, inputs[chosen])
        return jnp.mean(
            optax.losses.softmax_cross_entropy_with_integer_labels(outputs, labels[chosen])
        )

    def step(state: tuple[Weights, Weights], chosen: Array) -> tuple[tuple[Weights, Weights], None]:
        weights, change = state
        slope = jax.grad(loss)(weights, chosen)
        change = jax.tree.map(
            lambda c, g, w: rates.momentum * c - rates.learning_rate * (g + rates.weight_decay * w),
            change,
            slope,
            weights,
        )
        return (jax.tree.map(jnp.add, weights, change), change), None

    def epoch(
        state: tuple[Weights, Weights], key: PRNGKeyArray
    ) -> tuple[tuple[Weights, Weights], None]:
        order = jax.random.permutation(key, len(labels))[: batches * batch]
        return jax.lax.scan(step, state, order.reshape(batches, batch))[0], None

    def stretch(state: tuple) -> tuple:
        moving, count = state
        keys = jax.random.split(jax.random.fold_in(key, count), _EVERY)
        return jax.lax.scan(epoch, moving, keys)[0], count + _EVERY

    def unfinished(state: tuple) -> Bool[Array, ""]:
        (weights, _), count = state
        return (count < least) | ((count < most) & (_wrong_share(weights, inputs, labels) > 0))

    begin = (start, jax.tree.map(jnp.zeros_like, start)), jnp.asarray(0)
    return jax.lax.while_loop(unfinished, stretch, begin)[0][0]
