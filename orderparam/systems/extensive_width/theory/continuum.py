"""A continuum of features with power-law read-outs: sums over features as integrals, in the limit of infinite dimension.

Sums become J(s) = int_0^1 W(e^s x^(-2 beta)) dx = int_0^inf W(e^(s + 2 beta tau)) e^-tau dtau, an integral that stays
smooth for every beta, homogeneous read-outs (beta = 0) included. This form is derived for this package, not in Nguyen and
Barbier 2026.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.systems.extensive_width.theory.channel import ActivationChannel


def _panels() -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre panels on [0, 45], narrow at 0, where the spinodal is near."""
    x, w = np.polynomial.legendre.leggauss(20)
    edges = np.concatenate([[0.0], np.geomspace(0.01, 45.0, 22)])
    half = np.diff(edges) / 2
    nodes = (edges[:-1, None] + half[:, None] * (1 + x)).ravel()
    return nodes, (half[:, None] * w).ravel() * np.exp(-nodes)


_TAU, _WEIGHT = _panels()


def mean_unexplained(tables: ActivationChannel, s: Float[Array, ""], beta: Float[Array, ""] | float) -> Float[Array, ""]:
    """int_0^1 W(e^s x^(-2 beta)) dx for s at or above the threshold."""
    return jnp.sum(_WEIGHT * tables.state(s + 2 * beta * _TAU, tables.bayes).unexplained)


class Continuum(eqx.Module):
    """Features x in (0, 1] with lambda = e^s x^(-2 beta); s = ln of the weakest feature's signal plays the part of the level."""

    tables: ActivationChannel
    beta: Float[Array, ""] | float
    noise: Float[Array, ""] | float

    def learned(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """k_c / k."""
        gap = jnp.minimum(s - self.tables.bayes.threshold, 0.0)
        return jnp.where(gap < 0, jnp.exp(gap / jnp.where(self.beta > 0, 2 * self.beta, 1e-300)), 1.0)

    def means(self, s: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Averages of W and M over the features."""
        fraction = self.learned(s)
        strongest = jnp.maximum(s, self.tables.bayes.threshold)
        state = self.tables.state(strongest + 2 * self.beta * _TAU, self.tables.bayes)
        unlearned = jnp.exp(s) * self.tables.total * (1 - fraction ** (1 - 2 * self.beta)) / (1 - 2 * self.beta)
        w_mean = fraction * jnp.sum(_WEIGHT * state.unexplained) + unlearned
        m_mean = fraction * jnp.sum(_WEIGHT * state.potential) - unlearned
        return w_mean, m_mean

    def samples(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """alpha / gamma of the state."""
        return jnp.exp(s) * self.noise / (1 - 2 * self.beta) + self.means(s)[0]

    def error(self, s: Float[Array, ""]) -> Float[Array, ""]:
        return self.means(s)[0] * (1 - 2 * self.beta) * jnp.exp(-s)

    def concave(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """c(s), whose concave envelope holds the Bayes-optimal states (see `transitions`)."""
        return self.means(s)[1] - jnp.exp(s) * self.noise / (1 - 2 * self.beta)

    def levels(self, count: int) -> Float[Array, "level"]:
        """From well below the first learned feature (at strongly different v) to well above the last."""
        threshold = self.tables.bayes.threshold
        below = threshold - 8.0 * jnp.linspace(1.0, 0.0, count // 2) ** 2
        above = threshold + 30.0 * jnp.linspace(0.0, 1.0, count - count // 2 + 1)[1:] ** 2
        return jnp.concatenate([below, above])
