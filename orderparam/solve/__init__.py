"""Solvers: roots, fixed points, minima, relaxations and flows. All return value, residual,
converged and steps."""

from orderparam.core.on_demand import on_demand

__getattr__, __dir__ = on_demand(__name__, __path__)
