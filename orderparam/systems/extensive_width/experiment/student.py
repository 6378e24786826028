"""A student network trained by Adam on the data of an extensive-width teacher: what an algorithm makes of the same information.

Unit-norm rows w_j, learnable read-outs a_j, f(x) = sum_j a_j sigma(w_j . x). The activation keeps its linear part. After
each epoch the rows are projected back to unit norm, which keeps training stable; fixed read-outs would catch it in local
minima (Nguyen and Barbier 2026, appendix on experiments).
"""

from functools import partial

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.gaussian import Activation
from orderparam.systems.extensive_width.experiment.data import draw
from orderparam.systems.extensive_width.model import WidthLimitedStudent

FOUND = 0.7
RECORDS = 50


class TrainedStudent(Result):
    """A student after its last epoch.

    overlap:         of each teacher feature, the largest cosine with any row of the student.
    error:           mean squared error against labels without noise, no factor 1/2.
    train_error:     mean squared error on the noisy training set.
    effective_width: number of teacher features with overlap above 0.7.
    epoch, test_curve, train_curve: the same two errors during training.
    """

    overlap: Float[Array, "feature"]
    error: Float[Array, ""]
    train_error: Float[Array, ""]
    effective_width: Float[Array, ""]
    epoch: Float[Array, "record"]
    test_curve: Float[Array, "record"]
    train_curve: Float[Array, "record"]


def adam_student(
    system: WidthLimitedStudent,
    key: PRNGKeyArray,
    epochs: int = 10_000,
    learning_rate: float = 0.003,
    batches: int = 3,
) -> TrainedStudent:
    """Adam on the mean squared error: minibatches in fixed order, rows uniform on (-1, 1)/d and read-outs p^(-1/2) at first.

    Raises `ValueError` for a width that is not an integer, or fewer epochs than 50.
    """
    width = int(system.width)
    if float(system.width) != width:
        raise ValueError(f"WidthLimitedStudent.width = {system.width}: must be an integer in an experiment")
    if epochs < RECORDS:
        raise ValueError(f"epochs = {epochs}: must be >= {RECORDS}")
    teacher = system.teacher
    data_key, start_key = jax.random.split(key)
    data = draw(teacher, data_key)
    dim = data.inputs.shape[1]
    weights = jax.random.uniform(start_key, (width, dim), minval=-1.0, maxval=1.0) / dim
    readout = jnp.full(width, width**-0.5)
    used = len(data.labels) // batches * batches
    shaped = (
        data.inputs[:used].reshape(batches, -1, dim),
        data.labels[:used].reshape(batches, -1),
    )
    test = (data.test_inputs, data.test_labels)
    each = epochs // RECORDS
    (weights, readout), (train, tested) = _train(teacher.activation, learning_rate, each, shaped, test, (weights, readout))
    cosine = (data.weights / jnp.sqrt(dim)) @ weights.T
    overlap = jnp.max(jnp.abs(cosine) if teacher.activation.parity else cosine, axis=1)
    return TrainedStudent(
        overlap=overlap,
        error=tested[-1],
        train_error=train[-1],
        effective_width=jnp.sum(overlap > FOUND).astype(float),
        epoch=each * jnp.arange(1.0, RECORDS + 1),
        test_curve=tested,
        train_curve=train,
    )


def _misfit(activation: Activation, network: tuple[Array, Array], inputs: Array, labels: Array) -> Float[Array, ""]:
    weights, readout = network
    return jnp.mean((activation(inputs @ weights.T) @ readout - labels) ** 2)


@partial(jax.jit, static_argnums=(0, 2))
def _train(
    activation: Activation,
    learning_rate: float,
    each: int,
    batches: tuple[Array, Array],
    test: tuple[Array, Array],
    network: tuple[Array, Array],
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The network after `RECORDS` times `each` epochs, and its train and test errors at each record."""
    optimiser = optax.adam(learning_rate)

    def step(state: tuple, batch: tuple[Array, Array]) -> tuple[tuple, None]:
        network, moments = state
        gradient = jax.grad(partial(_misfit, activation))(network, *batch)
        update, moments = optimiser.update(gradient, moments)
        return (optax.apply_updates(network, update), moments), None

    def epoch(state: tuple, _: None) -> tuple[tuple, None]:
        (network, moments), _ = jax.lax.scan(step, state, batches)
        weights, readout = network
        return ((weights / jnp.linalg.norm(weights, axis=1, keepdims=True), readout), moments), None

    def record(state: tuple, _: None) -> tuple[tuple, tuple[Array, Array]]:
        state, _ = jax.lax.scan(epoch, state, None, length=each)
        flat = (batches[0].reshape(-1, batches[0].shape[-1]), batches[1].ravel())
        return state, (_misfit(activation, state[0], *flat), _misfit(activation, state[0], *test))

    (network, _), errors = jax.lax.scan(record, (network, optimiser.init(network)), None, length=RECORDS)
    return network, errors
