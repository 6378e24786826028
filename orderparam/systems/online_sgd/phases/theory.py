"""The flow at a point of the phase diagram, how soon it moves, and what is left of the risk.

A point's width follows from its numbers, so that these theories are run on the host; what they call is compiled.
"""

import jax.numpy as jnp

from orderparam.core.verb import theory
from orderparam.systems.online_sgd.committee.asymptotic import AsymptoticError, asymptotic_error
from orderparam.systems.online_sgd.committee.equations import Terms
from orderparam.systems.online_sgd.committee.model import OverlapDynamics
from orderparam.systems.online_sgd.committee.theory import overlap_flow
from orderparam.systems.online_sgd.phases.model import MovingTime, PhasePoint, RiskCurve

_MOVED = 0.1  # a root-mean-square change of the overlaps of a unit that counts as a change


@theory(traced=False)
def phase_flow(system: PhasePoint, *, terms: Terms = "both", stiff: bool = False) -> RiskCurve:
    """The risk of `overlap_flow` at the point; terms "both" keeps the term that vanishes as d -> infinity, with its finite-d
    size."""
    return RiskCurve.of(overlap_flow(system.committee, terms=terms, stiff=stiff))


def first_move(system: PhasePoint, path: OverlapDynamics) -> MovingTime:
    """First crossing on the recorded grid, linear in ln n; one step where the first record has moved already."""
    n = jnp.maximum(path.sample_ratio * system.input_dim, 1.0)
    self_overlap, teacher_overlap = system.committee.overlaps()
    own = jnp.diagonal(path.self_overlap, axis1=1, axis2=2) - jnp.diagonal(self_overlap)
    squares = own**2 + jnp.sum((path.teacher_overlap - teacher_overlap) ** 2, axis=2)
    change = jnp.sqrt(jnp.mean(squares, axis=1)) - _MOVED
    after = jnp.argmax(change > 0)
    before = jnp.maximum(after - 1, 0)
    share = jnp.where(after > 0, -change[before] / (change[after] - change[before]), 1.0)
    log_n = jnp.log(n[before]) + share * (jnp.log(n[after]) - jnp.log(n[before]))
    return MovingTime(jnp.exp(log_n), jnp.any(change > 0) & path.converged)


@theory(traced=False)
def moving_time(system: PhasePoint) -> MovingTime:
    """When the overlaps have moved, from the flow with both terms."""
    return first_move(system, overlap_flow(system.committee))


@theory(traced=False)
def residual_risk(system: PhasePoint) -> AsymptoticError:
    """`asymptotic_error` of the point; width = teacher_width, or a multiple of it."""
    return asymptotic_error(system.committee)
