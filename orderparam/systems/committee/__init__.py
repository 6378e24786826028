"""Committee machines, whose hidden units have the sign as activation: state evolution,
specialisation of the units, and message passing.

from orderparam.systems.committee import Committee, specialisation, state_evolution

state_evolution(Committee(2.5)).overlap
specialisation(Committee(1.0)).sample_ratio
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.committee.experiment import CommitteePassing, message_passing
    from orderparam.systems.committee.large import (
        LargeCommittee,
        LargeCommitteeState,
        LargeCommitteeTransition,
        large_committee,
        large_committee_transition,
    )
    from orderparam.systems.committee.model import Committee
    from orderparam.systems.committee.parity import (
        SpectralCommittee,
        leading_eigenvectors,
        spectral,
    )
    from orderparam.systems.committee.theory import (
        InformationTransition,
        OptimalCommittee,
        Specialisation,
        TeacherCommittee,
        information_transition,
        specialisation,
        state_evolution,
    )

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "overlap": ("overlap of a unit with itself", "Q_{11}"),
    "unit_ratio": ("samples per dimension and unit", "n/(Kd)"),
    "cross_overlap": ("overlap with another unit", "Q_{12}"),
}

__all__ = exported(globals())
