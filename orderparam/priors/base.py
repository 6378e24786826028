"""A prior of independent weights, seen through a Gaussian observation.

An observation b = a w + sqrt(a) z of precision a, z standard normal, turns P(w) into P(w) exp(b w -
a w^2/2) / Z(b, a). Every prior here is a finite mixture of Gaussians, atoms included, for which
everything has a closed form:

    ln Z = ln sum_k p_k (1 + a s_k)^(-1/2) exp[ (b m_k + (b^2 s_k - a m_k^2)/2) / (1 + a s_k) ]

and averages over observations are Gaussian integrals, divided where another component becomes
dominant.
"""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from orderparam.core.system import Record
from orderparam.gaussian.quadrature import Panels, standard_normal_rule

Values = Float[Array, "*batch"]
Entry = Float[ArrayLike, "*#batch"]

# Components exchange dominance within 1/sqrt(1 + a s) of a standard deviation: these panels resolve
# widths down to 6e-8.
_PANELS = Panels((1.0, 2.2, 3.8, 6.0, 9.0), gradings=12, nodes=14)
# largest number of components that are integrated one by one, with cuts where any two exchange
# dominance
_SEPARATE = 4
# number of nodes for more components: equal steps of at most half the width of the noise are exact
# to rounding
_GRID = 8192


class Components(NamedTuple):
    """The Gaussians of a prior: shares p (not their logarithms), means m and variances s >= 0."""

    shares: Float[Array, "component"]
    means: Float[Array, "component"]
    variances: Float[Array, "component"]


class Posterior(eqx.Module):
    """ln Z(b, a), and the mean and the variance of w under P(w) exp(b w - a w^2/2) / Z."""

    log_partition: Values
    mean: Values
    variance: Values


class PriorAverages(eqx.Module):
    """Averages over weights and their observations of precision a.

    overlap: E <w>^2 = E w <w>. error: E (w - <w>)^2, with E w^2 - overlap = error. free_entropy: E
    ln Z, whose slope in a is overlap / 2. information: mutual information of an observation and its
    weight, a E w^2 / 2 - E ln Z, whose slope in a is error / 2; it is accurate also where both
    terms are large. Overlap and error are each accurate to full relative precision.
    """

    overlap: Values
    error: Values
    free_entropy: Values
    information: Values


class Prior(Record):
    """The law of a single weight; subclasses give their components."""

    @property
    @abc.abstractmethod
    def components(self) -> Components: ...

    @property
    def power(self) -> Float[Array, ""]:
        """The second moment E w^2."""
        shares, means, variances = self.components
        return jnp.sum(shares * (means**2 + variances))

    @property
    def mean(self) -> Float[Array, ""]:
        """The mean E w."""
        return jnp.sum(self.components.shares * self.components.means)

    @property
    def dimension(self) -> Float[Array, ""]:
        """Probability that a weight is drawn from a density and not from an atom: lim a E (w -
        <w>)^2 as a grows."""
        shares, _, variances = self.components
        return jnp.sum(jnp.where(variances > 0, shares, 0.0))

    def draw(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
        """Independent weights."""
        shares, means, variances = self.components
        choice_key, normal_key = jax.random.split(key)
        chosen = jax.random.choice(choice_key, len(shares), shape, p=shares)
        return means[chosen] + jnp.sqrt(variances[chosen]) * jax.random.normal(normal_key, shape)

    def posterior(self, field: Entry, precision: Entry) -> Posterior:
        """The posterior for b = field and a = precision >= 0, elementwise, in the floating-point
        precision of its arguments."""
        b, a = (
            jnp.asarray(x)[..., None]
            for x in jnp.broadcast_arrays(jnp.asarray(field), jnp.asarray(precision))
        )
        shares, means, variances = (part.astype(b.dtype) for part in self.components)
        width = 1 + a * variances
        sharp = a > 1  # then distances b/a - m are more accurate than the products b m and a m^2
        sure = jnp.where(sharp, a, 1.0)
        direct = (b * means + (b**2 * variances - a * means**2) / 2) / width
        common = jnp.where(sharp, b**2 / (2 * sure), 0.0)
        weight = jnp.where(sharp, -sure * (b / sure - means) ** 2 / (2 * width), direct)
        log_share, mean, variance = _mix(
            _log(shares) + weight, width, (means + b * variances) / width, variances
        )
        return Posterior(log_share + common[..., 0], mean, variance)

    def averages(self, precision: Float[ArrayLike, "*batch"]) -> PriorAverages:
        """The averages over observations of precision a >= 0, elementwise.

        Accurate to 1e-12; a prior of more than four components as long as sqrt(a) times the width
        of the prior is below 400.
        """
        a = jnp.asarray(precision, jnp.float64)
        shares, means, variances = self.components
        root, width = jnp.sqrt(a)[..., None], 1 + a[..., None] * variances
        if len(shares) == 1:  # a Gaussian has the same error for every observation
            error = shares * variances / width
            overlap = (means**2 + a[..., None] * variances**2 / width)[..., 0]
            information = jnp.log(width)[..., 0] / 2
            return PriorAverages(
                overlap, error[..., 0], a * self.power / 2 - information, information
            )
        # x = b / sqrt(a) has the density sum_k p_k N(x; sqrt(a) m_k, 1 + a s_k).
        centre, spread = root * means, jnp.sqrt(width)
        if len(shares) <= _SEPARATE:
            cuts = _exchanges(_log(shares), centre, width)
            z, w = standard_normal_rule(
                [(cut[..., None] - centre) / spread for cut in cuts], _PANELS
            )
            x, weight = centre[..., None] + spread[..., None] * z, shares[:, None] * w
            x, weight = (part.reshape(*a.shape, -1) for part in (x, weight))
        else:
            low, high = jnp.min(centre - 9 * spread, axis=-1), jnp.max(centre + 9 * spread, axis=-1)
            step = (high - low) / (_GRID - 1)
            x = low[..., None] + step[..., None] * jnp.arange(_GRID)
            place = (x[..., None] - centre[..., None, :]) / spread[..., None, :]
            density = jnp.sum(
                shares * jnp.exp(-(place**2) / 2) / spread[..., None, :], axis=-1
            ) / np.sqrt(2 * np.pi)
            weight = step[..., None] * density
        place = (x[..., None] - centre[..., None, :]) ** 2 / (2 * width[..., None, :])
        b = (root * x)[..., None]
        shift = (means + b * variances) / width[..., None, :]
        log_share, mean, variance = _mix(
            _log(shares) - place, width[..., None, :], shift, variances
        )
        information = -jnp.sum(weight * (log_share + 0.5), axis=-1)  # E x^2 = 1 + a E w^2
        overlap, error = jnp.sum(weight * mean**2, axis=-1), jnp.sum(weight * variance, axis=-1)
        return PriorAverages(overlap, error, a * self.power / 2 - information, information)


def _log(shares: Values) -> Values:
    return jnp.where(shares > 0, jnp.log(jnp.where(shares > 0, shares, 1.0)), -1e30)


def _mix(
    log_weights: Array, width: Array, centres: Array, variances: Array
) -> tuple[Array, Array, Array]:
    """ln of the total weight, mean and variance of a mixture with these weights times width^(-1/2),
    along the last axis."""
    weights = log_weights - jnp.log(width) / 2
    shares = jax.nn.softmax(weights, axis=-1)
    mean = jnp.sum(shares * centres, axis=-1)
    scatter = (centres - mean[..., None]) ** 2
    return (
        logsumexp(weights, axis=-1),
        mean,
        jnp.sum(shares * (variances / width + scatter), axis=-1),
    )


def _exchanges(log_shares: Array, centre: Array, width: Array) -> list[Array]:
    """The places x where two components have the same weight: up to two for each pair."""
    found = []
    for j in range(len(log_shares)):
        for k in range(j):
            square = (1 / width[..., k] - 1 / width[..., j]) / 2
            linear = centre[..., j] / width[..., j] - centre[..., k] / width[..., k]
            height = (
                log_shares[j]
                - log_shares[k]
                - (jnp.log(width[..., j]) - jnp.log(width[..., k])) / 2
            )
            height -= (
                centre[..., j] ** 2 / width[..., j] - centre[..., k] ** 2 / width[..., k]
            ) / 2
            height = jnp.clip(height, -1e12, 1e12)  # a component with share zero is never dominant
            root = jnp.sqrt(jnp.maximum(linear**2 - 4 * square * height, 0.0))
            half = -(linear + jnp.where(linear < 0, -root, root)) / 2
            found += [_ratio(half, square), _ratio(height, half)]
    return [jax.lax.stop_gradient(place) for place in found]


def _ratio(top: Array, bottom: Array) -> Array:
    """The ratio top / bottom, or zero where it is not finite."""
    value = top / jnp.where(bottom == 0, 1.0, bottom)
    return jnp.where((bottom == 0) | ~jnp.isfinite(value), 0.0, value)
