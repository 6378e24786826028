"""Bayesian convolutional networks with patches that do not overlap.

    f(x) = sum_{i=1..N} sum_{c=1..C} a_ic phi(w_c . x_i),   x_i ~ N(0, 1_S), N patches of dimension S,
    y(x) = N^(-1/2) sum_i sum_k y_k h_k(w_* . x_i),   |w_*| = 1,
    w_c ~ N(0, weight_variance/S),  a_ic ~ N(0, readout_variance/(N C)),

sampled at temperature T. Every patch has a read-out of its own on channels that all patches share. The d-dimensional input has
d = N S. The weight of one channel has the action of a two-layer network of S inputs and C units, whose read-out variance is
smaller by N and whose modes exist once for each patch (Seroussi, Naveh, Ringel 2023).
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.system import is_number, parameter, structure
from orderparam.gaussian import Activation
from orderparam.systems.kernel_adaptation.two_layers.model import Network, Number, TwoLayerNetwork


class PatchNetwork(Network):
    """A convolutional network on patches, averaged over Gaussian data. All its numbers may be real in the theories.

    target: (degree,) the coefficients y_k of the normalised Hermite polynomials, see `hermite_target`.
    activation: odd: the constant functions of different patches are one and the same. modes: as in `TwoLayerNetwork`.

    Raises `ValueError` for an activation that is not odd, and as `TwoLayerNetwork` does.
    """

    patch_dim: Number = parameter("dimension S of a patch", minimum=3)
    patches: Number = parameter("number of patches N", above=0)
    channels: Number = parameter("number of channels C", above=0)
    n_train: Number = parameter("number of training examples P", above=0)
    temperature: Number = parameter("Langevin temperature T: variance of the observation noise", above=0)
    target: Float[Array, "degree"] = parameter("coefficients of the normalised Hermite polynomials in the target")
    readout_variance: Number = parameter("prior variance of sqrt(N C) a_ic", above=0, default=1.0)
    weight_variance: Number = parameter("prior variance of |w_c|, E |w_c|^2", above=0, default=1.0)
    activation: str | Activation = structure("nonlinearity: a name or an Activation", default="erf")
    modes: tuple[int, ...] | None = structure("degrees of the Hermite polynomials kept; None: by activation", default=None)

    def __check_init__(self) -> None:
        if self.phi.parity != "odd":
            raise ValueError(f"PatchNetwork.activation = {self.phi.name!r}: must be odd, such as linear or erf")
        if not is_number(self.patches) or self.patches > 0:
            self.one_patch  # noqa: B018  refuses a target or modes that are wrong

    @property
    def one_patch(self) -> TwoLayerNetwork:
        """The two-layer network with the same action of one weight."""
        return TwoLayerNetwork(
            self.patch_dim,
            self.channels,
            self.n_train,
            self.temperature,
            self.target,
            self.readout_variance / self.patches,
            self.weight_variance,
            activation=self.activation,
            modes=self.modes,
        )

    @property
    def copies(self) -> Number:
        """How many times every mode exists."""
        return self.patches

    @property
    def critical_examples(self) -> Float[Array, ""]:
        """P_c = T sqrt(S C N / (readout_variance weight_variance)): a large linear network has learnability max(0, 1 - P_c/P).

        With S, N and C in proportion P_c grows as d^(3/4)."""
        product = jnp.asarray(self.patch_dim, float) * self.channels * self.patches
        return self.temperature * jnp.sqrt(product / (jnp.asarray(self.readout_variance) * self.weight_variance))
