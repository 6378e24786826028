"""What the label tells of hidden fields of which an estimate knows a part: the moments of Troiani et al. 2024 (arXiv:2405.15480)
between the first stair and perfect knowledge.

An estimate of overlap Q (index, index), 0 <= Q <= 1, knows omega ~ N(0, Q) of the fields z = omega + sqrt(1 - Q) t, t ~ N(0, 1).
With m = E[t | y, omega] the labels measure the weights with the precision qh = (n/d) (1 - Q)^(-1/2) E[m m^T] (1 - Q)^(-1/2). Of
the directions that it does not know, Q = 0, they show those of m at once, and those of G = E[t t^T - 1 | y, omega] from
n/d = 1 / lambda_max(X -> E[G X G]) on.

By sampling: at each omega of a Sobol sequence random t with equal labels, or with neighbouring ones, are multiplied with one
another, never with themselves, so that squares of conditional averages come without bias.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from orderparam.gaussian.target import Target
from orderparam.systems.multi_index.learnability.conditional import LabelMoments
from orderparam.systems.multi_index.learnability.hermite_tensors import complement, in_axes
from orderparam.systems.multi_index.learnability.several_indices import DISCRETE, operator_of

_DIGITS = 10  # of labels, in units of their spread: what the known fields alone decide is equal, but for rounding
_LOG2_KNOWN, _POINTS, _NEIGHBOURS, _GROUPS = 8, 4096, 32, 16
NOTHING = 1e-9  # eigenvalues of an overlap below are directions of which nothing is known

Matrix = Float[np.ndarray, "index index"]
Directions = Float[np.ndarray, "direction index"]


def split(overlap: Matrix) -> tuple[Directions, Directions]:
    """Orthonormal directions of which a part is known, and those of which nothing is."""
    values, vectors = np.linalg.eigh(overlap)
    known = in_axes(vectors[:, values > NOTHING].T)
    return in_axes(vectors[:, (values > NOTHING) & (values < 1 - NOTHING)].T), complement(known)


def moments_given(target: Target, overlap: Matrix, directions: Directions) -> LabelMoments:
    """Moments of orders 1 and 2 of the fields t along orthonormal `directions`, given the label and omega, averaged over both.

    directions: spanned by eigenvectors of `overlap`. The tolerance is four standard errors: a few parts in a thousand.
    """
    count = len(directions)

    def features(t: np.ndarray) -> np.ndarray:
        x = directions @ t
        pairs = x[:, None] * x - np.eye(count)[..., None]
        return np.concatenate([x, pairs.reshape(-1, x.shape[1])])

    products = _products(target, overlap, features)
    firsts, seconds = products[:, :count, :count], products[:, count:, count:].reshape(_GROUPS, *(count,) * 4)
    gram, tensor = firsts.mean(axis=0), seconds.mean(axis=0)
    operator = operator_of(tensor)
    leading = np.linalg.eigh(operator)[1][:, -1]
    powers = [np.trace(firsts, axis1=1, axis2=2), np.einsum("gijij->g", seconds) / 2]
    samples = [*powers, np.stack([leading @ operator_of(part) @ leading for part in seconds])]
    error = max(float(np.std(sample, ddof=1)) / np.sqrt(_GROUPS) for sample in samples)
    grams = gram, np.einsum("ikkj->ij", tensor)
    return LabelMoments(grams, operator, tuple(float(power.mean()) for power in powers), 4 * error, "neighbours in the label")


def information(target: Target, overlap: Matrix, directions: Directions) -> Float[np.ndarray, "direction direction"]:
    """qh d / n along the known directions."""
    root = _root(np.linalg.inv(np.eye(len(directions)) - directions @ overlap @ directions.T))
    return root @ _products(target, overlap, lambda t: directions @ t).mean(axis=0) @ root


def _products(
    target: Target, overlap: Matrix, features: Callable[[np.ndarray], np.ndarray]
) -> Float[np.ndarray, "group feature feature"]:
    """E of products of E[feature | y, omega], for groups of values of omega that are all spread over its law.

    features: of t, (index, sample), as (feature, sample).
    """
    from scipy.stats import qmc  # slow to import, and here alone

    size = target.dimension
    known, rest = (_root(part) for part in (overlap, np.eye(size) - overlap))
    points = ndtri(qmc.Sobol(size, seed=0).random_base2(_LOG2_KNOWN)) @ known
    rng = np.random.default_rng(0)
    found = []
    for omega in points:
        t = rng.standard_normal((_POINTS, size))
        labels = np.round(np.asarray(target(omega + t @ rest), float), _DIGITS)
        order = np.argsort(labels)
        f, y = features(t[order].T), labels[order]
        starts = np.concatenate([[0], 1 + np.flatnonzero(y[1:] != y[:-1])])
        if len(starts) > DISCRETE:  # the bias of neighbours grows with how many they are
            found.append(2 * _neighbours(f, _NEIGHBOURS) - _neighbours(f, 2 * _NEIGHBOURS))
        else:
            found.append(_paired(f, starts))
    return np.stack(found).reshape(_GROUPS, -1, *found[0].shape).mean(axis=1)


def _paired(features: np.ndarray, starts: np.ndarray) -> Float[np.ndarray, "feature feature"]:
    """The mean over groups, which begin at `starts`, of the products of two different members of each."""
    samples = features.shape[1]
    counts = np.diff(starts, append=samples)
    others = np.maximum(counts - 1, 1)
    sums = np.add.reduceat(features, starts, axis=1)
    return (sums / others @ sums.T - features / np.repeat(others, counts) @ features.T) / samples


def _neighbours(features: np.ndarray, count: int) -> Float[np.ndarray, "feature feature"]:
    """`_paired` for groups of the same count."""
    sums = features.reshape(len(features), -1, count).sum(axis=2)
    return (sums @ sums.T - features @ features.T) / (count - 1) / features.shape[1]


def _root(matrix: Matrix) -> Matrix:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.where(values > NOTHING, values, 0.0))) @ vectors.T
