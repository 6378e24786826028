"""Theories of the learning curve of kernel regression, one set of assumptions a file."""

from orderparam.systems.kernel_regression.theory.cross_validation import generalized_cross_validation
from orderparam.systems.kernel_regression.theory.decimation import decimation_flow, renormalization_group
from orderparam.systems.kernel_regression.theory.finite_pool import cavity, self_consistent_on_pool
from orderparam.systems.kernel_regression.theory.learning_curve import LearningCurve
from orderparam.systems.kernel_regression.theory.local_decimation import local_renormalization
from orderparam.systems.kernel_regression.theory.mean_field import annealed, mode_decomposition, self_consistent
from orderparam.systems.kernel_regression.theory.optimal import optimal_temperature
from orderparam.systems.kernel_regression.theory.perturbation import (
    equivalent_kernel,
    equivalent_kernel_corrected,
    equivalent_kernel_on_pool,
)
from orderparam.systems.kernel_regression.theory.position_dependent import heteroscedastic
from orderparam.systems.kernel_regression.theory.power_laws import ScalingLaw, scaling_law

__all__ = [
    "LearningCurve",
    "ScalingLaw",
    "annealed",
    "cavity",
    "decimation_flow",
    "equivalent_kernel",
    "equivalent_kernel_corrected",
    "equivalent_kernel_on_pool",
    "generalized_cross_validation",
    "heteroscedastic",
    "local_renormalization",
    "mode_decomposition",
    "optimal_temperature",
    "renormalization_group",
    "scaling_law",
    "self_consistent",
    "self_consistent_on_pool",
]
