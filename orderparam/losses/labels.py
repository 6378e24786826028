"""How labels follow from the teacher's field nu: a function of it plus noise, or its sign with flips."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.system import Record, parameter, structure
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.gaussian.quadrature import safe_sqrt, standard_normal_rule

Entry = Float[Array, "*#batch"] | float
Average = Float[Array, "*batch"]


class LabelAverages(eqx.Module):
    """Of labels y of a Gaussian field nu: mean E y, power E y^2, and slope E[y (nu - E nu)] / Var nu."""

    mean: Average
    power: Average
    slope: Average


class Labels(Record):
    """The law P(y | nu) of labels given the teacher's field."""

    @abc.abstractmethod
    def moments(self, mean: Entry, variance: Entry) -> LabelAverages:
        """Over nu ~ N(mean, variance), elementwise. All that least squares know of the labels."""

    @abc.abstractmethod
    def draw(self, field: Float[Array, "*batch"], key: PRNGKeyArray) -> Float[Array, "*batch"]:
        """One label per field, independent given the fields."""


class RealLabels(Labels):
    """y = link(nu) + sqrt(noise) * standard normal.

    link: an `Activation`, its name, or a function (static).
    """

    link: Activation = structure(
        "function of the teacher's field", convert=activation, choices=activation_names, default="linear"
    )
    noise: float = parameter("variance of the label noise", minimum=0, default=0.0)

    def moments(self, mean: Entry, variance: Entry) -> LabelAverages:
        mean, variance = jnp.broadcast_arrays(jnp.asarray(mean, jnp.float64), jnp.asarray(variance, jnp.float64))
        deviation = safe_sqrt(variance)
        inverse = jnp.where(deviation == 0, 0.0, 1 / jnp.where(deviation == 0, 1.0, deviation))
        z, weight = standard_normal_rule([(kink - mean) * inverse for kink in (0.0, *self.link.kinks)])
        y = self.link(mean[..., None] + deviation[..., None] * z)
        first, second, slope = (jnp.sum(weight * part, axis=-1) for part in (y, y**2, y * z))
        return LabelAverages(first, second + self.noise, slope * inverse)

    def draw(self, field: Float[Array, "*batch"], key: PRNGKeyArray) -> Float[Array, "*batch"]:
        return self.link(field) + jnp.sqrt(self.noise) * jax.random.normal(key, field.shape)


class SignLabels(Labels):
    """y = sign(nu), turned over with probability `flip`."""

    flip: float = parameter("probability that a label is turned over", minimum=0, maximum=0.5, default=0.0)

    def moments(self, mean: Entry, variance: Entry) -> LabelAverages:
        mean, deviation = jnp.asarray(mean, jnp.float64), jnp.sqrt(jnp.asarray(variance, jnp.float64))
        kept = 1 - 2 * self.flip
        first = kept * (2 * norm.cdf(mean / deviation) - 1)
        return LabelAverages(first, jnp.ones_like(first), kept * 2 * norm.pdf(mean / deviation) / deviation)

    def evidence(self, label: Entry, mean: Entry, variance: Entry) -> tuple[Average, Average]:
        """Z = P(y) for nu ~ N(mean, variance), and dZ/d mean."""
        deviation, kept = jnp.sqrt(jnp.asarray(variance)), 1 - 2 * self.flip
        u = jnp.asarray(label) * mean / deviation
        return self.flip + kept * norm.cdf(u), kept * jnp.asarray(label) * norm.pdf(u) / deviation

    def draw(self, field: Float[Array, "*batch"], key: PRNGKeyArray) -> Float[Array, "*batch"]:
        turned = jax.random.uniform(key, field.shape) < self.flip
        return jnp.where((field > 0) ^ turned, 1.0, -1.0)
