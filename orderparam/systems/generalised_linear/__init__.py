"""Generalised linear models: the optimal estimator with its transitions, message passing, and penalised least squares.

import orderparam as op
from orderparam.systems.generalised_linear import GeneralisedLinear, message_passing, state_evolution, thresholds

system = GeneralisedLinear(1.0, "sign", "rademacher")
thresholds(system).information
op.sweep(message_passing, system, {"sample_ratio": [0.5, 1.0, 1.4]}, seeds=4)
"""

from orderparam.channels.outlier import SpectralEstimate
from orderparam.systems.generalised_linear.bayes.experiment import MessagePassing, gamp, message_passing
from orderparam.systems.generalised_linear.bayes.limit import amp_fixed_point
from orderparam.systems.generalised_linear.bayes.model import GeneralisedLinear
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
from orderparam.systems.generalised_linear.elastic_net.experiment import fitted_elastic_net
from orderparam.systems.generalised_linear.elastic_net.model import ElasticNet
from orderparam.systems.generalised_linear.elastic_net.theory import SparseFit, SparseFitTheory, elastic_net
from orderparam.systems.generalised_linear.invariant.experiment import vector_message_passing
from orderparam.systems.generalised_linear.invariant.model import InvariantDesign
from orderparam.systems.generalised_linear.invariant.theory import MeasuredWeights, MeasuredWeightsTheory, vector_state_evolution
from orderparam.systems.generalised_linear.own_design import DesignReport, assess_design
from orderparam.systems.generalised_linear.penalised.experiment import fitted_estimator
from orderparam.systems.generalised_linear.penalised.model import PenalisedFit
from orderparam.systems.generalised_linear.penalised.theory import BestPenalty, Fit, FitTheory, best_penalty, penalised_fit
from orderparam.systems.generalised_linear.spectral.experiment import leading_eigenvector
from orderparam.systems.generalised_linear.spectral.theory import spectral
