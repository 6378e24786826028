"""The flow of the order parameters as d -> infinity (Saad and Solla 1995), with the learning and the noise term kept
apart.

With signed readouts c = (-v, v*), rate = learning_rate / batch_size and time t = n / d (samples, not steps),

    dM/dt = rate A_M,    dQ/dt = rate (A_Q + A_Q^T) + rate^2 N,    dv_j/dt = readout_rate / batch_size sum_a c_a I2(j,
    a),

A_jb = v_j E[sigma'(j) lambda_b (y - f)] the learning term, N_jl = v_j v_l E[sigma'(j) sigma'(l) (y - f)^2] the noise
term. Label noise enters N alone. At finite d the same equations with the actual rate hold up to fluctuations of order
d^(-1/2); dropping one term gives the limits d -> infinity off the line where both survive (Veiga et al. 2022, theorem
3.1).
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.gaussian import Activation
from orderparam.solve.flow import crossing, flow
from orderparam.systems.online_sgd import averages
from orderparam.systems.online_sgd.model import CommitteeSGD, OverlapDynamics

Terms = Literal["both", "learning", "noise"]
_TOLERANCE = 1e-9  # how negative an eigenvalue of the student's covariance outside the teacher's span may be


class Order(NamedTuple):
    """The state of the flow. Q is kept as its lower triangle: in the space of all matrices the vector field is unstable
    against asymmetric rounding errors, which then grow to order one on long runs."""

    triangle: Float[Array, "pair"]
    teacher_overlap: Float[Array, "unit teacher_unit"]
    readout: Float[Array, "unit"]

    @classmethod
    def of(cls, self_overlap: Array, teacher_overlap: Array, readout: Array) -> "Order":
        return cls(self_overlap[jnp.tril_indices(readout.size)], teacher_overlap, readout)

    @property
    def self_overlap(self) -> Float[Array, "unit unit"]:
        units = self.readout.shape[-1]
        lower = jnp.zeros((units, units)).at[jnp.tril_indices(units)].set(self.triangle)
        return lower + jnp.tril(lower, -1).T


def initial(system: CommitteeSGD) -> Order:
    return Order.of(*system.overlaps(), system.readouts()[0])


def signal(
    sigma: Activation,
    fields: Float[Array, "*batch unit"],
    label: Float[Array, "*batch"],
    readout: Float[Array, "unit"],
    kick: Float[Array, "*#batch"],
    repeats: int,
) -> tuple[Float[Array, "*batch unit"], Float[Array, "*batch unit"]]:
    """What one sample does to the student: sum over repeated steps of v_j sigma'(lambda_j) e and of sigma(lambda_j) e,
    e = y - f.

    Each step moves the fields of its own sample by kick v_j sigma'(lambda_j) e, kick = rate |x|^2 / d.
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
    """A, N (with the readouts) and the drift of the readouts; by quadrature over the fields when samples are
    repeated."""
    sigma, units = system.sigma, order.readout.shape[0]
    fields = averages.covariance(order.self_overlap, order.teacher_overlap)
    teacher = system.readouts()[1]
    if system.repeats == 1:
        signed = jnp.concatenate([-order.readout, teacher])
        drift = order.readout[:, None] * averages.learning_term(sigma, fields, signed, units)
        noise = averages.noise_term(sigma, fields, signed, units, jnp.asarray(system.noise, jnp.float64))
        readout = averages.two_points(sigma, fields)[:units] @ signed
        return drift, order.readout[:, None] * order.readout * noise, readout
    points = jnp.asarray(averages.field_points(fields.shape[0] + 1))
    values = points[:, :-1] @ averages.symmetric_root(fields)
    label = sigma(values[:, units:]) @ teacher + jnp.sqrt(system.noise) * points[:, -1]
    kick = jnp.asarray(system.learning_rate / system.batch_size)
    first, second = signal(sigma, values[:, :units], label, order.readout, kick, system.repeats)
    return first.T @ values / len(points), first.T @ first / len(points), jnp.mean(second, axis=0)


def velocity(order: Order, problem: tuple[CommitteeSGD, Float[Array, ""], Float[Array, ""]]) -> Order:
    """d(Q, M, v)/dt; `problem` is the system and the weights (0 or 1) of the learning and the noise term."""
    system, learning, noisy = problem
    units = order.readout.shape[0]
    drift, noise, readout = drift_and_noise(system, order)
    rate = learning * system.learning_rate / system.batch_size
    own = drift[:, :units]
    self_overlap = rate * (own + own.T) + noisy * (system.learning_rate / system.batch_size) ** 2 * noise
    live = jnp.arange(units) < system.width
    speed = learning * system.readout_rate / system.batch_size
    return Order.of(self_overlap, rate * drift[:, units:], jnp.where(live, speed * readout, 0.0))


def risk_of(system: CommitteeSGD, order: Order) -> Float[Array, ""]:
    """R of a state of the flow."""
    fields = averages.covariance(order.self_overlap, order.teacher_overlap)
    return averages.population_risk(system.sigma, fields, jnp.concatenate([-order.readout, system.readouts()[1]]))


def outside_teacher(order: Order) -> Float[Array, ""]:
    """Minus the smallest eigenvalue of Q - M M^T, the covariance outside the teacher's span, or 0 when none is
    negative."""
    outside = order.self_overlap - order.teacher_overlap @ order.teacher_overlap.T
    return jnp.maximum(-jnp.linalg.eigvalsh(outside)[0], 0.0)


def switches(terms: Terms) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The weights of the learning and of the noise term. Raises `ValueError` for unknown terms."""
    if terms not in ("both", "learning", "noise"):
        raise ValueError(f"terms = {terms!r}: must be 'both', 'learning' or 'noise'")
    return jnp.asarray(float(terms != "noise")), jnp.asarray(float(terms != "learning"))


def overlap_flow(system: CommitteeSGD, *, terms: Terms = "both", stiff: bool = False) -> OverlapDynamics:
    """Q(t), M(t), v(t) and the risk from the flow equations above.

    terms: "both", or the limit in which only the "learning" (gradient flow) or only the "noise" term is left.
    stiff: implicit steps; for horizons above 1e4.
    Erf students are exact to the solver's 1e-9; for other activations the noise term, and for repeated samples all
    terms, come from a field quadrature with a relative error of a few 1e-3. Raises `ValueError` for unknown `terms`.
    """
    problem = (system, *switches(terms))
    times = system.sample_ratio()
    path = flow(velocity, initial(system), times, problem, stiff=stiff)
    residual = jnp.max(jax.vmap(outside_teacher)(path.value))
    return OverlapDynamics(
        sample_ratio=times,
        population_risk=jax.vmap(lambda order: risk_of(system, order))(path.value),
        self_overlap=jax.vmap(lambda order: order.self_overlap)(path.value),
        teacher_overlap=path.value.teacher_overlap,
        readout_weight=path.value.readout,
        residual=residual,
        converged=path.converged & (residual < _TOLERANCE),
    )


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


def plateau(system: CommitteeSGD, *, slope: float = 0.5) -> Plateau:
    """Entry and exit of the first plateau of R(t), located exactly along the flow (zeros of d ln R / d ln t +
    slope)."""

    def steepness(t: Array, order: Order, problem: tuple) -> Array:
        risk, change = jax.jvp(lambda order: risk_of(problem[0], order), (order,), (velocity(order, problem),))
        return t * change / risk + slope

    problem = (system, *switches("both"))
    horizon = jnp.asarray(system.horizon, jnp.float64)

    def leg(carry: tuple, direction: Array) -> tuple[tuple, tuple[Array, Array, Array]]:
        found = crossing(velocity, carry[1], steepness, carry[0], horizon, problem, direction=direction)
        return (found.time, found.value), (found.time, risk_of(system, found.value), found.found)

    legs = jnp.asarray([-1.0, 1.0, -1.0])  # R starts to fall, levels off, falls again
    _, (times, risks, found) = jax.lax.scan(leg, (jnp.zeros(()), initial(system)), legs)
    return Plateau(times[1], times[2], risks[1], risks[2], jnp.all(found))
