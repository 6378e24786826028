"""Runs at a point of the phase diagram, through the exact chain of the overlaps."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.systems.online_sgd.committee.experiment import overlap_chain
from orderparam.systems.online_sgd.phases.model import MovingTime, PhasePoint, ResidualRisk, RiskCurve
from orderparam.systems.online_sgd.phases.theory import first_move


@experiment
def phase_chain(system: PhasePoint, key: PRNGKeyArray) -> RiskCurve:
    """The risk of `overlap_chain` at the point."""
    return RiskCurve.of(overlap_chain(system.committee, key))


@experiment
def measured_moving_time(system: PhasePoint, key: PRNGKeyArray) -> MovingTime:
    """When the overlaps have moved, in one run."""
    return first_move(system, overlap_chain(system.committee, key))


@experiment
def measured_residual_risk(system: PhasePoint, key: PRNGKeyArray) -> ResidualRisk:
    """The risk averaged over the second half (in time) of one run."""
    path = phase_chain(system, key)
    late = path.sample_ratio > 0.5 * path.sample_ratio[-1]
    return ResidualRisk(jnp.mean(path.test_error, where=late))
