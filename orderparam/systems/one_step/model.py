"""One giant gradient step on the first layer, then a read-out trained on fresh data.

The network is f(x) = a.activation(W x)/sqrt(p) with p = width_ratio d hidden units and x ~ N(0,
I_d). The rows w_j start uniform on the unit sphere and take one step on a fresh batch of n_B =
batch_ratio d examples, in which the network's own output is neglected (it is small at the start):

    w_j <- w_j + step a_j^0 (1/n_B) sum_i y_i activation'(w_j.x_i) x_i,

with a^0 the read-out during the step. Then a minimises, over n = sample_ratio d further fresh
examples,

    sum_mu l(y_mu, f(x_mu)) + (ridge/2) |a|^2          penalty = "sum"
    (1/n) sum_mu l(y_mu, f(x_mu)) + (ridge/2) |a|^2    penalty = "mean".

The labels depend on the teacher's field theta.x with |theta| = 1. The error is E (y - f)^2, with
label noise and without a factor 1/2, or P(sign f != y). `effective_step` converts the learning rate
of a training script to `step`.
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
    """The values as an array with one entry for each group; a single number stands for one
    group."""
    return (
        np.atleast_1d(values)
        if values is not None and not isinstance(values, jax.Array)
        else values
    )


def effective_step(
    learning_rate: Any, width: Any, readout: Any = 1.0, loss_factor: Any = 0.5
) -> Any:
    """The effective `step`, 2 loss_factor learning_rate readout / width, of training with the loss
    `loss_factor` (y - f)^2.

    The network is f = a.activation(W x)/width with read-out entries readout * a_j^0. For a network
    f = a.activation(W x)/sqrt(width) set `readout` to sqrt(width) times its read-out entries. For
    example, entries 1/sqrt(width) and the loss (y - f)^2/2 give the step learning_rate / width.

    Args:
        learning_rate: learning rate of the mean loss.
        width: number of hidden units.
        readout: read-out entries in units of a_j^0; 1 by default.
        loss_factor: factor of (y - f)^2 in the loss; 1/2 by default.

    Source: derived here, by comparing the gradients.

    >>> effective_step(learning_rate=300.0, width=100)
    3.0
    """
    return 2 * loss_factor * learning_rate * readout / width


class TwoLayerReadout(PenalisedRisk):
    """The fields that all systems of this topic share: the training of the read-out, and the sizes
    in units of the input dimension.
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
        """Share of the neurons in each group."""
        return jnp.full(self.groups, 1 / self.groups) if self.fractions is None else self.fractions

    @property
    def examples(self) -> Any:
        return self.sample_ratio * self.input_dim

    @property
    def load(self) -> Any:
        """The ratio n/p."""
        return self.sample_ratio / self.width_ratio


class OneStep(TwoLayerReadout):
    r"""One gradient step on the first layer, then a read-out trained on fresh data.

    Rows $w_j$ start uniform on the unit sphere and take one step on $n_B$ = `batch_ratio` d
    examples,

    $$ w_j \leftarrow w_j
       + \eta\, a_j^0\, \frac{1}{n_B} \sum_i y_i\, \sigma'(w_j \cdot x_i)\, x_i , $$

    with $\eta$ = `step` and $a_j^0$ = `readout`, one value for each group of neurons; `fractions`
    are the shares of the groups. Then $a$ of $f = a \cdot \sigma(W x) / \sqrt p$ minimises the loss
    with `ridge` on n = `sample_ratio` d fresh examples.
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
    r"""Features $\sigma((c_s + \rho_s\, w_j \cdot v)\, w_j \cdot x + u_s\, v \cdot x)$ with one
    direction $v$ common to all neurons.

    Rows $w_j$ are uniform on the unit sphere, $s$ is the group of neuron j, `overlap` is $v \cdot
    \theta$, `spikes` are $u_s$, `bulk_norms` $c_s$ and `norm_slopes` $\rho_s$ of the groups. Zero
    spikes, unit norms and no slopes are random features.
    """

    overlap: float = parameter(
        "overlap of the spike with the teacher, v.theta", minimum=-1, maximum=1
    )
    spikes: Float[Array, "group"] = parameter("u_s, of each group", convert=as_groups)
    bulk_norms: Float[Array, "group"] | None = parameter(
        "c_s, of each group; None: 1", convert=as_groups, above=0, default=None
    )
    norm_slopes: Float[Array, "group"] | None = parameter(
        "rho_s, of each group: change of a row's norm per overlap with the spike; None: 0",
        convert=as_groups,
        default=None,
        kw_only=True,
    )

    @property
    def groups(self) -> int:
        return self.spikes.shape[-1]

    @property
    def norms(self) -> Float[Array, "group"]:
        """The bulk norm c_s of each group."""
        return jnp.ones(self.groups) if self.bulk_norms is None else self.bulk_norms

    @property
    def slopes(self) -> Float[Array, "group"]:
        """The change rho_s of the norm per overlap with the spike, of each group."""
        return jnp.zeros(self.groups) if self.norm_slopes is None else self.norm_slopes
