"""Bayesian convolutional networks of three layers on a training set that a teacher of the same
architecture has labelled.

    h1_ci = w_c . x_i,    h2_jg = sum_{c, p} W_jcp phi(h1_c(g, p)),    f = sum_jg a_jg phi(h2_jg),
    w_c ~ N(0, weight_variance/S),   W_jcp ~ N(0, hidden_variance/(p C)),
    a_jg ~ N(0, readout_variance/(G C)),

with patches i = (g, p) of S inputs that do not overlap, G groups g of p patches each, and C
channels in both layers. All patches share w, and all groups share W.
"""

import math

import jax
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.fields import parameter
from orderparam.systems.kernel_adaptation.network import AdaptiveNetwork


class ConvolutionalOnData(AdaptiveNetwork):
    r"""A Bayesian convolutional network of two convolutions and a read-out, on a training set that
    a teacher has labelled.

    $$ h^1_{ci} = w_c \cdot x_i, \qquad h^2_{jg} = \sum_{c,p} W_{jcp}\, \phi(h^1_{c(g,p)}), \qquad
       f = \sum_{jg} a_{jg}\, \phi(h^2_{jg}) $$

    with patches $i = (g, p)$ that do not overlap, numbered group by group. The variances are
    `weight_variance`/S for a weight of the first layer, S the inputs of a patch,
    `hidden_variance` over the number of weights of a channel in the second layer, and
    `readout_variance` over their number in the read-out; the likelihood is
    $\exp\{-\sum_\mu (f(x_\mu) - y_\mu)^2 / (2T)\}$ with T = `temperature`. The teacher's filter is
    the first axis of a patch.

    Raises:
        ValueError: unless patches are a multiple of groups, and for a teacher of zeros.

    Source: Seroussi, Naveh, Ringel (2023).

    >>> ConvolutionalOnData(*teacher_data(5, 3, groups=2, group=2, patch_dim=3), 8, 0.1).groups
    2
    """

    inputs: Float[Array, "train patch input"] = parameter("training inputs, patch by patch")
    targets: Float[Array, "train"] = parameter("their targets")
    teacher: Float[Array, "train group"] = parameter(
        "pre-activations of the teacher's second layer at the training points"
    )
    test_inputs: Float[Array, "test patch input"] = parameter("test inputs")
    test_targets: Float[Array, "test"] = parameter("their targets")
    channels: float = parameter("channels C of each convolution", above=0)
    temperature: float = parameter(
        "Langevin temperature T: variance of the observation noise", above=0
    )
    readout_variance: float = parameter("prior variance of sqrt(G C) a", above=0, default=1.0)
    weight_variance: float = parameter("prior mean of |w_c|^2", above=0, default=1.0)
    hidden_variance: float = parameter("prior mean of |W_j|^2", above=0, default=1.0)

    def __check_init__(self) -> None:
        patches, groups = self.inputs.shape[1], self.groups
        if patches % groups:
            raise ValueError(
                f"ConvolutionalOnData.teacher has {groups} groups: must divide {patches} patches"
            )
        if not isinstance(self.teacher, jax.core.Tracer) and not np.any(self.teacher):
            raise ValueError("ConvolutionalOnData.teacher is zero: it must name a direction")

    @property
    def groups(self) -> int:
        """Number of groups of patches G."""
        return self.teacher.shape[1]


def teacher_data(
    n_train: int, n_test: int, *, groups: int, group: int, patch_dim: int
) -> tuple[np.ndarray, ...]:
    """The arrays of a `ConvolutionalOnData`: Gaussian inputs and the labels of a teacher with one
    channel in each layer and erf units, the same in every call.

    The teacher's second layer has h2_g = 1.5 sum_p s_p erf(w_* . x_(g, p)) / sqrt(group) with signs
    s_p that alternate, and y is the sum of erf(h2_g) in units of its standard deviation over all
    inputs drawn.
    """
    erf = np.vectorize(math.erf)
    x = np.random.default_rng(0).standard_normal((n_train + n_test, groups * group, patch_dim))
    signs = (-1.0) ** np.arange(group)
    hidden = 1.5 * erf(x[:, :, 0]).reshape(-1, groups, group) @ signs / math.sqrt(group)
    y = erf(hidden).sum(axis=1)
    y /= np.std(y)
    return x[:n_train], y[:n_train], hidden[:n_train], x[n_train:], y[n_train:]
