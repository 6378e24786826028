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
from orderparam.gaussian import Activation
from orderparam.gaussian.points import normal_points
from orderparam.solve.flow import crossing, flow
from orderparam.solve.relaxation import rest_point
from orderparam.systems.online_sgd import averages
from orderparam.systems.online_sgd.model import (
    CommitteeSGD,
    OverlapDynamics,
    check_continuous,
)

# ------------------------------------------------------------------------------------------------
# The flow of the order parameters as d -> infinity (Saad and Solla 1995), with separate learning
# and noise terms. Let c = (-v, v*) be the signed readouts of both networks, so that y - f = sum_a
# c_a sigma(lambda_a) + noise. Let rate = learning_rate / batch_size, and let the time t = n / d
# count samples and not steps. Then
#
#     dM/dt = rate A_M,    dQ/dt = rate (A_Q + A_Q^T) + rate^2 N,
#     dv_j/dt = (readout_rate / batch_size) sum_a c_a I2(j, a),
#
# where A_jb = v_j E[sigma'(lambda_j) lambda_b (y - f)] is the learning term (A_Q: its columns of
# the student's units, A_M: those of the teacher's units), N_jl = v_j v_l E[sigma'(lambda_j)
# sigma'(lambda_l) (y - f)^2] is the noise term, and I2(j, a) = E[sigma(lambda_j) sigma(lambda_a)].
# Label noise enters N alone. At finite d the same equations with the rate at this d hold up to
# fluctuations of order d^(-1/2). Away from the line theta = 0 only one of the two terms survives as
# d -> infinity (Veiga et al. 2022, theorem 3.1).

Terms = Literal["both", "learning", "noise"]
# the system, the factor (0 or 1) of the learning term, and the factor of the noise term
Problem = tuple[CommitteeSGD, float, float]


class Order(NamedTuple):
    """State of the flow: overlaps Q and M, and readouts v.

    `triangle` is the lower triangle of Q. If all entries of Q were integrated, asymmetric rounding
    errors would grow to order one on long runs.
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
    """Sums of v_j sigma'(lambda_j) e and of sigma(lambda_j) e, with e = y - f, over `repeats` steps
    on one sample.

    Each step moves the fields of the sample itself by kick v_j sigma'(lambda_j) e, with kick = rate
    |x|^2 / d, so that later steps see other fields.
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
    """Learning term A, noise term N and the drift of the readouts, all including the readouts v.

    If samples are used repeatedly the averages come from fixed quasi-random fields.
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
    """Arguments of `velocity` other than the state: the system and the factors of both terms."""
    return system, float(terms != "noise"), float(terms != "learning")


def velocity(order: Order, problem: Problem) -> Order:
    """Right-hand side of the flow: the derivatives of Q, M and v in time t = n / d."""
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
    """Risk R, with its factor 1/2, of a student with these overlaps and this second layer."""
    signed = jnp.concatenate([-readout, system.readouts()[1]])
    return averages.half_square(
        system.activation, averages.covariance(self_overlap, teacher_overlap), signed
    )


def risk_of(system: CommitteeSGD, order: Order) -> Float[Array, ""]:
    """Risk R, with its factor 1/2, of a state of the flow."""
    return risk(system, order.self_overlap, order.teacher_overlap, order.readout)


def dynamics(
    system: CommitteeSGD,
    self_overlap: Float[Array, "record unit unit"],
    teacher_overlap: Float[Array, "record unit teacher_unit"],
    readout: Float[Array, "record unit"],
    arrived: Bool[Array, ""] | bool = True,
    tolerance: float = jnp.inf,
) -> OverlapDynamics:
    """Result for recorded overlaps.

    It is converged if `arrived` is true and no eigenvalue of Q - M M^T, which is a covariance, is
    below -tolerance.
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
_MOST = 10**8  # largest number of four-point averages in one evaluation of the right-hand side
_FAR = 1e9  # decay rate given to readouts that are not trained, so that they count as stable


def _solvable(system: CommitteeSGD, **_: object) -> None:
    """Raise `ValueError` for activations with jumps, and for widths at which the noise term takes
    most of a second to evaluate.

    The noise term is a sum over two units of the student and two units of both networks.
    """
    check_continuous(system)
    if system.repeats == 1 and (system.width * (system.width + system.teacher_width)) ** 2 > _MOST:
        raise ValueError(
            f"CommitteeSGD.width = {system.width}: (width (width + teacher_width))^2 must be <= "
            f"{_MOST:g} in the flow, which takes that many averages at every step"
        )


@theory(check=_solvable)
def overlap_flow(
    system: CommitteeSGD, *, terms: Terms = "both", stiff: bool = False
) -> OverlapDynamics:
    r"""Overlaps, readouts and risk of a student under one-pass SGD, as the input dimension grows.

    With the signed readouts $c = (-v, v^*)$ of all units of both networks, time $t = n/d$
    (`sample_ratio`), $\gamma$ = `learning_rate` / `batch_size` and $\gamma_v$ = `readout_rate` /
    `batch_size`,

    $$ \dot M = \gamma A_M , \qquad \dot Q = \gamma (A_Q + A_Q^T) + \gamma^2 N , \qquad
       \dot v_j = \gamma_v \sum_a c_a E[\sigma(\lambda_j) \sigma(\lambda_a)] , $$

    $$ A_{jb} = v_j \sum_a c_a E[\sigma'(\lambda_j) \lambda_b \sigma(\lambda_a)] , \qquad
       N_{jl} = v_j v_l E[\sigma'(\lambda_j) \sigma'(\lambda_l) (y - f)^2] , $$

    where the fields $\lambda$ of the units of both networks are Gaussian with covariance $[[Q, M],
    [M^T, 1]]$, $A_Q$ holds the columns of A that belong to student units and $A_M$ those that
    belong to teacher units. $Q$ = `self_overlap`, $M$ = `teacher_overlap`, $v$ = `readout_weight`,
    and `test_error` is $R = \frac12 \sum_{ab} c_a c_b E[\sigma(\lambda_a) \sigma(\lambda_b)]$. A is
    the learning term and N the noise term; label noise enters N alone.

    Args:
        terms: "both" (the default), or the limit in which only the "learning" term A (gradient
            flow) or only the "noise" term N is left.
        stiff: whether implicit steps are taken (False by default), for horizons above 1e4.

    Raises:
        ValueError: for activations with jumps, such as sign and step, and for widths whose noise
            term is too expensive.

    Accuracy: A is exact for every activation of the catalogue. N is exact for erf, good to 1e-9 for
    piecewise linear activations and to 1e-6 for smooth ones (at variances up to 2). For activations
    with other kinks, and for repeated samples (where this concerns all terms), the averages come
    from fixed quasi-random fields with a relative error of a few 1e-3. The tolerance of the
    solver's steps is 1e-9, or 1e-7 where N is not exact. For activations that grow faster than
    linearly (quadratic, cubic, exp) the noise term makes Q diverge at a finite time if the learning
    rate is too large: the values are then NaN from that time on, and `converged` is False.

    Cost: (width (width + teacher_width))^2 averages in a step. For activations other than erf and
    piecewise linear ones these are integrals over two fields: with the default parameters swish,
    tanh and gelu take about a minute, and the time grows as width^3. The solver stops after 2e5
    steps, and `converged` is then False; for erf, with explicit steps and the default parameters,
    this is a horizon of 1e6 and takes half a minute.

    Source: Saad, Solla (1995); Goldt et al. (2019); Veiga et al. (2022) for the limits of one term.

    >>> path = overlap_flow(CommitteeSGD(horizon=20.0))
    >>> round(float(path.test_error[-1]), 5)
    0.00387
    """
    # Steps need not be more accurate than the noise term, whose evaluation takes most of the time.
    exact = averages.has_exact_noise(system.activation)
    path = flow(
        velocity,
        Order.at_start(system),
        system.sample_ratio(),
        problem(system, terms),
        stiff=stiff,
        rtol=1e-9 if exact else 1e-7,
        atol=1e-12 if exact else 1e-10,
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
        entry: n/d at which the steepness -d ln R / d ln t falls below the option `slope`.
        exit: n/d at which the steepness exceeds `slope` again.
        entry_risk: R at the entry (with its factor 1/2).
        exit_risk: R at the exit.
        converged: True if both ends were reached before the horizon.
    """

    entry: Float[Array, ""]
    exit: Float[Array, ""]
    entry_risk: Float[Array, ""]
    exit_risk: Float[Array, ""]
    converged: Bool[Array, ""]


@theory(check=_solvable)
def plateau(system: CommitteeSGD, *, slope: float = 0.5) -> Plateau:
    r"""Entry and exit of the first plateau of the risk, located along the flow of `overlap_flow`.

    With the risk R and t = n/d, entry and exit are the second and the third zero of

    $$ \frac{d \ln R}{d \ln t} + \text{slope} . $$

    At the first zero the risk starts to fall.

    Args:
        slope: steepness -d ln R / d ln t below which the risk counts as flat; positive, 0.5 by
            default.

    Raises:
        ValueError: for activations with jumps, such as sign and step, and for widths whose noise
            term is too expensive.

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

    # directions of the three crossings: R starts to fall, levels off, and falls again
    legs = jnp.asarray([-1.0, 1.0, -1.0])
    _, (times, risks, met) = jax.lax.scan(leg, (jnp.zeros(()), Order.at_start(system)), legs)
    return Plateau(
        entry=times[1],
        exit=times[2],
        entry_risk=risks[1],
        exit_risk=risks[2],
        converged=jnp.all(met),
    )


class SteadyState(Result):
    """A fixed point of the flow.

    Fields:
        test_error: risk R with its factor 1/2.
        self_overlap: overlaps Q of the student's units.
        teacher_overlap: overlaps M with the teacher's units.
        growth_rate: largest real part of an eigenvalue of the linearised flow, in which Q stays
            symmetric, per unit of n/d; it is negative if the fixed point is stable.
        unstable_directions: number of eigenvalues with a real part above 1e-8.
        residual: largest entry of the right-hand side of the flow.
        converged: whether the flow reached the horizon and this entry is below 1e-10.
    """

    test_error: Float[Array, ""]
    self_overlap: Float[Array, "unit other_unit"]
    teacher_overlap: Float[Array, "unit teacher_unit"]
    growth_rate: Float[Array, ""]
    unstable_directions: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory(check=_solvable)
def steady_state(system: CommitteeSGD, *, stiff: bool = False) -> SteadyState:
    r"""Fixed point that the flow of `overlap_flow` reaches, and its stability.

    The fixed point solves

    $$ \dot Q = \dot M = \dot v = 0 . $$

    The flow is followed up to `horizon`. The fixed point is then found from the state at the
    horizon by an iteration in pseudo-time that turns into Newton's method. The `start`
    `TeacherStart` leads to the end of learning. `ReproducibleStart(teacher_overlap=0)` leads to the
    symmetric plateau, a saddle point whose `growth_rate` sets the length of the plateau. Readouts
    that are not trained keep their values.

    Args:
        stiff: whether the flow up to the horizon takes implicit steps; False by default.

    Raises:
        ValueError: for activations with jumps, such as sign and step, and for widths whose noise
            term is too expensive.

    Accuracy: 1e-10 in the right-hand side of the flow. With more student than teacher units the
    fixed points are nearly a continuum: student units that share a teacher unit separate at almost
    no cost in risk, and relax over 1e5 and more samples per dimension. There may be several fixed
    points of nearly the same risk (within 1e-3 in the cases tried). With a horizon below 1e3 the
    result may therefore differ from the end of the flow. Without label noise the fixed points are a
    true continuum, and one of them is found. The results can be differentiated, except for
    `growth_rate` where two eigenvalues coincide.

    Source: Saad, Solla (1995) for the flow.

    >>> from orderparam.systems.online_sgd import TeacherStart
    >>> system = CommitteeSGD(width=2, learning_rate=2.0, start=TeacherStart(), horizon=10.0)
    >>> end = steady_state(system)
    >>> round(float(end.test_error), 7), bool(end.growth_rate < 0)
    (0.000117, True)
    """
    # The fixed point does not depend on the start of the search, so that the start need not be
    # differentiated.
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
