"""Where online learning ends: steady states of the flow, their stability, and the error that label noise leaves
behind."""

import jax
import jax.flatten_util
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.gaussian import expectation
from orderparam.solve.flow import flow
from orderparam.solve.relaxation import rest_point
from orderparam.systems.online_sgd.flow import Order, initial, risk_of, switches, velocity
from orderparam.systems.online_sgd.model import CommitteeSGD

_FAR = 1e9  # where the eigenvalues of what does not move are put, out of the way
_TOLERANCE = 1e-10  # largest entry of the velocity at what is called a steady state


class SteadyState(Result):
    """A fixed point of the flow. population_risk: R with its factor 1/2. self_overlap, teacher_overlap: Q and M there.

    growth_rate: largest real part of the spectrum of the linearised flow (symmetric Q), per unit of n/d: negative when
    stable. unstable_directions: how many have a real part above 1e-8. residual: largest entry of the velocity;
    converged: it is < 1e-10.
    """

    population_risk: Float[Array, ""]
    self_overlap: Float[Array, "unit other_unit"]
    teacher_overlap: Float[Array, "unit teacher_unit"]
    growth_rate: Float[Array, ""]
    unstable_directions: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def steady_state(system: CommitteeSGD, *, stiff: bool = False) -> SteadyState:
    """The fixed point at which the flow comes to rest: from the horizon on by steps that grow into Newton's (`rest_point`).

    Start from `TeacherStart` for the end of learning, from `ReproducibleStart(teacher_overlap=0)` for the symmetric
    plateau (a saddle: its growth rate sets how long the plateau lasts). Readouts are those of the flow at the horizon, trained
    or not. With more student than teacher units the end is nearly a continuum: units that share a teacher unit drift apart at
    almost no cost and relax over 1e5 and more samples per dimension. Such a student may have several ends of nearly the same
    risk (1e-3 apart where tried); from horizons below 1e3 another may be found than that of the flow. Without label noise the end
    is a true continuum; the state found is one of it. Differentiable but for `growth_rate` where rates coincide.
    """
    problem = (system, *switches("both"))
    frozen = jax.lax.stop_gradient(problem)  # where the search starts does not change where it ends
    horizon = jnp.asarray(frozen[0].horizon, jnp.float64)
    reached = flow(velocity, initial(frozen[0]), horizon[None], frozen, stiff=stiff)
    last = jax.tree.map(lambda leaf: leaf[0], reached.value)
    flat, unravel = jax.flatten_util.ravel_pytree(last)
    live = jnp.arange(last.readout.size) < system.width
    pairs = Order.of(live[:, None] & live, jnp.broadcast_to(live[:, None], last.teacher_overlap.shape), live)
    trained = jnp.asarray(system.readout_rate) > 0
    moving = jax.flatten_util.ravel_pytree(pairs._replace(readout=live & trained))[0]

    def field(state: Array, _: None) -> Array:
        """The velocity; what does not move is held by a restoring force, so that it stays where it is."""
        return jnp.where(moving, jax.flatten_util.ravel_pytree(velocity(unravel(state), problem))[0], flat - state)

    root = rest_point(field, flat, first_step=horizon).value
    residual = jnp.max(jnp.abs(field(root, None)))
    order = unravel(root)
    held = jnp.diag(jnp.where(moving, 0.0, -_FAR))
    rates = jnp.real(jnp.linalg.eigvals(jnp.where(moving[:, None] & moving, jax.jacfwd(field)(root, None), held)))
    return SteadyState(
        population_risk=risk_of(system, order),
        self_overlap=order.self_overlap,
        teacher_overlap=order.teacher_overlap,
        growth_rate=jnp.max(rates),
        unstable_directions=jnp.sum(rates > 1e-8).astype(jnp.float64),
        residual=residual,
        converged=reached.converged & (residual < _TOLERANCE),
    )


class AsymptoticError(Result):
    """The risk left by weak label noise at the matched solution, to first order in `noise`.

    population_risk: R with its factor 1/2. critical_learning_rate: the solution is stable below it.
    small_rate_risk: the limit of small learning rates, learning_rate noise / 4 sum_j v_j^2 E sigma'(lambda_j)^2.
    converged: the learning rate is below the critical one (otherwise there is no steady state and the risk is
    meaningless).
    """

    population_risk: Float[Array, ""]
    critical_learning_rate: Float[Array, ""]
    small_rate_risk: Float[Array, ""]
    converged: Bool[Array, ""]


def asymptotic_error(system: CommitteeSGD) -> AsymptoticError:
    """The error of a student that has found the teacher: of the teacher's width, or (readout "mean") a whole multiple of it.

    Only the weight error orthogonal to W* survives. Its covariance V_jl per dimension obeys (derived for this package,
    not in the cited papers; it is the linear response of the flow of Saad and Solla 1995)

        0 = -eta (H V + V H) + eta^2 (noise H + T : V),   R = Tr(H V) / 2,
        H_jl = v_j v_l E sigma'_j sigma'_l,  T_jlmn = v_j v_l v_m v_n E sigma'_j sigma'_l sigma'_m sigma'_n,

    with independent unit fields, so that the averages are products of the moments of sigma'. The solution is stable
    while H (x) 1 + 1 (x) H - eta T is positive. In a student with c units for every teacher unit those c copies act as one
    whose learning rate is eta / c (only their mean is restored; differences between them cost nothing to this order).
    Raises `ValueError` for other widths.
    """
    units = system.teacher_width
    copies, left = divmod(system.largest_width, units)
    if left or (copies > 1 and system.readout == "sum"):
        raise ValueError(
            f"CommitteeSGD.width = {system.largest_width}: must equal teacher_width = {units} here, or with readout 'mean' "
            "be a multiple of it"
        )
    rate = jnp.asarray(system.learning_rate / (system.batch_size * copies), jnp.float64)
    readout = system.readouts()[1]
    sigma = system.sigma

    def slope_power(q: int) -> Array:
        return expectation(lambda z: sigma.derivative(z) ** q)

    moments = jnp.stack([jnp.ones(()), *(slope_power(q) for q in range(1, 5))])
    eye = jnp.eye(units)

    def product_moment(indices: tuple[Array, ...]) -> Array:
        """E of the product of sigma' over the units `indices`: the count of each unit picks its moment."""
        counts = jnp.sum(jnp.stack(jnp.broadcast_arrays(*(eye[index] for index in indices))), axis=0).astype(int)
        return jnp.prod(moments[counts], axis=-1)

    j, l = jnp.meshgrid(jnp.arange(units), jnp.arange(units), indexing="ij")
    pair = (j.ravel(), l.ravel())
    weights = (readout[:, None] * readout).ravel()
    hessian = (weights * product_moment(pair)).reshape(units, units)
    first, second = tuple(index[:, None] for index in pair), tuple(index[None, :] for index in pair)
    quartic = weights[:, None] * weights * product_moment((*first, *second))
    damping = jnp.kron(hessian, eye) + jnp.kron(eye, hessian)
    error = jnp.linalg.solve(damping - rate * quartic, rate * system.noise * hessian.ravel())
    factor = jnp.linalg.cholesky(damping)
    scaled = jax.scipy.linalg.solve_triangular(factor, quartic, lower=True)
    scaled = jax.scipy.linalg.solve_triangular(factor, scaled.T, lower=True)
    critical = 1 / jnp.linalg.eigvalsh(scaled)[-1] * system.batch_size * copies
    return AsymptoticError(
        population_risk=0.5 * hessian.ravel() @ error,
        critical_learning_rate=critical,
        small_rate_risk=rate * system.noise / 4 * jnp.trace(hessian),
        converged=system.learning_rate < critical,
    )
