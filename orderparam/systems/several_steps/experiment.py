"""Experiments on giant gradient steps of a first layer of finite width and input dimension."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result, along_time
from orderparam.core.verb import experiment
from orderparam.gaussian.draws import unit
from orderparam.systems.several_steps.model import GiantLayer, SeveralSteps
from orderparam.systems.several_steps.theory import StepPath, first_moments


class NetworkPath(Result):
    """Alignment of a network's neurons with the teacher's directions while it is trained with the
    square loss.

    Fields:
        cosine_squared: mean over neurons of M_k^2 / |w|^2 at the start and after each step.
        cosine: M_k / |w| of every neuron after the last step.
        train_error: mean of (y - f)^2 on the batch of each step, before the step (no factor 1/2).
    """

    cosine_squared: Float[Array, "time direction"]
    cosine: Float[Array, "neuron direction"]
    train_error: Float[Array, "batch"]


class LayerRun(Result):
    """Overlaps of a layer and the error of its read-out, after 0, 1, ... giant steps.

    Fields:
        test_error: error of the read-out on new inputs, E (f* - f)^2 without label noise.
        overlap: M, the projections of the neurons' weights on the teacher's directions.
        self_overlap: Q = W W^T.
    """

    test_error: Float[Array, "time"]
    overlap: Float[Array, "time neuron direction"]
    self_overlap: Float[Array, "time neuron other_neuron"]


@experiment
def correlation_steps(
    system: SeveralSteps,
    key: PRNGKeyArray,
    *,
    reuse: bool = False,
    neurons: int = 64,
    repeats: int = 1,
    control: bool = True,
) -> StepPath:
    r"""Mean overlaps of independent neurons that take giant steps on the correlation loss -y f.

    One step changes the weights of every neuron by $w \leftarrow w + \frac{s}{n} \sum_\mu y_\mu
    \sigma'(w \cdot x_\mu + b)\, x_\mu$ on a batch of n = `sample_ratio` * `input_dim` examples. All
    neurons see the same batch and share its fluctuations. The standard error of a mean over neurons
    is therefore the scatter over seeds, not the scatter over neurons.

    Args:
        reuse: whether all steps use the same batch; otherwise each step draws a fresh one.
        neurons: number of independent neurons that are averaged.
        repeats: number of independent draws of the batches that are averaged in one run.
        control: whether the largest part of the batch's fluctuation, s E[sigma'] (mean(y z) -
            E[y z]) with E[sigma'] at the start, is subtracted from the overlaps (not from the
            cosines). Its mean is zero.

    Source: Dandi, Krzakala, Loureiro, Pesce, Stephan (2023).

    >>> import jax
    >>> path = correlation_steps(SeveralSteps(input_dim=64, steps=1), jax.random.key(0), neurons=8)
    >>> path.overlap.shape
    (2, 2)
    """
    shape = (system.size("input_dim"), system.batch, neurons, reuse, control)
    return _correlation(system, jax.random.split(key, repeats), *shape)


@experiment
def square_loss_steps(
    system: SeveralSteps, key: PRNGKeyArray, *, reuse: bool = False, neurons: int = 200
) -> NetworkPath:
    r"""Alignment of the neurons of a network that takes giant steps on the square loss.

    The network is $f(x) = \frac{1}{p} \sum_j a_j \sigma(w_j \cdot x + b)$ with p = `neurons`
    read-outs $a_j$ that alternate between +1 and -1 and are not trained. The loss is $\frac{1}{2n}
    \sum_\mu (y_\mu - f(x_\mu))^2$ and the learning rate p * `step`, so that a neuron's step is
    `step` times the sign of its read-out.

    Args:
        reuse: whether all steps use the same batch; otherwise each step draws a fresh one.
        neurons: width p of the network.

    Source: Dandi, Krzakala, Loureiro, Pesce, Stephan (2023).

    >>> import jax
    >>> path = square_loss_steps(SeveralSteps(input_dim=64, steps=1), jax.random.key(0), neurons=8)
    >>> path.cosine.shape, path.train_error.shape
    ((8, 2), (1,))
    """
    return _network(system, key, system.size("input_dim"), system.batch, neurons, reuse)


@experiment
def layer_steps(system: GiantLayer, key: PRNGKeyArray, *, fresh: int = 16_000) -> LayerRun:
    r"""Overlaps of a layer that takes giant steps, and the error of a read-out on fresh examples.

    Every step uses a fresh batch of n = `sample_ratio` * `input_dim` examples. After each step a
    read-out with a constant term is fitted by least squares to `fresh` new examples, and its error
    is measured on the same number of further examples. Of these examples only the fields are drawn:
    because inputs are Gaussian, the weights determine the covariance of the fields exactly.

    Args:
        fresh: number of examples to which the read-out is fitted, and also number of examples on
            which it is tested.

    Raises:
        ValueError: if `input_dim` is not a whole number or is smaller than neurons + directions, or
            if there are fewer than two fresh examples for each neuron.

    Source: Dandi, Krzakala, Loureiro, Pesce, Stephan (2023).

    >>> import jax
    >>> system = GiantLayer([1.0, -1.0], [0.0, 1.0], input_dim=20, steps=1)
    >>> layer_steps(system, jax.random.key(0), fresh=100).test_error.shape
    (2,)
    """
    neurons, dimension = len(system.step), system.size("input_dim")
    if dimension < neurons + system.teacher.dimension:
        raise ValueError(
            f"GiantLayer.input_dim = {dimension}: must be >= {neurons + system.teacher.dimension}, "
            "one for each neuron and direction"
        )
    if fresh < 2 * neurons + 2:
        raise ValueError(f"fresh = {fresh}: must be >= {2 * neurons + 2}, two for each neuron")
    batch = max(1, round(float(system.sample_ratio) * dimension))
    return _layer(system, key, dimension, batch, fresh)


@eqx.filter_jit
def _correlation(
    system: SeveralSteps,
    keys: PRNGKeyArray,
    dimension: int,
    batch: int,
    neurons: int,
    reuse: bool,
    control: bool,
) -> StepPath:
    expected, slope = first_moments(system)

    def one(key: PRNGKeyArray) -> StepPath:
        weight_key, batch_key = jax.random.split(key)
        rows = unit(jax.random.normal(weight_key, (neurons, dimension)))

        def step(
            state: tuple[Array, Array], key: PRNGKeyArray
        ) -> tuple[tuple[Array, Array], StepPath]:
            rows, excess = state
            x, y = _draw(system, key, dimension, batch)
            slopes = system.activation.derivative(x @ rows.T + system.bias)
            rows = rows + system.step / batch * (slopes * y[:, None]).T @ x
            moment = y @ x[:, : len(expected)] / batch
            excess = excess + control * system.step * slope * (moment - expected)
            return (rows, excess), _observed(rows, len(expected), excess)

        first = _observed(rows, len(expected))
        _, path = jax.lax.scan(
            step, (rows, jnp.zeros_like(expected)), _batch_keys(batch_key, system.steps, reuse)
        )
        return along_time(first, path)

    return jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), jax.lax.map(one, keys))


@eqx.filter_jit
def _network(
    system: SeveralSteps, key: PRNGKeyArray, dimension: int, batch: int, neurons: int, reuse: bool
) -> NetworkPath:
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
        return rows, (_observed(rows, directions).cosine_squared, jnp.mean(missing**2))

    first = _observed(rows, directions).cosine_squared
    rows, (cosines, errors) = jax.lax.scan(step, rows, _batch_keys(batch_key, system.steps, reuse))
    cosine = rows[:, :directions] / jnp.linalg.norm(rows, axis=1, keepdims=True)
    return NetworkPath(cosine_squared=along_time(first, cosines), cosine=cosine, train_error=errors)


@eqx.filter_jit
def _layer(
    system: GiantLayer, key: PRNGKeyArray, dimension: int, batch: int, fresh: int
) -> LayerRun:
    teacher, neurons = system.teacher, len(system.step)
    directions = teacher.dimension
    # The first axes are the teacher's directions, and the next axes are the neurons' initial
    # weights.
    rows = jnp.eye(neurons, dimension, k=directions)

    def readout_error(rows: Array, key: PRNGKeyArray) -> Array:
        overlap, own = rows[:, :directions], rows @ rows.T
        across = jnp.linalg.cholesky(own - overlap @ overlap.T)
        normal_key, noise_key = jax.random.split(key)
        z, rest = jnp.split(
            jax.random.normal(normal_key, (2 * fresh, directions + neurons)), [directions], axis=1
        )
        features = system.activation(z @ overlap.T + rest @ across.T + system.bias)
        features = jnp.concatenate([jnp.ones((2 * fresh, 1)), features], axis=1)
        target = teacher(z)
        y = target[:fresh] + jnp.sqrt(system.noise) * jax.random.normal(noise_key, (fresh,))
        weights = jnp.linalg.lstsq(features[:fresh], y)[0]
        return jnp.mean((target[fresh:] - features[fresh:] @ weights) ** 2)

    def observed(rows: Array, key: PRNGKeyArray) -> LayerRun:
        return LayerRun(
            test_error=readout_error(rows, key),
            overlap=rows[:, :directions],
            self_overlap=rows @ rows.T,
        )

    def step(rows: Array, key: PRNGKeyArray) -> tuple[Array, LayerRun]:
        batch_key, readout_key = jax.random.split(key)
        x, y = _draw(system, batch_key, dimension, batch)
        fields = x @ rows.T
        slopes = system.step * system.activation.derivative(fields + system.bias)
        rows = rows + (system.residual(fields, y)[:, None] * slopes).T @ x / batch
        return rows, observed(rows, readout_key)

    keys = jax.random.split(key, system.steps + 1)
    _, along = jax.lax.scan(step, rows, keys[1:])
    return along_time(observed(rows, keys[0]), along)


def _draw(
    system: SeveralSteps | GiantLayer, key: PRNGKeyArray, dimension: int, batch: int
) -> tuple[Array, Array]:
    """Inputs and labels of one batch. The teacher's directions are the first coordinate axes,
    without loss of generality, because the laws of inputs and weights are isotropic.
    """
    input_key, noise_key = jax.random.split(key)
    x = jax.random.normal(input_key, (batch, dimension))
    y = system.teacher(x[:, : system.teacher.dimension])
    return x, y + jnp.sqrt(system.noise) * jax.random.normal(noise_key, (batch,))


def _batch_keys(key: PRNGKeyArray, steps: int, reuse: bool) -> PRNGKeyArray:
    keys = jax.random.split(key, steps)
    return keys[jnp.zeros(steps, int)] if reuse else keys


def _observed(
    rows: Float[Array, "neuron input"], directions: int, excess: Array | float = 0.0
) -> StepPath:
    """The averages over neurons; `excess` is subtracted from the overlaps."""
    power = jnp.sum(rows**2, axis=1)
    inside = rows[:, :directions]
    rest = power - jnp.sum(inside**2, axis=1)
    return StepPath(
        overlap=jnp.mean(inside, axis=0) - excess,
        orthogonal=jnp.mean(rest),
        cosine_squared=jnp.mean(inside**2 / power[:, None], axis=0),
    )
