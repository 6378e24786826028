"""Hermite powers of a target, measured on random samples."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.systems.multi_index.formulas import read
from orderparam.systems.multi_index.learnability.model import ORDERS, HermitePower, WeakLearnability
from orderparam.systems.multi_index.rules import hermite_values


@experiment
def measured_hermite_power(system: WeakLearnability, key: PRNGKeyArray) -> HermitePower:
    """From samples (z, y): products of the averages of y h_a(z) over two halves."""
    g = read(system.target)
    z = np.asarray(jax.random.normal(key, (2, system.samples // 2, g.dimension)))
    features = np.ones((2, 1, z.shape[1]))
    degrees = np.zeros(1, int)
    for i in range(g.dimension):
        h = np.moveaxis(hermite_values(ORDERS + 1, z[..., i]), 0, 1)
        features = (features[:, :, None] * h[:, None]).reshape(2, -1, z.shape[1])
        degrees = np.add.outer(degrees, np.arange(ORDERS + 1)).ravel()
        features, degrees = features[:, degrees <= ORDERS], degrees[degrees <= ORDERS]
    means = np.mean(features * g(z)[:, None], axis=-1)
    return HermitePower(jnp.asarray([np.sum((means[0] * means[1])[degrees == k]) for k in range(1, ORDERS + 1)]))
