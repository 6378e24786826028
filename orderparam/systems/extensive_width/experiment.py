"""Teachers and data drawn at random, and students trained on them by Adam."""

from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.gaussian import Activation, hermite_coefficients
from orderparam.systems.extensive_width.model import QuadraticTeacher, Teacher, WidthLimitedStudent
from orderparam.systems.extensive_width.theory import bayes_optimal

# ------------------------------------------------------------------------------------------------
# A teacher network and its data set, drawn at random.

Affine = tuple[Array | float, Array | float]

TEST_POINTS = 8000  # the standard error of an average over them is 1.6 %


class TeacherData(NamedTuple):
    """The weights of a teacher, a noisy training set, and a test set without noise."""

    weights: Float[Array, "feature input"]
    inputs: Float[Array, "sample input"]
    labels: Float[Array, "sample"]
    test_inputs: Float[Array, "test input"]
    test_labels: Float[Array, "test"]


def affine_part(activation: Activation) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The Hermite coefficients c_0 and c_1 of the activation, which O(d) samples determine."""
    c = hermite_coefficients(activation, 2, 1.0, activation.kinks)
    return c[0], c[1]


def draw(
    teacher: Teacher | QuadraticTeacher,
    key: PRNGKeyArray,
    affine: Affine = (0.0, 0.0),
    orthogonal: bool = True,
) -> TeacherData:
    r"""A teacher and its data set, drawn at random.

    $$ y = \sum_i v_i (\sigma(z_i) - c_0 - c_1 z_i) + \sqrt\Delta\, \xi, \qquad
       z_i = w_i \cdot x / \sqrt d $$

    Args:
        affine: (c_0, c_1). Default (0, 0).
        orthogonal: whether the teacher's rows, of norm sqrt(d), are orthogonal if the width
            permits. False draws them from the prior, which is necessary if the spectrum of sum_i
            v_i w_i w_i^T matters. Default True.

    Raises:
        ValueError: for an input dimension or a number of samples that is not an integer.
    """
    dim, samples, readout = teacher.size("input_dim"), teacher.size("n_train"), teacher.readout
    weight_key, input_key, noise_key, test_key = jax.random.split(key, 4)
    width = readout.shape[0]
    weights = jax.random.normal(weight_key, (width, dim))
    if orthogonal:
        rows = jnp.linalg.qr(weights.T)[0].T if width <= dim else weights
        weights = rows * jnp.sqrt(dim) / jnp.linalg.norm(rows, axis=1, keepdims=True)
    inputs = jax.random.normal(input_key, (samples, dim))
    test_inputs = jax.random.normal(test_key, (TEST_POINTS, dim))
    noise = jnp.sqrt(teacher.noise) * jax.random.normal(noise_key, (samples,))
    labels = output(teacher.activation, affine, readout, weights, inputs) + noise
    return TeacherData(
        weights,
        inputs,
        labels,
        test_inputs,
        output(teacher.activation, affine, readout, weights, test_inputs),
    )


def output(
    activation: Activation,
    affine: Affine,
    readout: Float[Array, "feature"],
    weights: Float[Array, "feature input"],
    inputs: Float[Array, "sample input"],
) -> Float[Array, "sample"]:
    """The output of a network, sum_i v_i (sigma(z_i) - c_0 - c_1 z_i)."""
    z = inputs @ weights.T / jnp.sqrt(weights.shape[1])
    return (activation(z) - affine[0] - affine[1] * z) @ readout


# ------------------------------------------------------------------------------------------------
# A student network trained by Adam on the data of an extensive-width teacher. It shows how far the
# error of an algorithm stays above the Bayes-optimal error.
#
# The student is f(x) = sum_j a_j sigma(w_j . x). Its activation keeps the linear part. By default
# the read-outs a_j are learned and the rows w_j are projected back to |w_j| = 1 after each epoch,
# as in Nguyen and Barbier 2026, appendix on experiments; both can be changed.

Readouts = Literal["learned", "fixed"]
Precision = Literal["double", "single"]

FOUND = 0.7
RECORDS = 40


class TrainedStudent(Result):
    """State of a student after its last epoch, and its learning curves.

    Fields:
        overlap: largest cosine of each teacher feature with a row of the student.
        error: mean squared error against labels without noise, without a factor 1/2.
        train_error: mean squared error on the noisy training set.
        effective_width: number of teacher features with overlap above 0.7.
        epoch: epochs at which the errors were recorded, approximately equidistant on a logarithmic
            scale.
        test_curve: error at these epochs.
        train_curve: training error at these epochs.
    """

    overlap: Float[Array, "feature"]
    error: Float[Array, ""]
    train_error: Float[Array, ""]
    effective_width: Float[Array, ""]
    epoch: Float[Array, "record"]
    test_curve: Float[Array, "record"]
    train_curve: Float[Array, "record"]


@experiment
def adam_student(
    system: WidthLimitedStudent,
    key: PRNGKeyArray,
    *,
    epochs: int = 10_000,
    learning_rate: float = 0.003,
    batches: int = 3,
    readouts: Readouts = "learned",
    normalised: bool = True,
    annealed: bool = False,
    precision: Precision = "double",
) -> TrainedStudent:
    r"""Error and overlaps of a student of limited width that Adam trains on the mean squared error.

    $$ f(x) = \sum_{j=1}^{p} a_j\, \sigma(w_j \cdot x), \qquad |w_j| = 1 $$

    with p = `width`. Minibatches have a fixed order. The entries of the rows are initially uniform
    on (-1, 1)/d, and the read-outs are p^(-1/2). After each epoch the rows are projected back to
    unit norm. The activation keeps its linear part.

    Args:
        epochs: number of passes over the data, at least 40. Default 10 000.
        learning_rate: learning rate of Adam. Default 0.003.
        batches: number of minibatches in an epoch. Default 3.
        readouts: "learned" (default), or "fixed": the p largest read-outs of the teacher, which are
            not trained.
        normalised: whether the rows are projected back to unit norm after each epoch. If False, the
            lengths of the rows are free. The overlap of a row is a cosine in both cases. Default
            True.
        annealed: whether the learning rate falls linearly to zero, which removes the noise of small
            minibatches at the end. Default False: it is constant.
        precision: "double" (default) or "single" precision of the training, which is two to three
            times as fast.

    Raises:
        ValueError: for a width that is not an integer, fewer epochs than 40, more minibatches than
            samples, a learning rate that is negative or not finite, or fixed read-outs of a
            student that is wider than its teacher.

    Source: Nguyen, Barbier (2026), appendix on experiments.

    >>> import jax
    >>> from orderparam.systems.extensive_width import HierarchicalTeacher
    >>> student = WidthLimitedStudent(HierarchicalTeacher(8, 4, 1.0, 0.1, n_train=60), width=2)
    >>> adam_student(student, jax.random.key(0), epochs=40).overlap.shape
    (4,)
    """
    width = system.size("width")
    if epochs < RECORDS:
        raise ValueError(f"epochs = {epochs}: must be >= {RECORDS}")
    if not 0 <= learning_rate < np.inf:
        raise ValueError(f"learning_rate = {learning_rate}: must be a finite number >= 0")
    teacher = system.teacher
    if readouts == "fixed" and width > (units := teacher.readout.shape[0]):
        raise ValueError(f"width = {width}: must be <= {units} for the teacher's read-outs")
    if batches > (samples := teacher.size("n_train")):
        raise ValueError(f"batches = {batches}: must be <= {samples}, the samples")
    data_key, start_key = jax.random.split(key)
    data = draw(teacher, data_key)
    dim = data.inputs.shape[1]
    weights = jax.random.uniform(start_key, (width, dim), minval=-1.0, maxval=1.0) / dim
    readout = (
        teacher.readout[jnp.argsort(-(teacher.readout**2))[:width]]
        if readouts == "fixed"
        else jnp.full(width, width**-0.5)
    )
    used = len(data.labels) // batches * batches
    shaped = (
        data.inputs[:used].reshape(batches, -1, dim),
        data.labels[:used].reshape(batches, -1),
    )
    test = (data.test_inputs, data.test_labels)
    recorded = np.round(np.geomspace(1, epochs, RECORDS)).astype(int)
    recorded = np.maximum(recorded, np.arange(1, RECORDS + 1))
    passed = jnp.asarray(np.diff(recorded, prepend=0))
    kind = jnp.float64 if precision == "double" else jnp.float32
    shaped, test, start = jax.tree.map(
        lambda array: array.astype(kind), (shaped, test, (weights, readout))
    )
    (weights, readout), (train, test_errors) = jax.tree.map(
        lambda array: array.astype(float),
        _train(
            teacher.activation,
            learning_rate,
            annealed,
            passed,
            shaped,
            test,
            start,
            readouts == "learned",
            normalised,
        ),
    )
    # A teacher feature counts as found if any row of the student is aligned with it.
    rows = weights if normalised else weights / jnp.linalg.norm(weights, axis=1, keepdims=True)
    cosine = (data.weights / jnp.sqrt(dim)) @ rows.T
    overlap = jnp.max(jnp.abs(cosine) if teacher.activation.parity else cosine, axis=1)
    return TrainedStudent(
        overlap=overlap,
        error=test_errors[-1],
        train_error=train[-1],
        effective_width=jnp.sum(overlap > FOUND).astype(float),
        epoch=jnp.asarray(recorded, float),
        test_curve=test_errors,
        train_curve=train,
    )


@experiment
def adam_at_effective_width(
    system: WidthLimitedStudent,
    key: PRNGKeyArray,
    *,
    fraction: float = 1.0,
    epochs: int = 10_000,
    batches: int = 3,
    annealed: bool = False,
    precision: Precision = "double",
) -> TrainedStudent:
    """Error and overlaps of a student trained by Adam whose width is proportional to the effective
    width k_c.

    The width is `fraction` times k_c of `bayes_optimal`, at least 1; `width` of the system is not
    used.

    Args:
        fraction: width over k_c. Default 1.
        epochs: number of passes over the data, at least 40. Default 10 000.
        batches: number of minibatches in an epoch. Default 3.
        annealed: whether the learning rate falls linearly to zero. Default False.
        precision: "double" (default) or "single" precision of the training.

    Raises:
        ValueError: for fewer epochs than 40, or an activation with a quadratic component.

    Source: Nguyen, Barbier (2026), appendix on experiments.

    >>> import jax
    >>> from orderparam.systems.extensive_width import HierarchicalTeacher
    >>> student = WidthLimitedStudent(HierarchicalTeacher(8, 4, 1.0, 0.1, n_train=60), width=2)
    >>> adam_at_effective_width(student, jax.random.key(0), epochs=40).epoch.shape
    (40,)
    """
    resolved = float(bayes_optimal(system.teacher).effective_width)
    width = min(
        max(1.0, float(round(float(fraction) * resolved))), float(system.teacher.readout.shape[0])
    )
    return adam_student(
        system.with_(width=width),
        key,
        epochs=epochs,
        batches=batches,
        annealed=annealed,
        precision=precision,
    )


def _misfit(
    activation: Activation, network: tuple[Array, Array], inputs: Array, labels: Array
) -> Float[Array, ""]:
    weights, readout = network
    return jnp.mean((activation(inputs @ weights.T) @ readout - labels) ** 2)


@partial(jax.jit, static_argnums=(0, 2, 7, 8))
def _train(
    activation: Activation,
    learning_rate: float,
    annealed: bool,
    epochs: Int[Array, "record"],
    batches: tuple[Array, Array],
    test: tuple[Array, Array],
    network: tuple[Array, Array],
    learned: bool,
    normalised: bool,
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The network after the last epoch, and its train and test errors at each record; `epochs` are
    the numbers of epochs between records. learned: whether the read-outs are trained.
    """
    updates = jnp.sum(epochs) * len(batches[0])
    optimiser = optax.adam(
        (lambda done: learning_rate * (1 - done / updates)) if annealed else learning_rate
    )

    def step(state: tuple, batch: tuple[Array, Array]) -> tuple[tuple, None]:
        network, moments = state
        gradient = jax.grad(partial(_misfit, activation))(network, *batch)
        if not learned:
            gradient = gradient[0], jnp.zeros_like(gradient[1])
        update, moments = optimiser.update(gradient, moments)
        return (optax.apply_updates(network, update), moments), None

    def epoch(_: int, state: tuple) -> tuple:
        network, moments = jax.lax.scan(step, state, batches)[0]
        if not normalised:
            return network, moments
        weights, readout = network
        return (weights / jnp.linalg.norm(weights, axis=1, keepdims=True), readout), moments

    def record(state: tuple, count: Array) -> tuple[tuple, tuple[Array, Array]]:
        state = jax.lax.fori_loop(0, count, epoch, state)
        flat = (batches[0].reshape(-1, batches[0].shape[-1]), batches[1].ravel())
        return state, (_misfit(activation, state[0], *flat), _misfit(activation, state[0], *test))

    (network, _), errors = jax.lax.scan(record, (network, optimiser.init(network)), epochs)
    return network, errors
