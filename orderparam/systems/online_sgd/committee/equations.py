"""The flow of the order parameters as d -> infinity (Saad and Solla 1995), with the learning and the noise term kept
apart.

With signed readouts c = (-v, v*), rate = learning_rate / batch_size and time t = n / d (samples, not steps),

    dM/dt = rate A_M,    dQ/dt = rate (A_Q + A_Q^T) + rate^2 N,    dv_j/dt = readout_rate / batch_size sum_a c_a I2(j, a),

A_jb = v_j E[sigma'(j) lambda_b (y - f)] the learning term, N_jl = v_j v_l E[sigma'(j) sigma'(l) (y - f)^2] the noise
term. Label noise enters N alone. At finite d the same equations with the actual rate hold up to fluctuations of order
d^(-1/2); dropping one term gives the limits d -> infinity off the line where both survive (Veiga et al. 2022, theorem
3.1).
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.gaussian import Activation
from orderparam.systems.online_sgd.averages import moments
from orderparam.systems.online_sgd.committee.model import CommitteeSGD, OverlapDynamics

Terms = Literal["both", "learning", "noise"]
Problem = tuple[CommitteeSGD, float, float]  # the weights, 0 or 1, are those of the learning and of the noise term


class Order(NamedTuple):
    """The state of the flow. Q is kept as its lower triangle: in the space of all matrices the vector field is unstable
    against asymmetric rounding errors, which then grow to order one on long runs."""

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
    sigma, units = system.activation, system.width
    fields = moments.covariance(order.self_overlap, order.teacher_overlap)
    teacher = system.readouts()[1]
    if system.repeats == 1:
        signed = jnp.concatenate([-order.readout, teacher])
        drift = order.readout[:, None] * moments.learning_term(sigma, fields, signed, units)
        noise = moments.noise_term(sigma, fields, signed, units, jnp.asarray(system.noise, jnp.float64))
        readout = moments.two_points(sigma, fields)[:units] @ signed
        return drift, order.readout[:, None] * order.readout * noise, readout
    points = jnp.asarray(moments.field_points(fields.shape[0] + 1))
    values = points[:, :-1] @ moments.symmetric_root(fields)
    label = sigma(values[:, units:]) @ teacher + jnp.sqrt(system.noise) * points[:, -1]
    kick = jnp.asarray(system.learning_rate / system.batch_size)
    first, second = signal(sigma, values[:, :units], label, order.readout, kick, system.repeats)
    return first.T @ values / len(points), first.T @ first / len(points), jnp.mean(second, axis=0)


def problem(system: CommitteeSGD, terms: Terms = "both") -> Problem:
    """What `velocity` is told beside the state."""
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


def risk(system: CommitteeSGD, self_overlap: Array, teacher_overlap: Array, readout: Array) -> Float[Array, ""]:
    """R, with its factor 1/2, of a student with these overlaps and this second layer."""
    signed = jnp.concatenate([-readout, system.readouts()[1]])
    return moments.half_square(system.activation, moments.covariance(self_overlap, teacher_overlap), signed)


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
    """The Result of recorded overlaps; converged: `arrived`, and no eigenvalue of Q - M M^T below -tolerance."""

    def outside_teacher(self_overlap: Array, teacher_overlap: Array) -> Float[Array, ""]:
        return jnp.maximum(-jnp.linalg.eigvalsh(self_overlap - teacher_overlap @ teacher_overlap.T)[0], 0.0)

    residual = jnp.max(jax.vmap(outside_teacher)(self_overlap, teacher_overlap))
    return OverlapDynamics(
        sample_ratio=system.sample_ratio(),
        test_error=jax.vmap(lambda *state: risk(system, *state))(self_overlap, teacher_overlap, readout),
        self_overlap=self_overlap,
        teacher_overlap=teacher_overlap,
        readout_weight=readout,
        residual=residual,
        converged=jnp.asarray(arrived) & (residual <= tolerance),
    )
