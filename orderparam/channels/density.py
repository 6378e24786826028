"""Labels with a person's own law P(y | nu)."""

from collections.abc import Callable
from typing import Any, Self

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.channels.base import Average, Entry, LabelAverages
from orderparam.channels.numerical import NumericalLikelihood
from orderparam.core.system import parameter, structure
from orderparam.gaussian.quadrature import FINE, standard_normal_rule
from orderparam.gaussian.rules import unit_rule


class DensityLabels(NumericalLikelihood):
    """ln P(y | nu) = function(y, nu), any function that JAX can trace; labels are a finite set, or
    an interval (`on_interval`).

    places: fields at which P changes abruptly. The function need not be normalised: P is normalised
    over the labels.
    """

    function: Callable[[Any, Any], Any] = structure("ln P(y | nu), elementwise in both")
    labels: Float[Array, "label"] = parameter(
        "every label there is, or the nodes of a quadrature over labels"
    )
    weights: Float[Array, "label"] | None = parameter(
        "weights of the quadrature over labels", minimum=0, default=None
    )
    places: tuple[float, ...] = structure("fields at which P changes abruptly", default=(0.0,))

    @classmethod
    def on_interval(
        cls,
        function: Callable[[Any, Any], Any],
        low: float,
        high: float,
        nodes: int = 200,
        places: tuple[float, ...] = (0.0,),
    ) -> Self:
        """Real labels between `low` and `high`, by Gauss-Legendre nodes. Raises `ValueError` unless
        low < high."""
        if not low < high:
            raise ValueError(f"low = {low}: must be below high = {high}")
        x, w = unit_rule(nodes)
        return cls(function, low + (high - low) * x, (high - low) * w, places)

    @property
    def kinks(self) -> tuple[float, ...]:
        return self.places or (0.0,)

    @property
    def _weights(self) -> Array:
        return jnp.ones_like(self.labels) if self.weights is None else self.weights

    def log_density(self, label: Entry, field: Entry) -> Average:
        height = self.function(self.labels, jnp.asarray(field)[..., None])
        return self.function(label, field) - jax.scipy.special.logsumexp(
            height, axis=-1, b=self._weights
        )

    def label_rule(
        self, field: Entry, variance: Entry
    ) -> tuple[Float[Array, "*batch label"], Float[Array, "*batch label"]]:
        evidence = jnp.exp(
            self.log_evidence(
                self.labels, jnp.asarray(field)[..., None], jnp.asarray(variance)[..., None]
            )
        )
        return jnp.broadcast_to(self.labels, evidence.shape), self._weights * evidence

    def moments(self, mean: Entry, variance: Entry) -> LabelAverages:
        mean, deviation = (
            jnp.asarray(mean, jnp.float64)[..., None],
            jnp.sqrt(jnp.asarray(variance))[..., None],
        )
        z, weight = standard_normal_rule(
            [((kink - mean) / deviation)[..., 0] for kink in self.kinks], FINE
        )
        density = self._weights * jnp.exp(
            self.log_density(self.labels, (mean + deviation * z)[..., None])
        )
        first, second = (jnp.sum(density * self.labels**n, axis=-1) for n in (1, 2))
        moments = (jnp.sum(weight * part, axis=-1) for part in (first, second, first * z))
        mean_label, power, slope = moments
        return LabelAverages(mean_label, power, slope / deviation[..., 0])

    def draw(self, field: Float[Array, "*batch"], key: PRNGKeyArray) -> Float[Array, "*batch"]:
        chance = self.log_density(self.labels, field[..., None]) + jnp.log(self._weights)
        return self.labels[jax.random.categorical(key, chance, axis=-1)]
