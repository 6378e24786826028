"""Order parameters of any trained network: each a number with an interval, its law under a null
hypothesis, and a p-value."""

from orderparam.core.exported import without_modules
from orderparam.observables.observable import Measured, Null, difference, holm
from orderparam.observables.similarity import alignment, similarity

__all__ = without_modules(globals())
