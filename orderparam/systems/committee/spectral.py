"""Spectral estimation for a parity of two units: labels y = sign(z_1 z_2) have E[z z^T - 1 | y] = (2 y / pi) [[0, 1], [1, 0]].

Along (z_1 + z_2)/sqrt(2) and (z_1 - z_2)/sqrt(2) fields have the power 1 +- 2 y / pi: two matrices, each with the best weights of
its direction, have one outlier each, from n/d = pi^2/4 on (Mondelli, Montanari 2018; Troiani et al. 2024).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.channels.outlier import best_weight, leading_vector, outlier
from orderparam.core.result import Result
from orderparam.core.verb import experiment, theory
from orderparam.systems.committee.model import Committee

_POWERS = ((1 - 2 / np.pi, 1 + 2 / np.pi), (1 + 2 / np.pi, 1 - 2 / np.pi))  # of y = -1, 1, for each direction


class SpectralCommittee(Result):
    """overlap: Q_11 of the best estimate that the eigenvectors allow, the mean of their squared cosines with the two directions.

    eigenvalue: the largest, mean of both matrices."""

    overlap: Float[Array, ""]
    eigenvalue: Float[Array, ""]
    converged: Bool[Array, ""]


def _pair(system: Committee, **options: object) -> None:
    if system.rule != "parity" or system.hidden != 2:
        raise ValueError(f"Committee.rule = {system.rule!r} of {system.hidden} units: must be a parity of 2 here")


@theory(differentiable=False, check=_pair)
def spectral(system: Committee) -> SpectralCommittee:
    """Both matrices have the same law. Raises `ValueError` for anything but a parity of two."""
    found = outlier(jnp.asarray(_POWERS[0]), jnp.full(2, 0.5), system.sample_ratio)
    return SpectralCommittee(found.cosine**2, found.eigenvalue, found.converged)


@experiment(check=_pair)
def leading_eigenvectors(system: Committee, key: PRNGKeyArray) -> SpectralCommittee:
    """By Lanczos iteration on a drawn problem. Raises `ValueError` where no sample is left, and where `spectral` does."""
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(f"Committee.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at input_dim = {d}")
    weight_key, matrix_key = jax.random.split(key)
    draw = jax.random.normal if system.weights == "gaussian" else jax.random.rademacher
    weights = np.asarray(draw(weight_key, (d, 2)), float)
    matrix = jax.random.normal(matrix_key, (n, d)) / np.sqrt(d)
    up = np.prod(np.asarray(matrix) @ weights, axis=1) > 0
    values, squares = [], []
    for powers, sign in zip(_POWERS, (1, -1)):
        value, vector = leading_vector(matrix, best_weight(jnp.where(up, powers[1], powers[0])))
        direction = weights[:, 0] + sign * weights[:, 1]
        values.append(value)
        squares.append((vector @ direction) ** 2 / (direction @ direction))
    eigenvalue = np.mean(values)
    return SpectralCommittee(jnp.asarray(np.mean(squares)), jnp.asarray(eigenvalue), jnp.asarray(bool(np.isfinite(eigenvalue))))
