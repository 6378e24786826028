"""Real labels: a function of the field, with or without Gaussian noise."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.channels.base import Average, Entry, LabelAverages, LikelihoodAverages
from orderparam.channels.numerical import NumericalLikelihood
from orderparam.core.system import parameter, structure
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.gaussian.arccosine import Abs, LeakyRelu, Relu
from orderparam.gaussian.polynomials import Linear
from orderparam.gaussian.quadrature import LEAN, safe_sqrt, standard_normal_rule
from orderparam.gaussian.tail import hazard, hazard_excess, log_cdf

_FLOOR = 1e-20  # noise that replaces zero noise
_NODES, _REACH = 400, 8.0
_PANELS = LEAN._replace(gradings=6, nodes=10)


class RealLabels(NumericalLikelihood):
    """y = link(nu) + sqrt(noise) * standard normal.

    link: an `Activation`, its name, or a function (static). The evidence has a closed form where
    the link is linear on either side of zero (linear, abs, relu, leaky_relu), also without noise;
    for other links it is found by quadrature and needs noise.

    On either side, where the link is a nu, the field given the label is the half of a Gaussian of
    mean (noise w + a V y) / s and variance noise V / s, s = noise + a^2 V, and the label has the
    density N(y; a w, s).
    """

    link: Activation = structure(
        "function of the teacher's field",
        convert=activation,
        choices=activation_names,
        default="linear",
    )
    noise: float = parameter("variance of the label noise", minimum=0, default=0.0)

    @property
    def kinks(self) -> tuple[float, ...]:
        return (0.0, *(kink for kink in self.link.kinks if kink != 0))

    @property
    def slopes(self) -> tuple[Any, Any] | None:
        """The slopes of the link above and below zero; None where it is not linear there."""
        if isinstance(self.link, Linear):
            return 1.0, 1.0
        return self.link.slopes[::-1] if isinstance(self.link, Abs | Relu | LeakyRelu) else None

    @property
    def nodes(self) -> int:
        return super().nodes if self.slopes is None else 8

    @property
    def determined(self) -> Float[Array, ""]:
        sides = self.slopes or (0.0, 0.0)
        fixed = sum(jnp.where(jnp.asarray(a) == 0, 0.0, 0.5) for a in sides)
        return jnp.where(jnp.asarray(self.noise) > 0, 0.0, fixed)

    def moments(self, mean: Entry, variance: Entry) -> LabelAverages:
        mean, variance = jnp.broadcast_arrays(
            jnp.asarray(mean, jnp.float64), jnp.asarray(variance, jnp.float64)
        )
        deviation = safe_sqrt(variance)
        inverse = jnp.where(deviation == 0, 0.0, 1 / jnp.where(deviation == 0, 1.0, deviation))
        z, weight = standard_normal_rule(
            [(kink - mean) * inverse for kink in (0.0, *self.link.kinks)]
        )
        y = self.link(mean[..., None] + deviation[..., None] * z)
        first, second, slope = (jnp.sum(weight * part, axis=-1) for part in (y, y**2, y * z))
        return LabelAverages(first, second + self.noise, slope * inverse)

    def draw(self, field: Float[Array, "*batch"], key: PRNGKeyArray) -> Float[Array, "*batch"]:
        return self.link(field) + jnp.sqrt(self.noise) * jax.random.normal(key, field.shape)

    def log_density(self, label: Entry, field: Entry) -> Average:
        noise = self._noise
        return (
            -((label - self.link(jnp.asarray(field))) ** 2) / (2 * noise)
            - jnp.log(2 * np.pi * noise) / 2
        )

    def log_evidence(self, label: Entry, mean: Entry, variance: Entry) -> Average:
        if self.slopes is None:
            return super().log_evidence(label, mean, variance)
        return jnp.logaddexp(*(side[0] for side in self._sides(label, mean, variance)))

    def denoiser(self, label: Entry, field: Entry, variance: Entry) -> Average:
        if self.slopes is None:
            return super().denoiser(label, field, variance)
        (above, shift, _), (below, other, _) = self._sides(label, field, variance)
        share = jax.nn.sigmoid(above - below)
        return share * shift + (1 - share) * other

    def denoiser_slope(self, label: Entry, field: Entry, variance: Entry) -> Average:
        if self.slopes is None:
            return super().denoiser_slope(label, field, variance)
        (above, shift, slope), (below, other, second) = self._sides(label, field, variance)
        share = jax.nn.sigmoid(above - below)
        return share * slope + (1 - share) * second + share * (1 - share) * (shift - other) ** 2

    def label_rule(
        self, field: Entry, variance: Entry
    ) -> tuple[Float[Array, "*batch label"], Float[Array, "*batch label"]]:
        """Nodes and weights of real labels on either side, with the probability that the field lies
        there."""
        field, variance = jnp.broadcast_arrays(
            jnp.asarray(field, jnp.float64), jnp.asarray(variance, jnp.float64)
        )
        # equal steps over all possible labels: exact as long as the step is below half the noise
        if self.slopes is None:
            reach = self.link(
                field[..., None]
                + jnp.sqrt(variance)[..., None] * jnp.linspace(-_REACH, _REACH, 101)
            )
            noise = _REACH * jnp.sqrt(self._noise)
            low, high = jnp.min(reach, axis=-1) - noise, jnp.max(reach, axis=-1) + noise
            step = ((high - low) / (_NODES - 1))[..., None]
            y = low[..., None] + step * jnp.arange(_NODES)
            return y, step * jnp.exp(self.log_evidence(y, field[..., None], variance[..., None]))
        labels, weights = [], []
        for sign, a in zip((1, -1), self.slopes):
            total = self._noise + a**2 * variance
            slope = jnp.where(jnp.asarray(a) == 0, 1.0, a)
            # the label of a field that is zero
            turn = -self._noise * field / (slope * variance)
            cuts = [
                (label - a * field) / jnp.sqrt(total)
                for label in (0.0, jnp.where(jnp.asarray(a) == 0, 0.0, turn))
            ]
            x, weight = standard_normal_rule(cuts, _PANELS)
            y = a * field[..., None] + jnp.sqrt(total)[..., None] * x
            labels.append(y)
            weights.append(
                weight
                * jnp.exp(log_cdf(sign * self._place(a, y, field[..., None], variance[..., None])))
            )
        return jnp.concatenate(labels, axis=-1), jnp.concatenate(weights, axis=-1)

    def averages(
        self, self_overlap: Float[Array, "*batch"], variance: Float[Array, "*batch"]
    ) -> LikelihoodAverages:
        if not isinstance(self.link, Linear):
            return super().averages(self_overlap, variance)
        total = (
            self._noise
            + jnp.broadcast_arrays(jnp.asarray(variance, jnp.float64), jnp.asarray(self_overlap))[0]
        )
        return LikelihoodAverages(1 / total, -(1 + jnp.log(2 * np.pi * total)) / 2)

    @property
    def _noise(self) -> Array:
        return jnp.maximum(jnp.asarray(self.noise), _FLOOR)

    def _place(self, a: Array | float, label: Entry, mean: Entry, variance: Entry) -> Array:
        """Mean over standard deviation of the field given the label, if the link were a nu
        everywhere."""
        noise = self._noise
        return (noise * mean + a * variance * label) / jnp.sqrt(
            noise * variance * (noise + a**2 * variance)
        )

    def _sides(
        self, label: Entry, mean: Entry, variance: Entry
    ) -> list[tuple[Array, Array, Array]]:
        """ln Z, g and dg/dw for fields above and below zero, given that the field lies there."""
        label, mean, variance = (jnp.asarray(x) for x in (label, mean, variance))
        found = []
        for sign, a in zip((1, -1), self.slopes or ()):
            noise = self._noise.astype(mean.dtype)
            total = noise + a**2 * variance
            miss = label - a * mean
            u = sign * self._place(a, label, mean, variance)
            rate = hazard(u)
            log_share = log_cdf(u) - miss**2 / (2 * total) - jnp.log(2 * np.pi * total) / 2
            shift = a * miss / total + sign * jnp.sqrt(noise / (total * variance)) * rate
            slope = -(a**2) / total - noise / (total * variance) * rate * hazard_excess(u)
            found.append((log_share, shift, slope))
        return found
