"""Answers to the usual questions about any theory and about measured data: the phases, the place
and kind of the transition, and the exponents. This package uses nothing of a system but its
fields."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.analysis.collapse import Collapse, collapse
    from orderparam.analysis.exponent import Exponent, exponent
    from orderparam.analysis.phases import PhaseDiagram, Transition, phase_diagram, transition

__all__ = exported(globals())
