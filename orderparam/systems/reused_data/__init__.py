"""Training on re-used data: every step of gradient descent, with mini-batches, momentum and
Langevin noise, on one set of examples."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.reused_data.experiment import trained_committee, trained_student
    from orderparam.systems.reused_data.model import ReusedCommittee, ReusedData
    from orderparam.systems.reused_data.theory import (
        ClosedPath,
        ReusedCommitteePath,
        ReusedPath,
        SampledCommitteePath,
        SampledPath,
        closed_dynamics,
        committee_dynamics,
        sampled_dynamics,
    )

__all__ = exported(globals())
