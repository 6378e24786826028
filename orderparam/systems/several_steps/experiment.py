"""The real thing: a first layer of finite width and dimension, moved by giant gradient steps."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.gaussian.draws import unit
from orderparam.systems.several_steps.model import SeveralSteps
from orderparam.systems.several_steps.theory import StepPath, first_moments


class NetworkPath(Result):
    """A network trained with the square loss: alignment of its neurons with the teacher's directions, the start included.

    cosine_squared: mean over neurons of M_k^2 / |w|^2. cosine: M_k / |w| of every neuron after the last step.
    train_error: mean of (y - f)^2 on the batch of each step, before the step.
    """

    cosine_squared: Float[Array, "time direction"]
    cosine: Float[Array, "neuron direction"]
    train_error: Float[Array, "batch"]


@experiment
def correlation_steps(
    system: SeveralSteps, key: PRNGKeyArray, *, reuse: bool = False, neurons: int = 64, repeats: int = 1, control: bool = True
) -> StepPath:
    """Independent neurons on the correlation loss: means over neurons, and over `repeats` draws of the batches.

    reuse: all steps on one batch, else a fresh one for each. Fluctuations of the batch are common to all neurons; so the error of
    a mean is that over seeds. control: their largest part, step E[sigma'] (mean(y z) - E[y z]) with E[sigma'] at the start, is
    subtracted from the overlaps (not from the cosines); its mean is zero.
    """
    shape = (system.size("input_dim"), system.batch, neurons, reuse, control)
    return _correlation(system, jax.random.split(key, repeats), *shape)


@experiment
def square_loss_steps(system: SeveralSteps, key: PRNGKeyArray, *, reuse: bool = False, neurons: int = 200) -> NetworkPath:
    """f = (1/p) sum_j a_j sigma(w_j.x + bias) with p = neurons read-outs that alternate between +1 and -1, square loss
    (1/2n) sum (y - f)^2, learning rate p * step: |step| is that of the model. Fresh batches, or one for all steps."""
    return _network(system, key, system.size("input_dim"), system.batch, neurons, reuse)


@eqx.filter_jit
def _correlation(
    system: SeveralSteps, keys: PRNGKeyArray, dimension: int, batch: int, neurons: int, reuse: bool, control: bool
) -> StepPath:
    expected, slope = first_moments(system)

    def one(key: PRNGKeyArray) -> StepPath:
        weight_key, batch_key = jax.random.split(key)
        rows = unit(jax.random.normal(weight_key, (neurons, dimension)))

        def step(state: tuple[Array, Array], key: PRNGKeyArray) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
            rows, excess = state
            x, y = _draw(system, key, dimension, batch)
            slopes = system.activation.derivative(x @ rows.T + system.bias)
            rows = rows + system.step / batch * (slopes * y[:, None]).T @ x
            moment = y @ x[:, : len(expected)] / batch
            excess = excess + control * system.step * slope * (moment - expected)
            overlap, orthogonal, cosine = _observed(rows, len(expected))
            return (rows, excess), (overlap - excess, orthogonal, cosine)

        first = _observed(rows, len(expected))
        _, path = jax.lax.scan(step, (rows, jnp.zeros_like(expected)), _batch_keys(batch_key, system.steps, reuse))
        return StepPath(*(jnp.concatenate([start[None], along]) for start, along in zip(first, path)))

    return jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), jax.lax.map(one, keys))


@eqx.filter_jit
def _network(system: SeveralSteps, key: PRNGKeyArray, dimension: int, batch: int, neurons: int, reuse: bool) -> NetworkPath:
    directions = system.teacher.dimension
    weight_key, batch_key = jax.random.split(key)
    rows = unit(jax.random.normal(weight_key, (neurons, dimension)))
    readout = jnp.where(jnp.arange(neurons) % 2 == 0, 1.0, -1.0)

    def step(rows: Array, key: PRNGKeyArray) -> tuple[Array, tuple[Array, Array]]:
        x, y = _draw(system, key, dimension, batch)
        fields = x @ rows.T + system.bias
        missing = y - system.activation(fields) @ readout / neurons
        slopes = system.activation.derivative(fields) * readout
        rows = rows + system.step / batch * (slopes * missing[:, None]).T @ x
        return rows, (_observed(rows, directions)[2], jnp.mean(missing**2))

    first = _observed(rows, directions)[2]
    rows, (cosines, errors) = jax.lax.scan(step, rows, _batch_keys(batch_key, system.steps, reuse))
    cosine = rows[:, :directions] / jnp.linalg.norm(rows, axis=1, keepdims=True)
    return NetworkPath(jnp.concatenate([first[None], cosines]), cosine, errors)


def _draw(system: SeveralSteps, key: PRNGKeyArray, dimension: int, batch: int) -> tuple[Array, Array]:
    """A batch; the teacher's directions are the first axes, which inputs and rows do not know."""
    input_key, noise_key = jax.random.split(key)
    x = jax.random.normal(input_key, (batch, dimension))
    y = system.teacher(x[:, : system.teacher.dimension])
    return x, y + jnp.sqrt(system.noise) * jax.random.normal(noise_key, (batch,))


def _batch_keys(key: PRNGKeyArray, steps: int, reuse: bool) -> PRNGKeyArray:
    keys = jax.random.split(key, steps)
    return keys[jnp.zeros(steps, int)] if reuse else keys


def _observed(rows: Float[Array, "neuron input"], directions: int) -> tuple[Array, Array, Array]:
    """Means over neurons of the overlaps, of the squared norm of the rest, and of the squared cosines."""
    power = jnp.sum(rows**2, axis=1)
    inside = rows[:, :directions]
    rest = power - jnp.sum(inside**2, axis=1)
    return jnp.mean(inside, axis=0), jnp.mean(rest), jnp.mean(inside**2 / power[:, None], axis=0)
