"""Labels that are the sign of the field, or of the field with Gaussian noise."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc, xlogy
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.channels.base import (
    Average,
    Entry,
    LabelAverages,
    Likelihood,
    LikelihoodAverages,
)
from orderparam.core.system import parameter
from orderparam.gaussian.quadrature import safe_sqrt
from orderparam.gaussian.tail import hazard, hazard_excess, log_cdf

# Z has zeros near the real axis, at Phi(u) = -flip; the integrand is small there, so that equal
# steps of 0.2 have an error of 1e-15.
_STEP = 0.2
_NODES = np.arange(-45, 46) * _STEP


class SignLabels(Likelihood):
    """y = sign(nu), reversed with probability `flip`: Z = flip + (1 - 2 flip) Phi(u), u = y w /
    sqrt(V)."""

    binary: ClassVar[bool] = True
    flip: float = parameter(
        "probability that a label is turned over", minimum=0, maximum=0.5, default=0.0
    )

    @property
    def blur(self) -> Any:
        """Variance of the noise added to the field inside the sign."""
        return 0.0

    def moments(self, mean: Entry, variance: Entry) -> LabelAverages:
        mean, deviation = jnp.asarray(mean, jnp.float64), self._deviation(variance)
        kept = 1 - 2 * self.flip
        first = kept * (2 * norm.cdf(mean / deviation) - 1)
        return LabelAverages(
            first, jnp.ones_like(first), kept * 2 * norm.pdf(mean / deviation) / deviation
        )

    def averages(
        self, self_overlap: Float[Array, "*batch"], variance: Float[Array, "*batch"]
    ) -> LikelihoodAverages:
        """`LikelihoodAverages` for q = known >= 0 and V = variance > 0, elementwise.

        Both labels contain the same information: with u = w / sqrt(V + blur) of variance r^2,

            information = 2 E Z'(u)^2 / (Z (V + blur)),
            free entropy = E [Z ln Z + (1-Z) ln(1-Z)].

        After its limit at large u is subtracted, the integrand decays like the normal density:
        nodes are equally spaced within nine deviations of the product of both densities.
        """
        self_overlap, variance = jnp.broadcast_arrays(
            jnp.asarray(self_overlap, jnp.float64), jnp.asarray(variance, jnp.float64)
        )
        flip = jnp.minimum(self.flip, 0.5 - 1e-16)
        spread, kept = variance + self.blur, 1 - 2 * flip
        # 1/r^2 + 1 = 1/scale^2; the density of u over that of u/scale is `share`
        scale = safe_sqrt(self_overlap / (self_overlap + spread))[..., None]
        share = jnp.sqrt(spread / (self_overlap + spread))[..., None]
        t = jnp.asarray(_NODES)
        u = scale * t
        weight = _STEP / np.sqrt(2 * np.pi) * share * jnp.exp(-((share * t) ** 2) / 2)
        turned, straight = (erfc(side * u / np.sqrt(2)) / 2 for side in (1.0, -1.0))
        likely, unlikely = flip + kept * straight, flip + kept * turned
        slope = kept * jnp.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)
        information = 2 * jnp.sum(weight * slope**2 / likely, axis=-1) / spread
        limit = _less_than_certain(flip, 1 - flip)
        entropy = jnp.sum(weight * (_less_than_certain(likely, unlikely) - limit), axis=-1)
        return LikelihoodAverages(information, limit + entropy)

    def disagreement(self, cosine: Entry, variance: Entry) -> Average:
        """P(y != sign f) for a centred Gaussian f whose correlation with nu of that variance is
        `cosine`."""
        seen = jnp.sqrt(jnp.asarray(variance) / (jnp.asarray(variance) + self.blur))
        return self.flip + (1 - 2 * self.flip) * jnp.arccos(jnp.clip(cosine * seen, -1, 1)) / np.pi

    def evidence(self, label: Entry, mean: Entry, variance: Entry) -> tuple[Average, Average]:
        deviation, kept = self._deviation(variance), 1 - 2 * self.flip
        u = jnp.asarray(label) * mean / deviation
        return self.flip + kept * norm.cdf(u), kept * jnp.asarray(label) * norm.pdf(u) / deviation

    def log_evidence(self, label: Entry, mean: Entry, variance: Entry) -> Average:
        return self._log_share(jnp.asarray(label) * mean / self._deviation(variance))

    def denoiser(self, label: Entry, field: Entry, variance: Entry) -> Average:
        deviation = self._deviation(variance)
        u = jnp.asarray(label) * field / deviation
        return label * self._unturned(u) * hazard(u) / deviation

    def denoiser_slope(self, label: Entry, field: Entry, variance: Entry) -> Average:
        deviation = self._deviation(variance)
        u = jnp.asarray(label) * field / deviation
        share, rate = self._unturned(u), hazard(u)
        return -share * rate * (hazard_excess(u) - (1 - share) * rate) / deviation**2

    def draw(self, field: Float[Array, "*batch"], key: PRNGKeyArray) -> Float[Array, "*batch"]:
        turned = jax.random.uniform(key, field.shape) < self.flip
        return jnp.where((field > 0) ^ turned, 1.0, -1.0)

    def _deviation(self, variance: Entry) -> Array:
        return jnp.sqrt(jnp.asarray(variance) + self.blur)

    def _log_share(self, u: Array) -> Array:
        """ln(flip + (1 - 2 flip) Phi(u))."""
        flip = jnp.asarray(self.flip)
        turned = jnp.where(flip > 0, jnp.log(jnp.where(flip > 0, flip, 1.0)), -1e30)
        return jnp.logaddexp(turned, jnp.log1p(-2 * jnp.minimum(flip, 0.5 - 1e-16)) + log_cdf(u))

    def _unturned(self, u: Array) -> Array:
        """(1 - 2 flip) Phi(u) / Z."""
        return jnp.exp(
            jnp.log1p(-2 * jnp.minimum(self.flip, 0.5 - 1e-16)) + log_cdf(u) - self._log_share(u)
        )


def _less_than_certain(one: Array, other: Array) -> Array:
    """The negative entropy p ln p + (1-p) ln(1-p) of the probabilities p and 1-p."""
    return xlogy(one, one) + xlogy(other, other)


class ProbitLabels(SignLabels):
    """y = sign(nu + sqrt(noise) * standard normal), reversed with probability `flip`; without flips
    P(y | nu) = Phi(y nu / sqrt(noise))."""

    noise: float = parameter("variance of the noise inside the sign", minimum=0, default=1.0)

    @property
    def blur(self) -> Any:
        return self.noise

    def draw(self, field: Float[Array, "*batch"], key: PRNGKeyArray) -> Float[Array, "*batch"]:
        noise_key, flip_key = jax.random.split(key)
        return super().draw(
            field + jnp.sqrt(self.noise) * jax.random.normal(noise_key, field.shape), flip_key
        )
