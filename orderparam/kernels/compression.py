"""Fewer levels with the same learning curves: Gauss quadrature over the eigenvalues of a
spectrum."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from orderparam.kernels.spectrum import Spectrum

_NODES = 7  # number of nodes per factor e of the eigenvalue; see `compress` for the accuracy


def compress(spectrum: Spectrum) -> Spectrum:
    """A spectrum of a few hundred levels whose learning curves are those of the given one to
    rounding, whatever its size.

    All sums of a learning curve are of the form sum_k m_k f(log lambda_k) or sum_k Y_k f(log
    lambda_k) with f a power of L = 1/(1 + kappa/lambda) or of 1 - L, analytic but for poles at log
    lambda = log kappa ± i pi. In each interval of length 1 of log lambda, 7 nodes of the Gauss rule
    of the measure sum_k m_k delta(log lambda_k) reproduce such a sum with a relative error of about
    12.6^-14 = 4e-16; 7 more, of multiplicity 0, do so for the target power. Weights are positive,
    and trace and total power are kept to the same accuracy. Levels are in decreasing order and no
    longer correspond to single modes.

    Concrete arrays only (not under `jit`); O(levels) work.
    """
    eigenvalues = np.asarray(spectrum.eigenvalues)
    positive = eigenvalues > 0
    logs = np.log(eigenvalues[positive])
    counts, power = (
        np.asarray(spectrum.multiplicities)[positive],
        np.asarray(spectrum.target_power)[positive],
    )
    interval = np.floor(logs.max() - logs).astype(int) if logs.size else np.zeros(0, int)
    order = np.argsort(interval, kind="stable")
    starts = np.flatnonzero(np.diff(interval[order], prepend=-1))
    levels = [np.zeros((0, 3))]
    for members in np.split(order, starts[1:]) if logs.size else []:
        nodes, weights = _gauss_rule(logs[members], counts[members])
        levels.append(np.stack([nodes, weights, np.zeros_like(nodes)], axis=1))
        nodes, weights = _gauss_rule(logs[members], power[members])
        levels.append(np.stack([nodes, np.zeros_like(nodes), weights], axis=1))
    table = np.concatenate(levels)
    table = table[np.argsort(-table[:, 0])]
    null = np.array(
        [
            np.sum(np.asarray(part)[~positive])
            for part in (spectrum.multiplicities, spectrum.target_power)
        ]
    )
    if null.any():
        table = np.concatenate([table, [[-np.inf, *null]]])
    return Spectrum(
        np.exp(table[:, 0]), table[:, 2], table[:, 1], spectrum.tail, spectrum.tail_power
    )


def _gauss_rule(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the Gauss rule of a discrete measure, exact for polynomials of degree 2
    * nodes - 1.

    Lanczos with full reorthogonalisation gives the Jacobi matrix (Golub and Welsch 1969). A measure
    with no more points than nodes is kept.
    """
    points, weights = points[weights > 0], weights[weights > 0]
    if points.size <= _NODES:
        return points, weights
    centre = points.mean()
    shifted = points - centre
    vectors = [np.sqrt(weights / weights.sum())]
    diagonal, below = [], []
    for _ in range(_NODES):
        image = shifted * vectors[-1]
        diagonal.append(vectors[-1] @ image)
        for _ in range(2):
            for vector in vectors:
                image = image - (vector @ image) * vector
        norm = np.linalg.norm(image)
        if norm < 1e-13:  # the measure has fewer distinct points than nodes
            break
        below.append(norm)
        vectors.append(image / norm)
    size = len(diagonal)
    nodes, matrix = np.linalg.eigh(
        np.diag(diagonal) + np.diag(below[: size - 1], 1) + np.diag(below[: size - 1], -1)
    )
    return nodes + centre, weights.sum() * matrix[0] ** 2


_MANY = 4096  # number of levels above which gathering saves time
_SPAN = 64  # intervals of length 1 of log lambda, down to e^-64 of the largest eigenvalue
_BLOCK = 1024
_POINTS = 14  # Chebyshev points in each interval: error 12.6^-14 = 4e-16

_ANGLES = np.pi * (np.arange(_POINTS) + 0.5) / _POINTS
# values at the points -> coefficients of T_0 .. T_13
_COEFFICIENTS = np.cos(np.outer(np.arange(_POINTS), _ANGLES)) * 2 / _POINTS
_COEFFICIENTS[0] /= 2


def gathers(spectrum: Spectrum) -> Bool[Array, ""] | None:
    """True if `gathered` keeps the learning curves, and None where there are too few levels for it
    to save time."""
    eigenvalues = spectrum.eigenvalues
    if eigenvalues.shape[0] < _MANY:
        return None
    smallest = jnp.min(jnp.where(eigenvalues > 0, eigenvalues, jnp.inf))
    return smallest > jnp.max(eigenvalues) * np.exp(-_SPAN)


def gathered(spectrum: Spectrum) -> Spectrum:
    """A spectrum of 897 levels with the same learning curves as a given one with more levels, also
    under `jit`.

    As in `compress`, in an interval of length 1 of log lambda every summand equals, to rounding,
    the polynomial through its values at 14 Chebyshev points. Each level is replaced by these
    points, with the values there of the polynomials that are one at one point and zero at the
    others as weights. Differentiable. Eigenvalues reach down to e^-64 of the largest: see
    `gathers`.
    """
    eigenvalues = spectrum.eigenvalues
    size = eigenvalues.shape[0]
    positive = eigenvalues > 0
    logs = jnp.log(jnp.where(positive, eigenvalues, 1.0))
    top = jax.lax.stop_gradient(jnp.max(jnp.where(positive, logs, -jnp.inf)))
    depth = top - logs
    cell = jnp.clip(jnp.floor(jax.lax.stop_gradient(depth)), 0, _SPAN - 1).astype(int)
    x = jnp.clip(1 - 2 * (depth - cell), -1.0, 1.0)
    parts = jnp.stack([spectrum.target_power, spectrum.multiplicities], axis=1)

    def block(total: Array, levels: tuple[Array, Array, Array]) -> tuple[Array, None]:
        """Sums of T_0(x) .. T_13(x) over the levels of each interval, weighted by power and
        count."""
        x, cell, parts = levels
        powers = [jnp.ones_like(x), x]
        for _ in range(_POINTS - 2):
            powers.append(2 * x * powers[-1] - powers[-2])
        table = jnp.stack(powers, axis=1)
        new = [jax.ops.segment_sum(part[:, None] * table, cell, _SPAN) for part in parts.T]
        return total + jnp.stack(new), None

    # One block at a time: if the compiler fused them into one sum over all levels, every entry
    # would be computed again.
    found = (x, cell, jnp.where(positive[:, None], parts, 0.0))
    blocks = jax.tree.map(lambda part: _blocks(part, -(-size // _BLOCK)), found)
    moments, _ = jax.lax.scan(block, jnp.zeros((2, _SPAN, _POINTS)), blocks)
    power, count = (moments @ jnp.asarray(_COEFFICIENTS)).reshape(2, -1)
    lost_power, lost_count = jnp.sum(jnp.where(positive[:, None], 0.0, parts), axis=0)
    points = jnp.exp(top - (jnp.arange(_SPAN)[:, None] + (1 - np.cos(_ANGLES)) / 2)).ravel()
    return Spectrum(
        jnp.append(points, 0.0),
        jnp.append(power, lost_power),
        jnp.append(count, lost_count),
        spectrum.tail,
        spectrum.tail_power,
    )


def _blocks(part: Array, count: int) -> Array:
    """The array in blocks along its first axis, the last one filled with zeros."""
    filled = jnp.pad(part, [(0, count * _BLOCK - part.shape[0])] + [(0, 0)] * (part.ndim - 1))
    return filled.reshape(count, _BLOCK, *part.shape[1:])
