"""The contract: systems, theories, experiments and studies, the sweep that connects them, and where
its points are kept."""

from orderparam.core.on_demand import on_demand

__getattr__, __dir__ = on_demand(__name__, __path__)
