"""A two-layer student that learns a two-layer teacher from one pass over Gaussian inputs: the parameters and what is
observed."""

from typing import Any, Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import System, is_number, parameter, part, structure
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.sampling.recording import geometric_steps
from orderparam.systems.online_sgd.committee.start import ReproducibleStart, Start


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
    readout "sum": v = v* = 1 (Saad and Solla, whose eta is `learning_rate` and sigma^2 is `noise`).
    For width = teacher_width = K the two are one: eta = gamma / K^2, sigma^2 = K^2 noise, risk and times K^2 and 1.
    `student_readout` (v at the start) and `teacher_readout` (v*) replace these values, as when both layers are trained (Goldt et
    al.): one number for all units, or one for each.

    Time is `sample_ratio` = n / d. A batch of b samples a step uses the mean gradient. `repeats` steps are taken on
    each sample before it is thrown away (Dandi et al. 2024, Arnaboldi et al. 2024). `width` is static: it says how many
    unknowns the flow has. Raises `ValueError` for readouts that are not one for each unit.
    """

    input_dim: float = parameter("input dimension d", minimum=2, default=1000)
    learning_rate: float = parameter("learning rate gamma of the first layer", minimum=0, default=4.0)
    noise: float = parameter("label-noise variance Delta", minimum=0, default=1e-3)
    readout_rate: float = parameter("learning rate of the second layer, 0 when it is fixed", minimum=0, default=0.0)
    batch_size: float = parameter("samples a step", minimum=1, integer=True, default=1)
    first_record: float = parameter("samples per dimension at the first record", above=0, default=0.1)
    horizon: float = parameter("samples per dimension at the last record", above=0, default=100.0)
    student_readout: float | Float[Array, "unit"] | None = parameter(
        "second layer v of the student at the start; None: see `readout`", default=None
    )
    teacher_readout: float | Float[Array, "teacher_unit"] | None = parameter(
        "second layer v* of the teacher; None: see `readout`", default=None
    )
    start: Start = part("first student", default=ReproducibleStart())
    width: int = structure("student units p", minimum=1, default=4)
    teacher_width: int = structure("teacher units k", minimum=1, default=2)
    records: int = structure("recorded times, evenly spaced in log n", minimum=2, default=25)
    repeats: int = structure("steps on each sample", minimum=1, default=1)
    readout: Literal["mean", "sum"] = structure("second layers: 1/width (mean) or 1 (sum)", default="mean")
    inputs: Literal["unit", "scaled"] = structure(
        "the same dynamics written for x ~ N(0, 1) and w.x / sqrt(d) (unit) or for x ~ N(0, 1/d) and w.x (scaled)",
        default="unit",
    )
    activation: Activation = structure(
        "activation of both networks", convert=activation, choices=activation_names, default="erf_scaled"
    )

    def __check_init__(self) -> None:
        if all(is_number(x) for x in (self.first_record, self.horizon)) and not self.first_record < self.horizon:
            raise ValueError(
                f"CommitteeSGD.first_record = {self.first_record}: must be < horizon = {self.horizon} (samples per dimension)"
            )
        for name, units in (("student_readout", self.width), ("teacher_readout", self.teacher_width)):
            shape = jnp.shape(getattr(self, name)) if getattr(self, name) is not None else ()
            if shape not in ((), (units,)):
                raise ValueError(f"CommitteeSGD.{name} has shape {shape}: must be one number, or one for each of {units} units")

    def readouts(self) -> tuple[Float[Array, "unit"], Float[Array, "teacher_unit"]]:
        """(v, v*) at the start."""

        def of(given: Any, units: int) -> Float[Array, "unit"]:
            usual = 1.0 if self.readout == "sum" else 1.0 / units
            return jnp.broadcast_to(jnp.asarray(usual if given is None else given, jnp.float64), (units,))

        return of(self.student_readout, self.width), of(self.teacher_readout, self.teacher_width)

    def overlaps(self) -> tuple[Float[Array, "unit other_unit"], Float[Array, "unit teacher_unit"]]:
        """(Q, M) at the start."""
        return self.start.overlaps(self.width, self.teacher_width, jnp.asarray(self.input_dim, jnp.float64))

    def steps(self) -> Float[Array, "record"]:
        """Whole numbers of SGD steps at which the overlaps are recorded, geometric in time."""
        return geometric_steps(self.first_record, self.horizon, self.records, self.input_dim / self.batch_size)

    def sample_ratio(self) -> Float[Array, "record"]:
        """n / d at the records."""
        return self.steps() * self.batch_size / self.input_dim


class OverlapDynamics(Result):
    """The order parameters along training, at `sample_ratio` = n / d.

    test_error: R = E[(f* - f)^2] / 2 over fresh inputs, without the label noise, WITH the factor 1/2 of the
    papers. self_overlap: Q = W W^T / d. teacher_overlap: M = W W*^T / d. readout_weight: v.
    residual: minus the smallest eigenvalue of Q - M M^T, where that is negative (a covariance, so it must be 0 up to
    rounding). converged: the solver reached the horizon and the residual is below 1e-9; always true for an experiment
    that ran.
    """

    sample_ratio: Float[Array, "record"]
    test_error: Float[Array, "record"]
    self_overlap: Float[Array, "record unit other_unit"]
    teacher_overlap: Float[Array, "record unit teacher_unit"]
    readout_weight: Float[Array, "record unit"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
