"""Spectral estimation for a parity of two units: its theory, and its overlap on drawn examples."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.channels.outlier import best_weight, leading_vector, outlier
from orderparam.core.needs import equal
from orderparam.core.result import Result
from orderparam.core.verb import experiment, theory
from orderparam.systems.committee.model import Committee

# The labels y = sign(z_1 z_2) of a parity of two units have the conditional second moments
# E[z z^T - 1 | y] = (2 y / pi) [[0, 1], [1, 0]].
#
# Given the label, the fields along (z_1 + z_2)/sqrt(2) and (z_1 - z_2)/sqrt(2) therefore have the
# mean squares 1 + 2 y / pi and 1 - 2 y / pi. For each of the two directions the examples are
# weighted with the function of the label that is best for this direction. Each of the two weighted
# covariance matrices of the inputs has one eigenvalue outside the bulk (an outlier) for n/d above
# pi^2/4 (Mondelli, Montanari 2018; Troiani et al. 2024).

# Mean squares of the field for y = -1 and y = 1: first along z_1 + z_2, then along z_1 - z_2.
_POWERS = ((1 - 2 / np.pi, 1 + 2 / np.pi), (1 + 2 / np.pi, 1 - 2 / np.pi))


class SpectralCommittee(Result):
    """Spectral estimate of a parity of two units.

    Fields:
        overlap: Q_11 of the best estimate of the weights that the two leading eigenvectors allow.
            It is the mean of the squared cosines of the eigenvectors with w_1 + w_2 and w_1 - w_2.
        eigenvalue: largest eigenvalue, averaged over both matrices.
        converged: whether the equations of the theory were solved, or whether the measured
            eigenvalue is finite.
    """

    overlap: Float[Array, ""]
    eigenvalue: Float[Array, ""]
    converged: Bool[Array, ""]


_PAIR = {"rule": equal("parity"), "hidden": equal(2)}


@theory(differentiable=False, needs=_PAIR)
def spectral(system: Committee) -> SpectralCommittee:
    r"""Overlap of the leading eigenvectors of two weighted covariance matrices with the weights of
    a parity of two units, as d grows.

    The labels $y = \mathrm{sign}(z_1 z_2)$ of the fields $z_k = w_k \cdot x$ satisfy

    $$ E[z z^T - 1 \mid y] = \frac{2 y}{\pi} \begin{pmatrix} 0 & 1 \\ 1 & 0 \end{pmatrix} $$

    The covariance matrix of the inputs, with example weights $1 - 1/(1 \pm 2 y/\pi)$, therefore has
    one eigenvalue outside the bulk if $\alpha > \pi^2/4$ ($\alpha$ = `sample_ratio`). `overlap` is
    the squared cosine of its eigenvector with $w_1 \pm w_2$, which is the same for both signs.

    Raises:
        ValueError: for anything but a parity of two units.

    Accuracy: 1e-8. This theory cannot be differentiated.

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
    """Overlap of the leading eigenvectors of the two matrices of `spectral` with the weights,
    measured on one random problem.

    The matrices are those of n = `sample_ratio` * `input_dim` random examples, n rounded. Lanczos
    iteration finds their leading eigenvectors.

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
            f"Committee.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at "
            f"input_dim = {d}"
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
