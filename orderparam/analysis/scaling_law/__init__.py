"""Scaling laws of one's own training runs."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.analysis.scaling_law.isoflop import IsoFlop, iso_flop
    from orderparam.analysis.scaling_law.law import Allocation, Interval, ScalingLaw, scaling_law
    from orderparam.analysis.scaling_law.regimes import Regimes, regimes
    from orderparam.analysis.scaling_law.runs import Runs

__all__ = exported(globals())
