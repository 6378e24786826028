"""A two-layer student that learns a two-layer teacher from one pass over Gaussian inputs: the parameters and what is
observed."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import System, is_number, parameter, structure
from orderparam.gaussian import Activation, activation
from orderparam.systems.online_sgd.start import ReproducibleStart, Start


class CommitteeSGD(System):
    """One-pass SGD of a committee student on a committee teacher with label noise (Saad and Solla 1995; Goldt et al.
    2019; Veiga et al. 2022).

    Fields and labels, x ~ N(0, 1_d), rows of W and W* of length O(sqrt d), sigma the activation of both networks:

        lambda_j = w_j.x / sqrt(d),  f(x) = sum_j v_j sigma(lambda_j),
        y = sum_r v*_r sigma(lambda*_r) + sqrt(noise) N(0, 1),  W* W*^T / d = 1.

    One step on a fresh sample, with e = y - f(x) (the gradient of e^2/2):

        w_j <- w_j + learning_rate / sqrt(d) v_j sigma'(lambda_j) e x,      v_j <- v_j + readout_rate / d
        sigma(lambda_j) e.

    readout "mean": v = 1/width, v* = 1/teacher_width (Veiga et al., whose gamma is `learning_rate`);
    readout "sum": v = v* = 1 (Saad and Solla, Goldt et al., whose eta is `learning_rate` and sigma^2 is `noise`).
    For width = teacher_width = K the two are one: eta = gamma / K^2, sigma^2 = K^2 noise, risk and times K^2 and 1.

    Time is `sample_ratio` = n / d. A batch of b samples a step uses the mean gradient. `repeats` steps are taken on
    each sample before it is thrown away (Dandi et al. 2024, Arnaboldi et al. 2024).
    """

    input_dim: int = parameter("input dimension d", minimum=2, default=1000)
    width: int = parameter("student units p", minimum=1, integer=True, default=4)
    learning_rate: float = parameter("learning rate gamma of the first layer", minimum=0, default=4.0)
    noise: float = parameter("label-noise variance Delta", minimum=0, default=1e-3)
    readout_rate: float = parameter("learning rate of the second layer, 0 when it is fixed", minimum=0, default=0.0)
    batch_size: int = parameter("samples a step", minimum=1, integer=True, default=1)
    first_record: float = parameter("samples per dimension at the first record", above=0, default=0.1)
    horizon: float = parameter("samples per dimension at the last record", above=0, default=100.0)
    start: Start = ReproducibleStart()
    teacher_width: int = structure("teacher units k", default=2)
    records: int = structure("recorded times, evenly spaced in log n", default=25)
    repeats: int = structure("steps on each sample", default=1)
    readout: Literal["mean", "sum"] = structure("second layer: 1/width (mean) or 1 (sum)", default="mean")
    inputs: Literal["unit", "scaled"] = structure(
        "the same dynamics written for x ~ N(0, 1) and w.x / sqrt(d) (unit) or for x ~ N(0, 1/d) and w.x (scaled)",
        default="unit",
    )
    activation: str = structure("activation of both networks, see orderparam.gaussian", default="erf_scaled")
    largest_width: int = structure("units carried along when `width` is swept in one batch; 0: width", default=0)

    def __post_init__(self) -> None:
        if self.largest_width == 0 and is_number(self.width):
            self.largest_width = int(self.width)

    def __check_init__(self) -> None:
        counts = {"teacher_width": 1, "records": 2, "repeats": 1, "largest_width": 1}
        for name, least in counts.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"CommitteeSGD.{name} = {value!r}: must be an integer >= {least}")
        if is_number(self.width) and self.width > self.largest_width:
            raise ValueError(
                f"CommitteeSGD.width = {self.width}: must be <= largest_width = {self.largest_width}; "
                "give largest_width, the largest width of the sweep"
            )
        for name, allowed in {"readout": ("mean", "sum"), "inputs": ("unit", "scaled")}.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"CommitteeSGD.{name} = {getattr(self, name)!r}: must be one of {', '.join(allowed)}")
        if all(is_number(x) for x in (self.first_record, self.horizon)) and not self.first_record < self.horizon:
            raise ValueError(
                f"CommitteeSGD.first_record = {self.first_record}: must be < horizon = {self.horizon} (samples "
                "per dimension)"
            )
        activation(self.activation)

    @property
    def sigma(self) -> Activation:
        return activation(self.activation)

    def readouts(self) -> tuple[Float[Array, "unit"], Float[Array, "teacher_unit"]]:
        """(v, v*) at the start; units beyond `width` have none, so that they neither answer nor move."""
        live = jnp.arange(self.largest_width) < self.width
        one = 1.0 if self.readout == "sum" else 1.0 / self.width
        other = 1.0 if self.readout == "sum" else 1.0 / self.teacher_width
        return jnp.where(live, one, 0.0), jnp.full(self.teacher_width, other)

    def overlaps(self) -> tuple[Float[Array, "unit unit"], Float[Array, "unit teacher_unit"]]:
        """(Q, M) at the start; zero for units beyond `width`."""
        self_overlap, teacher_overlap = self.start.overlaps(
            self.largest_width, self.teacher_width, jnp.asarray(self.input_dim, jnp.float64)
        )
        live = (jnp.arange(self.largest_width) < self.width).astype(jnp.float64)
        return live[:, None] * live * self_overlap, live[:, None] * teacher_overlap

    def steps(self) -> Float[Array, "record"]:
        """Whole numbers of SGD steps at which the overlaps are recorded, geometric in time."""
        per_unit_time = self.input_dim / jnp.asarray(self.batch_size, jnp.float64)
        first, last = (
            jnp.log(jnp.asarray(self.first_record, jnp.float64)),
            jnp.log(jnp.asarray(self.horizon, jnp.float64)),
        )
        return jnp.round(jnp.exp(jnp.linspace(first, last, self.records)) * per_unit_time)

    def sample_ratio(self) -> Float[Array, "record"]:
        """n / d at the records."""
        return self.steps() * self.batch_size / self.input_dim


class OverlapDynamics(Result):
    """The order parameters along training, at `sample_ratio` = n / d.

    population_risk: R = E[(f* - f)^2] / 2 over fresh inputs, without the label noise, WITH the factor 1/2 of the
    papers. self_overlap: Q = W W^T / d. teacher_overlap: M = W W*^T / d. readout_weight: v.
    residual: minus the smallest eigenvalue of Q - M M^T, where that is negative (a covariance, so it must be 0 up to
    rounding). converged: the solver reached the horizon and the residual is below 1e-9; always true for an experiment
    that ran.
    """

    sample_ratio: Float[Array, "record"]
    population_risk: Float[Array, "record"]
    self_overlap: Float[Array, "record unit other_unit"]
    teacher_overlap: Float[Array, "record unit teacher_unit"]
    readout_weight: Float[Array, "record unit"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
