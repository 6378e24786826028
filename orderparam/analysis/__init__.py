"""The field's questions about measured data: where is the transition, and with which exponents? Knows nothing of systems."""

from orderparam.analysis.collapse import Collapse, collapse
from orderparam.analysis.exponent import Exponent, exponent
