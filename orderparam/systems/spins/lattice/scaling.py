"""Finite-size scaling of the Ising model: the critical temperature and the exponents from small lattices."""

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from orderparam.analysis import Collapse, Exponent, collapse, exponent


@dataclass(frozen=True)
class CriticalPoint:
    """What lattices of several sizes say of the transition; each fit tells the sizes that it used.

    binder: temperature and 1/nu, from the ratio, which is a function of (T - T_c) L^(1/nu) alone. magnetisation: its `power` is
    -beta/nu; susceptibility: gamma/nu; both at the temperature and 1/nu of the ratio, whose errors are joined to theirs.
    correlation: of opposite sites at T_c, L^-eta; None where it was not measured.
    """

    binder: Collapse
    magnetisation: Collapse
    susceptibility: Collapse
    correlation: Exponent | None

    @property
    def exponents(self) -> dict[str, tuple[float, float]]:
        """Name -> value and standard error."""
        found = {
            "T_c": (self.binder.critical, self.binder.critical_error),
            "1/nu": (self.binder.inverse_nu, self.binder.inverse_nu_error),
            "beta/nu": (-self.magnetisation.power, self.magnetisation.power_error),
            "gamma/nu": (self.susceptibility.power, self.susceptibility.power_error),
        }
        return (
            found if self.correlation is None else {**found, "eta": (-self.correlation.exponent, self.correlation.exponent_error)}
        )


def finite_size_scaling(runs: xr.Dataset, correlations: xr.Dataset | None = None, window: float = 3.0) -> CriticalPoint:
    """From measured `binder`, `absolute_magnetisation` and `squared_magnetisation` against `length` and `temperature` (a sweep of
    `swendsen_wang` near T_c over square lattices), and the `correlation` of opposite sites against `length` at T_c.

    The susceptibility is that of the symmetric phase, L^2 <m^2>. window: of |T - T_c| L.
    """
    places = {"x": "temperature", "size": "length", "window": window}
    binder = collapse(runs, y="binder", power=0, **places)  # type: ignore[arg-type]
    squared = runs["squared_magnetisation"] * runs["length"] ** 2, runs["squared_magnetisation_error"] * runs["length"] ** 2
    runs = runs.assign(symmetric_susceptibility=squared[0], symmetric_susceptibility_error=squared[1])
    magnetisation, susceptibility = (_at(binder, runs, y, places) for y in ("absolute_magnetisation", "symmetric_susceptibility"))
    far = None if correlations is None else exponent(correlations, "length", "correlation")
    return CriticalPoint(binder, magnetisation, susceptibility, far)


def _at(binder: Collapse, runs: xr.Dataset, y: str, places: dict) -> Collapse:
    """The collapse at the temperature and 1/nu of the ratio, whose errors move the power."""
    shifts = [(0, 0), (binder.critical_error, 0), (0, binder.inverse_nu_error)]
    fits = [collapse(runs, y=y, critical=binder.critical + t, inverse_nu=binder.inverse_nu + n, **places) for t, n in shifts]
    found = fits[0]
    changes = [found.power_error, *(fit.power - found.power for fit in fits[1:])]
    return replace(found, power_error=float(np.linalg.norm(changes)))
