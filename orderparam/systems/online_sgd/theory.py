"""The flow of the order parameters, its plateaus and steady states, and its results at a point of
the phase diagram.
"""

from typing import Literal, NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian import Activation, expectation
from orderparam.gaussian.points import normal_points
from orderparam.solve.flow import crossing, flow
from orderparam.solve.relaxation import rest_point
from orderparam.systems.online_sgd import averages
from orderparam.systems.online_sgd.model import (
    CommitteeSGD,
    MovingTime,
    OverlapDynamics,
    PhasePoint,
    RiskCurve,
)

# ------------------------------------------------------------------------------------------------
# The flow of the order parameters as d -> infinity (Saad and Solla 1995), with separate learning
# and noise terms.  With signed readouts c = (-v, v*), rate = learning_rate / batch_size and time t
# = n / d (samples, not steps),  dM/dt = rate A_M,    dQ/dt = rate (A_Q + A_Q^T) + rate^2 N, dv_j/dt
# = readout_rate / batch_size sum_a c_a I2(j, a),  A_jb = v_j E[sigma'(j) lambda_b (y - f)] the
# learning term, N_jl = v_j v_l E[sigma'(j) sigma'(l) (y - f)^2] the noise term. Label noise enters
# N alone. At finite d the same equations with the actual rate hold up to fluctuations of order
# d^(-1/2); dropping one term gives the limits d -> infinity off the line where both survive (Veiga
# et al. 2022, theorem 3.1).

Terms = Literal["both", "learning", "noise"]
# the system, and the weights, 0 or 1, of the learning and of the noise term
Problem = tuple[CommitteeSGD, float, float]


class Order(NamedTuple):
    """State of the flow.

    Q is kept as its lower triangle: in the space of all matrices the vector field is unstable
    against asymmetric rounding errors, which then grow to order one on long runs.
    """

    triangle: Float[Array, "pair"]
    teacher_overlap: Float[Array, "unit teacher_unit"]
    readout: Float[Array, "unit"]

    @classmethod
    def of(cls, self_overlap: Array, teacher_overlap: Array, readout: Array) -> "Order":
        return cls(self_overlap[jnp.tril_indices(readout.size)], teacher_overlap, readout)

    @classmethod
    def at_start(cls, system: CommitteeSGD) -> "Order":
        return cls.of(*system.overlaps(), system.readouts()[0])

    @property
    def self_overlap(self) -> Float[Array, "unit unit"]:
        units = self.readout.size
        lower = jnp.zeros((units, units)).at[jnp.tril_indices(units)].set(self.triangle)
        return lower + jnp.tril(lower, -1).T


def signal(
    sigma: Activation,
    fields: Float[Array, "*batch unit"],
    label: Float[Array, "*batch"],
    readout: Float[Array, "unit"],
    kick: Float[Array, "*#batch"],
    repeats: int,
) -> tuple[Float[Array, "*batch unit"], Float[Array, "*batch unit"]]:
    """Sums, over the repeated steps on one sample, of v_j sigma'(lambda_j) e and of sigma(lambda_j)
    e, with e = y - f.

    Each step moves the fields of its own sample by kick v_j sigma'(lambda_j) e, kick = rate |x|^2 /
    d.
    """
    first = second = jnp.zeros_like(fields)
    for _ in range(repeats):
        values = sigma(fields)
        error = (label - values @ readout)[..., None]
        step = readout * sigma.derivative(fields) * error
        first, second = first + step, second + values * error
        fields = fields + kick[..., None] * step
    return first, second


def drift_and_noise(
    system: CommitteeSGD, order: Order
) -> tuple[Float[Array, "unit field"], Float[Array, "unit unit"], Float[Array, "unit"]]:
    """A, N (with the readouts) and the drift of the readouts; by quadrature over the fields when
    samples are repeated.
    """
    sigma, units = system.activation, system.width
    fields = averages.covariance(order.self_overlap, order.teacher_overlap)
    teacher = system.readouts()[1]
    if system.repeats == 1:
        signed = jnp.concatenate([-order.readout, teacher])
        drift = order.readout[:, None] * averages.learning_term(sigma, fields, signed, units)
        noise = averages.noise_term(
            sigma, fields, signed, units, jnp.asarray(system.noise, jnp.float64)
        )
        readout = averages.two_points(sigma, fields)[:units] @ signed
        return drift, order.readout[:, None] * order.readout * noise, readout
    points = jnp.asarray(normal_points(fields.shape[0] + 1, averages.LOG2_POINTS))
    values = points[:, :-1] @ averages.symmetric_root(fields)
    label = sigma(values[:, units:]) @ teacher + jnp.sqrt(system.noise) * points[:, -1]
    kick = jnp.asarray(system.learning_rate / system.batch_size)
    first, second = signal(sigma, values[:, :units], label, order.readout, kick, system.repeats)
    return first.T @ values / len(points), first.T @ first / len(points), jnp.mean(second, axis=0)


def problem(system: CommitteeSGD, terms: Terms = "both") -> Problem:
    """The arguments of `velocity` beside the state."""
    return system, float(terms != "noise"), float(terms != "learning")


def velocity(order: Order, problem: Problem) -> Order:
    """d(Q, M, v)/dt."""
    system, learning, noisy = problem
    drift, noise, readout = drift_and_noise(system, order)
    rate = system.learning_rate / system.batch_size
    own = drift[:, : system.width]
    return Order.of(
        learning * rate * (own + own.T) + noisy * rate**2 * noise,
        learning * rate * drift[:, system.width :],
        learning * system.readout_rate / system.batch_size * readout,
    )


def risk(
    system: CommitteeSGD, self_overlap: Array, teacher_overlap: Array, readout: Array
) -> Float[Array, ""]:
    """R, with its factor 1/2, of a student with these overlaps and this second layer."""
    signed = jnp.concatenate([-readout, system.readouts()[1]])
    return averages.half_square(
        system.activation, averages.covariance(self_overlap, teacher_overlap), signed
    )


def risk_of(system: CommitteeSGD, order: Order) -> Float[Array, ""]:
    """R of a state of the flow."""
    return risk(system, order.self_overlap, order.teacher_overlap, order.readout)


def dynamics(
    system: CommitteeSGD,
    self_overlap: Float[Array, "record unit unit"],
    teacher_overlap: Float[Array, "record unit teacher_unit"],
    readout: Float[Array, "record unit"],
    arrived: Bool[Array, ""] | bool = True,
    tolerance: float = jnp.inf,
) -> OverlapDynamics:
    """The Result of recorded overlaps. It is converged if `arrived` and no eigenvalue of Q - M M^T
    is below -tolerance.
    """

    def outside_teacher(self_overlap: Array, teacher_overlap: Array) -> Float[Array, ""]:
        return jnp.maximum(
            -jnp.linalg.eigvalsh(self_overlap - teacher_overlap @ teacher_overlap.T)[0], 0.0
        )

    residual = jnp.max(jax.vmap(outside_teacher)(self_overlap, teacher_overlap))
    return OverlapDynamics(
        sample_ratio=system.sample_ratio(),
        test_error=jax.vmap(lambda *state: risk(system, *state))(
            self_overlap, teacher_overlap, readout
        ),
        self_overlap=self_overlap,
        teacher_overlap=teacher_overlap,
        readout_weight=readout,
        residual=residual,
        converged=jnp.asarray(arrived) & (residual <= tolerance),
    )


# ------------------------------------------------------------------------------------------------
# The order parameters in time, the plateau, and steady states with their stability.

_STEPS = 200_000  # largest number of steps of the solver
# tolerance for negative eigenvalues of the student's covariance outside the teacher's span
_NEGATIVE = 1e-9
_AT_REST = 1e-10  # largest entry of the velocity of a steady state
_MOST = 10**8  # largest number of four-point averages in a step
_FAR = 1e9  # decay rate given to unknowns that do not move, so that they do not count as unstable


def _affordable(system: CommitteeSGD, **_: object) -> None:
    """Raise `ValueError` for widths whose noise term, a sum over two student units and two of all
    units, takes most of a second in a step.
    """
    if system.repeats == 1 and (system.width * (system.width + system.teacher_width)) ** 2 > _MOST:
        raise ValueError(
            f"CommitteeSGD.width = {system.width}: (width (width + teacher_width))^2 must be <= {_MOST:g} in the flow, "
            "which takes that many averages at every step"
        )


@theory(check=_affordable)
def overlap_flow(
    system: CommitteeSGD, *, terms: Terms = "both", stiff: bool = False
) -> OverlapDynamics:
    r"""Overlaps, readouts and risk of a student under one-pass SGD, as the input dimension grows.

    With $c = (-v, v^*)$ over all units of both networks and $t = n/d$ (both rates divided by the
    batch size),

    $$ \dot M = \gamma A_M , \qquad \dot Q = \gamma (A_Q + A_Q^T) + \gamma^2 N , \qquad
       \dot v_j = \gamma_v \sum_a c_a E[\sigma(\lambda_j) \sigma(\lambda_a)] , $$

    $$ A_{jb} = v_j \sum_a c_a E[\sigma'(\lambda_j) \lambda_b \sigma(\lambda_a)] , \qquad
       N_{jl} = v_j v_l E[\sigma'(\lambda_j) \sigma'(\lambda_l) (y - f)^2] , $$

    where all fields are Gaussian with covariance $[[Q, M], [M^T, 1]]$; $Q$ = `self_overlap`, $M$ =
    `teacher_overlap`, $v$ = `readout_weight`. Label noise enters $N$ alone.

    Args:
        terms: "both" (the default), or the limit in which only the "learning" term A (gradient
            flow) or only the "noise" term N is left.
        stiff: whether implicit steps are taken (False by default), for horizons above 1e4.

    Raises:
        ValueError: for widths whose noise term is too expensive.

    Accuracy: A is exact for every activation of the catalogue. N is exact for erf, good to 1e-9 for
    piecewise linear activations and to 1e-6 for smooth ones (at variances up to 2). With other
    kinks, and for repeated samples (all terms), averages come from fixed quasi-random fields with a
    relative error of a few 1e-3.

    Cost: (width (width + teacher_width))^2 averages in a step. After 2e5 steps (explicit ones: a
    horizon of 1e6 at the default parameters, half a minute) the solver stops, and `converged` is
    False.

    Source: Saad, Solla (1995); Goldt et al. (2019); Veiga et al. (2022) for the limits of one term.

    >>> path = overlap_flow(CommitteeSGD(horizon=20.0))
    >>> round(float(path.test_error[-1]), 5)
    0.00387
    """
    path = flow(
        velocity,
        Order.at_start(system),
        system.sample_ratio(),
        problem(system, terms),
        stiff=stiff,
        max_steps=_STEPS,
    )
    self_overlap = jax.vmap(lambda order: order.self_overlap)(path.value)
    return dynamics(
        system,
        self_overlap,
        path.value.teacher_overlap,
        path.value.readout,
        path.converged,
        _NEGATIVE,
    )


class Plateau(Result):
    """The symmetric plateau of the risk.

    Fields:
        entry: n/d at which -d ln R / d ln t falls below the `slope` of `plateau`.
        exit: n/d at which it rises above the slope again.
        entry_risk: R at the entry (with its factor 1/2).
        exit_risk: R at the exit.
        converged: True if both ends were reached before the horizon.
    """

    entry: Float[Array, ""]
    exit: Float[Array, ""]
    entry_risk: Float[Array, ""]
    exit_risk: Float[Array, ""]
    converged: Bool[Array, ""]


@theory(check=_affordable)
def plateau(system: CommitteeSGD, *, slope: float = 0.5) -> Plateau:
    r"""Entry and exit of the first plateau of the risk, located along the flow of `overlap_flow`.

    The ends are the zeros of

    $$ \frac{d \ln R}{d \ln t} + \text{slope} . $$

    Args:
        slope: steepness -d ln R / d ln t below which the risk counts as flat; positive, 0.5 by
            default.

    Raises:
        ValueError: for widths whose noise term is too expensive.

    Source: Saad, Solla (1995) for the flow; the definition of the ends is that of this package.

    >>> found = plateau(CommitteeSGD(width=2, learning_rate=2.0, horizon=1000.0))
    >>> round(float(found.entry), 2), round(float(found.exit), 1)
    (8.36, 129.7)
    """

    def steepness(t: Array, order: Order, both: Problem) -> Array:
        risk, change = jax.jvp(
            lambda order: risk_of(both[0], order), (order,), (velocity(order, both),)
        )
        return t * change / risk + slope

    horizon = jnp.asarray(system.horizon, jnp.float64)

    def leg(carry: tuple, direction: Array) -> tuple[tuple, tuple[Array, Array, Array]]:
        found = crossing(
            velocity, carry[1], steepness, carry[0], horizon, problem(system), direction=direction
        )
        return (found.time, found.value), (
            found.time,
            risk_of(system, found.value),
            found.converged,
        )

    legs = jnp.asarray([-1.0, 1.0, -1.0])  # R starts to fall, levels off, falls again
    _, (times, risks, met) = jax.lax.scan(leg, (jnp.zeros(()), Order.at_start(system)), legs)
    return Plateau(times[1], times[2], risks[1], risks[2], jnp.all(met))


class SteadyState(Result):
    """A fixed point of the flow.

    Fields:
        test_error: R with its factor 1/2.
        self_overlap: Q.
        teacher_overlap: M.
        growth_rate: largest real part of the spectrum of the linearised flow (symmetric Q), per
            unit of n/d; negative when stable.
        unstable_directions: number of eigenvalues with a real part above 1e-8.
        residual: largest entry of the velocity.
        converged: whether that is below 1e-10.
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
    r"""Fixed point that the flow of `overlap_flow` reaches, and its stability.

    Starting from the state at the horizon, a pseudo-time iteration that ends as Newton's method
    solves

    $$ \dot Q = \dot M = \dot v = 0 . $$

    Start from `TeacherStart` for the end of learning, and from
    `ReproducibleStart(teacher_overlap=0)` for the symmetric plateau, a saddle whose growth rate
    sets the length of the plateau. Readouts are those of the flow at the horizon, trained or not.

    Args:
        stiff: whether the flow up to the horizon takes implicit steps; False by default.

    Raises:
        ValueError: for widths whose noise term is too expensive.

    Accuracy: 1e-10 of the velocity. With more student than teacher units the fixed points are
    nearly a continuum: units that share a teacher unit separate at almost no cost in risk and relax
    over 1e5 and more samples per dimension. There may be several fixed points of nearly the same
    risk (within 1e-3 in the cases tried), and from horizons below 1e3 the result may differ from
    the end of the flow. Without label noise the fixed points are a true continuum, of which one is
    found. Differentiable, except `growth_rate` where rates coincide.

    Source: Saad, Solla (1995) for the flow.

    >>> from orderparam.systems.online_sgd import TeacherStart
    >>> system = CommitteeSGD(width=2, learning_rate=2.0, start=TeacherStart(), horizon=10.0)
    >>> end = steady_state(system)
    >>> round(float(end.test_error), 7), bool(end.growth_rate < 0)
    (0.000117, True)
    """
    # The end of the search does not depend on its start, which need not be differentiated.
    frozen = jax.lax.stop_gradient(system)
    horizon = jnp.asarray(frozen.horizon, jnp.float64)
    reached = flow(velocity, Order.at_start(frozen), horizon[None], problem(frozen), stiff=stiff)
    last = jax.tree.map(lambda leaf: leaf[0], reached.value)
    flat, unravel = jax.flatten_util.ravel_pytree(last)
    trained = jnp.asarray(system.readout_rate) > 0
    # the readouts are the last unknowns
    moving = (jnp.arange(flat.size) < flat.size - system.width) | trained

    def field(state: Array, _: None) -> Array:
        """The velocity; readouts that are not trained are held by a restoring force."""
        return jnp.where(
            moving,
            jax.flatten_util.ravel_pytree(velocity(unravel(state), problem(system)))[0],
            flat - state,
        )

    root = rest_point(field, flat, first_step=horizon).value
    residual = jnp.max(jnp.abs(field(root, None)))
    order = unravel(root)
    held = jnp.diag(jnp.where(moving, 0.0, -_FAR))
    rates = jnp.real(
        jnp.linalg.eigvals(jnp.where(moving[:, None] & moving, jax.jacfwd(field)(root, None), held))
    )
    return SteadyState(
        test_error=risk_of(system, order),
        self_overlap=order.self_overlap,
        teacher_overlap=order.teacher_overlap,
        growth_rate=jnp.max(rates),
        unstable_directions=jnp.sum(rates > 1e-8).astype(jnp.float64),
        residual=residual,
        converged=reached.converged & (residual < _AT_REST),
    )


# ------------------------------------------------------------------------------------------------
# The residual error due to weak label noise, in closed form.


class AsymptoticError(Result):
    """Risk due to weak label noise at the matched solution, to first order in the noise.

    Fields:
        test_error: R with its factor 1/2, without label noise; NaN where there is no steady state.
        critical_learning_rate: learning rate below which the solution is stable.
        small_rate_risk: limit of small learning rates, learning_rate noise / 4 sum_j v_j^2 E
            sigma'(lambda_j)^2.
        valid: whether there is a steady state: the learning rate is below the critical one.
    """

    test_error: Float[Array, ""]
    critical_learning_rate: Float[Array, ""]
    small_rate_risk: Float[Array, ""]
    valid: Bool[Array, ""]


def _matched(system: CommitteeSGD) -> None:
    """Raise `ValueError` unless the student can be copies of the teacher's units that share its
    readouts evenly.
    """
    copies, left = divmod(system.width, system.teacher_width)
    if left:
        raise ValueError(
            f"CommitteeSGD.width = {system.width}: must be teacher_width = {system.teacher_width} here, or a multiple of it"
        )
    student, teacher = system.readouts()
    if not jnp.allclose(student, jnp.tile(teacher, copies) / copies, rtol=1e-9):
        raise ValueError(
            f"CommitteeSGD.student_readout: the {copies} students of a teacher unit must have equal parts of its readout here"
        )


@theory(check=_matched)
def asymptotic_error(system: CommitteeSGD) -> AsymptoticError:
    r"""Risk due to weak label noise for a student that has learned the teacher.

    Only the weight error orthogonal to $W^*$ survives. Its covariance $V_{jl}$ per dimension obeys

    $$ 0 = -\gamma (H V + V H) + \gamma^2 (\Delta H + T : V) , \qquad
       R = \tfrac12 \mathrm{Tr}\, H V , $$

    $$ H_{jl} = v_j v_l E \sigma'_j \sigma'_l , \qquad
       T_{jlmn} = v_j v_l v_m v_n E \sigma'_j \sigma'_l \sigma'_m \sigma'_n , $$

    with independent unit fields, so that the averages are products of moments of $\sigma'$. The
    solution is stable while $H \otimes 1 + 1 \otimes H - \gamma T$ is positive. The student has the
    width of the teacher, or c units for every teacher unit with 1/c of its readout; these act as
    one unit with learning rate $\gamma / c$, because only their mean is restored.

    Raises:
        ValueError: for other students.

    Accuracy: first order in the noise.

    Source: derived here, as the linear response of the flow of Saad, Solla (1995).

    >>> left = asymptotic_error(CommitteeSGD(width=2, teacher_width=2, learning_rate=2.0))
    >>> round(float(left.test_error), 7), round(float(left.critical_learning_rate), 4)
    (0.0001171, 9.2273)
    """
    units = system.teacher_width
    copies = system.width // units
    rate = jnp.asarray(system.learning_rate / (system.batch_size * copies), jnp.float64)
    readout = system.readouts()[1]
    sigma = system.activation

    def slope_power(q: int) -> Array:
        return expectation(lambda z: sigma.derivative(z) ** q)

    moments = jnp.stack([jnp.ones(()), *(slope_power(q) for q in range(1, 5))])
    eye = jnp.eye(units)

    def product_moment(indices: tuple[Array, ...]) -> Array:
        """E of the product of sigma' over the units `indices`: the count of each unit picks its
        moment."""
        counts = jnp.sum(
            jnp.stack(jnp.broadcast_arrays(*(eye[index] for index in indices))), axis=0
        ).astype(int)
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
    valid = system.learning_rate < critical
    return AsymptoticError(
        test_error=jnp.where(valid, 0.5 * hessian.ravel() @ error, jnp.nan),
        critical_learning_rate=critical,
        small_rate_risk=rate * system.noise / 4 * jnp.trace(hessian),
        valid=valid,
    )


# ------------------------------------------------------------------------------------------------
# The flow at a point of the phase diagram, the time of its first change, and the residual risk.
#
# The width of a point follows from its numbers, so that these theories are not traced; the
# functions that they call are compiled.

_MOVED = 0.1  # a root-mean-square change of the overlaps of a unit that counts as a change


@theory(traced=False)
def phase_flow(system: PhasePoint, *, terms: Terms = "both", stiff: bool = False) -> RiskCurve:
    r"""Risk along the flow of `overlap_flow` at a point of the phase diagram.

    With $\theta = \kappa + \delta$ one step learns $d^{-(1 + \theta)}$ and changes the overlaps by
    noise of order $d^{-(1 + 2\theta)}$.

    Args:
        terms: "both" (the default) keeps the term that vanishes as d grows, with its size at this
            d; "learning" or "noise" keeps one term.
        stiff: whether implicit steps are taken; False by default.

    Source: Veiga, Stephan, Loureiro, Krzakala, Zdeborová (2022).

    >>> curve = phase_flow(PhasePoint(rate_exponent=0.25, horizon=5.0))
    >>> round(float(curve.test_error[-1]), 5)
    0.00485
    """
    return RiskCurve.of(overlap_flow(system.committee, terms=terms, stiff=stiff))


def first_move(system: PhasePoint, path: OverlapDynamics) -> MovingTime:
    """First crossing on the recorded grid, linear in ln n; one step where the first record has
    already moved.
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
    return MovingTime(jnp.exp(log_n), jnp.any(change > 0) & path.converged)


@theory(traced=False)
def moving_time(system: PhasePoint) -> MovingTime:
    r"""Number of samples after which the overlaps have changed by 0.1, from the flow with both
    terms.

    It scales as $d^{1 + \theta}$ for $\theta = \kappa + \delta \ge 0$ and as $d^{1 + 2\theta}$ for
    $-1/2 < \theta < 0$ (`time_exponent`).

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

    It falls as $d^{-\theta}$ with $\theta = \kappa + \delta > 0$ at large $d$.

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
