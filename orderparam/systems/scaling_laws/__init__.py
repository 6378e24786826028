"""Scaling laws: how the error falls with data, width and compute, and where a power law ends.

import orderparam as op from orderparam.systems.scaling_laws import ComputeBudget, PowerLawFeatures,
compute_optimal, deterministic_risk, one_pass_sgd

system = PowerLawFeatures(1.0, 0.3, 400, width=100, learning_rate=0.3, horizon=1e5)
deterministic_risk(system).risk
op.sweep(one_pass_sgd, system, {"width": [50, 100]}, seeds=8)
compute_optimal(ComputeBudget(1e8, 1.0, 0.3)).width
"""

from orderparam.systems.scaling_laws.joint.experiment import drawn_regression
from orderparam.systems.scaling_laws.joint.model import (
    ParameterBudget,
    ScaleFree,
    ScaleFreeFeatures,
)
from orderparam.systems.scaling_laws.joint.theory import (
    LimitExponents,
    best_split,
    joint_law,
    limit_exponents,
    optimal_ridge,
)
from orderparam.systems.scaling_laws.one_pass.compute_optimal import (
    ComputeBudget,
    ComputeExponents,
    ComputeFrontier,
    ComputeOptimal,
    FrontierExponents,
    compute_exponents,
    compute_optimal,
    frontier_exponents,
    measured_optimum,
)
from orderparam.systems.scaling_laws.one_pass.experiment import (
    DrawnRisk,
    ScheduledSGD,
    drawn_features,
    one_pass_sgd,
    scheduled_mean,
    scheduled_sgd,
)
from orderparam.systems.scaling_laws.one_pass.model import (
    OnePassFeatures,
    PowerLawFeatures,
    SpectralStream,
)
from orderparam.systems.scaling_laws.one_pass.theory import OnePassRisk, deterministic_risk
from orderparam.systems.scaling_laws.scale_free.experiment import gaussian_clone, learned_pool
from orderparam.systems.scaling_laws.scale_free.model import ScaleFreeData
from orderparam.systems.scaling_laws.scale_free.theory import scale_free_fit, spectral_curve
