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
from orderparam.systems.kernel_regression.model import HeteroscedasticRegression, KernelRegression, PoolRegression
from orderparam.systems.kernel_regression.sphere import SphereRegression, self_consistent_by_degree, sphere_regression
from orderparam.systems.kernel_regression.theory import (
    LearningCurve,
    ScalingLaw,
    annealed,
    cavity,
    decimation_flow,
    equivalent_kernel,
    equivalent_kernel_corrected,
    equivalent_kernel_on_pool,
    generalized_cross_validation,
    heteroscedastic,
    local_renormalization,
    mode_decomposition,
    optimal_temperature,
    renormalization_group,
    scaling_law,
    self_consistent,
    self_consistent_on_pool,
)
from orderparam.systems.kernel_regression.training import NetworkTraining, gaussian_process, hamiltonian, langevin

__all__ = [
    "Forecast",
    "HeteroscedasticRegression",
    "KernelRegression",
    "LearningCurve",
    "MeasuredCurve",
    "NetworkCurve",
    "NetworkRegression",
    "NetworkTraining",
    "PoolRegression",
    "ScalingLaw",
    "SphereRegression",
    "annealed",
    "cavity",
    "decimation_flow",
    "equivalent_kernel",
    "equivalent_kernel_corrected",
    "equivalent_kernel_on_pool",
    "forecast",
    "gaussian_design",
    "gaussian_process",
    "generalized_cross_validation",
    "gp_regression",
    "hamiltonian",
    "heteroscedastic",
    "image_pool",
    "langevin",
    "local_renormalization",
    "mode_decomposition",
    "network_posterior",
    "optimal_temperature",
    "renormalization_group",
    "scaling_law",
    "self_consistent",
    "self_consistent_by_degree",
    "self_consistent_on_pool",
    "sphere_regression",
]
