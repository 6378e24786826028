"""How theories and experiments are carried out: a program for each point of a grid, the sweep over
the points, the store that keeps each finished point, and the processes that share the work.
"""

from orderparam.core.on_demand import on_demand

__getattr__, __dir__ = on_demand(__name__, __path__)
