"""Finite-size scaling: one curve for all sizes, y = L^power F((x - critical) L^inverse_nu), and the
critical point and exponents that follow; on request with a correction L^-omega G of the same
argument (Privman, Fisher 1983).

    found = collapse(data, "temperature", "binder", "length", power=0)
    found.critical, found.critical_error, found.inverse_nu, found.sizes, found.probability

F and G are polynomials, so that at given exponents they follow from linear least squares, and only
the exponents are searched (variable projection: Golub, Pereyra 1973). G is a straight line, and has
the degree of F where no straight line describes the data. Errors come from a parametric bootstrap:
fits to values that are drawn again within their errors. Corrections to scaling that are not fitted
change the exponents by about as much as another fit does. What other fits change is therefore added
to the errors, in squares. With a correction G these are the differences to the fit without the
smallest size and to the fit in which G has the degree of F. Without one it is twice the difference
to the fit without the smallest size, where this exceeds three of its errors: a correction decays
slowly, and most of it remains in the larger sizes. If a fit is not accepted, its errors are
multiplied by the square root of chi squared per degree of freedom and a warning is issued: its
numbers should not be quoted.
"""

import itertools
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy
import xarray as xr

from orderparam.analysis.corrections import ACCEPTED, probable
from orderparam.analysis.measured import columns

SEARCHED = ("critical", "inverse_nu", "power", "omega")
FITTED = ("critical", "inverse_nu", "power", "correction", "omega")
STEEPEST = 10.0  # largest modulus of inverse_nu and power
OMEGAS = (0.25, 4.0)
# Number of coefficients of the correction G that is tried first. With as many as F it can nearly
# take the place of F, at an inverse_nu larger by omega.
_STRAIGHT = 2
_INSIDE = 1e-6  # fraction of a bound's range: a fit nearer to the bound is determined by the bound
_PROFILE = 3.84  # rise of chi squared for a 95 % interval


@dataclass(frozen=True)
class Collapse:
    """A fit of finite-size scaling, y = L^power [F(u) + L^-omega G(u)] with u = (x - critical)
    L^inverse_nu, and polynomials F and G.

    correction: G(0) / F(0), the relative correction at the critical point at L = 1; 0 without a
    correction.

    X_error: standard errors by bootstrap, and what other fits change, added in squares: without the
    smallest size, and with a richer G; 0 for given numbers, infinite for numbers that the data do
    not determine: a number at the end of the range that is searched, and an omega whose profile of
    chi squared reaches such an end.
    omega: NaN without a correction. polynomial, correction_polynomial: coefficients of F and of G,
    the constant first. chi_squared, freedom: of the fit; probability: that of a chi squared at
    least as large by chance. sizes: those used, after the smallest were left out until the
    probability reached 0.05. accepted: True if it reached 0.05. scaled_x, scaled_y, scaled_error,
    scaled_size: the points on the common curve F, their fitted corrections taken off.
    """

    critical: float
    critical_error: float
    inverse_nu: float
    inverse_nu_error: float
    power: float
    power_error: float
    correction: float
    correction_error: float
    omega: float
    omega_error: float
    polynomial: np.ndarray
    correction_polynomial: np.ndarray
    chi_squared: float
    freedom: int
    sizes: tuple[float, ...]
    scaled_x: np.ndarray
    scaled_y: np.ndarray
    scaled_error: np.ndarray
    scaled_size: np.ndarray

    @property
    def probability(self) -> float:
        return probable(self.chi_squared, self.freedom)

    @property
    def accepted(self) -> bool:
        return self.probability >= ACCEPTED

    def curve(self, scaled_x: np.ndarray) -> np.ndarray:
        """F at these arguments."""
        return np.polynomial.polynomial.polyval(scaled_x, self.polynomial)

    def with_error(self, name: str) -> str:
        """A fitted number with its error, or that it is not determined."""
        value, error = getattr(self, name), getattr(self, f"{name}_error")
        return (
            f"{name} = {value:.6g} ± {error:.2g}"
            if np.isfinite(error)
            else f"{name} not determined"
        )

    def table(self) -> list[dict[str, Any]]:
        """The fitted numbers as a table, each with its name, value, error and `accepted`."""
        return [
            {
                "name": name,
                "value": getattr(self, name),
                "error": getattr(self, f"{name}_error"),
                "accepted": self.accepted,
            }
            for name in FITTED
            if getattr(self, f"{name}_error") > 0
        ]

    def __repr__(self) -> str:
        shown = [self.with_error(name) for name in FITTED if getattr(self, name + "_error") > 0]
        sizes = ", ".join(f"{size:g}" for size in self.sizes)
        doubt = "" if self.accepted else "; not accepted: the sizes do not collapse"
        return (
            f"Collapse({', '.join(shown)}; sizes {sizes}; chi^2 {self.chi_squared:.3g} / "
            f"{self.freedom}{doubt})"
        )


def collapse(
    data: xr.Dataset,
    x: str,
    y: str,
    size: str,
    *,
    critical: float | None = None,
    inverse_nu: float | None = None,
    power: float | None = None,
    omega: float | Literal["search"] | None = None,
    order: int = 4,
    window: float = np.inf,
    least_sizes: int = 3,
    bootstrap: int = 200,
    seed: int = 0,
) -> Collapse:
    """Fits y(x, size) of a data set by one scaling function of all sizes.

    The smallest sizes are left out, one by one, while the fit is improbable (below 0.05) and
    `least_sizes` remain. A fit that stays improbable is returned with a `UserWarning`, and
    `accepted` is False. The search covers inverse_nu and power from -10 to 10, and the critical
    point up to one range of x outside the data.

    Args:
        data: A data set with or without `seed`, or columns with one row for each point.
        x, size: Dimensions or coordinates.
        y: An observable, averaged over `seed`, with the errors `y_error` or those of the scatter.
        critical, inverse_nu, power: Fixed values; None fits them. With power = 0 the common
            crossing point of all sizes is the critical point (Binder 1981).
        omega: Exponent of a correction size^-omega G. A number fixes it, "search" fits it between
            1/4 and 4, None means no correction.
        order: Degree of the polynomial F.
        window: Points with larger |x - critical| size^inverse_nu are left out; the window is placed
            by a first fit to all points and then kept.
        least_sizes: Number of sizes that are never left out.
        bootstrap: Number of bootstrap fits for the errors.
        seed: Seed of the bootstrap.

    Raises:
        ValueError: for unknown names, an omega that is not positive, fewer than two sizes, sizes
            that are not positive, and fewer points than unknowns.

    >>> import xarray as xr
    >>> length, temperature = np.array([8, 16, 32]), np.linspace(0.9, 1.1, 9)
    >>> scaled = (temperature - 1) * length[:, None]
    >>> magnetisation = (1 - scaled + scaled**2 / 4) / length[:, None] ** 0.125
    >>> columns = {"m": (("L", "T"), magnetisation), "m_error": (("L", "T"), np.full((3, 9), 1e-3))}
    >>> found = op.collapse(
    ...     xr.Dataset(columns, {"L": length, "T": temperature}), "T", "m", "L", bootstrap=10
    ... )
    >>> round(found.critical, 6), round(found.inverse_nu, 6), round(found.power, 6)
    (1.0, 1.0, -0.125)
    """
    if isinstance(omega, str) and omega != "search":
        raise ValueError(f"omega = {omega!r}: must be positive and finite, 'search' or None")
    if isinstance(omega, (int, float)) and not 0 < omega < np.inf:
        raise ValueError(f"omega = {omega}: must be positive and finite, 'search' or None")
    table = columns(data, y, (x, size))
    sizes = np.unique(table.coordinates[size])
    if len(sizes) < 2 or sizes[0] <= 0:
        raise ValueError(
            f"{size!r} has the values {', '.join(f'{n:g}' for n in sizes)}: at least two are "
            "needed, all positive"
        )
    given = {
        "critical": critical,
        "inverse_nu": inverse_nu,
        "power": power,
        "omega": None if omega == "search" else omega or 1.0,
    }
    kept = {name: float(value) for name, value in given.items() if value is not None}
    rng = np.random.default_rng(seed)
    while True:
        used = np.isin(table.coordinates[size], sizes)
        places, lengths = (table.coordinates[name][used] for name in (x, size))
        values, errors = table.value[used], table.error[used]
        correcting = 0 if omega is None else min(_STRAIGHT, order + 1)
        problem = _Scaling(places, lengths, values, errors, kept, order, correcting)
        found = _fit(problem, window, y, bootstrap, rng)
        richer = replace(problem, correcting=order + 1)
        has_richer = 0 < problem.correcting < richer.correcting and len(values) > richer.unknowns
        if has_richer and not found.accepted:
            better = _fit(richer, window, y, bootstrap, rng)
            if better.accepted:
                problem, found, has_richer = richer, better, False
        if found.accepted or len(sizes) <= max(2, least_sizes):
            break
        sizes = sizes[1:]
    if not found.accepted:
        quality = f"chi^2 {found.chi_squared:.3g} for {found.freedom} degrees of freedom"
        advice = (
            "; a smaller window or omega= may help"
            if omega is None
            else "; a smaller window may help"
        )
        warnings.warn(f"{y!r} does not collapse: {quality}{advice}", stacklevel=2)
        found = _widened(
            found,
            {name: np.sqrt(found.chi_squared / found.freedom) for name in FITTED},
            {},
        )
    larger = problem.part(problem.size > sizes[0])
    if len(sizes) > 2 and len(larger.y) > larger.unknowns + 1:
        again = _fit(larger, window, y, min(bootstrap, 50), rng)
        found = _compared(found, again, corrected=problem.correcting > 0)
    if has_richer:
        start = np.array([getattr(found, name) for name in problem.searched])
        again = _fit(richer, window, y, min(bootstrap, 50), rng, start)
        found = _compared(found, again, corrected=True)
    return found if omega is not None else replace(found, omega=np.nan)


def _compared(found: Collapse, other: Collapse, corrected: bool) -> Collapse:
    """The fit with errors that contain what another fit changes, where this one determines the
    number. corrected: whether the fits have a correction to scaling."""
    added = {}
    for name in FITTED:
        error = getattr(other, f"{name}_error")
        if getattr(found, f"{name}_error") > 0 and np.isfinite(error):
            difference = abs(getattr(other, name) - getattr(found, name))
            if corrected:
                added[name] = difference
            elif difference > 3 * error:
                added[name] = 2 * difference
    return _widened(found, {}, added)


def _widened(found: Collapse, factors: dict[str, float], added: dict[str, float]) -> Collapse:
    """The fit with larger errors: multiplied by a factor, and with further errors added in
    squares."""
    wider: dict[str, Any] = {}
    for name in FITTED:
        error = getattr(found, f"{name}_error") * factors.get(name, 1.0)
        wider[f"{name}_error"] = float(np.hypot(error, added.get(name, 0.0)))
    return replace(found, **wider)


@dataclass(frozen=True)
class _Scaling:
    """Least squares in the exponents that are searched; the polynomials are solved for at each
    step."""

    x: np.ndarray
    size: np.ndarray
    y: np.ndarray
    error: np.ndarray
    kept: dict[str, float]
    order: int
    correcting: int  # coefficients of G

    @property
    def searched(self) -> tuple[str, ...]:
        return tuple(name for name in SEARCHED if name not in self.kept)

    def part(self, used: np.ndarray) -> "_Scaling":
        """The problem with some of its points."""
        return replace(
            self, **{name: getattr(self, name)[used] for name in ("x", "size", "y", "error")}
        )

    def named(self, unknowns: np.ndarray) -> dict[str, float]:
        """The given and the fitted parameters."""
        return {**self.kept, **dict(zip(self.searched, map(float, unknowns)))}

    @property
    def unknowns(self) -> int:
        """The number of fitted numbers, the coefficients of the polynomials included."""
        return self.order + 1 + self.correcting + len(self.searched)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of the search, outside which powers of the sizes overflow."""
        reach = np.ptp(self.x) or 1.0
        ranges = {
            "critical": (np.min(self.x) - reach, np.max(self.x) + reach),
            "inverse_nu": (-STEEPEST, STEEPEST),
            "power": (-STEEPEST, STEEPEST),
            "omega": OMEGAS,
        }
        low, high = np.array([ranges[name] for name in self.searched]).reshape(-1, 2).T
        return low, high

    def at_an_end(self, unknowns: np.ndarray) -> np.ndarray:
        """Names of the fitted parameters that lie at an end of their range."""
        low, high = self.bounds()
        return np.minimum(unknowns - low, high - unknowns) < _INSIDE * (high - low)

    def scaled(self, unknowns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The argument of F and G, and the prefactor of both."""
        p = self.named(unknowns)
        return (self.x - p["critical"]) * self.size ** p["inverse_nu"], self.size ** p["power"]

    def polynomials(self, unknowns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients of F and of G (2, order + 1), and the residuals in units of the
        errors."""
        u, factor = self.scaled(unknowns)
        unit, smallest = np.max(np.abs(u)) or 1.0, np.min(self.size)
        powers = np.vander(u / unit, self.order + 1, increasing=True)
        columns = [powers]
        decay = self.named(unknowns)["omega"]
        if self.correcting:
            decayed = ((self.size / smallest) ** -decay)[:, None]
            columns.append(powers[:, : self.correcting] * decayed)
        matrix = np.hstack(columns) * (factor / self.error)[:, None]
        weighted = self.y / self.error
        found, *_ = np.linalg.lstsq(matrix, weighted, rcond=None)
        pair = np.zeros((2, self.order + 1))
        pair[0] = found[: self.order + 1]
        pair[1, : self.correcting] = found[self.order + 1 :] * smallest**decay
        pair /= unit ** np.arange(self.order + 1)
        return pair, matrix @ found - weighted

    def fitted(self, unknowns: np.ndarray) -> dict[str, float]:
        """All numbers of a fit: the given and the fitted parameters, and the relative
        correction."""
        first, second = self.polynomials(unknowns)[0][:, 0]
        return self.named(unknowns) | {"correction": float(second / first) if second else 0.0}

    def solved(self, start: np.ndarray) -> np.ndarray:
        if not len(start):
            return start
        low, high = self.bounds()
        start = np.clip(start, low + 1e-3 * (high - low), high - 1e-3 * (high - low))
        scale = np.maximum(np.abs(start), 0.1)
        scale[[name == "critical" for name in self.searched]] = np.ptp(self.x) or 1.0
        found = scipy.optimize.least_squares(
            lambda p: self.polynomials(p)[1],
            start,
            bounds=(low, high),
            x_scale=scale,
            xtol=1e-12,
            ftol=1e-12,
            max_nfev=200,
        )
        return found.x


def _fit(
    problem: _Scaling,
    window: float,
    y: str,
    bootstrap: int,
    rng: np.random.Generator,
    start: np.ndarray | None = None,
) -> Collapse:
    unknowns = _searched_from_many(problem) if start is None else problem.solved(start)
    if np.isfinite(window):
        inside = np.abs(problem.scaled(unknowns)[0]) <= window
        problem = problem.part(inside)
    freedom = len(problem.y) - problem.unknowns
    if freedom < 1:
        raise ValueError(
            f"{y!r} has {len(problem.y)} points: a fit of {len(problem.y) - freedom} numbers needs "
            "more"
        )
    unknowns = problem.solved(unknowns)
    (main, correcting), residuals = problem.polynomials(unknowns)
    noise = rng.standard_normal((bootstrap, len(problem.y)))
    # drawn around the fitted curve
    drawn = [replace(problem, y=problem.y + problem.error * (residuals + one)) for one in noise]
    again = [one.fitted(one.solved(unknowns)) for one in drawn]
    errors = {
        name: float(np.std([one[name] for one in again], ddof=1))
        for name in FITTED
        if name not in problem.kept
    }
    values = problem.fitted(unknowns)
    errors |= {
        name: np.inf for name, ended in zip(problem.searched, problem.at_an_end(unknowns)) if ended
    }
    if "omega" in errors and _reaches_an_end(
        problem, unknowns, float(np.sum(residuals**2)), freedom
    ):
        errors["omega"] = np.inf
    u, factor = problem.scaled(unknowns)
    correction = problem.size ** -values["omega"] * np.polynomial.polynomial.polyval(u, correcting)
    return Collapse(
        **values,
        **{f"{name}_error": errors.get(name, 0.0) for name in FITTED},
        polynomial=main,
        correction_polynomial=correcting,
        chi_squared=float(np.sum(residuals**2)),
        freedom=freedom,
        sizes=tuple(np.unique(problem.size).tolist()),
        scaled_x=u,
        scaled_y=problem.y / factor - correction,
        scaled_error=problem.error / factor,
        scaled_size=problem.size,
    )


def _reaches_an_end(problem: _Scaling, unknowns: np.ndarray, least: float, freedom: int) -> bool:
    """True if an omega at an end of its range describes the data nearly as well as the best one."""
    allowed = least + _PROFILE * max(1.0, least / freedom)
    start = unknowns[[name != "omega" for name in problem.searched]]
    for omega in OMEGAS:
        held = replace(problem, kept={**problem.kept, "omega": omega})
        if np.sum(held.polynomials(held.solved(start))[1] ** 2) <= allowed:
            return True
    return False


def _searched_from_many(problem: _Scaling) -> np.ndarray:
    """The best fit of several starts: the critical point at quarters of the range, 1/nu of 1/2, 1
    and 2."""
    quarters = np.quantile(np.unique(problem.x), (0.25, 0.5, 0.75))
    starts = {
        "critical": quarters,
        "inverse_nu": (0.5, 1.0, 2.0),
        "power": (0.0,),
        "omega": (0.5, 1.0, 2.0),
    }
    found = [
        problem.solved(np.array(start))
        for start in itertools.product(*(starts[name] for name in problem.searched))
    ]
    return min(found, key=lambda unknowns: float(np.sum(problem.polynomials(unknowns)[1] ** 2)))
