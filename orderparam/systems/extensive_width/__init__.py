"""Bayes-optimal learning of a two-layer teacher whose width grows with the input dimension, from n
~ d^2 noisy samples.

Features are learned one after the other; the overlap of each jumps when it is learned. The number
of learned features, the effective width k_c, sets the error, error ~ k_c d / n. Source: Nguyen and
Barbier 2026, "Sharp feature-learning transitions and Bayes-optimal neural scaling laws in
extensive-width networks".
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.extensive_width.channel import ActivationChannel, channel
    from orderparam.systems.extensive_width.coexisting import CoexistingStates, all_solutions
    from orderparam.systems.extensive_width.experiment import (
        TrainedStudent,
        adam_at_effective_width,
        adam_student,
    )
    from orderparam.systems.extensive_width.finite_size import (
        FluctuatingStates,
        fluctuating_states,
    )
    from orderparam.systems.extensive_width.learned_readouts import (
        AblatedPosterior,
        ablated_posterior,
    )
    from orderparam.systems.extensive_width.limits import (
        CollectiveTransition,
        FlatHierarchy,
        Scaling,
        collective_transition,
        flat_hierarchy,
        limiting_profile,
        steep_hierarchy,
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
    from orderparam.systems.extensive_width.posterior import (
        CollectivePosterior,
        PosteriorAverages,
        posterior_hmc,
        quadratic_posterior_hmc,
    )
    from orderparam.systems.extensive_width.quadratic import (
        CollectiveOptimal,
        MatrixChannel,
        matrix_channel,
        quadratic_bayes_optimal,
    )
    from orderparam.systems.extensive_width.selection import (
        CompetingStates,
        ExchangedPosterior,
        competing_states,
        exchanged_posterior,
        walled_posterior,
    )
    from orderparam.systems.extensive_width.state import BayesOptimal
    from orderparam.systems.extensive_width.theory import (
        Compressed,
        bayes_optimal,
        compressed,
        effective_teacher,
        informed_state,
    )
    from orderparam.systems.extensive_width.transitions import (
        Staircase,
        Windows,
        coexistence_windows,
        staircase,
    )

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "decay": ("decay", r"\beta"),
    "effective_width": ("effective width", "k_c"),
}

__all__ = exported(globals())
