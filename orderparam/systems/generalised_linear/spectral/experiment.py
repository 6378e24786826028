"""The leading eigenvector of a drawn problem, by Lanczos iteration."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from orderparam.channels.outlier import SpectralEstimate, leading_vector
from orderparam.core.verb import experiment
from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear
from orderparam.systems.generalised_linear.spectral.theory import label_weight, sizes_seen


@experiment
def leading_eigenvector(system: GeneralisedLinear, key: PRNGKeyArray) -> SpectralEstimate:
    """Raises `ValueError` where the number of samples rounds to nothing, and where `spectral` does."""
    sizes_seen(system)
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(f"GeneralisedLinear.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at input_dim = {d}")
    weight_key, matrix_key, label_key = jax.random.split(key, 3)
    true = system.prior.draw(weight_key, (d,))
    matrix = jax.random.normal(matrix_key, (n, d))
    label = system.labels.draw(matrix @ true / np.sqrt(d), label_key)
    value, vector = leading_vector(matrix / np.sqrt(d), label_weight(system, label))
    w0 = np.asarray(true)
    cosine = abs(float(w0 @ vector)) / np.linalg.norm(w0)
    return SpectralEstimate(
        cosine=jnp.asarray(cosine),
        eigenvalue=jnp.asarray(value),
        edge=jnp.asarray(jnp.nan),
        converged=jnp.asarray(bool(np.isfinite(value))),
    )
