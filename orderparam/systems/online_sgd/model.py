"""Two-layer students that learn a two-layer teacher from one pass over Gaussian inputs, and the
phase diagram in which width and learning rate scale as powers of the input dimension.
"""

import abc
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import Record, System, is_number, parameter, part, structure
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.gaussian.draws import unit
from orderparam.gaussian.generalised import Generalised
from orderparam.sampling.recording import geometric_steps

# ------------------------------------------------------------------------------------------------
# The start of training: the overlaps of the first student with the teacher and with itself.
#
# W (unit, input) and W* (teacher unit, input) are the first-layer weights of student and teacher.
# M = W W*^T / d has the shape (unit, teacher unit), Q = W W^T / d the shape (unit, unit). The
# teacher is orthonormal: W* W*^T / d = 1.


class Start(Record):
    """A law of the overlaps at the start of training, for students of any width and dimension."""

    @abc.abstractmethod
    def overlaps(
        self, units: int, teacher_units: int, input_dim: Float[Array, ""]
    ) -> tuple[Float[Array, "unit unit"], Float[Array, "unit teacher_unit"]]:
        """Overlaps (Q, M) of `units` student units in `input_dim` dimensions at the start."""


class ReproducibleStart(Start):
    """M_jr = teacher_overlap cos(1 + 3j + 5r + jr) and Q = self_overlap 1 + M M^T, with j and r
    from 0.

    Here j numbers the student's units and r the teacher's. No two units are equivalent, and the
    start is the same in every dimension and on every machine. With teacher_overlap = 0 all units
    are equivalent, and the flow never leaves the symmetric plateau.
    """

    teacher_overlap: float = parameter(
        "size of the first student-teacher overlaps", minimum=0, default=0.02
    )
    self_overlap: float = parameter(
        "squared length of the part outside the teacher's span", minimum=0, default=0.25
    )

    def overlaps(self, units, teacher_units, input_dim):
        j, r = jnp.arange(units)[:, None], jnp.arange(teacher_units)[None, :]
        teacher = self.teacher_overlap * jnp.cos(1.0 + 3 * j + 5 * r + j * r)
        return self.self_overlap * jnp.eye(units) + teacher @ teacher.T, teacher


class SphereStart(Start):
    """Rows of W uniform on the sphere |w|^2 = d, with overlaps of order 1/sqrt(d).

    w_j / sqrt(d) is a normalised Gaussian vector. Before normalisation its components along the
    teacher's units are normal, and the Gram matrix of the other components is a Wishart matrix,
    which is drawn by its Bartlett decomposition. The law is exact in d dimensions.
    """

    seed: float = parameter("which student", minimum=0, integer=True, default=0)

    def overlaps(self, units, teacher_units, input_dim):
        normals, squares = jax.random.split(jax.random.key(jnp.asarray(self.seed, jnp.int64)))
        entries = jax.random.normal(normals, (units, teacher_units + units))
        freedom = (input_dim - teacher_units - jnp.arange(units)) / 2
        diagonal = jnp.sqrt(2 * jax.random.gamma(squares, freedom))
        rest = jnp.tril(entries[:, teacher_units:], -1) + jnp.diag(diagonal)
        rows = unit(jnp.concatenate([entries[:, :teacher_units], rest], axis=1))
        return rows @ rows.T, rows[:, :teacher_units]


class InSpanStart(Start):
    """Rows w_j / sqrt(d) of unit length in the span of the teacher's units (Veiga et al. 2022,
    appendix D).

    For this start Q = M M^T. The overlaps are of order one in every dimension, so that the plateau
    is short.
    """

    seed: float = parameter("which student", minimum=0, integer=True, default=0)

    def overlaps(self, units, teacher_units, input_dim):
        rows = unit(
            jax.random.normal(
                jax.random.key(jnp.asarray(self.seed, jnp.int64)), (units, teacher_units)
            )
        )
        return rows @ rows.T, rows


class TeacherStart(Start):
    """The student is the teacher: unit j has the weights of teacher unit j mod teacher_width."""

    def overlaps(self, units, teacher_units, input_dim):
        rows = (
            jnp.arange(units)[:, None] % teacher_units == jnp.arange(teacher_units)[None, :]
        ).astype(jnp.float64)
        return rows @ rows.T, rows


# ------------------------------------------------------------------------------------------------
# A two-layer student that learns a two-layer teacher from one pass over Gaussian inputs: the
# parameters and what is observed.


class CommitteeSGD(System):
    r"""One-pass SGD of a committee student on a committee teacher with label noise.

    Inputs are $x \sim N(0, 1_d)$ with d = `input_dim`. The rows $w_j$ of $W$ and $w^*_r$ of $W^*$
    are the weights of the `width` units of the student and of the `teacher_width` units of the
    teacher; their lengths are of order $\sqrt d$, and $W^* W^{*T} / d = 1$. With the activation
    $\sigma$ of both networks and the fields $\lambda_j$, $\lambda^*_r$ of their units,

    $$ \lambda_j = \frac{w_j \cdot x}{\sqrt d} , \qquad f(x) = \sum_j v_j \sigma(\lambda_j) , \qquad
       y = \sum_r v^*_r \sigma(\lambda^*_r) + \sqrt\Delta\, N(0, 1) . $$

    One step is a gradient step on $e^2/2$ with $e = y - f(x)$ for a fresh sample $(x, y)$:

    $$ w_j \leftarrow w_j + \frac{\gamma}{\sqrt d} v_j \sigma'(\lambda_j)\, e\, x , \qquad
       v_j \leftarrow v_j + \frac{\gamma_v}{d} \sigma(\lambda_j)\, e $$

    with $\gamma$ = `learning_rate`, $\gamma_v$ = `readout_rate` and $\Delta$ = `noise`. A step on
    `batch_size` samples uses the mean gradient; `repeats` steps are taken on each sample.

    `readout` "mean" is v = 1/width, v* = 1/teacher_width (Veiga et al. 2022; their gamma is
    `learning_rate`). `readout` "sum" is v = v* = 1 (Saad, Solla 1995; their eta is `learning_rate`
    and their sigma^2 is `noise`). For width = teacher_width = K the two conventions describe the
    same network if eta = gamma / K^2 and sigma^2 = K^2 noise, where gamma and noise are those of
    "mean". The risk of "sum" is then K^2 times the risk of "mean" at equal times. `student_readout`
    (v at the start) and `teacher_readout` (v*) replace these values, for example where both layers
    are trained (Goldt et al. 2019); each is one number for all units or one number for each unit.

    Time is `sample_ratio` = n / d, the number of samples per dimension. `width` is static: it sets
    the number of unknowns of the flow.

    Raises:
        ValueError: for `first_record` >= `horizon`, and for readouts that are not one for each
            unit.
    """

    input_dim: float = parameter("input dimension d", minimum=2, default=1000)
    learning_rate: float = parameter(
        "learning rate gamma of the first layer", minimum=0, default=4.0
    )
    noise: float = parameter("label-noise variance Delta", minimum=0, default=1e-3)
    readout_rate: float = parameter(
        "learning rate of the second layer, 0 when it is fixed", minimum=0, default=0.0
    )
    batch_size: float = parameter("samples a step", minimum=1, integer=True, default=1)
    first_record: float = parameter(
        "samples per dimension at the first record", above=0, default=0.1
    )
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
    readout: Literal["mean", "sum"] = structure(
        "second layers: 1/width (mean) or 1 (sum)", default="mean"
    )
    inputs: Literal["unit", "scaled"] = structure(
        "the same dynamics written for x ~ N(0, 1) and w.x / sqrt(d) (unit) or for x ~ N(0, 1/d) "
        "and w.x (scaled)",
        default="unit",
    )
    activation: Activation = structure(
        "activation of both networks",
        convert=activation,
        choices=activation_names,
        default="erf_scaled",
    )

    def __check_init__(self) -> None:
        if (
            all(is_number(x) for x in (self.first_record, self.horizon))
            and not self.first_record < self.horizon
        ):
            raise ValueError(
                f"CommitteeSGD.first_record = {self.first_record}: must be < horizon = "
                f"{self.horizon} (samples per dimension)"
            )
        for name, units in (
            ("student_readout", self.width),
            ("teacher_readout", self.teacher_width),
        ):
            shape = jnp.shape(getattr(self, name)) if getattr(self, name) is not None else ()
            if shape not in ((), (units,)):
                raise ValueError(
                    f"CommitteeSGD.{name} has shape {shape}: must be one number, or one for each "
                    f"of {units} units"
                )

    def readouts(self) -> tuple[Float[Array, "unit"], Float[Array, "teacher_unit"]]:
        """Second layers (v, v*) of student and teacher at the start."""

        def of(given: Any, units: int) -> Float[Array, "unit"]:
            usual = 1.0 if self.readout == "sum" else 1.0 / units
            return jnp.broadcast_to(
                jnp.asarray(usual if given is None else given, jnp.float64), (units,)
            )

        return of(self.student_readout, self.width), of(self.teacher_readout, self.teacher_width)

    def overlaps(self) -> tuple[Float[Array, "unit other_unit"], Float[Array, "unit teacher_unit"]]:
        """Overlaps (Q, M) at the start."""
        return self.start.overlaps(
            self.width, self.teacher_width, jnp.asarray(self.input_dim, jnp.float64)
        )

    def steps(self) -> Float[Array, "record"]:
        """Numbers of SGD steps at the records: a geometric sequence, rounded to whole numbers."""
        return geometric_steps(
            self.first_record, self.horizon, self.records, self.input_dim / self.batch_size
        )

    def sample_ratio(self) -> Float[Array, "record"]:
        """Samples per dimension, n / d, at the records."""
        return self.steps() * self.batch_size / self.input_dim


def check_continuous(system: CommitteeSGD) -> None:
    """Raise `ValueError` for activations with jumps.

    At a jump the derivative has a delta function. The averages over Gaussian fields contain it, but
    no step of SGD ever does, so that the flow is not the limit of SGD.
    """
    sigma = system.activation
    if Generalised(sigma, sigma.kinks).derivative().deltas:
        raise ValueError(
            f"CommitteeSGD.activation = {sigma.name}: must be continuous (no gradient step sees a "
            "jump, while the averages of the theory do)"
        )


class OverlapDynamics(Result):
    """Order parameters along training.

    Fields:
        sample_ratio: n/d at the records.
        test_error: risk R = E[(f* - f)^2] / 2 over fresh inputs, without the label noise, WITH the
            factor 1/2 of the papers; f* is the teacher's output without noise.
        self_overlap: Q = W W^T / d, overlaps of the student's units with one another.
        teacher_overlap: M = W W*^T / d, overlaps of the student's units with the teacher's.
        readout_weight: second layer v of the student.
        residual: largest modulus of a negative eigenvalue of Q - M M^T, the covariance of the
            student's weights outside the teacher's span. It must be 0 up to rounding.
        converged: whether the solver reached the horizon and the residual is below 1e-9; always
            true for an experiment.
    """

    sample_ratio: Float[Array, "record"]
    test_error: Float[Array, "record"]
    self_overlap: Float[Array, "record unit other_unit"]
    teacher_overlap: Float[Array, "record unit teacher_unit"]
    readout_weight: Float[Array, "record unit"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


# ------------------------------------------------------------------------------------------------
# The phase diagram of one-pass SGD, in which width and learning rate scale with the dimension.
#
# width = base_width d^kappa, learning_rate = base_rate base_width d^-delta. With theta = kappa +
# delta one step learns d^-(1+theta), and its noise changes the overlaps by d^-(1+2 theta) (Veiga,
# Stephan, Loureiro, Krzakala and Zdeborova 2022):
#
#     theta > 0          perfect learning: the noise is negligible, learning takes n ~ d^(1+theta)
#                        samples, and at finite d a residual risk ~ d^-theta remains
#     theta = 0          Saad and Solla's line: both terms matter, learning takes n ~ d samples, and
#                        the label noise sets the risk at the end
#     -1/2 < theta < 0   noise dominated: the learning term is negligible, and the overlaps change
#                        within n ~ d^(1+2 theta) samples
#     theta < -1/2       one step changes the overlaps by more than order one, and no differential
#                        equation describes it

Region = Literal[
    "perfect learning", "Saad-Solla line", "noise dominated", "no differential equation"
]
_WIDEST = 1e4  # largest width of a point of the phase diagram


class PhasePoint(System):
    r"""One point $(\kappa, \delta)$ of the phase diagram of one-pass SGD at one dimension $d$.

    $$ \text{width} = p_0 d^\kappa , \qquad \text{learning rate} = \gamma_0 p_0 d^{-\delta} $$

    with $p_0$ = `base_width`, $\kappa$ = `width_exponent`, $\gamma_0$ = `base_rate` and $\delta$ =
    `rate_exponent`. The width is rounded to a whole number.
    """

    input_dim: float = parameter("input dimension d", minimum=8, maximum=1e50, default=1000)
    width_exponent: float = parameter(
        "kappa: width = base_width d^kappa", minimum=0, maximum=2, default=0.0
    )
    rate_exponent: float = parameter(
        "delta: learning rate ~ d^-delta", minimum=-3, maximum=3, default=0.0
    )
    base_width: float = parameter("width at kappa = 0", minimum=1, default=4)
    base_rate: float = parameter(
        "learning rate over width at kappa = delta = 0", above=0, default=1.0
    )
    noise: float = parameter("label-noise variance Delta", minimum=0, default=1e-3)
    first_record: float = parameter(
        "first recorded time, in units of `clock`", above=0, default=0.05
    )
    horizon: float = parameter("last recorded time, in units of `clock`", above=0, default=20.0)
    start: Start = part("first student", default=ReproducibleStart())
    teacher_width: int = structure("teacher units k", minimum=1, default=2)
    records: int = structure("recorded times", minimum=2, default=25)
    clock: Literal["scaled", "samples"] = structure(
        "unit of time: the number of samples after which something happens (scaled), or d samples",
        default="scaled",
    )

    @property
    def committee(self) -> CommitteeSGD:
        """The `CommitteeSGD` at this point.

        Its width is computed from fields of the point, which therefore must be numbers and not
        traced arrays.
        """
        dim, theta = float(self.input_dim), float(self.width_exponent + self.rate_exponent)
        width = float(self.base_width) * dim ** float(self.width_exponent)
        if width > _WIDEST:
            raise ValueError(
                f"PhasePoint.width_exponent = {self.width_exponent}: with input_dim = {dim:g} the "
                f"width is {width:.3g}; must be <= {_WIDEST:g}"
            )
        # The unit of time is set by the faster of the two terms, which needs d^(1 + theta) or d^(1
        # + 2 theta) samples; here it is divided by d.
        unit = dim ** min(theta, 2 * theta) if self.clock == "scaled" else 1.0
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
    """Phase of a point (kappa, delta). Raises `ValueError` for kappa < 0."""
    if width_exponent < 0:
        raise ValueError(
            f"width_exponent = {width_exponent}: must be >= 0 (the width does not shrink)"
        )
    theta = width_exponent + rate_exponent
    if theta == 0:
        return "Saad-Solla line"
    if theta > 0:
        return "perfect learning"
    return "noise dominated" if theta > -0.5 else "no differential equation"


def time_exponent(width_exponent: float, rate_exponent: float) -> float:
    """Exponent of d in the number of samples after which the overlaps have moved: the smaller of 1
    + theta and 1 + 2 theta, at least 0.
    """
    theta = width_exponent + rate_exponent
    return max(min(1 + theta, 1 + 2 * theta), 0.0)


class RiskCurve(Result):
    """Risk along training. These observables have the same shape at every width.

    Fields:
        sample_ratio: n/d at the records.
        test_error: R = E[(f* - f)^2] / 2, with its factor 1/2, without label noise.
        residual: as in `OverlapDynamics`, for the overlaps of `PhasePoint.committee`.
        converged: as in `OverlapDynamics`.
    """

    sample_ratio: Float[Array, "record"]
    test_error: Float[Array, "record"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]

    @classmethod
    def of(cls, path: OverlapDynamics) -> "RiskCurve":
        return cls(
            sample_ratio=path.sample_ratio,
            test_error=path.test_error,
            residual=path.residual,
            converged=path.converged,
        )


class MovingTime(Result):
    """Number of samples until the overlaps have changed by 0.1.

    The change of unit j is the length of the vector that contains the changes of Q_jj, M_j1, M_j2,
    .... The change of the overlaps is the root mean square of this length over all units j.

    Fields:
        samples: number of samples.
        converged: whether the overlaps changed by 0.1 before the horizon.
    """

    samples: Float[Array, ""]
    converged: Bool[Array, ""]


class ResidualRisk(Result):
    """Risk at the end of learning.

    Fields:
        test_error: R = E[(f* - f)^2] / 2, with its factor 1/2, without label noise.
    """

    test_error: Float[Array, ""]
