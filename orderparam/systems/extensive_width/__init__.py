"""Bayes-optimal learning of a two-layer teacher whose width grows with the input dimension, from n ~ d^2 noisy samples.

Features are learned one after the other, each by a jump of its overlap; their number, the effective width k_c, sets the
error, error ~ k_c d / n. Nguyen and Barbier 2026, "Sharp feature-learning transitions and Bayes-optimal neural scaling
laws in extensive-width networks".
"""

from orderparam.systems.extensive_width.experiment import (
    CollectivePosterior,
    PosteriorAverages,
    TrainedStudent,
    adam_at_effective_width,
    adam_student,
    posterior_hmc,
    quadratic_posterior_hmc,
)
from orderparam.systems.extensive_width.model import (
    TANH_2,
    HierarchicalTeacher,
    QuadraticTeacher,
    Teacher,
    WeightedTeacher,
    WidthLimitedStudent,
    gaussian_readouts,
)
from orderparam.systems.extensive_width.theory import (
    ActivationChannel,
    BayesOptimal,
    CoexistingStates,
    CollectiveOptimal,
    CollectiveTransition,
    Compressed,
    FlatHierarchy,
    MatrixChannel,
    Scaling,
    Staircase,
    Windows,
    all_solutions,
    bayes_optimal,
    channel,
    coexistence_windows,
    collective_transition,
    compressed,
    effective_teacher,
    flat_hierarchy,
    informed_state,
    limiting_profile,
    matrix_channel,
    quadratic_bayes_optimal,
    staircase,
    steep_hierarchy,
)
