"""The physics, one topic per system: model (parameters), theory, experiment, studies. Topics never
import one another."""

from orderparam.core.on_demand import on_demand

__getattr__, __dir__ = on_demand(__name__, __path__)
