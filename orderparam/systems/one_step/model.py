"""One giant gradient step on the first layer, then a read-out trained on fresh data.

A network f(x) = a.activation(W x)/sqrt(p) with p = width_ratio d hidden units and x ~ N(0, I_d).
The rows w_j start uniform on the unit sphere and take one step on a fresh batch of n_B =
batch_ratio d examples, with the network's own output neglected (it starts small):

    w_j <- w_j + step a_j^0 (1/n_B) sum_i y_i activation'(w_j.x_i) x_i,

with a^0 the read-out during the step. Then a minimises, over n = sample_ratio d further fresh
examples,

    sum_mu l(y_mu, f(x_mu)) + (ridge/2) |a|^2          penalty = "sum"
    (1/n) sum_mu l(y_mu, f(x_mu)) + (ridge/2) |a|^2    penalty = "mean".

Labels follow from the teacher's field theta.x, |theta| = 1. Errors are E (y - f)^2, label noise
included and without a factor 1/2, or P(sign f != y). `effective_step` converts a learning rate.
"""

import abc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import parameter, structure
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.losses import PenalisedRisk


def as_groups(values: Any) -> Any:
    """One number is one group."""
    return (
        np.atleast_1d(values)
        if values is not None and not isinstance(values, jax.Array)
        else values
    )


def effective_step(
    learning_rate: Any, width: Any, readout: Any = 1.0, loss_factor: Any = 0.5
) -> Any:
    """`step` of a training with loss `loss_factor` (y - f)^2, f = a.activation(W x)/width, and
    read-out entries readout * a_j^0.

    2 loss_factor learning_rate readout / width. For f = a.activation(W x)/sqrt(width) give readout
    = sqrt(width) times its entries: with entries 1/sqrt(width) and (y - f)^2/2 the step is
    learning_rate / width.
    """
    return 2 * loss_factor * learning_rate * readout / width


class TwoLayerReadout(PenalisedRisk):
    """What all of these systems have in common: the read-out's training set, and the sizes in units
    of the input dimension.
    """

    sample_ratio: float = parameter(
        "training examples of the read-out per input dimension, alpha = n/d", above=0
    )
    width_ratio: float = parameter("hidden units per input dimension, beta = p/d", above=0)
    activation: Activation = structure(
        "nonlinearity", convert=activation, choices=activation_names, default="tanh", kw_only=True
    )
    fractions: Float[Array, "group"] | None = parameter(
        "share of the neurons in each group; None: equal shares",
        convert=as_groups,
        above=0,
        default=None,
        kw_only=True,
    )
    input_dim: float = parameter(
        "input dimension d: of experiments, and of a penalty beside the mean loss",
        above=0,
        default=500,
        kw_only=True,
    )

    def __check_init__(self) -> None:
        if self.fractions is None or isinstance(self.fractions, jax.core.Tracer):
            return
        total = float(np.sum(np.asarray(self.fractions)))
        if abs(total - 1) > 1e-9:
            raise ValueError(
                f"{type(self).__name__}.fractions add up to {total:.12g}: must add up to 1"
            )

    @property
    @abc.abstractmethod
    def groups(self) -> int:
        """Number of groups of neurons."""

    @property
    def shares(self) -> Float[Array, "group"]:
        """The share of the neurons in each group."""
        return jnp.full(self.groups, 1 / self.groups) if self.fractions is None else self.fractions

    @property
    def examples(self) -> Any:
        return self.sample_ratio * self.input_dim

    @property
    def load(self) -> Any:
        """n/p."""
        return self.sample_ratio / self.width_ratio


class OneStep(TwoLayerReadout):
    """The whole procedure. readout: values of a_j^0, one a group of neurons; fractions: how many
    neurons have each of them.
    """

    batch_ratio: float = parameter(
        "examples of the gradient step per input dimension, n_B/d", above=0
    )
    step: float = parameter("effective step size: see the equation above and `effective_step`")
    readout: Float[Array, "group"] = parameter(
        "a_j^0 during the step, of each group", convert=as_groups, default=(1.0,), kw_only=True
    )

    @property
    def groups(self) -> int:
        return self.readout.shape[-1]


class SpikedFeatures(TwoLayerReadout):
    """Features activation(c_s w_j.x + u_s v.x): rows w_j uniform on the unit sphere, one direction
    v common to all, groups s.

    overlap = v.theta; spikes = u_s and bulk_norms = c_s of the groups. spikes = 0 and bulk_norms =
    1 are random features.
    """

    overlap: float = parameter(
        "overlap of the spike with the teacher, v.theta", minimum=-1, maximum=1
    )
    spikes: Float[Array, "group"] = parameter("u_s, of each group", convert=as_groups)
    bulk_norms: Float[Array, "group"] | None = parameter(
        "c_s, of each group; None: 1", convert=as_groups, above=0, default=None
    )

    @property
    def groups(self) -> int:
        return self.spikes.shape[-1]

    @property
    def norms(self) -> Float[Array, "group"]:
        """c_s."""
        return jnp.ones(self.groups) if self.bulk_norms is None else self.bulk_norms
