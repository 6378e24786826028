"""Targets of a few directions: one whose hardness is asked for, a neuron that looks for them by
SGD, a parity with a hint.
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import System, is_number, parameter, structure
from orderparam.gaussian.target import Target
from orderparam.sampling.recording import geometric_steps
from orderparam.systems.multi_index.targets import formula, read

# ------------------------------------------------------------------------------------------------
# A target whose hardness is asked for, and what is found.

ORDERS = 4  # of the Hermite powers that are reported
STAIRS = "z1**2 + sign(z1*z2*z3)"  # a target of two stairs


class WeakLearnability(System):
    """A target whose hardness is asked for."""

    target: str | Target = structure("target g, see `exponents`", convert=formula, default="z")
    samples: int = structure(
        "random inputs of a measurement", minimum=100, maximum=10**8, default=200_000
    )


class LearnedTarget(System):
    """Optimal estimates of the directions of a target y = g(z), from n = sample_ratio * d inputs x
    ~ N(0, 1_d).
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0)
    target: str | Target = structure("target g, see `exponents`", convert=formula, default=STAIRS)
    input_dim: float = parameter(
        "input dimension d of a run", minimum=10, integer=True, default=500
    )


class Hardness(Result):
    """information, leap, generative, generative_leap: the exponents, infinite when beyond order 8.
    degree: of a polynomial, infinite otherwise.

    threshold: n / d of weak recovery by the best algorithm. hermite_power: sum of c_a^2 over |a| =
    order, for orders 1 .. 4.
    """

    information: Float[Array, ""]
    leap: Float[Array, ""]
    generative: Float[Array, ""]
    generative_leap: Float[Array, ""]
    degree: Float[Array, ""]
    threshold: Float[Array, ""]
    hermite_power: Float[Array, "order"]
    converged: Bool[Array, ""]


class HermitePower(Result):
    """hermite_power: sum of c_a^2 over |a| = order, for orders 1 .. 4, without bias."""

    hermite_power: Float[Array, "order"]


class Climb(Result):
    """overlap: E z_i <z_i>, of the field along each coordinate of the target with its estimate; 1
    where it is known.

    next_threshold: n / d from which an estimate with these overlaps sees another direction,
    infinite where there is none to see; NaN in a measurement, which does not know it.
    """

    overlap: Float[Array, "index"]
    next_threshold: Float[Array, ""]
    converged: Bool[Array, ""]
    residual: Float[Array, ""]


# ------------------------------------------------------------------------------------------------
# One neuron on the sphere that looks for a few hidden directions by SGD: the parameters and what is observed.


def _of_one_field(what: Any) -> str | Target:
    if read(formula(what)).dimension != 1:
        raise ValueError("must be a formula in z alone")
    return formula(what)


class SphericalSGD(System):
    """Spherical one-pass SGD of one neuron sigma(w.x), |w| = 1, x ~ N(0, 1_d), on y = g(W* x) +
    sqrt(noise) N(0, 1) with r orthonormal hidden directions (Ben Arous, Gheissari, Jagannath 2021):

        w <- (w + learning_rate / d e P x) / |...|,  P = 1 - w w^T,  e = sigma'(w.x) (y -
        sigma(w.x)).

    gamma = learning_rate d^(-rate_exponent) stands for the first factor. loss "correlation" leaves
    out - sigma(w.x). A batch of b samples a step uses the mean gradient, or the sum of gradients
    (gamma grows with b). With `repetition` rho > 0 each sample is used twice: e is taken after the
    extra step w + rho / d e x on the same sample (Dandi et al. 2024, Arnaboldi et al. 2024), and
    every e in the equations of this room is that second one.

    The order parameters are the overlaps m = W* w. They start at those of a random w, with positive
    signs for `start` "positive", or all at `first_overlap` when that is not 0. A direction counts
    as found when |m| reaches `exit_overlap`. Time is `sample_ratio` = n / d.
    """

    input_dim: float = parameter("input dimension d", minimum=8, default=256)
    learning_rate: float = parameter("learning rate gamma", above=0, default=0.1)
    rate_exponent: float = parameter(
        "gamma = learning_rate d^-rate_exponent", minimum=0, default=0.0
    )
    noise: float = parameter("label-noise variance", minimum=0, default=0.0)
    batch_size: float = parameter("samples a step", minimum=1, integer=True, default=1)
    repetition: float = parameter(
        "step rho of the first look at a sample; 0: one look", minimum=0, default=0.0
    )
    first_overlap: float = parameter(
        "overlap at the start; 0: random", minimum=0, below=1, default=0.0
    )
    exit_overlap: float = parameter(
        "length of the overlap vector that counts as found", above=0, below=1, default=0.5
    )
    horizon: float = parameter(
        "samples per dimension at which one gives up", above=0, default=1000.0
    )
    first_record: float = parameter(
        "samples per dimension at the first record", above=0, default=0.1
    )
    target: str | Target = structure(
        "target g, see `exponents`", convert=formula, default="He2(z)/sqrt(2)"
    )
    student: str | Target = structure(
        "activation sigma of the neuron, in z", convert=_of_one_field, default="He2(z)/sqrt(2)"
    )
    loss: Literal["correlation", "squared"] = structure("loss", default="correlation")
    gradient: Literal["mean", "sum"] = structure("gradient of a batch", default="mean")
    start: Literal["positive", "signed"] = structure(
        "signs of the first overlaps", default="positive"
    )
    records: int = structure("recorded times, evenly spaced in log n", minimum=2, default=25)

    def __check_init__(self) -> None:
        if (
            all(is_number(x) for x in (self.first_record, self.horizon))
            and not self.first_record < self.horizon
        ):
            raise ValueError(
                f"SphericalSGD.first_record = {self.first_record}: must be < horizon = {self.horizon}"
            )
        if (
            all(is_number(x) for x in (self.batch_size, self.repetition))
            and self.batch_size > 1
            and self.repetition > 0
        ):
            raise ValueError(
                f"SphericalSGD.repetition = {self.repetition}: must be 0 when batch_size = {self.batch_size} > 1"
            )
        count = self.teacher.dimension
        if is_number(self.first_overlap) and self.first_overlap**2 * count > 1:
            raise ValueError(
                f"SphericalSGD.first_overlap = {self.first_overlap}: must be <= 1 / sqrt({count}), so that |m| <= 1 for {count} "
                "indices"
            )

    @property
    def teacher(self) -> Target:
        """The target g."""
        return read(self.target)

    @property
    def rate(self) -> Float[Array, ""]:
        """The learning rate of one sample, gamma / batch_size (gamma for summed gradients)."""
        gamma = self.learning_rate * jnp.asarray(self.input_dim, jnp.float64) ** -self.rate_exponent
        return gamma / (self.batch_size if self.gradient == "mean" else 1)

    def steps(self) -> Float[Array, "record"]:
        """Whole numbers of steps at the records."""
        return geometric_steps(
            self.first_record, self.horizon, self.records, self.input_dim / self.batch_size
        )

    def error_signal(
        self,
        field: Float[Array, "*batch"],
        label: Float[Array, "*batch"],
        length: Float[Array, "*#batch"] | float,
    ) -> Float[Array, "*batch"]:
        """e of a sample with w.x = field, label y and |x|^2 / d = length."""
        neuron = read(self.student)

        def signal(field: Array) -> Array:
            value, slope = jax.jvp(
                lambda z: neuron(z[..., None]) + 0 * z, (field,), (jnp.ones_like(field),)
            )
            return slope * (label - (value if self.loss == "squared" else 0.0))

        return signal(field + self.repetition * length * signal(field))


class OverlapPath(Result):
    """The overlaps m = W* w along training, at `sample_ratio` = n / d; `norm` = |m|, the part of w
    inside the hidden subspace."""

    sample_ratio: Float[Array, "record"]
    overlap: Float[Array, "record index"]
    norm: Float[Array, "record"]
    converged: Bool[Array, ""]


class ExitTime(Result):
    """How many samples it takes until |m| reaches `exit_overlap`. converged: it did so before the
    horizon.

    exit_samples: n, the mean over starts and runs for a theory, one run's for an experiment.
    exit_steps: the same in SGD steps.
    """

    exit_samples: Float[Array, ""]
    exit_steps: Float[Array, ""]
    converged: Bool[Array, ""]


# ------------------------------------------------------------------------------------------------
# A parity of three directions and a hint at the first: the stair that knowing it in part opens.


class HintedParity(System):
    """Labels y = sign(z1 z2 z3), z_k = w_k.x of orthonormal w_k, of n inputs x ~ N(0, 1_d), and a
    unit vector u with (u.w1)^2 = Q, u.w2 = u.w3 = 0. So omega = sqrt(Q) u.x is known of z1 = omega
    + sqrt(1 - Q) t.

    Without the hint (Q = 0) no n = O(d) samples show a direction.
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0)
    hint: float = parameter(
        "squared cosine Q of the known vector with the first direction", above=0, maximum=1
    )
    input_dim: float = parameter(
        "input dimension d of a run", minimum=10, integer=True, default=500
    )


class HintedOverlaps(Result):
    """overlap: E z_k <z_k> of the two other directions, their mean, up to what no label tells
    (their order, a common sign). hinted_overlap: E z_1 <z_1>, which is Q where the labels add
    nothing. residual: the last change, of ln(1 + qh / Q^2) in a theory, of estimates in a run."""

    overlap: Float[Array, ""]
    hinted_overlap: Float[Array, ""]
    converged: Bool[Array, ""]
    residual: Float[Array, ""]


class HintedSpectrum(Result):
    """overlap: of the two other directions, of the best estimate that the eigenvectors allow: the
    mean of their squared cosines with (w2 + w3)/sqrt(2) and (w2 - w3)/sqrt(2). eigenvalue: the
    largest, mean of both matrices."""

    overlap: Float[Array, ""]
    eigenvalue: Float[Array, ""]
    converged: Bool[Array, ""]


def correlation(margin: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """E[z2 z3 | y, omega], of which nothing is known, at the margin y omega / sqrt(1 - Q): (2/pi)
    E[y sign z1 | omega].
    """
    return 2 / np.pi * erf(margin / np.sqrt(2))
