"""Features given the input's projection on the spike: their mean, their linear part, and the rest.

A feature activation(w.x + u k) with k = v.x the projection on the spike v and w.x of variance c^2 behaves, given k, like
mu_0(k) + mu_1(k) w.x/c + mu_2(k) xi with xi fresh noise.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.gaussian import Activation, standard_normal_rule
from orderparam.gaussian.quadrature import LEAN
from orderparam.losses import Labels, RealLabels

Entry = Float[Array, "*#batch"]
Average = Float[Array, "*batch"]


class ConditionalMoments(NamedTuple):
    """mu_0 = E s(h + c z), mu_1 = E z s(h + c z), and mu_2^2 = E (s - mu_0 - mu_1 z)^2, z ~ N(0, 1)."""

    mean: Average
    linear: Average
    rest: Average


@eqx.filter_jit
def moments(activation: Activation, shift: Entry, norm: Entry) -> ConditionalMoments:
    """Elementwise in the shift h and the norm c > 0."""
    shift, norm = jnp.broadcast_arrays(shift, norm)
    z, weight = standard_normal_rule([(kink - shift) / norm for kink in {0.0, *activation.kinks}], LEAN)
    value = activation(shift[..., None] + norm[..., None] * z)
    mean, linear = jnp.sum(weight * value, axis=-1), jnp.sum(weight * value * z, axis=-1)
    rest = jnp.sum(weight * (value - mean[..., None] - linear[..., None] * z) ** 2, axis=-1)
    return ConditionalMoments(mean, linear, rest)


def projection_rule(labels: Labels, overlap: Float[Array, ""]) -> tuple[Float[Array, "node"], Float[Array, "node"]]:
    """Nodes k and weights of the standard normal law, cut where the label changes abruptly as overlap -> 1."""
    kinks = labels.link.kinks if isinstance(labels, RealLabels) else ()
    steep = jnp.where(jnp.abs(overlap) < 0.1, 0.1, overlap)
    return standard_normal_rule([jnp.zeros(()), *(kink / steep for kink in kinks if kink != 0)], LEAN)
