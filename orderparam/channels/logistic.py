"""Labels of logistic regression."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.channels.base import Average, Entry, LabelAverages
from orderparam.channels.numerical import NumericalLikelihood
from orderparam.core.system import parameter


class LogisticLabels(NumericalLikelihood):
    """P(y | nu) = 1 / (1 + exp(-slope y nu)), y = -1, +1. Accurate to 1e-11 for slope^2 V < 30."""

    binary: ClassVar[bool] = True

    slope: float = parameter("slope of the log-odds", above=0, default=1.0)

    def log_density(self, label: Entry, field: Entry) -> Average:
        return -jax.nn.softplus(-self.slope * label * field)

    def denoiser(self, label: Entry, field: Entry, variance: Entry) -> Average:
        _, pull, share = self._pulls(label, field, variance)
        return jnp.sum(share * pull, axis=-1)

    def denoiser_slope(self, label: Entry, field: Entry, variance: Entry) -> Average:
        missing, pull, share = self._pulls(label, field, variance)
        mean = jnp.sum(share * pull, axis=-1, keepdims=True)
        return jnp.sum(
            share * ((pull - mean) ** 2 - self.slope**2 * missing * (1 - missing)), axis=-1
        )

    def moments(self, mean: Entry, variance: Entry) -> LabelAverages:
        up = self.log_evidence(1.0, mean, variance)
        first = 2 * jnp.exp(up) - 1
        return LabelAverages(
            first, jnp.ones_like(first), 2 * jnp.exp(up) * self.denoiser(1.0, mean, variance)
        )

    def draw(self, field: Float[Array, "*batch"], key: PRNGKeyArray) -> Float[Array, "*batch"]:
        return jnp.where(
            jax.random.uniform(key, field.shape) < jax.nn.sigmoid(self.slope * field), 1.0, -1.0
        )

    def _pulls(self, label: Entry, mean: Entry, variance: Entry) -> tuple[Array, Array, Array]:
        """1 - P(y | nu) and d ln P / d nu at the nodes, with their probabilities: g is the mean of
        the latter."""
        _, z, share = self.tilted(label, mean, variance)
        label, mean, deviation = (
            jnp.asarray(x)[..., None] for x in (label, mean, jnp.sqrt(jnp.asarray(variance)))
        )
        missing = jax.nn.sigmoid(-self.slope * label * (mean + deviation * z))
        return missing, label * self.slope * missing, share
