"""The contract: systems, results, theories and experiments, and the registry by which they are
found."""

from orderparam.core.on_demand import on_demand

__getattr__, __dir__ = on_demand(__name__, __path__)
