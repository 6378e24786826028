"""The named figures of kernel regression; each file next to this one holds those of one topic."""

from orderparam.systems.kernel_regression.studies_images import digits_learning_curve, gpr_binary_images
from orderparam.systems.kernel_regression.studies_langevin import langevin_vs_gp
from orderparam.systems.kernel_regression.studies_overfitting import benign_tail, double_descent_finite_rank
from orderparam.systems.kernel_regression.studies_scaling import kernel_scaling_regimes
from orderparam.systems.kernel_regression.studies_staircase import staircase_gp

__all__ = [
    "benign_tail",
    "digits_learning_curve",
    "double_descent_finite_rank",
    "gpr_binary_images",
    "kernel_scaling_regimes",
    "langevin_vs_gp",
    "staircase_gp",
]
