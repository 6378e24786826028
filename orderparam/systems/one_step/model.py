"""One giant gradient step on the first layer, then a read-out trained on fresh data.

A network f(x) = a.activation(W x)/sqrt(p) with p = width_ratio d hidden units and x ~ N(0, I_d). The rows w_j start uniform on
the unit sphere and take one step on a fresh batch of n_B = batch_ratio d examples, with the network's own output neglected (it
starts small):

    w_j <- w_j + step a_j^0 (1/n_B) sum_i y_i activation'(w_j.x_i) x_i,

with a^0 the read-out during the step. Then a minimises, over n = sample_ratio d further fresh examples,

    sum_mu l(y_mu, f(x_mu)) + (ridge/2) |a|^2          penalty = "sum"
    (1/n) sum_mu l(y_mu, f(x_mu)) + (ridge/2) |a|^2    penalty = "mean".

Labels follow from the teacher's field theta.x, |theta| = 1. Errors are E (y - f)^2, label noise included and without a factor
1/2, or P(sign f != y). `effective_step` converts a learning rate.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import parameter, structure
from orderparam.gaussian import Activation
from orderparam.gaussian import activation as find_activation
from orderparam.losses import Labels, PenalisedRisk, Penalty, RealLabels
from orderparam.losses import loss as find_loss


def effective_step(learning_rate: Any, width: Any, readout: Any = 1.0, loss_factor: Any = 0.5) -> Any:
    """`step` of a training with loss `loss_factor` (y - f)^2, f = a.activation(W x)/width, and read-out entries readout * a_j^0.

    2 loss_factor learning_rate readout / width. For f = a.activation(W x)/sqrt(width) give readout = sqrt(width) times its
    entries: with entries 1/sqrt(width) and (y - f)^2/2 the step is learning_rate / width.
    """
    return 2 * loss_factor * learning_rate * readout / width


def _check_groups(name: str, fractions: Any, **arrays: Any) -> None:
    """Groups must be described by finite numbers, as many of each kind, and their fractions add up to 1."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in (fractions, *arrays.values())):
        return
    shares = np.asarray(fractions, float)
    for field, values in arrays.items():
        if shares.ndim == 1 and np.shape(values) != shares.shape:
            raise ValueError(f"{name}.{field} has shape {np.shape(values)}: must be {shares.shape}, as the fractions")
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{name}.{field} = {np.asarray(values).tolist()}: must be finite numbers")
    if shares.ndim == 1 and not (np.all(shares > 0) and abs(shares.sum() - 1) <= 1e-9):
        raise ValueError(f"{name}.fractions = {shares.tolist()}: must be > 0 and add up to 1")


class TwoLayerReadout(PenalisedRisk):
    """What all of these systems have in common: the read-out's training set, and the sizes in units of the input dimension."""

    sample_ratio: float = parameter("training examples of the read-out per input dimension, alpha = n/d", above=0)
    width_ratio: float = parameter("hidden units per input dimension, beta = p/d", above=0)
    input_dim: float = parameter("input dimension d: of experiments, and of a penalty beside the mean loss", above=0)
    activation: Activation = structure("nonlinearity")
    fractions: Float[Array, "group"] = dataclasses.field(kw_only=True)

    @property
    def examples(self) -> Any:
        return self.sample_ratio * self.input_dim

    @property
    def load(self) -> Any:
        """n/p."""
        return self.sample_ratio / self.width_ratio


class OneStep(TwoLayerReadout):
    """The whole procedure. readout: values of a_j^0, one a group of neurons; fractions: how many neurons have each of them."""

    batch_ratio: float = parameter("examples of the gradient step per input dimension, n_B/d", above=0)
    step: float = parameter("effective step size: see the equation above and `effective_step`")
    readout: Float[Array, "group"] = dataclasses.field(kw_only=True)

    def __init__(
        self,
        sample_ratio: Any,
        width_ratio: Any,
        batch_ratio: Any,
        step: Any,
        ridge: Any,
        activation: Any = "tanh",
        labels: Labels | None = None,
        loss: Any = "square",
        penalty: Penalty = "sum",
        readout: Any = (1.0,),
        fractions: Any = None,
        input_dim: Any = 500,
    ) -> None:
        self.sample_ratio, self.width_ratio, self.batch_ratio = sample_ratio, width_ratio, batch_ratio
        self.step, self.ridge, self.input_dim = step, ridge, input_dim
        self.activation = find_activation(activation)
        self.labels = RealLabels() if labels is None else labels
        self.loss, self.penalty = find_loss(loss), penalty
        self.readout, self.fractions = as_groups(readout), equal_fractions(readout) if fractions is None else as_groups(fractions)

    def __check_init__(self) -> None:
        _check_groups("OneStep", self.fractions, readout=self.readout)


class SpikedFeatures(TwoLayerReadout):
    """Features activation(c_s w_j.x + u_s v.x): rows w_j uniform on the unit sphere, one direction v common to all, groups s.

    overlap = v.theta; spikes = u_s and bulk_norms = c_s of the groups. spikes = 0 and bulk_norms = 1 are random features.
    """

    overlap: float = parameter("overlap of the spike with the teacher, v.theta", minimum=-1, maximum=1)
    spikes: Float[Array, "group"] = dataclasses.field(kw_only=True)
    bulk_norms: Float[Array, "group"] = dataclasses.field(kw_only=True)

    def __init__(
        self,
        sample_ratio: Any,
        width_ratio: Any,
        ridge: Any,
        overlap: Any,
        spikes: Any,
        bulk_norms: Any = None,
        activation: Any = "tanh",
        labels: Labels | None = None,
        loss: Any = "square",
        penalty: Penalty = "sum",
        fractions: Any = None,
        input_dim: Any = 500,
    ) -> None:
        self.sample_ratio, self.width_ratio, self.overlap = sample_ratio, width_ratio, overlap
        self.ridge, self.input_dim = ridge, input_dim
        self.activation = find_activation(activation)
        self.labels = RealLabels() if labels is None else labels
        self.loss, self.penalty = find_loss(loss), penalty
        self.spikes = as_groups(spikes)
        self.bulk_norms = jnp.ones(np.shape(self.spikes)) if bulk_norms is None else as_groups(bulk_norms)
        self.fractions = equal_fractions(spikes) if fractions is None else as_groups(fractions)

    def __check_init__(self) -> None:
        _check_groups("SpikedFeatures", self.fractions, spikes=self.spikes, bulk_norms=self.bulk_norms)
        if not isinstance(self.bulk_norms, jax.core.Tracer) and np.any(np.asarray(self.bulk_norms) <= 0):
            raise ValueError(f"SpikedFeatures.bulk_norms = {np.asarray(self.bulk_norms).tolist()}: must be > 0")


def as_groups(values: Any) -> Any:
    """One number is one group; a list of numbers an array."""
    if isinstance(values, jax.Array | np.ndarray) and np.ndim(values) > 0:
        return values
    return jnp.atleast_1d(jnp.asarray(values, float))


def equal_fractions(values: Any) -> Any:
    """As many neurons in each group."""
    count = np.shape(as_groups(values))[-1]
    return jnp.full(count, 1 / count)
