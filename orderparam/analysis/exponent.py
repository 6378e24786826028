"""A power law y ~ amplitude x^exponent: where it holds, how well its exponent is known, and whether
it is one at all.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.special
import xarray as xr

from orderparam.analysis.collapse import ACCEPTED
from orderparam.analysis.measured import columns
from orderparam.solve.straight_line import straight_line


@dataclass(frozen=True)
class Exponent:
    """y = amplitude x^exponent inside a window of x.

    exponent_error: standard error of the weighted fit of ln y. interval: 95 % of the exponent.
    window: first and last x used. local_slopes: d ln y / d ln x between neighbouring x of all the
    data, at `local_x`, with `local_errors`. chi_squared, freedom, probability: of the fit.
    power_law: the probability reached 0.05.
    """

    exponent: float
    exponent_error: float
    amplitude: float
    window: tuple[float, float]
    chi_squared: float
    freedom: int
    local_x: np.ndarray
    local_slopes: np.ndarray
    local_errors: np.ndarray

    @property
    def interval(self) -> tuple[float, float]:
        return (
            self.exponent - 1.96 * self.exponent_error,
            self.exponent + 1.96 * self.exponent_error,
        )

    @property
    def probability(self) -> float:
        return float(scipy.special.gammaincc(self.freedom / 2, self.chi_squared / 2))

    @property
    def power_law(self) -> bool:
        return self.probability >= ACCEPTED

    def __repr__(self) -> str:
        where, quality = (
            f"{self.window[0]:g} .. {self.window[1]:g}",
            f"{self.chi_squared:.3g} / {self.freedom}",
        )
        return (
            f"Exponent({self.exponent:.6g} ± {self.exponent_error:.2g}; x {where}; chi^2 {quality})"
        )


def exponent(
    data: xr.Dataset, x: str, y: str, *, window: tuple[float, float] | None = None, least: int = 4
) -> Exponent:
    """The exponent of y(x), averaged over `seed`, with the errors `y_error` or those of the
    scatter; x and y must be positive.

    window: the x to use; None chooses the widest window of at least `least` neighbouring points in
    which a power law has a probability of at least 0.05, and of equally wide ones that with the
    largest x. Where there is none, the last `least` points are used, and a `UserWarning` says that
    this is not a power law. Errors of ln y are those of y over y.

    Raises `ValueError` for unknown names, values that are not positive, and fewer than three
    points.

    >>> import xarray as xr
    >>> n = np.geomspace(10, 1000, 9)
    >>> data = xr.Dataset({"error": ("n", 3 / n**0.5), "error_error": ("n", 0.03 / n**0.5)}, {"n": n})
    >>> op.exponent(data, "n", "error")
    Exponent(-0.5 ± 0.0022; x 10 .. 1000; chi^2 ...)
    """
    table = columns(data, y, (x,))
    order = np.argsort(table.coordinates[x])
    place, value, error = table.coordinates[x][order], table.value[order], table.error[order]
    if window is not None:
        inside = (place >= window[0]) & (place <= window[1])
        place, value, error = place[inside], value[inside], error[inside]
    if len(place) < 3:
        raise ValueError(f"{y!r} has {len(place)} points: a power law needs at least three")
    for name, numbers in ((x, place), (y, value)):
        if np.any(numbers <= 0):
            raise ValueError(
                f"{name!r} = {numbers[numbers <= 0][0]:g}: must be positive in a power law"
            )
    logs = np.log(place), np.log(value), error / value
    least = min(max(3, least), len(place))
    widths = [len(place)] if window is not None else range(len(place), least - 1, -1)
    parts = [
        slice(start, start + width)
        for width in widths
        for start in range(len(place) - width, -1, -1)
    ]
    fits = [straight_line(*(column[part] for column in logs)) for part in parts]
    good = [
        k
        for k, fit in enumerate(fits)
        if scipy.special.gammaincc(fit.freedom / 2, fit.chi_squared / 2) >= ACCEPTED
    ]
    chosen = (
        good[0]
        if good
        else next(
            k for k, part in enumerate(parts) if part == slice(len(place) - widths[-1], len(place))
        )
    )
    part, fit = parts[chosen], fits[chosen]
    if not good:
        told = f"chi^2 {fit.chi_squared:.3g} for {fit.freedom} degrees of freedom"
        warnings.warn(f"{y!r} against {x!r} is not a power law: {told}", stacklevel=2)
    rise = np.diff(logs[0])
    return Exponent(
        fit.slope,
        fit.error,
        float(np.exp(fit.constant)),
        (float(place[part][0]), float(place[part][-1])),
        fit.chi_squared,
        fit.freedom,
        np.sqrt(place[1:] * place[:-1]),
        np.diff(logs[1]) / rise,
        np.hypot(logs[2][1:], logs[2][:-1]) / rise,
    )
