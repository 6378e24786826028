"""Boolean functions: three laws of the functions that trained networks compute, two of them
Bayesian posteriors, and networks of any width to compare them with."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.boolean_functions.experiment import TrainedFunctions, trained_functions
    from orderparam.systems.boolean_functions.model import BooleanTraining
    from orderparam.systems.boolean_functions.theory import (
        FunctionLaw,
        LawDistances,
        frozen_kernel_law,
        label_posterior,
        regression_posterior,
        tangent_kernel_law,
        wide_distances,
    )

LABELS = {
    "probability": ("probability of a function", "P"),
    "squared_distance": ("squared distance of both laws", ""),
}

__all__ = exported(globals())
