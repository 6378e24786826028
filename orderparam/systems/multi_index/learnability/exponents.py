"""How hard a target is: its information, leap and generative exponents, and the sample complexity of kernels, SGD and
the best algorithm.

Single index, c_k = E[g h_k]: the information exponent is the first k >= 1 with c_k != 0 (Ben Arous, Gheissari,
Jagannath 2021). Several indices: the first degree with a nonzero Hermite tensor, and the leap exponent, the highest
stair that SGD climbs until it knows all directions (Abbe, Boix-Adsera, Misiakiewicz 2023). The generative exponent is
the first k whose conditional moment E[h_k(z) | y] does not vanish (Damian et al. 2024): the best information exponent
over all transformations of the label. The generative leap is the highest such order on the way to all directions, those found
before being known (Damian, Lee, Bruna 2025).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from orderparam.gaussian.target import Target, target
from orderparam.systems.multi_index.learnability.hermite_tensors import coefficients, staircase
from orderparam.systems.multi_index.learnability.label_moments import generative_staircase, label_moments
from orderparam.systems.multi_index.learnability.second_moment import normalised
from orderparam.systems.multi_index.learnability.threshold import weak_recovery
from orderparam.systems.multi_index.rules import NODES

_HIGHEST = 8
_COARSEST = 0.1  # accuracy of coefficients, in units of the spread, beyond which none is told from zero


@dataclass(frozen=True)
class TargetExponents:
    """The exponents of one target and what follows from them. Prints as a short report; `row()` is its row of the
    table.

    information, leap, generative: None when beyond `highest`, the last order looked at.
    degree: degree of a polynomial, None for every other function. hermite: the root of the sum of c_a^2 over |a| = k, k
    = 0 .. highest. stages: (degree climbed, number of new directions) of the staircase of SGD. generative_leap: highest
    order of the staircase of the best algorithm, whose generative_stages are (order, number of new directions, n / d from
    which they are seen when those before are known). label_power: order k = 1, 2, ...: the sum over |a| = k of
    E_y[zeta_a^2], zeta_a(y) = E[h_a(z) | y] with normalised h_a, for one index lambda_k^2 <= 1. label_eigenvalues: the largest
    eigenvalues of E_y[m m^T], m = E[z | y], and of X -> E_y[G X G], G = E[z z^T - 1 | y]; for one index lambda_1^2 and
    2 lambda_2^2. threshold: n / d above which the best algorithm finds a first direction: 0 for order 1, 1 / the second
    eigenvalue for order 2, infinite for orders above 2.
    hermite_tolerance, label_tolerance: below these a coefficient counts as zero.
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
        """Samples needed: kernels for the whole target (d^degree; no power of d is enough for what is not a
        polynomial), one-pass SGD and the best algorithm to find all directions."""
        return {
            "target": self.target,
            "kernels": "e^d" if self.degree is None else _power(self.degree),
            "one-pass SGD": sgd_samples(self.leap, self.highest),
            "best algorithm": self._best(),
        }

    def _best(self) -> str:
        """d, or d^(k/2) for a generative leap k > 2 (Damian, Lee, Bruna 2025)."""
        if self.generative_leap is None:
            least = (self.generative or self.highest + 1) / 2
            return f">= d^{least:g}" if least > 1 else ">= d"
        half, odd = divmod(self.generative_leap, 2)
        return f"d^({self.generative_leap}/2)" if odd and half else _power(half)

    def __str__(self) -> str:
        beyond = f"> {self.highest}"
        stairs = ", ".join(f"{n} direction{'s' * (n > 1)} by degree {degree}" for degree, n in self.stages) or "none found"
        label_stairs = (
            ", ".join(
                f"{n} direction{'s' * (n > 1)} by order {order}" + (f" from n/d = {seen:.6g}" if order == 2 else "")
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
                "  Hermite norms   " + "  ".join(f"{k}: {x:.6g}" for k, x in enumerate(self.hermite)),
                "  label power     " + "  ".join(f"{k}: {x:.6g}" for k, x in enumerate(self.label_power, 1)),
                f"  zero means below {self.hermite_tolerance:.1g} (Hermite) and {self.label_tolerance:.1g} "
                f"(label power, by {self.label_method})",
            ]
        )


def _power(exponent: int) -> str:
    return "d" if exponent <= 1 else f"d^{exponent}"


def sgd_samples(leap: int | None, highest: int) -> str:
    """d, d log d, d^(l-1) (Ben Arous, Gheissari, Jagannath 2021, theorem 1.3)."""
    if leap is None:
        return f">= d^{highest}"
    return "d log d" if leap == 2 else _power(leap - 1)


def exponents(
    what: str | Callable[[Array], Array] | Target,
    dimension: int | None = None,
    *,
    kinks: tuple[float, ...] = (),
    highest: int = _HIGHEST,
) -> TargetExponents:
    """The exponents of a target: text such as `"z1*z2*z3"`, or a Python function of an array of shape (..., dimension).

    See `target` for what may be written. A function with jumps or kinks: for one index name the places in `kinks`; for
    several they are resolved exactly when they lie on coordinate planes, and otherwise show in `hermite_tolerance`.
    Functions of several indices whose label is neither discrete nor a product of coordinates get their conditional
    moments to about 1%. What counts as zero is measured against the spread of the target. Raises `ValueError` for what is not a
    formula, a bad dimension or order, a constant target, one without second moment, and one that oscillates or jumps too much
    for the quadrature.
    """
    if isinstance(highest, bool) or not isinstance(highest, int) or not 3 <= highest <= 12:
        raise ValueError(f"highest = {highest!r}: must be an integer from 3 to 12 (last order looked at)")
    # Numbers, also when called while something else is being traced; what is not finite is said in words.
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
        generative_stages=tuple((stair.order, len(stair.directions), stair.threshold) for stair in stairs),
        label_power=moments.signal,
        label_eigenvalues=moments.eigenvalues,
        hermite_tolerance=tolerance * spread,
        label_tolerance=moments.tolerance,
        label_method=moments.method,
        highest=highest,
    )


def table(rows: list[TargetExponents]) -> Any:
    """A rich table of rows (print it with `rich.print`)."""
    from rich.table import Table

    columns = ("target", "kernels", "one-pass SGD", "best algorithm")
    out = Table(*columns, "information", "leap", "generative", "generative leap", "n/d of weak recovery")
    for found in rows:
        row = found.row()
        orders = (found.information, found.leap, found.generative, found.generative_leap)
        marks = [str(x) if x is not None else f"> {found.highest}" for x in orders]
        out.add_row(*(row[column] for column in columns), *marks, f"{found.threshold:.6g}")
    return out
