"""The phase diagram of one-pass SGD in learning rate and width."""

import jax.numpy as jnp

from orderparam.core.verb import theory
from orderparam.systems.online_sgd.model import (
    MovingTime,
    OverlapDynamics,
    PhasePoint,
    RiskCurve,
)
from orderparam.systems.online_sgd.theory import Terms, overlap_flow
from orderparam.systems.online_sgd.weak_noise import AsymptoticError, asymptotic_error

# Theories at a point of the phase diagram: the flow, the number of samples until the overlaps first
# change, and the residual risk.
#
# The width of a point is computed from its fields, so that these theories are not traced; the
# functions that they call are compiled.

_MOVED = 0.1  # root-mean-square change of the overlaps that defines `MovingTime`


@theory(traced=False)
def phase_flow(system: PhasePoint, *, terms: Terms = "both", stiff: bool = False) -> RiskCurve:
    r"""Risk along the flow of `overlap_flow` at a point of the phase diagram.

    With $\theta = \kappa + \delta$ (`width_exponent` + `rate_exponent`), the learning term of one
    step changes the overlaps by $d^{-(1 + \theta)}$ and its noise term by $d^{-(1 + 2\theta)}$, in
    order of magnitude.

    Args:
        terms: "both" (the default) keeps both terms with their sizes at this d, also the term that
            vanishes as d grows; "learning" or "noise" keeps one term.
        stiff: whether implicit steps are taken; False by default.

    Source: Veiga, Stephan, Loureiro, Krzakala, Zdeborová (2022).

    >>> curve = phase_flow(PhasePoint(rate_exponent=0.25, horizon=5.0))
    >>> round(float(curve.test_error[-1]), 5)
    0.00485
    """
    return RiskCurve.of(overlap_flow(system.committee, terms=terms, stiff=stiff))


def first_move(system: PhasePoint, path: OverlapDynamics) -> MovingTime:
    """Number of samples at which the change of the overlaps first exceeds 0.1.

    It is interpolated linearly in ln n between two records. If the overlaps have already changed by
    0.1 at the first record, the number of samples at this record is returned, but at least 1.
    """
    n = jnp.maximum(path.sample_ratio * system.input_dim, 1.0)
    self_overlap, teacher_overlap = system.committee.overlaps()
    own = jnp.diagonal(path.self_overlap, axis1=1, axis2=2) - jnp.diagonal(self_overlap)
    squares = own**2 + jnp.sum((path.teacher_overlap - teacher_overlap) ** 2, axis=2)
    change = jnp.sqrt(jnp.mean(squares, axis=1)) - _MOVED
    after = jnp.argmax(change > 0)
    before = jnp.maximum(after - 1, 0)
    share = jnp.where(after > 0, -change[before] / (change[after] - change[before]), 1.0)
    log_n = jnp.log(n[before]) + share * (jnp.log(n[after]) - jnp.log(n[before]))
    return MovingTime(samples=jnp.exp(log_n), converged=jnp.any(change > 0) & path.converged)


@theory(traced=False)
def moving_time(system: PhasePoint) -> MovingTime:
    r"""Number of samples after which the overlaps have changed by 0.1, from the flow with both
    terms.

    This number, `samples`, scales as $d^{1 + \theta}$ for $\theta = \kappa + \delta \ge 0$ and as
    $d^{1 + 2\theta}$ for $-1/2 < \theta < 0$ (`time_exponent`).

    Accuracy: crossing on the grid of records, interpolated linearly in ln n.

    Source: Veiga, Stephan, Loureiro, Krzakala, Zdeborová (2022) for the exponents.

    >>> found = moving_time(PhasePoint(rate_exponent=0.25, horizon=5.0))
    >>> round(float(found.samples))
    2173
    """
    return first_move(system, overlap_flow(system.committee))


@theory(traced=False)
def residual_risk(system: PhasePoint) -> AsymptoticError:
    r"""Risk due to weak label noise at a point of the phase diagram, from `asymptotic_error`.

    The risk falls as $d^{-\theta}$ at large $d$ if $\theta = \kappa + \delta > 0$.

    Raises:
        ValueError: unless the width is that of the teacher or a multiple of it.

    Accuracy: first order in the noise.

    Source: derived here; the exponent is that of Veiga, Stephan, Loureiro, Krzakala, Zdeborová
    (2022).

    >>> left = residual_risk(PhasePoint(rate_exponent=0.5, base_width=2, teacher_width=2))
    >>> round(float(left.test_error), 8)
    2.93e-06
    """
    return asymptotic_error(system.committee)
