"""Bayesian convolutional networks with patches that do not overlap.

    f(x) = sum_{i=1..N} sum_{c=1..C} a_ic phi(w_c . x_i),   x_i ~ N(0, 1_S),
    y(x) = N^(-1/2) sum_i sum_k y_k h_k(w_* . x_i),   |w_*| = 1,
    w_c ~ N(0, weight_variance/S),  a_ic ~ N(0, readout_variance/(N C)),

with N patches of dimension S, sampled at temperature T. Every patch has a read-out of its own on
channels that all patches share. The input has d = N S dimensions. The action of the weights of one
channel is that of a neuron in a two-layer network with S inputs and C units. The read-out variance
of this network is smaller by a factor N, and it has one copy of every mode for each patch
(Seroussi, Naveh, Ringel 2023).
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.fields import parameter, structure
from orderparam.systems.kernel_adaptation.network import (
    AdaptiveNetwork,
    Degrees,
    HermiteTarget,
    HiddenLayer,
    increasing,
    kept_degrees,
    refuse_zero,
)


class PatchNetwork(AdaptiveNetwork):
    r"""A Bayesian convolutional network on patches that do not overlap, averaged over Gaussian
    data.

    $$ f(x) = \sum_{i=1}^{N} \sum_{c=1}^{C} a_{ic}\, \phi(w_c \cdot x_i), \qquad x_i \sim N(0, 1_S),
       \qquad y(x) = \frac{1}{\sqrt N} \sum_{i=1}^{N} \sum_k y_k h_k(w_* \cdot x_i) $$

    with N = `patches` of dimension S = `patch_dim`, C = `channels`, $w_c$ of variance
    `weight_variance`/S in every component, $a_{ic}$ of variance `readout_variance`/(N C), and $y_k$
    the entries of `target` (see `hermite_target`). It is sampled at `temperature` on `n_train`
    examples. The activation must be odd, because an even part would give all patches the same
    constant function. `modes` is as in `TwoLayerNetwork`. In the theories all numbers may be real.

    Raises:
        ValueError: for an activation that is not odd, and for a target that is zero.

    Source: Seroussi, Naveh, Ringel (2023).

    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = PatchNetwork(50, 10, 1000, 400, temperature=0.1, target=hermite_target({1: 1.0}))
    >>> round(float(network.critical_examples), 4)
    70.7107
    """

    patch_dim: float = parameter("dimension S of a patch", minimum=3)
    patches: float = parameter("number of patches N", above=0)
    channels: float = parameter("number of channels C", above=0)
    n_train: float = parameter("number of training examples P", above=0)
    temperature: float = parameter(
        "Langevin temperature T: variance of the observation noise", above=0
    )
    target: Float[Array, "degree"] = parameter(
        "coefficients of the normalised Hermite polynomials in the target"
    )
    readout_variance: float = parameter("prior variance of sqrt(N C) a_ic", above=0, default=1.0)
    weight_variance: float = parameter("prior variance of |w_c|, E |w_c|^2", above=0, default=1.0)
    modes: Degrees | None = structure(
        "increasing degrees of the Hermite polynomials kept; None: by activation",
        minimum=0,
        convert=increasing,
        default=None,
    )

    def __check_init__(self) -> None:
        refuse_zero("PatchNetwork", self.target)
        if self.activation.parity != "odd":
            raise ValueError(
                f"PatchNetwork.activation = {self.activation.name!r}: must be odd, such as linear "
                "or erf"
            )

    @property
    def hidden(self) -> HiddenLayer:
        """The hidden layer as the theories use it."""
        return HiddenLayer(
            self.patch_dim,
            self.channels,
            self.n_train,
            self.temperature,
            self.readout_variance / self.patches,
            self.weight_variance,
            HermiteTarget(self.target),
            self.activation,
            kept_degrees(self.activation, self.modes),
            self.patches,
        )

    @property
    def critical_examples(self) -> Float[Array, ""]:
        """Number of examples P_c = T sqrt(S C N / (readout_variance weight_variance)) above which a
        large network of linear units learns.

        The learnability of this network is max(0, 1 - P_c/P). With S, N and C in proportion P_c
        grows as d^(3/4).
        """
        product = (
            self.patch_dim
            * self.channels
            * self.patches
            / (self.readout_variance * self.weight_variance)
        )
        return self.temperature * jnp.sqrt(product)
