"""The leading eigenvector of a drawn problem, by Lanczos iteration."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from orderparam.core.verb import experiment
from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear
from orderparam.systems.generalised_linear.spectral.theory import SpectralEstimate, label_weight, sizes_seen


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
    x, weight, w0 = np.asarray(matrix), np.asarray(label_weight(system, label)[0]), np.asarray(true)
    product = LinearOperator((d, d), matvec=lambda v: x.T @ (weight * (x @ np.ravel(v))) / n, dtype=float)
    try:
        values, vectors = eigsh(product, k=1, which="LA", tol=1e-8, v0=np.ones(d), maxiter=200 * d)
    except ArpackNoConvergence as error:
        values, vectors = np.array([np.nan]), error.eigenvectors[:, :1] if error.eigenvectors.size else np.zeros((d, 1))
    cosine = abs(float(w0 @ vectors[:, 0])) / np.linalg.norm(w0)
    return SpectralEstimate(
        cosine=jnp.asarray(cosine),
        eigenvalue=jnp.asarray(values[0]),
        edge=jnp.asarray(jnp.nan),
        converged=jnp.asarray(bool(np.isfinite(values[0]))),
    )
