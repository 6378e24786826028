"""The field's questions about any theory and about measured data: which phases are there, where is
the transition, of which kind, with which exponents? Knows systems only as something with fields."""

from orderparam.analysis.collapse import Collapse, collapse
from orderparam.analysis.exponent import Exponent, exponent
from orderparam.analysis.phases import PhaseDiagram, Transition, phase_diagram, transition
