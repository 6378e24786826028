"""Whether a target can be learned from n = O(d) samples at all, and from how many.

A direction is trivial where E[z | y] shows it (any n/d > 0), easy where only E[z z^T - 1 | y] does, from n/d = alpha_c =
1 / lambda_max(X -> E_y[G X G]) on, and hard where neither does (no n/d; more than d samples are needed by every algorithm known).
Troiani, Dandi, Defilippis, Zdeborová, Loureiro, Krzakala 2024 (arXiv:2405.15480).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from orderparam.gaussian.formula import LARGEST_DIMENSION
from orderparam.gaussian.target import Target, target
from orderparam.systems.multi_index.learnability.conditional import LabelMoments
from orderparam.systems.multi_index.learnability.hermite_tensors import complement, depends
from orderparam.systems.multi_index.learnability.label_moments import Stair, generative_staircase, label_moments, lowest_stair
from orderparam.systems.multi_index.learnability.partly_known import moments_given, split
from orderparam.systems.multi_index.learnability.second_moment import normalised
from orderparam.systems.multi_index.learnability.several_indices import in_bins

_ORDERS = 3  # one more than the order of the moments that show a direction to n = O(d) samples
_PAIRS, _FEWEST, _PER_BIN = 4, 2000, 64
_UNLIKELY = 5.0  # standard errors of the moments of fields that are taken as standard normal


@dataclass(frozen=True)
class WeakThreshold:
    """kind: "trivial", "easy" or "hard", of the directions that are found first. sample_ratio: n/d from which they are found, 0
    where they are trivial, infinite where they are hard. error: of sample_ratio, an upper bound.

    stairs: the directions found together, one after the other, those before being known; what they leave out is hard, unless
    `complete`. method: how the moments of the label were found.
    """

    target: str
    sample_ratio: float
    error: float
    stairs: tuple[Stair, ...]
    complete: bool
    method: str

    @property
    def kind(self) -> str:
        return _kind(self.stairs[0]) if self.stairs else "hard"

    def __str__(self) -> str:
        steps = [
            f"{len(stair.directions)} direction{'s' * (len(stair.directions) > 1)} {_kind(stair)}"
            + (f" from n/d = {stair.threshold:.6g}" if stair.order == 2 else "")
            for stair in self.stairs
        ]
        steps += [] if self.complete else ["rest hard"]
        return f"{self.target}: {self.summary}\n  {', then '.join(steps)}"

    @property
    def summary(self) -> str:
        return weak_recovery(self.kind, self.sample_ratio, self.error)


def threshold(
    what: str | Callable[[Array], Array] | Target | Float[ArrayLike, "sample index"],
    dimension: int | None = None,
    *,
    labels: Float[ArrayLike, "sample"] | None = None,
    overlap: Float[ArrayLike, "index"] | Float[ArrayLike, "index index"] | None = None,
    kinks: tuple[float, ...] = (),
) -> WeakThreshold:
    """Whether y = g(z) is trivial, easy or hard, and its alpha_c; in about a second.

    what: text such as "z1*z2", or a function of an array (..., dimension), see `target`. With `labels`: samples of the fields
    z (sample, index) themselves, for any law of labels, noise included; their first stair only. With `overlap`, of an estimate
    that knows a part of the directions (a symmetric matrix with eigenvalues from 0 to 1, or its diagonal): the next stair of
    those of overlap 0, to a few parts in a thousand (`moments_given`). Raises `ValueError` for what is no target, for samples of
    the wrong shape, fewer than 2000, or with fields that are not standard normal, and for what is no overlap.
    """
    if overlap is not None:
        if labels is not None:
            raise ValueError("overlap: for a target, not for samples with labels")
        return _next(normalised(target(what, dimension, kinks))[0], np.asarray(overlap, float))  # type: ignore[arg-type]
    if labels is None:
        with jax.ensure_compile_time_eval(), np.errstate(all="ignore"):
            g, _ = normalised(target(what, dimension, kinks))  # type: ignore[arg-type]
            moments = label_moments(g, _ORDERS)
            stairs, complete = generative_staircase(g, _ORDERS, moments)
        name = g.name
    else:
        name, moments = "samples", _of_samples(np.asarray(what, float), np.asarray(labels, float))
        size = len(moments.grams[0])
        first = lowest_stair(moments, np.eye(size))
        stairs = [] if first is None else [first]
        complete = first is not None and len(first.directions) == size
    return _found(name, stairs, complete, moments)


def _found(name: str, stairs: list[Stair], complete: bool, moments: LabelMoments) -> WeakThreshold:
    ratio = stairs[0].threshold if stairs else math.inf
    error = moments.tolerance * ratio**2 if stairs and stairs[0].order == 2 else 0.0
    return WeakThreshold(name, ratio, error, tuple(stairs), complete, moments.method)


def _next(g: Target, overlap: np.ndarray) -> WeakThreshold:
    """The stair after what an estimate of this overlap knows."""
    overlap = np.diag(overlap) if overlap.ndim == 1 else overlap
    size = g.dimension
    if overlap.shape != (size, size) or not np.all(np.isfinite(overlap)) or not np.allclose(overlap, overlap.T, atol=1e-12):
        raise ValueError(f"overlap: must be {size} numbers, or a symmetric matrix of {size} x {size}, for target {g.name!r}")
    values = np.linalg.eigvalsh(overlap)
    if not (values[0] > -1e-9 and values[-1] < 1 + 1e-9):
        raise ValueError(f"overlap: eigenvalues from {values[0]:.4g} to {values[-1]:.4g}; must be from 0 to 1")
    rest = split(overlap)[1]
    if not len(rest):
        raise ValueError("overlap: something is known of every direction; one at least must have overlap 0")
    moments = moments_given(g, overlap, rest)
    stair = lowest_stair(moments, rest)
    known = complement(rest)
    found = known if stair is None else np.concatenate([known, stair.directions])
    complete = len(found) == size or not depends(g, complement(found))
    return _found(f"{g.name}, given overlaps", [] if stair is None else [stair], complete, moments)


def weak_recovery(kind: str, sample_ratio: float, error: float) -> str:
    """In words, with as many digits as are known."""
    if kind == "trivial":
        return "trivial, from any n/d > 0"
    if kind == "hard":
        return "hard, from no n/d"
    digits = min(10, max(2, math.ceil(-math.log10(max(error, 1e-12)))))
    return f"easy, from n/d = {sample_ratio:.{digits}f} +- {error:.1g}"


def _kind(stair: Stair) -> str:
    return {1: "trivial", 2: "easy"}[stair.order]


def _of_samples(z: np.ndarray, y: np.ndarray) -> LabelMoments:
    """Moments by four pairs of disjoint parts of the samples."""
    z = z[:, None] if z.ndim == 1 else z
    if z.ndim != 2 or not 1 <= z.shape[1] <= LARGEST_DIMENSION or y.shape != z.shape[:1]:
        raise ValueError(
            f"fields of shape {z.shape} and labels of shape {y.shape}: must be (sample, index) with at most "
            f"{LARGEST_DIMENSION} indices, and (sample,)"
        )
    count, size = z.shape
    if count < _FEWEST:
        raise ValueError(f"{count} samples: must be at least {_FEWEST}")
    if not (np.all(np.isfinite(z)) and np.all(np.isfinite(y))):
        raise ValueError("fields and labels: must be finite numbers")
    off = max(np.max(np.abs(z.mean(axis=0))), np.max(np.abs(z.T @ z / count - np.eye(size))) / np.sqrt(2))
    if off > _UNLIKELY / np.sqrt(count):
        raise ValueError(f"fields: must be standard normal; a mean or covariance is off by {off:.2g}")
    parts = [(z[i :: 2 * _PAIRS], y[i :: 2 * _PAIRS]) for i in range(2 * _PAIRS)]
    bins = 2 * max(4, min(512, len(parts[-1][1]) // (2 * _PER_BIN)))
    return in_bins(zip(parts[::2], parts[1::2]), np.indices((_ORDERS,) * size).sum(axis=0) < _ORDERS, bins)
