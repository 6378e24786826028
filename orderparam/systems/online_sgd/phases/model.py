"""The phase diagram of one-pass SGD: how width and learning rate may grow with the dimension, and what is left of
learning.

width = base_width d^kappa, learning_rate = base_rate base_width d^-delta. With theta = kappa + delta one step learns
d^-(1+theta) and shakes the overlaps by d^-(1+2 theta) (Veiga, Stephan, Loureiro, Krzakala and Zdeborova 2022):

    theta > 0          perfect learning: the noise is negligible, n ~ d^(1+theta), a residual risk ~ d^-theta at finite d
    theta = 0          Saad and Solla's line: both terms, n ~ d, a plateau set by the label noise
    -1/2 < theta < 0   noise dominated: the learning term is negligible, n ~ d^(1+2 theta)
    theta < -1/2       one step changes the overlaps by more than O(1): there is no differential equation
"""

from typing import Literal

from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import System, parameter, part, structure
from orderparam.systems.online_sgd.committee.model import CommitteeSGD, OverlapDynamics
from orderparam.systems.online_sgd.committee.start import ReproducibleStart, Start

Region = Literal["perfect learning", "Saad-Solla line", "noise dominated", "no differential equation"]
_WIDEST = 1e4


class PhasePoint(System):
    """One point (kappa, delta) of the phase diagram at one dimension. Its width is rounded to a whole number."""

    input_dim: float = parameter("input dimension d", minimum=8, maximum=1e50, default=1000)
    width_exponent: float = parameter("kappa: width = base_width d^kappa", minimum=0, maximum=2, default=0.0)
    rate_exponent: float = parameter("delta: learning rate ~ d^-delta", minimum=-3, maximum=3, default=0.0)
    base_width: float = parameter("width at kappa = 0", minimum=1, default=4)
    base_rate: float = parameter("learning rate over width at kappa = delta = 0", above=0, default=1.0)
    noise: float = parameter("label-noise variance Delta", minimum=0, default=1e-3)
    first_record: float = parameter("first recorded time, in units of `clock`", above=0, default=0.05)
    horizon: float = parameter("last recorded time, in units of `clock`", above=0, default=20.0)
    start: Start = part("first student", default=ReproducibleStart())
    teacher_width: int = structure("teacher units k", minimum=1, default=2)
    records: int = structure("recorded times", minimum=2, default=25)
    clock: Literal["scaled", "samples"] = structure(
        "unit of time: the number of samples after which something happens (scaled), or d samples", default="scaled"
    )

    @property
    def committee(self) -> CommitteeSGD:
        """The committee of this point; its sizes follow from numbers, so that these cannot be traced."""
        dim, theta = float(self.input_dim), float(self.width_exponent + self.rate_exponent)
        width = float(self.base_width) * dim ** float(self.width_exponent)
        if width > _WIDEST:
            raise ValueError(
                f"PhasePoint.width_exponent = {self.width_exponent}: with input_dim = {dim:g} the width is {width:.3g}; must be "
                f"<= {_WIDEST:g}"
            )
        unit = dim ** min(theta, 2 * theta) if self.clock == "scaled" else 1.0  # the faster term moves the overlaps
        return CommitteeSGD(
            input_dim=dim,
            width=round(width),
            learning_rate=self.base_rate * self.base_width * dim**-self.rate_exponent,
            noise=self.noise,
            first_record=self.first_record * unit,
            horizon=self.horizon * unit,
            start=self.start,
            teacher_width=self.teacher_width,
            records=self.records,
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


class RiskCurve(Result):
    """test_error (with its factor 1/2) along training, at `sample_ratio` = n / d: the same observables at every width. residual,
    converged: see `OverlapDynamics`; the overlaps are those of `PhasePoint.committee`."""

    sample_ratio: Float[Array, "record"]
    test_error: Float[Array, "record"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]

    @classmethod
    def of(cls, path: OverlapDynamics) -> "RiskCurve":
        return cls(path.sample_ratio, path.test_error, path.residual, path.converged)


class MovingTime(Result):
    """samples: how many it takes until the overlaps of a unit, Q_jj and M_j, have moved by 0.1 (root mean square over
    units).

    converged: they did before the horizon.
    """

    samples: Float[Array, ""]
    converged: Bool[Array, ""]


class ResidualRisk(Result):
    """test_error at the end of learning (with its factor 1/2)."""

    test_error: Float[Array, ""]
