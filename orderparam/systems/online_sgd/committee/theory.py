"""Along the flow and at its end: the order parameters in time, the plateau, and steady states with their stability."""

import jax
import jax.flatten_util
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.flow import crossing, flow
from orderparam.solve.relaxation import rest_point
from orderparam.systems.online_sgd.committee.equations import Order, Problem, Terms, dynamics, problem, risk_of, velocity
from orderparam.systems.online_sgd.committee.model import CommitteeSGD, OverlapDynamics

_NEGATIVE = 1e-9  # how negative an eigenvalue of the student's covariance outside the teacher's span may be
_AT_REST = 1e-10  # largest entry of the velocity at what is called a steady state
_MOST = 10**8  # four-point averages
_FAR = 1e9  # where the eigenvalues of what does not move are put, out of the way


def _affordable(system: CommitteeSGD, **_: object) -> None:
    """Refuses widths whose noise term, a sum over two student units and two of all, takes the better part of a second a step."""
    if system.repeats == 1 and (system.width * (system.width + system.teacher_width)) ** 2 > _MOST:
        raise ValueError(
            f"CommitteeSGD.width = {system.width}: (width (width + teacher_width))^2 must be <= {_MOST:g} in the flow, "
            "which takes that many averages at every step"
        )


@theory(check=_affordable)
def overlap_flow(system: CommitteeSGD, *, terms: Terms = "both", stiff: bool = False) -> OverlapDynamics:
    """Q(t), M(t), v(t) and the risk from the flow equations (`equations`).

    terms: "both", or the limit in which only the "learning" (gradient flow) or only the "noise" term is left.
    stiff: implicit steps; for horizons above 1e4.
    The learning term is exact for every activation of the catalogue. The noise term is exact for erf, good to 1e-9 for piecewise
    linear activations and to 1e-6 for smooth ones (at variances up to 2); with other kinks, and for repeated samples (all terms),
    it comes from fixed quasi-random fields, with a relative error of a few 1e-3.
    """
    path = flow(velocity, Order.at_start(system), system.sample_ratio(), problem(system, terms), stiff=stiff)
    self_overlap = jax.vmap(lambda order: order.self_overlap)(path.value)
    return dynamics(system, self_overlap, path.value.teacher_overlap, path.value.readout, path.converged, _NEGATIVE)


class Plateau(Result):
    """The symmetric plateau: when the risk stops falling and when it falls again, in n / d, and the risk at both ends.

    It is entered where -d ln R / d ln t falls below `slope` of `plateau` and left where it rises above it again.
    converged: both ends were met before the horizon.
    """

    entry: Float[Array, ""]
    exit: Float[Array, ""]
    entry_risk: Float[Array, ""]
    exit_risk: Float[Array, ""]
    converged: Bool[Array, ""]


@theory(check=_affordable)
def plateau(system: CommitteeSGD, *, slope: float = 0.5) -> Plateau:
    """Entry and exit of the first plateau of R(t), located exactly along the flow (zeros of d ln R / d ln t + slope)."""

    def steepness(t: Array, order: Order, both: Problem) -> Array:
        risk, change = jax.jvp(lambda order: risk_of(both[0], order), (order,), (velocity(order, both),))
        return t * change / risk + slope

    horizon = jnp.asarray(system.horizon, jnp.float64)

    def leg(carry: tuple, direction: Array) -> tuple[tuple, tuple[Array, Array, Array]]:
        found = crossing(velocity, carry[1], steepness, carry[0], horizon, problem(system), direction=direction)
        return (found.time, found.value), (found.time, risk_of(system, found.value), found.converged)

    legs = jnp.asarray([-1.0, 1.0, -1.0])  # R starts to fall, levels off, falls again
    _, (times, risks, met) = jax.lax.scan(leg, (jnp.zeros(()), Order.at_start(system)), legs)
    return Plateau(times[1], times[2], risks[1], risks[2], jnp.all(met))


class SteadyState(Result):
    """A fixed point of the flow. test_error: R with its factor 1/2. self_overlap, teacher_overlap: Q and M there.

    growth_rate: largest real part of the spectrum of the linearised flow (symmetric Q), per unit of n/d: negative when
    stable. unstable_directions: how many have a real part above 1e-8. residual: largest entry of the velocity;
    converged: it is < 1e-10.
    """

    test_error: Float[Array, ""]
    self_overlap: Float[Array, "unit other_unit"]
    teacher_overlap: Float[Array, "unit teacher_unit"]
    growth_rate: Float[Array, ""]
    unstable_directions: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory(check=_affordable)
def steady_state(system: CommitteeSGD, *, stiff: bool = False) -> SteadyState:
    """The fixed point at which the flow comes to rest: from the horizon on by steps that grow into Newton's (`rest_point`).

    Start from `TeacherStart` for the end of learning, from `ReproducibleStart(teacher_overlap=0)` for the symmetric
    plateau (a saddle: its growth rate sets how long the plateau lasts). Readouts are those of the flow at the horizon, trained
    or not. With more student than teacher units the end is nearly a continuum: units that share a teacher unit drift apart at
    almost no cost and relax over 1e5 and more samples per dimension. Such a student may have several ends of nearly the same
    risk (1e-3 apart where tried); from horizons below 1e3 another may be found than that of the flow. Without label noise the end
    is a true continuum; the state found is one of it. Differentiable but for `growth_rate` where rates coincide.
    """
    frozen = jax.lax.stop_gradient(system)  # where the search starts does not change where it ends
    horizon = jnp.asarray(frozen.horizon, jnp.float64)
    reached = flow(velocity, Order.at_start(frozen), horizon[None], problem(frozen), stiff=stiff)
    last = jax.tree.map(lambda leaf: leaf[0], reached.value)
    flat, unravel = jax.flatten_util.ravel_pytree(last)
    trained = jnp.asarray(system.readout_rate) > 0
    moving = (jnp.arange(flat.size) < flat.size - system.width) | trained  # the readouts are the last unknowns

    def field(state: Array, _: None) -> Array:
        """The velocity; readouts that are not trained are held where they are by a restoring force."""
        return jnp.where(moving, jax.flatten_util.ravel_pytree(velocity(unravel(state), problem(system)))[0], flat - state)

    root = rest_point(field, flat, first_step=horizon).value
    residual = jnp.max(jnp.abs(field(root, None)))
    order = unravel(root)
    held = jnp.diag(jnp.where(moving, 0.0, -_FAR))
    rates = jnp.real(jnp.linalg.eigvals(jnp.where(moving[:, None] & moving, jax.jacfwd(field)(root, None), held)))
    return SteadyState(
        test_error=risk_of(system, order),
        self_overlap=order.self_overlap,
        teacher_overlap=order.teacher_overlap,
        growth_rate=jnp.max(rates),
        unstable_directions=jnp.sum(rates > 1e-8).astype(jnp.float64),
        residual=residual,
        converged=reached.converged & (residual < _AT_REST),
    )
