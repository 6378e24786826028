"""Hardness of a target: its information, leap and generative exponents, and the sample complexities
of kernels, SGD and the best known efficient algorithm.

For one index, with c_k = E[g h_k], the information exponent is the first k >= 1 with c_k != 0 (Ben
Arous, Gheissari, Jagannath 2021). For several indices it is the first degree with a nonzero Hermite
tensor, and the leap exponent is the highest degree that SGD needs on the way to all directions
(Abbe, Boix-Adsera, Misiakiewicz 2023). The generative exponent is the first k whose conditional
moment E[h_k(z) | y] does not vanish (Damian et al. 2024): the lowest information exponent over all
transformations of the label. The generative leap is the highest such order on the way to all
directions, given the directions found before (Damian, Lee, Bruna 2025).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from orderparam.core.formula import LARGEST_DIMENSION
from orderparam.core.registry import tool
from orderparam.gaussian.target import Target, target
from orderparam.systems.multi_index.label import (
    LabelMoments,
    in_bins,
    power_product,
    powers_of_product,
)
from orderparam.systems.multi_index.products import (
    ROUNDING,
    hermite_powers,
    label_staircase,
    spread_of,
    stages_of,
    wide_product,
)
from orderparam.systems.multi_index.second_moment import normalised
from orderparam.systems.multi_index.staircases import (
    Stair,
    coefficients,
    complement,
    depends,
    generative_staircase,
    label_moments,
    lowest_stair,
    moments_given,
    split,
    staircase,
)
from orderparam.systems.multi_index.targets import NODES

# ------------------------------------------------------------------------------------------------
# Weak recovery: whether a target can be learned from n = O(d) samples, and the number that is
# needed.
#
# A direction is trivial if E[z | y] reveals it (at any n/d > 0), easy if only E[z z^T - 1 | y] does
# (above n/d = alpha_c = 1 / lambda_max(X -> E_y[G X G])), and hard if neither does (at no n/d;
# every known algorithm needs more than O(d) samples). Troiani, Dandi, Defilippis, Zdeborová,
# Loureiro, Krzakala 2024 (arXiv:2405.15480).

# one more than the highest order of the moments that reveal a direction from n = O(d) samples
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
    """The next stair for an estimate of this overlap."""
    overlap = np.diag(overlap) if overlap.ndim == 1 else overlap
    size = g.dimension
    if (
        overlap.shape != (size, size)
        or not np.all(np.isfinite(overlap))
        or not np.allclose(overlap, overlap.T, atol=1e-12)
    ):
        raise ValueError(
            f"overlap: must be {size} numbers, or a symmetric matrix of {size} x {size}, for target {g.name!r}"
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
    known = complement(rest)
    found = known if stair is None else np.concatenate([known, stair.directions])
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
    """Moments from four pairs of disjoint parts of the samples."""
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


_HIGHEST = 8
# inaccuracy of coefficients, in units of the spread, above which no coefficient can be
# distinguished from zero
_COARSEST = 0.1


@dataclass(frozen=True)
class TargetExponents:
    """Exponents of one target and the numbers of samples that follow from them. `print` shows a
    short report; `row()` is its row of the table.

    Fields:
        information: information exponent; None beyond `highest`, the last order computed.
        leap: leap exponent; None beyond `highest`.
        generative: generative exponent; None beyond `highest`.
        degree: degree of a polynomial; None for every other function.
        hermite: root of the sum of c_a^2 over |a| = k, k = 0 .. highest.
        stages: (degree, number of new directions) of each stage of the staircase of SGD.
        generative_leap: highest order of the staircase of the best algorithm.
        generative_stages: (order, number of new directions, n/d above which they are found if those
            before are known) of each stage of the best algorithm.
        label_power: for order k = 1, 2, ... the sum over |a| = k of E_y[zeta_a^2], zeta_a(y) =
            E[h_a(z) | y] with normalised h_a; for one index lambda_k^2 <= 1.
        label_eigenvalues: largest eigenvalues of E_y[m m^T], m = E[z | y], and of X -> E_y[G X G],
            G = E[z z^T - 1 | y]; for one index lambda_1^2 and 2 lambda_2^2.
        threshold: n/d above which the best algorithm finds a first direction: 0 for order 1, 1 /
            the second eigenvalue for order 2, infinite for orders above 2.
        hermite_tolerance: coefficients below this value count as zero.
        label_tolerance: moments of the label below this value count as zero.
    """

    target: str
    dimension: int
    degree: int | None
    information: int | None
    leap: int | None
    generative: int | None
    generative_leap: int | None
    threshold: float
    hermite: tuple[float, ...]
    stages: tuple[tuple[int, int], ...]
    generative_stages: tuple[tuple[int, int, float], ...]
    label_power: tuple[float, ...]
    label_eigenvalues: tuple[float, float]
    hermite_tolerance: float
    label_tolerance: float
    label_method: str
    highest: int

    def row(self) -> dict[str, str]:
        """Numbers of samples for a kernel to learn the whole target (d^degree; no power of d
        suffices if the target is not a polynomial), and for one-pass SGD and the best algorithm to
        find all directions.
        """
        return {
            "target": self.target,
            "kernels": "e^d" if self.degree is None else _power(self.degree),
            "one-pass SGD": sgd_samples(self.leap, self.highest),
            "best algorithm": self._best(),
        }

    def _best(self) -> str:
        """The number of samples of the best algorithm: d, or d^(k/2) for a generative leap k > 2
        (Damian, Lee, Bruna 2025)."""
        if self.generative_leap is None:
            least = (self.generative or self.highest + 1) / 2
            return f">= d^{least:g}" if least > 1 else ">= d"
        half, odd = divmod(self.generative_leap, 2)
        return f"d^({self.generative_leap}/2)" if odd and half else _power(half)

    def __str__(self) -> str:
        beyond = f"> {self.highest}"
        stairs = (
            ", ".join(
                f"{n} direction{'s' * (n > 1)} by degree {degree}" for degree, n in self.stages
            )
            or "none found"
        )
        label_stairs = (
            ", ".join(
                f"{n} direction{'s' * (n > 1)} by order {order}"
                + (f" from n/d = {seen:.6g}" if order == 2 else "")
                for order, n, seen in self.generative_stages
            )
            or "none found"
        )
        kind = {1: "trivial", 2: "easy"}.get(self.generative or 0, "hard")
        error = self.label_tolerance * self.threshold**2 if kind == "easy" else 0.0
        row = self.row()
        return "\n".join(
            [
                f"{self.target}   ({self.dimension} {'index' if self.dimension == 1 else 'indices'})",
                f"  information exponent  {self.information or beyond}",
                f"  leap exponent         {self.leap or beyond}   ({stairs})",
                f"  generative exponent   {self.generative or beyond}",
                f"  generative leap       {self.generative_leap or beyond}   ({label_stairs})",
                f"  weak recovery by the best algorithm: {weak_recovery(kind, self.threshold, error)}",
                f"  samples: kernels {row['kernels']}, one-pass SGD {row['one-pass SGD']}, best algorithm "
                f"{row['best algorithm']}",
                "  Hermite norms   "
                + "  ".join(f"{k}: {x:.6g}" for k, x in enumerate(self.hermite)),
                "  label power     "
                + "  ".join(f"{k}: {x:.6g}" for k, x in enumerate(self.label_power, 1)),
                f"  zero means below {self.hermite_tolerance:.1g} (Hermite) and {self.label_tolerance:.1g} "
                f"(label power, by {self.label_method})",
            ]
        )


def _power(exponent: int) -> str:
    return "d" if exponent <= 1 else f"d^{exponent}"


def sgd_samples(leap: int | None, highest: int) -> str:
    """The number of samples of SGD as text: d, d log d or d^(l-1) (Ben Arous, Gheissari, Jagannath
    2021, theorem 1.3)."""
    if leap is None:
        return f">= d^{highest}"
    return "d log d" if leap == 2 else _power(leap - 1)


@tool
def exponents(
    what: str | Callable[[Array], Array] | Target,
    dimension: int | None = None,
    *,
    kinks: tuple[float, ...] = (),
    highest: int = _HIGHEST,
) -> TargetExponents:
    """Information, leap and generative exponents of a target, and the numbers of samples that
    follow from them.

    For a function of one index with jumps or kinks, `kinks` gives their positions. For several
    indices, jumps and kinks on coordinate planes are resolved exactly; others increase
    `hermite_tolerance`. Coefficients count as zero relative to the standard deviation of the
    target.

    Args:
        what: text such as `"z1*z2*z3"`, or a Python function of an array of shape (..., dimension);
            see `target`.
        dimension: number of indices of a function; by default read from the target.
        kinks: positions of jumps and kinks of a function of one index; none by default.
        highest: last order that is computed.

    Raises:
        ValueError: for an invalid formula, dimension or order; for a target that is constant, has
            no second moment, or oscillates or jumps too much for the quadrature.

    Accuracy: exact to rounding for polynomials and for kinks on coordinate planes. For functions of
    several indices whose label is neither discrete nor a product of powers, conditional moments are
    accurate to about 1 %. Five and six indices are allowed for products of powers only.

    Source: Ben Arous, Gheissari, Jagannath (2021); Abbe, Boix-Adsera, Misiakiewicz (2023); Damian
    et al. (2024); Damian, Lee, Bruna (2025).

    >>> found = exponents("z1*z2*z3")
    >>> found.information, found.leap, found.generative
    (3, 3, 2)
    """
    if isinstance(highest, bool) or not isinstance(highest, int) or not 3 <= highest <= 12:
        raise ValueError(
            f"highest = {highest!r}: must be an integer from 3 to 12 (last order looked at)"
        )
    if (wide := wide_product(what, dimension)) is not None:
        return _of_product(wide, highest)
    # Compute concrete numbers even while something else is being traced. Numbers that are not
    # finite are reported by a message.
    with jax.ensure_compile_time_eval(), np.errstate(all="ignore"):
        g, spread = normalised(target(what, dimension, kinks))
        c, tolerance = coefficients(g, highest + 1)
        if not tolerance < _COARSEST:
            raise ValueError(
                f"target {g.name!r}: oscillates or jumps too much for {2 * NODES[g.dimension]} points a direction: its "
                f"coefficients are known to {tolerance:.1g} of its spread only"
            )
        c = np.where(np.abs(c) > tolerance, c, 0.0)
        total = np.indices(c.shape).sum(axis=0)
        norms = [float(np.sqrt(np.sum(c[total == k] ** 2))) for k in range(highest + 1)]
        information = next((k for k in range(1, highest + 1) if norms[k]), None)
        stages, complete = staircase(g, highest + 1)
        moments = label_moments(g, highest + 1)
        stairs, climbed = generative_staircase(g, highest + 1, moments)
    generative = next((k for k, x in enumerate(moments.signal, 1) if x), None)
    if generative is None and moments.method == "quantile bins":
        generative = information  # the label itself is one of the transformations allowed
    threshold = math.inf
    if generative == 1:
        threshold = 0.0
    elif generative == 2:
        threshold = 1 / moments.eigenvalues[1]
    return TargetExponents(
        target=g.name,
        dimension=g.dimension,
        degree=g.degree,
        information=information,
        leap=max(degree for degree, _ in stages) if complete and stages else None,
        generative=generative,
        generative_leap=max(stair.order for stair in stairs) if climbed and stairs else None,
        threshold=threshold,
        hermite=tuple(norm * spread for norm in norms),
        stages=tuple((degree, len(new)) for degree, new in stages),
        generative_stages=_in_numbers(stairs),
        label_power=moments.signal,
        label_eigenvalues=moments.eigenvalues,
        hermite_tolerance=tolerance * spread,
        label_tolerance=moments.tolerance,
        label_method=moments.method,
        highest=highest,
    )


def _in_numbers(stairs: list[Stair]) -> tuple[tuple[int, int, float], ...]:
    return tuple((stair.order, len(stair.directions), stair.threshold) for stair in stairs)


def _of_product(product: Target, highest: int) -> TargetExponents:
    """The exponents of a product of powers of more than four indices, c z1^p1 ... zr^pr; only the
    law of the label is approximated."""
    powers = powers_of_product(product)
    factor = abs(float(product(np.ones(len(powers)))))
    squares = hermite_powers(powers, highest)
    information = next((k for k in range(1, highest + 1) if squares[k]), None)
    climbed = stages_of(powers)
    moments = power_product(powers, highest + 1)
    stairs, complete = label_staircase(powers, highest + 1, moments)
    generative = next((k for k, x in enumerate(moments.signal, 1) if x), None)
    return TargetExponents(
        target=product.name,
        dimension=len(powers),
        degree=sum(powers),
        information=information,
        leap=max(degree for degree, _ in climbed),
        generative=generative,
        generative_leap=max(stair.order for stair in stairs) if complete else None,
        threshold={1: 0.0, 2: 1 / moments.eigenvalues[1]}.get(generative or 0, math.inf),
        hermite=tuple((factor * np.sqrt(squares)).tolist()),
        stages=tuple(climbed),
        generative_stages=_in_numbers(stairs),
        label_power=moments.signal,
        label_eigenvalues=moments.eigenvalues,
        hermite_tolerance=ROUNDING * factor * spread_of(powers),
        label_tolerance=moments.tolerance,
        label_method=moments.method,
        highest=highest,
    )


def table(rows: list[TargetExponents]) -> Any:
    """A rich table of rows (print it with `rich.print`)."""
    from rich.table import Table

    columns = ("target", "kernels", "one-pass SGD", "best algorithm")
    out = Table(
        *columns, "information", "leap", "generative", "generative leap", "n/d of weak recovery"
    )
    for found in rows:
        row = found.row()
        orders = (found.information, found.leap, found.generative, found.generative_leap)
        marks = [str(x) if x is not None else f"> {found.highest}" for x in orders]
        out.add_row(*(row[column] for column in columns), *marks, f"{found.threshold:.6g}")
    return out
