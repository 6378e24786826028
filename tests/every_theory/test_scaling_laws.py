"""Every theory of scaling laws."""

from checks import checks

from orderparam.systems.scaling_laws import ComputeBudget, PowerLawFeatures

SYSTEMS = [PowerLawFeatures(1.0, 0.3, 200, width=50, learning_rate=0.3, horizon=100, records=3), ComputeBudget(1e5)]
globals().update(checks("scaling_laws", SYSTEMS, fewer={"compute_optimal": 20}))
