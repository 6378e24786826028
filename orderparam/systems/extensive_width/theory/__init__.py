"""The theory: Bayes-optimal states, their transitions, their limits, and students of limited width."""

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
