"""Experiments: a first layer takes one gradient step on a batch, and then a read-out is trained on
fresh examples until its gradient vanishes to rounding.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.gaussian import Activation
from orderparam.gaussian.draws import normal, unit
from orderparam.losses import FittedWeights, Labels, fresh_means, minimise
from orderparam.losses.fitted import measured_errors
from orderparam.systems.one_step.model import OneStep, SpikedFeatures, TwoLayerReadout
from orderparam.systems.one_step.saddle import moments
from orderparam.systems.one_step.single_layer import TrainedLayer, given_layer
from orderparam.systems.one_step.spectrum import FeatureMatrix
from orderparam.systems.one_step.theory import FittedReadout, first_layer

BATCH = 1000  # number of inputs in memory at a time


class FirstLayerWeights(eqx.Module):
    """A random first layer. The teacher's direction is the first axis.

    Fields:
        weights: rows (p, d) after the step.
        spike: direction v of the spike; after a step, the direction of the sum of y_i x_i over the
            batch.
        groups: group of each neuron.
    """

    weights: Float[Array, "neuron input"]
    spike: Float[Array, "input"]
    groups: Int[np.ndarray, "neuron"]

    @property
    def teacher(self) -> Float[Array, "input"]:
        return jnp.zeros(self.spike.size).at[0].set(1.0)


class MeasuredReadout(FittedReadout):
    """Errors and order parameters of one trained network.

    Fields:
        given_test_error: test error that `given_layer` predicts for this first layer; NaN if it was
            not computed, or if there are several groups of neurons, for which the theory does not
            hold.
        given_train_error: training error that `given_layer` predicts.
        given_classification_error: classification error that `given_layer` predicts.
    """

    given_test_error: Float[Array, ""]
    given_train_error: Float[Array, ""]
    given_classification_error: Float[Array, ""]


def train_first_layer(system: OneStep, key: PRNGKeyArray) -> FirstLayerWeights:
    """First layer after one gradient step on a fresh batch. Before the step its rows are uniform on
    the unit sphere. Sizes are rounded to whole numbers.
    """
    dimension, groups = system.size("input_dim"), _groups(system)
    batch = max(1, round(float(system.batch_ratio) * dimension))
    row_key, *keys = jax.random.split(key, 1 + -(-batch // BATCH))
    rows = unit(normal(row_key, len(groups), dimension))
    pushes = system.step * jnp.asarray(system.readout)[groups]
    gradient, total = jnp.zeros_like(rows), jnp.zeros(dimension)
    for number, batch_key in enumerate(keys):
        used = min(BATCH, batch - number * BATCH)
        input_key, label_key = jax.random.split(batch_key)
        x = normal(input_key, BATCH, dimension)
        part, pointed = _gradient(
            system.activation, system.labels, rows, x, label_key, jnp.asarray(used)
        )
        gradient, total = gradient + part / batch, total + pointed / batch
    return FirstLayerWeights(
        rows + pushes[:, None] * gradient, total / jnp.linalg.norm(total), groups
    )


def plant_first_layer(system: SpikedFeatures, key: PRNGKeyArray) -> FirstLayerWeights:
    """First layer whose rows are (c_s + rho_s w.v) w + u_s v, with w uniform on the unit sphere."""
    dimension, groups = system.size("input_dim"), _groups(system)
    spikes, norms, slopes = (part[groups] for part in (system.spikes, system.norms, system.slopes))
    spike = (
        jnp.zeros(dimension)
        .at[:2]
        .set(jnp.array([system.overlap, jnp.sqrt(1 - system.overlap**2)]))
    )
    rows = unit(normal(key, len(groups), dimension))
    norms = norms + slopes * (rows @ spike)
    return FirstLayerWeights(norms[:, None] * rows + jnp.outer(spikes, spike), spike, groups)


def _groups(system: TwoLayerReadout) -> Int[np.ndarray, "neuron"]:
    """Group of each neuron, in order."""
    width = max(1, round(float(system.width_ratio * system.input_dim)))
    bounds = np.round(np.cumsum(np.asarray(system.shares)) * width).astype(int)
    return np.searchsorted(bounds, np.arange(width), side="right")


@experiment
def learn_after_step(
    system: OneStep, key: PRNGKeyArray, *, test_points: int = 4000, given: bool = True
) -> MeasuredReadout:
    r"""Errors of a network after one gradient step and the training of its read-out.

    The first layer takes the step of `OneStep` on a fresh batch. Then $a$ minimises

    $$ \sum_{\mu=1}^n \ell(y_\mu, f(x_\mu)) + \frac\lambda2 |a|^2 , \qquad
       f(x) = \frac{a \cdot \sigma(W x)}{\sqrt p} $$

    on n = `sample_ratio` d fresh examples, to rounding.

    Args:
        test_points: number of further examples on which errors are measured, in whole thousands;
            4000 by default.
        given: whether `given_layer` also predicts the errors from this first layer; True by
            default.

    Accuracy: errors at one size differ from the theory by O(1/d).

    Source: Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro (2024).

    >>> system = OneStep(2.0, 1.0, 8.0, 3.0, ridge=0.1, input_dim=50)
    >>> run = learn_after_step(system, jax.random.key(0), test_points=1000)
    >>> bool(run.converged), bool(0 < run.test_error < 0.5)
    (True, True)
    """
    layer_key, key = jax.random.split(key)
    return _learn(system, train_first_layer(system, layer_key), key, test_points, given)


@experiment
def learn_spiked(
    system: SpikedFeatures, key: PRNGKeyArray, *, test_points: int = 4000, given: bool = False
) -> MeasuredReadout:
    r"""Errors of a read-out trained on spiked features, whose first layer is planted.

    Rows are $(c_s + \rho_s w_j \cdot v) w_j + u_s v$ with $w_j$ uniform on the unit sphere; the
    read-out is trained as in `learn_after_step`.

    Args:
        test_points: number of further examples on which errors are measured, in whole thousands;
            4000 by default.
        given: whether `given_layer` also predicts the errors from this first layer; False by
            default.

    Accuracy: errors at one size differ from the theory by O(1/d).

    Source: Dandi, Pesce, Cui, Krzakala, Lu, Loureiro (2024).

    >>> system = SpikedFeatures(2.0, 1.0, 0.9, (1.0,), ridge=0.1, input_dim=50)
    >>> run = learn_spiked(system, jax.random.key(0), test_points=1000)
    >>> bool(run.converged), bool(0 < run.test_error < 1)
    (True, True)
    """
    layer_key, key = jax.random.split(key)
    return _learn(system, plant_first_layer(system, layer_key), key, test_points, given)


def _learn(
    system: TwoLayerReadout,
    layer: FirstLayerWeights,
    key: PRNGKeyArray,
    test_points: int,
    given: bool,
) -> MeasuredReadout:
    dimension = system.size("input_dim")
    train_key, label_key, test_key = jax.random.split(key, 3)
    examples = max(1, round(float(system.sample_ratio) * dimension))
    matrix, teacher = features(
        system.activation, layer.weights, normal(train_key, examples, dimension)
    )
    labels = system.labels.draw(teacher, label_key)
    minimum = _minimise(system.loss, matrix, labels, jnp.asarray(system.summed_ridge))

    def source(
        key: PRNGKeyArray, count: int
    ) -> tuple[Float[Array, "example neuron"], Float[Array, "example"]]:
        return features(system.activation, layer.weights, normal(key, count, dimension))

    means = fresh_means(system.loss, system.labels, minimum.weights, source, test_key, test_points)
    geometry = _geometry(system, layer, minimum)
    beyond = (
        system.activation.parity != "odd"
        and len(np.unique(np.sign(np.asarray(geometry["spikes"])))) > 1
    )
    return MeasuredReadout(
        **measured_errors(system.loss, minimum, labels, means),
        effective_share=minimum.effective_dimension / examples,
        **geometry,
        **_predicted(system, layer, examples, given and not beyond),
        residual=minimum.residual,
        converged=minimum.converged,
    )


def layer_of(system: TwoLayerReadout, layer: FirstLayerWeights, examples: Any) -> TrainedLayer:
    """`TrainedLayer` made of this first layer and of the system's loss, ridge and labels."""
    return TrainedLayer.from_weights(
        layer.weights,
        layer.spike,
        layer.teacher,
        examples,
        system.summed_ridge,
        system.activation,
        system.labels,
        system.loss,
    )


def _predicted(
    system: TwoLayerReadout, layer: FirstLayerWeights, examples: int, given: bool
) -> dict[str, Float[Array, ""]]:
    names = ("test_error", "train_error", "classification_error")
    curve = given_layer(layer_of(system, layer, examples)) if given else None
    return {
        f"given_{name}": jnp.asarray(jnp.nan) if curve is None else getattr(curve, name)
        for name in names
    }


def _geometry(
    system: TwoLayerReadout, layer: FirstLayerWeights, minimum: FittedWeights
) -> dict[str, Float[Array, "..."]]:
    """Spike, bulk norm and read-out sums (`mean_weight`, `spike_weight`, `teacher_weight`) of each
    group of neurons."""
    teacher = layer.teacher
    overlap = layer.spike @ teacher
    direction = teacher - overlap * layer.spike
    direction = direction / jnp.maximum(jnp.linalg.norm(direction), 1e-30)
    member = jnp.asarray(layer.groups[None] == np.arange(system.groups)[:, None], float)
    share = member / jnp.sum(member, axis=1, keepdims=True)
    along = layer.weights @ layer.spike
    spikes = share @ along
    norms = jnp.sqrt(share @ (jnp.sum(layer.weights**2, axis=1) - along**2))
    a = minimum.weights / jnp.sqrt(minimum.weights.size)
    return {
        "spike_overlap": overlap,
        "spikes": spikes,
        "bulk_norms": norms,
        "mean_weight": member @ a,
        "spike_weight": member @ (a * (along - spikes[layer.groups])) / norms,
        "teacher_weight": member @ (a * (layer.weights @ direction)) / norms,
    }


_minimise = eqx.filter_jit(minimise)


@eqx.filter_jit
def _gradient(
    activation: Activation,
    labels: Labels,
    rows: Float[Array, "neuron input"],
    x: Float[Array, "example input"],
    key: PRNGKeyArray,
    used: Int[Array, ""],
) -> tuple[Float[Array, "neuron input"], Float[Array, "input"]]:
    """The sums sum_i y_i s'(w_j.x_i) x_i and sum_i y_i x_i over the first `used` examples."""
    y = jnp.where(jnp.arange(len(x)) < used, labels.draw(x[:, 0], key), 0.0)
    return (activation.derivative(rows @ x.T) * y) @ x, y @ x


@eqx.filter_jit
def features(
    activation: Activation, weights: Float[Array, "neuron input"], x: Float[Array, "example input"]
) -> tuple[Float[Array, "example neuron"], Float[Array, "example"]]:
    """The features activation(W x)/sqrt(p), and the teacher's field."""
    return activation(x @ weights.T) / jnp.sqrt(len(weights)), x[:, 0]


# ------------------------------------------------------------------------------------------------
# The measured spectrum of the features of a training set, before and after the step.


class MeasuredSpectrum(Result):
    """Spectrum of the features of one network and one training set.

    Fields:
        eigenvalue: geometric centre of each bin.
        density: fraction of the p eigenvalues in the bin, per unit of eigenvalue.
        edge: largest eigenvalue other than that of the features' mean.
        mean_eigenvalue: eigenvalue of the features' mean; 0 without a mean.
    """

    eigenvalue: Float[Array, "bin"]
    density: Float[Array, "bin"]
    edge: Float[Array, ""]
    mean_eigenvalue: Float[Array, ""]


@experiment
def measured_spectrum(system: FeatureMatrix, key: PRNGKeyArray) -> MeasuredSpectrum:
    r"""Histogram of the eigenvalues of $\Phi^T \Phi / p$ for one network and one training set.

    The first layer takes the step on a drawn batch (unless `trained` is False); the features $\Phi$
    are those of n fresh inputs.

    Accuracy: the largest of finitely many eigenvalues lies a few percent below the edge of the
    theory.

    Cost: one eigendecomposition of a p x p matrix.

    Source: Dandi, Pesce, Cui, Krzakala, Lu, Loureiro (2024).

    >>> learner = OneStep(2.0, 1.0, 8.0, 3.0, ridge=0.1, input_dim=50)
    >>> measured_spectrum(FeatureMatrix(learner, bins=4), jax.random.key(0)).density.shape
    (4,)
    """
    layer_key, input_key = jax.random.split(key)
    learner = system.learner
    taken = learner if system.trained else learner.with_(step=0.0)
    layer = train_first_layer(taken, layer_key)
    dimension = learner.size("input_dim")
    inputs = normal(input_key, max(1, round(float(learner.sample_ratio) * dimension)), dimension)
    matrix, _ = features(learner.activation, layer.weights, inputs)
    width = len(layer.weights)
    values = jnp.linalg.eigvalsh(matrix.T @ matrix)
    edges = system.edges
    counts = jnp.histogram(values, edges)[0]
    expected = first_layer(taken)
    mean = moments(
        learner.activation, expected.spikes * jnp.array([-1.0, 1.0]), expected.bulk_norms
    ).mean
    outlier = bool(jnp.max(jnp.abs(mean)) > 1e-8)
    return MeasuredSpectrum(
        eigenvalue=jnp.sqrt(edges[1:] * edges[:-1]),
        density=counts / (width * jnp.diff(edges)),
        edge=values[-2] if outlier else values[-1],
        mean_eigenvalue=values[-1] if outlier else jnp.zeros(()),
    )
