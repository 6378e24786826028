"""Evidence by quadrature over the field, for laws of labels without a closed form."""

import abc

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.channels.base import Average, Entry, Likelihood
from orderparam.gaussian.quadrature import LEAN, standard_normal_rule

_PANELS = LEAN._replace(nodes=10)


class NumericalLikelihood(Likelihood):
    """P(y | nu) = exp(log_density(y, nu)): averages over nu = w + sqrt(V) z by quadrature, cut at
    the kinks.

    Accurate to 1e-11 where ln P changes by less than about 10 over sqrt(V), between kinks.
    """

    @property
    def nodes(self) -> int:
        return jax.eval_shape(self.tilted, 1.0, 0.0, 1.0)[1].size

    @abc.abstractmethod
    def log_density(self, label: Entry, field: Entry) -> Average:
        """ln P(y | nu), elementwise."""

    def tilted(
        self, label: Entry, mean: Entry, variance: Entry
    ) -> tuple[Average, Float[Array, "*batch node"], Array]:
        """ln Z; the nodes z, and their probabilities given the label."""
        mean, variance = jnp.broadcast_arrays(jnp.asarray(mean), jnp.asarray(variance))
        deviation = jnp.sqrt(variance)
        z, weight = standard_normal_rule(
            [0.0 * mean, *((kink - mean) / deviation for kink in self.kinks)], _PANELS
        )
        field = mean[..., None] + deviation[..., None] * z
        height, weight = jnp.broadcast_arrays(
            self.log_density(jnp.asarray(label)[..., None], field), weight
        )
        peak = jax.lax.stop_gradient(jnp.max(height, axis=-1, keepdims=True))
        # weights move with the cuts, also those that are zero where two cuts meet
        share = weight * jnp.exp(height - peak)
        total = jnp.sum(share, axis=-1, keepdims=True)
        return (jnp.log(total) + peak)[..., 0], z, share / total

    def log_evidence(self, label: Entry, mean: Entry, variance: Entry) -> Average:
        return self.tilted(label, mean, variance)[0]

    def denoiser(self, label: Entry, field: Entry, variance: Entry) -> Average:
        _, z, share = self.tilted(label, field, variance)
        return jnp.sum(share * z, axis=-1) / jnp.sqrt(jnp.asarray(variance))

    def denoiser_slope(self, label: Entry, field: Entry, variance: Entry) -> Average:
        _, z, share = self.tilted(label, field, variance)
        mean = jnp.sum(share * z, axis=-1, keepdims=True)
        return (jnp.sum(share * (z - mean) ** 2, axis=-1) - 1) / jnp.asarray(variance)
