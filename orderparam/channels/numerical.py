"""Evidence by quadrature over the field, for laws of labels without a closed form."""

import abc

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from orderparam.channels.base import Average, Entry, Likelihood
from orderparam.gaussian.quadrature import LEAN, standard_normal_rule

_PANELS = LEAN._replace(nodes=10)


class NumericalLikelihood(Likelihood):
    """P(y | nu) = exp(log_density(y, nu)): averages over nu = w + sqrt(V) z by quadrature, cut at the kinks.

    Accurate to 1e-11 where ln P changes by less than about 10 over sqrt(V), between kinks.
    """

    @abc.abstractmethod
    def log_density(self, label: Entry, field: Entry) -> Average:
        """ln P(y | nu), elementwise."""

    def tilted(self, label: Entry, mean: Entry, variance: Entry) -> tuple[Average, Float[Array, "*batch node"], Array]:
        """ln Z; the nodes z, and their probabilities given the label."""
        label, mean, variance = jnp.broadcast_arrays(*(jnp.asarray(x) for x in (label, mean, variance)))
        deviation = jnp.sqrt(variance)
        z, weight = standard_normal_rule([0.0 * mean, *((kink - mean) / deviation for kink in self.kinks)], _PANELS)
        field = mean[..., None] + deviation[..., None] * z
        height = self.log_density(label[..., None], field) + jnp.where(weight > 0, jnp.log(jnp.maximum(weight, 1e-300)), -1e30)
        return logsumexp(height, axis=-1), z, jax.nn.softmax(height, axis=-1)

    def log_evidence(self, label: Entry, mean: Entry, variance: Entry) -> Average:
        return self.tilted(label, mean, variance)[0]

    def denoiser(self, label: Entry, field: Entry, variance: Entry) -> Average:
        _, z, share = self.tilted(label, field, variance)
        return jnp.sum(share * z, axis=-1) / jnp.sqrt(jnp.asarray(variance))

    def denoiser_slope(self, label: Entry, field: Entry, variance: Entry) -> Average:
        _, z, share = self.tilted(label, field, variance)
        mean = jnp.sum(share * z, axis=-1, keepdims=True)
        return (jnp.sum(share * (z - mean) ** 2, axis=-1) - 1) / jnp.asarray(variance)
