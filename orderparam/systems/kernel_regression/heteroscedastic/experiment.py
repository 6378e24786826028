"""Regression on Gaussian features whose ridge and label noise depend on the region of every input, really done."""

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.systems.kernel_regression.heteroscedastic.model import HeteroscedasticRegression
from orderparam.systems.kernel_regression.learning_curve import MeasuredLearningCurve, solved
from orderparam.systems.kernel_regression.spectrum.experiment import draw_design


@experiment
def heteroscedastic_design(system: HeteroscedasticRegression, key: PRNGKeyArray) -> MeasuredLearningCurve:
    """f(x) = k_x^T (K + D)^-1 y, D = diag(T(x_mu)), on n_train inputs with independent standard Gaussian features.

    Each input falls into a region, which decides its ridge T(x) and the variance s2(x) of its label noise; all else as in
    `gaussian_design`. Raises `ValueError` as that does.
    """
    region_key, design_key = jax.random.split(key)
    region = jax.random.choice(region_key, system.weights.size, (system.size("n_train"),), p=system.weights)
    ridges = system.temperature + system.extra_temperature
    noises = system.noise + system.extra_noise
    measured = draw_design(system.spectrum, ridges[region], noises[region], design_key, float(jnp.min(ridges)))
    return solved(measured, jnp.min(ridges))
