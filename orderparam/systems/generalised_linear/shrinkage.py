"""What l1 and l2 penalties make of weights that are seen through Gaussian noise."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.gaussian.quadrature import standard_normal_rule
from orderparam.priors import Prior

Scalar = Float[Array, ""]


class Shrunk(NamedTuple):
    """error: E (w - w0)^2. overlap: E w w0. power: E w^2. support: P(w != 0). response: E dw/db."""

    error: Scalar
    overlap: Scalar
    power: Scalar
    support: Scalar
    response: Scalar


def shrunk(
    prior: Prior, alignment: Scalar, power: Scalar, stiffness: Scalar, l1: Scalar | float, ridge: Scalar | float
) -> Shrunk:
    """w = sign(b) max(|b| - l1, 0) / (stiffness + ridge), b = alignment w0 + sqrt(power) z, w0 from the prior.

    b is a mixture of Gaussians, cut at -l1 and l1.
    """
    shares, means, variances = prior.components
    centre, total = alignment * means, alignment**2 * variances + power
    spread = jnp.sqrt(total)
    z, weight = standard_normal_rule([(side - centre) / spread for side in (-l1, l1)])
    b = centre[:, None] + spread[:, None] * z
    found = jnp.sign(b) * jnp.maximum(jnp.abs(b) - l1, 0.0) / (stiffness + ridge)
    true = means[:, None] + (alignment * variances / total)[:, None] * (b - centre[:, None])
    weight = shares[:, None] * weight
    left = jnp.sum(shares * variances * power / total)
    support = jnp.sum(weight * (jnp.abs(b) > l1))
    missed = jnp.sum(weight * (found - true) ** 2) + left
    return Shrunk(missed, jnp.sum(weight * found * true), jnp.sum(weight * found**2), support, support / (stiffness + ridge))
