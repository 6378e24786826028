"""Features given the input's projection on the spike: their mean, their linear part, and the rest.

A feature activation(w.x + u k) with k = v.x the projection on the spike v and w.x of variance c^2 behaves, given k, like
mu_0(k) + mu_1(k) w.x/c + mu_2(k) xi with xi fresh noise.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.gaussian import Activation, standard_normal_rule
from orderparam.gaussian.quadrature import Panels
from orderparam.losses import Labels, RealLabels

# For averages over k, over the features given k, and over fields given k. Errors that follow from them are known to 1e-8 relative
# with overlaps up to 0.9999 and spikes up to 30 bulk norms, and to 1e-11 in milder cases.
PANELS = Panels((1.0, 2.2, 3.8, 6.0, 8.5), gradings=3, nodes=10)

Entry = Float[Array, "*#batch"]
Average = Float[Array, "*batch"]


class Moments(NamedTuple):
    """mu_0 = E s(h + c z), mu_1 = E z s(h + c z), and mu_2^2 = E (s - mu_0 - mu_1 z)^2, z ~ N(0, 1)."""

    mean: Average
    linear: Average
    rest: Average


def moments(activation: Activation, shift: Entry, norm: Entry) -> Moments:
    """Elementwise in the shift h and the norm c > 0."""
    shift, norm = jnp.broadcast_arrays(shift, norm)
    z, weight = standard_normal_rule([(kink - shift) / norm for kink in {0.0, *activation.kinks}], PANELS)
    value = activation(shift[..., None] + norm[..., None] * z)
    mean, linear = jnp.sum(weight * value, axis=-1), jnp.sum(weight * value * z, axis=-1)
    rest = jnp.sum(weight * (value - mean[..., None] - linear[..., None] * z) ** 2, axis=-1)
    return Moments(mean, linear, rest)


def projection_rule(labels: Labels, overlap: Float[Array, ""]) -> tuple[Float[Array, "node"], Float[Array, "node"]]:
    """Nodes k and weights of the standard normal law, cut where the label changes abruptly as overlap -> 1."""
    kinks = labels.link.kinks if isinstance(labels, RealLabels) else ()
    steep = jnp.where(jnp.abs(overlap) < 0.1, 0.1, overlap)
    return standard_normal_rule([jnp.zeros(()), *(kink / steep for kink in kinks if kink != 0)], PANELS)
