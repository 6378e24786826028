"""Scaling laws: how the error falls with data, width and compute, and where a power law ends.

joint/        random features with a given number of examples and of features
one_pass/     one-pass SGD on random features: risk, best width at a given compute, schedules
scale_free/   real images as scale-free data
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
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

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "above_infinite_data": ("error above that of infinite data", ""),
    "above_infinite_width": ("error above that of infinite width", ""),
    "data_share": ("share of the examples", "n/(N+n)"),
    "population_eigenvalue": ("eigenvalue", r"\lambda_k"),
    "rank": ("rank", "k"),
    "target_tail": ("target's power from here on", r"\sum_{j\geq k} y_j^2"),
}

__all__ = exported(globals())
