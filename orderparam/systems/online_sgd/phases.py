"""The phase diagram of one-pass SGD: how width and learning rate may grow with the dimension, and what is left of
learning.

width = base_width d^kappa, learning_rate = base_rate base_width d^-delta. With theta = kappa + delta one step learns
d^-(1+theta) and shakes the overlaps by d^-(1+2 theta) (Veiga, Stephan, Loureiro, Krzakala and Zdeborova 2022):

    theta > 0          perfect learning: the noise is negligible, n ~ d^(1+theta), a residual risk ~ d^-theta at finite
    d theta = 0          Saad and Solla's line: both terms, n ~ d, a plateau set by the label noise
    -1/2 < theta < 0   noise dominated: the learning term is negligible, n ~ d^(1+2 theta)
    theta < -1/2       one step changes the overlaps by more than O(1): there is no differential equation
"""

from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import System, is_number, parameter, structure
from orderparam.systems.online_sgd.chain import overlap_chain
from orderparam.systems.online_sgd.flow import Terms, overlap_flow
from orderparam.systems.online_sgd.model import CommitteeSGD, OverlapDynamics
from orderparam.systems.online_sgd.start import ReproducibleStart, Start
from orderparam.systems.online_sgd.steady import AsymptoticError, asymptotic_error

Region = Literal["perfect learning", "Saad-Solla line", "noise dominated", "no differential equation"]
MOVED = 0.1  # a root-mean-square change of the overlaps of a unit that counts as a change


class PhasePoint(System):
    """One point (kappa, delta) of the phase diagram at one dimension."""

    input_dim: int = parameter("input dimension d", minimum=8, default=1000)
    width_exponent: float = parameter("kappa: width = base_width d^kappa", minimum=0, default=0.0)
    rate_exponent: float = parameter("delta: learning rate ~ d^-delta", default=0.0)
    base_width: int = parameter("width at kappa = 0", minimum=1, default=4)
    base_rate: float = parameter("learning rate over width at kappa = delta = 0", above=0, default=1.0)
    noise: float = parameter("label-noise variance Delta", minimum=0, default=1e-3)
    first_record: float = parameter("first recorded time, in units of `clock`", above=0, default=0.05)
    horizon: float = parameter("last recorded time, in units of `clock`", above=0, default=20.0)
    start: Start = ReproducibleStart()
    teacher_width: int = structure("teacher units k", default=2)
    records: int = structure("recorded times", default=25)
    clock: Literal["scaled", "samples"] = structure(
        "unit of time: the number of samples after which something happens (scaled), or d samples", default="scaled"
    )
    largest_width: int = structure("largest width of a sweep; 0: that of this point", default=0)

    def __post_init__(self) -> None:
        numbers = (self.base_width, self.input_dim, self.width_exponent)
        if self.largest_width == 0 and all(is_number(x) for x in numbers):
            self.largest_width = round(float(self.base_width) * float(self.input_dim) ** float(self.width_exponent))

    def __check_init__(self) -> None:
        if self.clock not in ("scaled", "samples"):
            raise ValueError(f"PhasePoint.clock = {self.clock!r}: must be 'scaled' or 'samples'")

    @property
    def theta(self) -> Float[Array, ""]:
        return jnp.asarray(self.width_exponent, jnp.float64) + self.rate_exponent

    def samples_per_time(self) -> Float[Array, ""]:
        """d^min(1 + theta, 1 + 2 theta): the time step of the faster of the two terms, inverted."""
        dim = jnp.asarray(self.input_dim, jnp.float64)
        return dim ** jnp.minimum(1 + self.theta, 1 + 2 * self.theta)

    def sgd(self) -> CommitteeSGD:
        """The committee of this point."""
        dim: Any = jnp.asarray(self.input_dim, jnp.float64)
        width: Any = jnp.round(self.base_width * dim**self.width_exponent)
        unit: Any = self.samples_per_time() / dim if self.clock == "scaled" else 1.0
        return CommitteeSGD(
            input_dim=dim,
            width=width,
            learning_rate=self.base_rate * self.base_width * dim**-self.rate_exponent,
            noise=self.noise,
            first_record=self.first_record * unit,
            horizon=self.horizon * unit,
            start=self.start,
            teacher_width=self.teacher_width,
            records=self.records,
            largest_width=self.largest_width,
        )


def region(width_exponent: float, rate_exponent: float) -> Region:
    """The phase of a point (kappa, delta). Raises `ValueError` for kappa < 0."""
    if width_exponent < 0:
        raise ValueError(f"width_exponent = {width_exponent}: must be >= 0 (the width does not shrink)")
    theta = width_exponent + rate_exponent
    if theta == 0:
        return "Saad-Solla line"
    if theta > 0:
        return "perfect learning"
    return "noise dominated" if theta > -0.5 else "no differential equation"


def time_exponent(width_exponent: float, rate_exponent: float) -> float:
    """The power of d in the number of samples after which something happens: 1 + theta, 1 + 2 theta, and 0 beyond the
    last phase."""
    theta = width_exponent + rate_exponent
    return max(min(1 + theta, 1 + 2 * theta), 0.0)


def phase_flow(point: PhasePoint, *, terms: Terms = "both", stiff: bool = False) -> OverlapDynamics:
    """`overlap_flow` of the point; terms "both" keeps the term that vanishes as d -> infinity, with its finite-d
    size."""
    return overlap_flow(point.sgd(), terms=terms, stiff=stiff)


def phase_chain(point: PhasePoint, key: Array) -> OverlapDynamics:
    """`overlap_chain` of the point."""
    return overlap_chain(point.sgd(), key)


class MovingTime(Result):
    """samples: how many it takes until the overlaps of a unit, Q_jj and M_j, have moved by 0.1 (root mean square over
    units).

    converged: they did before the horizon.
    """

    samples: Float[Array, ""]
    converged: Bool[Array, ""]


def _moving_time(point: PhasePoint, path: OverlapDynamics) -> MovingTime:
    """First crossing on the recorded grid, linear in ln n; one step where the first record has moved already."""
    n = jnp.maximum(path.sample_ratio * point.input_dim, 1.0)
    self_overlap, teacher_overlap = point.sgd().overlaps()
    own = jnp.diagonal(path.self_overlap, axis1=1, axis2=2) - jnp.diagonal(self_overlap)
    squares = own**2 + jnp.sum((path.teacher_overlap - teacher_overlap) ** 2, axis=2)
    change = jnp.sqrt(jnp.sum(squares, axis=1) / point.sgd().width) - MOVED
    after = jnp.argmax(change > 0)
    before = jnp.maximum(after - 1, 0)
    share = jnp.where(after > 0, -change[before] / (change[after] - change[before]), 1.0)
    log_n = jnp.log(n[before]) + share * (jnp.log(n[after]) - jnp.log(n[before]))
    return MovingTime(jnp.exp(log_n), jnp.any(change > 0) & path.converged)


def moving_time(point: PhasePoint) -> MovingTime:
    """From the flow with both terms."""
    return _moving_time(point, phase_flow(point))


def measured_moving_time(point: PhasePoint, key: Array) -> MovingTime:
    """From one run of the exact chain."""
    return _moving_time(point, phase_chain(point, key))


class ResidualRisk(Result):
    """population_risk at the end of learning (with its factor 1/2)."""

    population_risk: Float[Array, ""]


def residual_theory(point: PhasePoint) -> AsymptoticError:
    """`asymptotic_error` of the point; width = teacher_width."""
    return asymptotic_error(point.sgd())


def residual_chain(point: PhasePoint, key: Array) -> ResidualRisk:
    """The risk averaged over the second half (in time) of one run."""
    path = phase_chain(point, key)
    late = np.asarray(path.sample_ratio) > 0.5 * float(path.sample_ratio[-1])
    return ResidualRisk(jnp.mean(path.population_risk[late]))
