"""Fewer levels with the same learning curves: Gauss quadrature over the eigenvalues of a spectrum."""

import numpy as np

from orderparam.kernels.spectrum import Spectrum

_NODES = 7  # for each factor e of eigenvalue; see `compress` for the accuracy


def compress(spectrum: Spectrum) -> Spectrum:
    """A spectrum of a few hundred levels whose learning curves are those of the given one to
    rounding, whatever its size.

    All sums of a learning curve are of the form sum_k m_k f(log lambda_k) or sum_k Y_k f(log
    lambda_k) with f a power of L = 1/(1 + kappa/lambda) or of 1 - L, analytic but for poles at log
    lambda = log kappa ± i pi. In each interval of length 1 of log lambda, 7 nodes of the Gauss rule
    of the measure sum_k m_k delta(log lambda_k) reproduce such a sum with a relative error of about
    12.6^-14 = 4e-16; 7 more, of multiplicity 0, do so for the target power. Weights are positive,
    and trace and total power are kept to the same accuracy. Levels are in decreasing order; single
    modes are no longer to be told apart.

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
    of as few points is kept.
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
