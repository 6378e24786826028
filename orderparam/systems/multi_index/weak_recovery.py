"""Weak recovery: whether a target can be learned from O(d) samples."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from orderparam.core.formula import LARGEST_DIMENSION
from orderparam.gaussian.target import Target, target
from orderparam.systems.multi_index.label import (
    LabelMoments,
    in_bins,
    power_product,
    powers_of_product,
)
from orderparam.systems.multi_index.products import (
    label_staircase,
    wide_product,
)
from orderparam.systems.multi_index.second_moment import normalised
from orderparam.systems.multi_index.staircases import (
    Stair,
    complement,
    depends,
    generative_staircase,
    label_moments,
    lowest_stair,
    moments_given,
    split,
)

# Weak recovery: whether a target can be learned from n = O(d) samples, and the number that is
# needed.
#
# A direction is trivial if E[z | y] reveals it; it is then found at any n/d > 0. It is easy if only
# G = E[z z^T - 1 | y] reveals it; it is then found above n/d = alpha_c = 1 / lambda_max(X -> E_y[G
# X G]). It is hard if neither moment reveals it; every known algorithm then needs more than O(d)
# samples. Troiani, Dandi, Defilippis, Zdeborová, Loureiro, Krzakala 2024 (arXiv:2405.15480).

# number of orders of moments that are computed, from 0 to 2; moments above order 2 reveal no
# direction from n = O(d) samples
_ORDERS = 3
_PAIRS, _FEWEST, _PER_BIN = 4, 2000, 64
# largest deviation, in standard errors, of moments of fields that count as standard normal
_UNLIKELY = 5.0


@dataclass(frozen=True)
class WeakThreshold:
    """Weak recovery of the directions of a target from n = O(d) samples.

    Fields:
        sample_ratio: n/d above which the first directions are found: 0 if they are trivial,
            infinite if they are hard.
        error: upper bound on the error of sample_ratio.
        stairs: groups of directions that are found together, in the order in which they are found,
            each given the groups before it. Directions in no group are hard.
        complete: whether the stairs lead to all directions.
        method: how the moments of the label were computed.
    """

    target: str
    sample_ratio: float
    error: float
    stairs: tuple[Stair, ...]
    complete: bool
    method: str

    @property
    def kind(self) -> str:
        """Kind of the directions that are found first: "trivial", "easy" or "hard"."""
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
    """Weak-recovery threshold of a target y = g(z), and its kind: trivial, easy or hard.

    A direction is trivial if E[z | y] reveals it, easy if only G = E[z z^T - 1 | y] does (above n/d
    = 1 / lambda_max(X -> E_y[G X G])), and hard if neither does.

    Args:
        what: text such as "z1*z2", a function of an array (..., dimension) (see `target`), or, with
            `labels`, samples (sample, index) of the fields z.
        dimension: number of indices of a function; by default read from the target.
        labels: labels of the samples, with any law of the noise. Only the first stair is determined
            from samples.
        overlap: overlap of an estimate with the directions that are partly known: a symmetric
            matrix with eigenvalues from 0 to 1, or its diagonal. The next stair among the
            directions of overlap 0 is then returned, accurate to a few parts in a thousand.

    Raises:
        ValueError: for an invalid target; for samples of the wrong shape, fewer than 2000, or with
            fields that are not standard normal; for an invalid overlap.

    Cost: about a second.

    Source: Troiani, Dandi, Defilippis, Zdeborová, Loureiro, Krzakala (2024).

    >>> found = threshold("z1*z2")
    >>> found.kind, round(found.sample_ratio, 5)
    ('easy', 0.59375)
    """
    if overlap is not None:
        if labels is not None:
            raise ValueError("overlap: for a target, not for samples with labels")
        return _next(normalised(target(what, dimension, kinks))[0], np.asarray(overlap, float))  # type: ignore[arg-type]
    wide = wide_product(what, dimension) if labels is None else None
    if wide is not None:
        powers = powers_of_product(wide)
        name, moments = wide.name, power_product(powers, _ORDERS)
        stairs, complete = label_staircase(powers, _ORDERS, moments)
    elif labels is None:
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
    """Threshold of the next stair, given an estimate of this overlap."""
    overlap = np.diag(overlap) if overlap.ndim == 1 else overlap
    size = g.dimension
    if (
        overlap.shape != (size, size)
        or not np.all(np.isfinite(overlap))
        or not np.allclose(overlap, overlap.T, atol=1e-12)
    ):
        raise ValueError(
            f"overlap: must be {size} numbers, or a symmetric matrix of {size} x {size}, for "
            f"target {g.name!r}"
        )
    values = np.linalg.eigvalsh(overlap)
    if not (values[0] > -1e-9 and values[-1] < 1 + 1e-9):
        raise ValueError(
            f"overlap: eigenvalues from {values[0]:.4g} to {values[-1]:.4g}; must be from 0 to 1"
        )
    rest = split(overlap)[1]
    if not len(rest):
        raise ValueError(
            "overlap: something is known of every direction; one at least must have overlap 0"
        )
    moments = moments_given(g, overlap, rest)
    stair = lowest_stair(moments, rest)
    earlier = complement(rest)
    found = earlier if stair is None else np.concatenate([earlier, stair.directions])
    complete = len(found) == size or not depends(g, complement(found))
    return _found(f"{g.name}, given overlaps", [] if stair is None else [stair], complete, moments)


def weak_recovery(kind: str, sample_ratio: float, error: float) -> str:
    """A phrase with the kind and the threshold, with as many digits as are known."""
    if kind == "trivial":
        return "trivial, from any n/d > 0"
    if kind == "hard":
        return "hard, from no n/d"
    digits = min(10, max(2, math.ceil(-math.log10(max(error, 1e-12)))))
    return f"easy, from n/d = {sample_ratio:.{digits}f} +- {error:.1g}"


def _kind(stair: Stair) -> str:
    return {1: "trivial", 2: "easy"}[stair.order]


def _of_samples(z: np.ndarray, y: np.ndarray) -> LabelMoments:
    """Label moments of samples, from four pairs of disjoint parts of the samples."""
    z = z[:, None] if z.ndim == 1 else z
    if z.ndim != 2 or not 1 <= z.shape[1] <= LARGEST_DIMENSION or y.shape != z.shape[:1]:
        raise ValueError(
            f"fields of shape {z.shape} and labels of shape {y.shape}: must be (sample, index) "
            f"with at most {LARGEST_DIMENSION} indices, and (sample,)"
        )
    count, size = z.shape
    if count < _FEWEST:
        raise ValueError(f"{count} samples: must be at least {_FEWEST}")
    if not (np.all(np.isfinite(z)) and np.all(np.isfinite(y))):
        raise ValueError("fields and labels: must be finite numbers")
    off = max(
        np.max(np.abs(z.mean(axis=0))), np.max(np.abs(z.T @ z / count - np.eye(size))) / np.sqrt(2)
    )
    if off > _UNLIKELY / np.sqrt(count):
        raise ValueError(
            f"fields: must be standard normal; a mean or covariance is off by {off:.2g}"
        )
    parts = [(z[i :: 2 * _PAIRS], y[i :: 2 * _PAIRS]) for i in range(2 * _PAIRS)]
    bins = 2 * max(4, min(512, len(parts[-1][1]) // (2 * _PER_BIN)))
    return in_bins(
        zip(parts[::2], parts[1::2]), np.indices((_ORDERS,) * size).sum(axis=0) < _ORDERS, bins
    )


HIGHEST = 8
# inaccuracy of coefficients, in units of the spread, above which no coefficient can be
# distinguished from zero
COARSEST = 0.1
