"""Order parameters of any trained network: each a number with an interval, its distribution under a
null hypothesis, and a p-value."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.observables.budget import Budget
    from orderparam.observables.calibration import Calibration, calibration
    from orderparam.observables.coordinate_check import CoordinateCheck, coordinate_check
    from orderparam.observables.curvature import CurvatureSpectrum, curvature
    from orderparam.observables.difficulty import Difficulty, difficulty
    from orderparam.observables.dimension import dimension
    from orderparam.observables.gaussianity import excess_kurtosis
    from orderparam.observables.learnability import learnability
    from orderparam.observables.learning_coefficient import (
        LearningCoefficient,
        learning_coefficient,
    )
    from orderparam.observables.observable import Null, Observed, difference, holm
    from orderparam.observables.overlaps import Overlap, overlap, seed_overlap
    from orderparam.observables.similarity import alignment, similarity
    from orderparam.observables.tail import PowerLawTail, power_law_tail
    from orderparam.observables.tangent_features import feature_drift, tangent_features
    from orderparam.observables.tangent_kernel import (
        Drift,
        kernel_drift,
        lazy_to_rich,
        tangent_kernel,
    )
    from orderparam.observables.torch_loss import torch_loss
    from orderparam.observables.weights import Outlier, WeightSpectrum, weight_spectrum
    from orderparam.observables.width_transfer import WidthTransfer, width

__all__ = exported(globals())
