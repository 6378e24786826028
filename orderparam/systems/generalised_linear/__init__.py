"""Generalised linear models: the optimal estimator with its transitions, message passing, and
penalised losses.

    bayes/         Bayes-optimal estimation: state evolution, thresholds, message passing, VAMP
    penalised/     minimisers of convex losses with l1 and l2 penalties
    own_design.py  predictions and measurements for a design matrix of your own
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.channels.outlier import SpectralEstimate
    from orderparam.systems.generalised_linear.bayes.amp_fixed_point import amp_fixed_point
    from orderparam.systems.generalised_linear.bayes.eigenvectors import spectral
    from orderparam.systems.generalised_linear.bayes.experiment import (
        MessagePassing,
        gamp,
        leading_eigenvector,
        message_passing,
        vector_message_passing,
    )
    from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear, InvariantDesign
    from orderparam.systems.generalised_linear.bayes.sparse import Needed, sparse_thresholds
    from orderparam.systems.generalised_linear.bayes.theory import (
        OptimalEstimate,
        SolutionCurve,
        TeacherEstimate,
        Thresholds,
        solutions,
        state_evolution,
        thresholds,
    )
    from orderparam.systems.generalised_linear.bayes.vamp import (
        MeasuredWeights,
        MeasuredWeightsTheory,
        vector_state_evolution,
    )
    from orderparam.systems.generalised_linear.own_design import DesignReport, assess_design
    from orderparam.systems.generalised_linear.penalised.experiment import (
        fitted_elastic_net,
        fitted_estimator,
    )
    from orderparam.systems.generalised_linear.penalised.model import ElasticNet, PenalisedFit
    from orderparam.systems.generalised_linear.penalised.theory import (
        BestPenalty,
        Fit,
        FitTheory,
        SparseFit,
        SparseFitTheory,
        best_penalty,
        elastic_net,
        penalised_fit,
    )

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "condition": ("condition number", r"s_\mathrm{max}/s_\mathrm{min}"),
    "l1": ("penalty", r"\lambda_1"),
    "prior.density": ("density", r"\rho"),
    "sample_ratio_needed": ("samples per dimension needed", "n/d"),
    "support": ("share of non-zero weights", ""),
}

__all__ = exported(globals())
