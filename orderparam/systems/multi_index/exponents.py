"""Exponents that measure how hard a target is to learn (information, leap and generative exponent),
and the sample complexities of kernels, SGD and the best known efficient algorithm.

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
from jaxtyping import Array

from orderparam.core.registry import tool
from orderparam.gaussian.target import Target, target
from orderparam.systems.multi_index.label import (
    power_product,
    powers_of_product,
)
from orderparam.systems.multi_index.model import NODES
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
    generative_staircase,
    label_moments,
    staircase,
)
from orderparam.systems.multi_index.weak_recovery import (
    COARSEST,
    HIGHEST,
    weak_recovery,
)


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
        generative_stages: (order, number of new directions, n/d above which they are found if the
            directions of the stages before are known) of each stage of the best algorithm.
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
        """Sample complexities as text: of a kernel that learns the whole target (d^degree; no power
        of d suffices if the target is not a polynomial), and of one-pass SGD and of the best
        algorithm that find all directions.
        """
        return {
            "target": self.target,
            "kernels": "e^d" if self.degree is None else _power(self.degree),
            "one-pass SGD": sgd_samples(self.leap, self.highest),
            "best algorithm": self._best(),
        }

    def _best(self) -> str:
        """Sample complexity of the best algorithm as text: d, or d^(k/2) for a generative leap k >
        2 (Damian, Lee, Bruna 2025)."""
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
                (
                    f"{self.target}   ({self.dimension} "
                    f"{'index' if self.dimension == 1 else 'indices'})"
                ),
                f"  information exponent  {self.information or beyond}",
                f"  leap exponent         {self.leap or beyond}   ({stairs})",
                f"  generative exponent   {self.generative or beyond}",
                f"  generative leap       {self.generative_leap or beyond}   ({label_stairs})",
                (
                    "  weak recovery by the best algorithm: "
                    f"{weak_recovery(kind, self.threshold, error)}"
                ),
                f"  samples: kernels {row['kernels']}, one-pass SGD {row['one-pass SGD']}, best "
                f"algorithm {row['best algorithm']}",
                "  Hermite norms   "
                + "  ".join(f"{k}: {x:.6g}" for k, x in enumerate(self.hermite)),
                "  label power     "
                + "  ".join(f"{k}: {x:.6g}" for k, x in enumerate(self.label_power, 1)),
                f"  zero means below {self.hermite_tolerance:.1g} (Hermite) and "
                f"{self.label_tolerance:.1g} (label power, by {self.label_method})",
            ]
        )


def _power(exponent: int) -> str:
    return "d" if exponent <= 1 else f"d^{exponent}"


def sgd_samples(leap: int | None, highest: int) -> str:
    """Sample complexity of one-pass SGD as text: d, d log d or d^(l-1) for a leap l (Ben Arous,
    Gheissari, Jagannath 2021, theorem 1.3)."""
    if leap is None:
        return f">= d^{highest}"
    return "d log d" if leap == 2 else _power(leap - 1)


@tool
def exponents(
    what: str | Callable[[Array], Array] | Target,
    dimension: int | None = None,
    *,
    kinks: tuple[float, ...] = (),
    highest: int = HIGHEST,
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
        if not tolerance < COARSEST:
            raise ValueError(
                f"target {g.name!r}: oscillates or jumps too much for {2 * NODES[g.dimension]} "
                f"points a direction: its coefficients are known to {tolerance:.1g} of its spread "
                "only"
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
    """Exponents of a product of powers of more than four indices, c z1^p1 ... zr^pr. All averages
    are exact except those over the law of the label."""
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
    """Table of several targets, one in each row, as a `rich` table; print it with `rich.print`."""
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
