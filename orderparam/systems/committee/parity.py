"""Spectral estimation for a parity of two units, in theory and measured."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.channels.outlier import best_weight, leading_vector, outlier
from orderparam.core.needs import equal
from orderparam.core.result import Result
from orderparam.core.verb import experiment, theory
from orderparam.systems.committee.model import Committee

# Spectral estimation for a parity of two units: labels y = sign(z_1 z_2) have
# E[z z^T - 1 | y] = (2 y / pi) [[0, 1], [1, 0]].
#
# Along (z_1 + z_2)/sqrt(2) and (z_1 - z_2)/sqrt(2) fields have the mean square 1 +- 2 y / pi. Two
# matrices, each with the best weights for its direction, therefore have one outlier each, from
# n/d = pi^2/4 on (Mondelli, Montanari 2018; Troiani et al. 2024).

# Mean squares of the fields for y = -1 and 1, in each direction.
_POWERS = ((1 - 2 / np.pi, 1 + 2 / np.pi), (1 + 2 / np.pi, 1 - 2 / np.pi))


class SpectralCommittee(Result):
    """Spectral estimate of a parity of two units.

    Fields:
        overlap: Q_11 of the best estimate that the eigenvectors allow, the mean of their squared
            cosines with the two directions.
        eigenvalue: largest eigenvalue, the mean of both matrices.
        converged: whether the equations were solved, or the eigenvalue is finite.
    """

    overlap: Float[Array, ""]
    eigenvalue: Float[Array, ""]
    converged: Bool[Array, ""]


_PAIR = {"rule": equal("parity"), "hidden": equal(2)}


@theory(differentiable=False, needs=_PAIR)
def spectral(system: Committee) -> SpectralCommittee:
    r"""Overlap of the leading eigenvectors of two weighted covariance matrices with the weights of
    a parity of two units, as d grows.

    The labels $y = \mathrm{sign}(z_1 z_2)$ satisfy

    $$ E[z z^T - 1 \mid y] = \frac{2 y}{\pi} \begin{pmatrix} 0 & 1 \\ 1 & 0 \end{pmatrix} $$

    The covariance of the inputs weighted by $1 - 1/(1 \pm 2 y/\pi)$ therefore has one outlier along
    $w_1 \pm w_2$ if $\alpha > \pi^2/4$ ($\alpha$ = `sample_ratio`). The squared cosine is the
    `overlap`; both matrices have the same law.

    Raises:
        ValueError: for anything but a parity of two units. Accuracy: 1e-8. This theory cannot be
            differentiated.

    Source: Mondelli, Montanari (2018); Troiani, Dandi, Defilippis, Zdeborová, Loureiro, Krzakala
    (2024).

    >>> found = spectral(Committee(4.0, rule="parity"))
    >>> round(float(found.overlap), 6)
    0.429204
    """
    found = outlier(jnp.asarray(_POWERS[0]), jnp.full(2, 0.5), system.sample_ratio)
    return SpectralCommittee(
        overlap=found.cosine**2, eigenvalue=found.eigenvalue, converged=found.converged
    )


@experiment(needs=_PAIR)
def leading_eigenvectors(system: Committee, key: PRNGKeyArray) -> SpectralCommittee:
    """Measured overlap of the leading eigenvectors of the two matrices of `spectral` on one random
    problem.

    The eigenvectors are found by Lanczos iteration.

    Raises:
        ValueError: for anything but a parity of two units, or a number of examples that rounds to
            zero.

    Source: Mondelli, Montanari (2018); Troiani, Dandi, Defilippis, Zdeborová, Loureiro, Krzakala
    (2024).

    >>> import jax
    >>> system = Committee(6.0, rule="parity", input_dim=100)
    >>> found = leading_eigenvectors(system, jax.random.key(0))
    >>> bool(0 < found.overlap < 1)
    True
    """
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(
            f"Committee.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at input_dim = {d}"
        )
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
    return SpectralCommittee(
        overlap=jnp.asarray(np.mean(squares)),
        eigenvalue=jnp.asarray(eigenvalue),
        converged=jnp.asarray(bool(np.isfinite(eigenvalue))),
    )
