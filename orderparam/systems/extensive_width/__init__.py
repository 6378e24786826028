"""Bayes-optimal learning of a two-layer teacher whose width grows with the input dimension, from n ~ d^2 noisy samples.

Features are learned one after the other, each by a jump of its overlap; their number, the effective width k_c, sets the
error, error ~ k_c d / n. Nguyen and Barbier 2026, "Sharp feature-learning transitions and Bayes-optimal neural scaling
laws in extensive-width networks".
"""

from orderparam.systems.extensive_width.experiment.posterior import PosteriorAverages, posterior_hmc
from orderparam.systems.extensive_width.experiment.quadratic import CollectivePosterior, quadratic_posterior_hmc
from orderparam.systems.extensive_width.experiment.student import TrainedStudent, adam_at_effective_width, adam_student
from orderparam.systems.extensive_width.model import (
    TANH_2,
    HierarchicalTeacher,
    QuadraticTeacher,
    Teacher,
    WeightedTeacher,
    WidthLimitedStudent,
    gaussian_readouts,
)
from orderparam.systems.extensive_width.theory.bayes import CoexistingStates, all_solutions, bayes_optimal, informed_state
from orderparam.systems.extensive_width.theory.channel import ActivationChannel, channel
from orderparam.systems.extensive_width.theory.collective import CollectiveTransition, collective_transition
from orderparam.systems.extensive_width.theory.compression import Compressed, compressed, effective_teacher
from orderparam.systems.extensive_width.theory.limits import (
    FlatHierarchy,
    Scaling,
    flat_hierarchy,
    limiting_profile,
    steep_hierarchy,
)
from orderparam.systems.extensive_width.theory.matrix_channel import MatrixChannel, matrix_channel
from orderparam.systems.extensive_width.theory.quadratic import CollectiveOptimal, quadratic_bayes_optimal
from orderparam.systems.extensive_width.theory.state import BayesOptimal
from orderparam.systems.extensive_width.theory.transitions import Staircase, Windows, coexistence_windows, staircase
