"""Gaussian-process and kernel regression on random training sets: learning curves, measured and from three theories."""

from orderparam.systems.kernel_regression.experiment import (
    MeasuredCurve,
    NetworkCurve,
    NetworkRegression,
    gaussian_design,
    gp_regression,
    network_posterior,
)
from orderparam.systems.kernel_regression.forecast import Forecast, forecast
from orderparam.systems.kernel_regression.images import image_pool
from orderparam.systems.kernel_regression.model import KernelRegression, PoolRegression
from orderparam.systems.kernel_regression.theory import (
    LearningCurve,
    annealed,
    cavity,
    decimation_flow,
    equivalent_kernel,
    equivalent_kernel_corrected,
    equivalent_kernel_on_pool,
    generalized_cross_validation,
    heteroscedastic,
    mode_decomposition,
    optimal_temperature,
    renormalization_group,
    self_consistent,
    self_consistent_on_pool,
)

__all__ = [
    "Forecast",
    "KernelRegression",
    "LearningCurve",
    "MeasuredCurve",
    "NetworkCurve",
    "NetworkRegression",
    "PoolRegression",
    "annealed",
    "cavity",
    "decimation_flow",
    "equivalent_kernel",
    "equivalent_kernel_corrected",
    "equivalent_kernel_on_pool",
    "forecast",
    "gaussian_design",
    "generalized_cross_validation",
    "gp_regression",
    "heteroscedastic",
    "image_pool",
    "mode_decomposition",
    "network_posterior",
    "optimal_temperature",
    "renormalization_group",
    "self_consistent",
    "self_consistent_on_pool",
]
