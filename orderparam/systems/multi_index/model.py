"""The systems: a target of a few directions, a neuron that finds these directions by SGD, and a
parity with a hint. The module also reads targets from text, and has the quadrature for targets that
are not smooth."""

import functools
import itertools
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import System, is_number, parameter, structure
from orderparam.gaussian.rules import double_exponential, half_line_rule
from orderparam.gaussian.target import Target, target
from orderparam.sampling.recording import geometric_steps

# ------------------------------------------------------------------------------------------------
# Targets as fields of systems: equal texts are equal fields, so that a target is compiled once.

read = functools.cache(target)


def formula(what: Any) -> str | Target:
    """The form in which a field keeps a target: its text, or a `Target` for a Python function.
    Raises `ValueError` for anything else.
    """
    return read(what.strip()).name if isinstance(what, str) else target(what)


# ------------------------------------------------------------------------------------------------
# Quadrature for targets that need not be smooth: kinks on coordinate planes, square-root
# singularities at extrema.
#
# This part uses NumPy: a target is analysed only once, and compilation would take longer than the
# computation.

REACH = 12.0  # the standard normal density beyond is 2e-32
NODES = {1: 40, 2: 40, 3: 20, 4: 12}  # Gauss nodes on each half line, by dimension


def hermite_values(
    count: int, z: Float[np.ndarray, "*batch"]
) -> Float[np.ndarray, "{count} *batch"]:
    """The values h_0(z) .. h_{count-1}(z)."""
    rows = [np.ones_like(z), np.asarray(z, float)]
    for n in range(1, count - 1):
        rows.append((z * rows[-1] - np.sqrt(n) * rows[-2]) / np.sqrt(n + 1))
    return np.stack(rows[:count])


def grid(
    dimension: int, nodes: int
) -> tuple[Float[np.ndarray, "*node index"], Float[np.ndarray, "*node"]]:
    """Nodes and weights of the tensor grid that is made of the half-line rule."""
    z, w = half_line_rule(nodes)
    weights = np.ones(())
    for _ in range(dimension):
        weights = np.multiply.outer(weights, w)
    return np.stack(np.meshgrid(*[z] * dimension, indexing="ij"), axis=-1), weights


def double_exponential_panels(
    cuts: np.ndarray, fineness: int = 16, blunt: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on the intervals between the cuts; long intervals are split so that the
    Gaussian is resolved.

    blunt: nodes that are closer to an end than this fraction of the interval are moved to 4/9 of
        it, which is exact for integrands a + b sqrt(distance). This serves integrands that lose all
        digits to rounding near the ends. No node is at an end.
    """
    edges = np.unique(
        np.concatenate(
            [
                np.linspace(a, b, max(2, int(np.ceil((b - a) / 2)) + 1))
                for a, b in itertools.pairwise(cuts)
            ]
        )
    )
    t = np.arange(-3 * fineness, 3 * fineness + 1) / fineness
    x, w = double_exponential(t, 1 / fineness)
    x = np.where(x < blunt, 4 / 9 * blunt, np.where(x > 1 - blunt, 1 - 4 / 9 * blunt, x))
    low, high = edges[:-1, None], edges[1:, None]
    z, w = low + (high - low) * x, (high - low) * w
    margin = 4 * np.spacing(np.maximum(np.abs(low), np.abs(high)))
    inside = (z > low + margin) & (z < high - margin)
    return z[inside], w[inside]


# ------------------------------------------------------------------------------------------------
# A target, its hardness, and overlaps with its directions.

ORDERS = 4  # number of Hermite powers that are reported
STAIRS = "z1**2 + sign(z1*z2*z3)"  # a target whose directions are found in two stairs


class WeakLearnability(System):
    """A target whose exponents and thresholds are computed or measured."""

    target: str | Target = structure("target g, see `exponents`", convert=formula, default="z")
    samples: int = structure(
        "random inputs of a measurement", minimum=100, maximum=10**8, default=200_000
    )


class LearnedTarget(System):
    """Optimal estimates of the directions of a target y = g(z), from n = sample_ratio * d inputs x
    ~ N(0, 1_d)."""

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0, default=1.0)
    target: str | Target = structure("target g, see `exponents`", convert=formula, default=STAIRS)
    input_dim: float = parameter(
        "input dimension d of a run", minimum=10, integer=True, default=500
    )


class Hardness(Result):
    """Exponents of a target; exponents above 8 are reported as infinite.

    Fields:
        information: information exponent.
        leap: leap exponent.
        generative: generative exponent.
        generative_leap: generative leap exponent.
        degree: degree of a polynomial; infinite for every other function.
        threshold: n/d of weak recovery by the best efficient algorithm.
        hermite_power: sum of c_a^2 over |a| = order, for orders 1 to 4, of the target at spread 1.
        converged: always true; errors are bounded by the tolerances of `exponents`.
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
    """Hermite powers of a target, measured on samples.

    Fields:
        hermite_power: sum of c_a^2 over |a| = order, for orders 1 to 4, without bias.
    """

    hermite_power: Float[Array, "order"]


class Climb(Result):
    """Overlaps with the directions of a target.

    Fields:
        overlap: E z_i <z_i>, the overlap of the field along each coordinate with its estimate; 1
            for a known field.
        next_threshold: n/d above which an estimate with these overlaps finds another direction;
            infinite if there is none; NaN in an experiment, which does not determine it.
        converged: whether the iteration converged.
        residual: last change of the iteration.
    """

    overlap: Float[Array, "index"]
    next_threshold: Float[Array, ""]
    converged: Bool[Array, ""]
    residual: Float[Array, ""]


# ------------------------------------------------------------------------------------------------
# One neuron on the sphere that finds a few hidden directions by SGD: parameters and observables.


def _of_one_field(what: Any) -> str | Target:
    if read(formula(what)).dimension != 1:
        raise ValueError("must be a formula in z alone")
    return formula(what)


class SphericalSGD(System):
    r"""Spherical one-pass SGD of one neuron $\sigma(w \cdot x)$ on a target of a few directions.

    Inputs are $x \sim N(0, 1_d)$, labels $y = g(W_* x) + \sqrt\Delta N(0, 1)$ with $r$ orthonormal
    rows of $W_*$ and $\Delta$ = `noise`, and the weights stay on the sphere $|w| = 1$:

    $$ w \leftarrow \frac{w + \frac\gamma d\, e\, P x}{|\cdot|} , \qquad P = 1 - w w^T , \qquad
       e = \sigma'(w \cdot x)\, (y - \sigma(w \cdot x)) $$

    with $\gamma$ = `learning_rate` * d^(-`rate_exponent`). The loss "correlation" omits the term
    $-\sigma(w \cdot x)$. A batch uses the mean gradient, or the sum of gradients. With `repetition`
    $\varrho > 0$ each sample is used twice: $e$ is taken after the extra step $w + \frac\varrho d e
    x$ on the same sample (Dandi et al. 2024; Arnaboldi et al. 2024).

    The order parameters are the overlaps m = W_* w. At the start they are those of a random w (with
    positive signs for `start` "positive"). If `first_overlap` is not 0, all of them start at this
    value. A direction counts as found when |m| reaches `exit_overlap`. Time is measured as
    `sample_ratio` = n/d.

    Raises:
        ValueError: for `first_record` >= `horizon`, for `repetition` > 0 with batches, and for a
            `first_overlap` that makes |m| > 1.
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
                f"SphericalSGD.first_record = {self.first_record}: must be < horizon = "
                f"{self.horizon}"
            )
        if (
            all(is_number(x) for x in (self.batch_size, self.repetition))
            and self.batch_size > 1
            and self.repetition > 0
        ):
            raise ValueError(
                f"SphericalSGD.repetition = {self.repetition}: must be 0 when batch_size = "
                f"{self.batch_size} > 1"
            )
        count = self.teacher.dimension
        if is_number(self.first_overlap) and self.first_overlap**2 * count > 1:
            raise ValueError(
                f"SphericalSGD.first_overlap = {self.first_overlap}: must be <= 1 / sqrt({count}), "
                f"so that |m| <= 1 for {count} indices"
            )

    @property
    def teacher(self) -> Target:
        """The target g."""
        return read(self.target)

    @property
    def rate(self) -> Float[Array, ""]:
        """Learning rate of one sample: gamma / batch_size, or gamma for summed gradients."""
        gamma = self.learning_rate * jnp.asarray(self.input_dim, jnp.float64) ** -self.rate_exponent
        return gamma / (self.batch_size if self.gradient == "mean" else 1)

    def steps(self) -> Float[Array, "record"]:
        """Numbers of steps at the records, as whole numbers."""
        return geometric_steps(
            self.first_record, self.horizon, self.records, self.input_dim / self.batch_size
        )

    def error_signal(
        self,
        field: Float[Array, "*batch"],
        label: Float[Array, "*batch"],
        length: Float[Array, "*#batch"] | float,
    ) -> Float[Array, "*batch"]:
        """The error signal e of a sample with w.x = field, label y and |x|^2 / d = length."""
        neuron = read(self.student)

        def signal(field: Array) -> Array:
            value, slope = jax.jvp(
                lambda z: neuron(z[..., None]) + 0 * z, (field,), (jnp.ones_like(field),)
            )
            return slope * (label - (value if self.loss == "squared" else 0.0))

        return signal(field + self.repetition * length * signal(field))


class OverlapPath(Result):
    """Overlaps of a neuron with the hidden directions along training.

    Fields:
        sample_ratio: n/d at the records.
        overlap: m = W_* w.
        norm: |m|, length of the part of w inside the hidden subspace.
        converged: whether the path was computed to its end.
    """

    sample_ratio: Float[Array, "record"]
    overlap: Float[Array, "record index"]
    norm: Float[Array, "record"]
    converged: Bool[Array, ""]


class ExitTime(Result):
    """Number of samples until |m| reaches `exit_overlap`.

    Fields:
        exit_samples: number of samples n; a theory gives the mean over starts and runs, an
            experiment the value of one run.
        exit_steps: number of steps of SGD.
        converged: whether the exit is before the horizon.
    """

    exit_samples: Float[Array, ""]
    exit_steps: Float[Array, ""]
    converged: Bool[Array, ""]


# ------------------------------------------------------------------------------------------------
# A parity of three directions with a hint about the first, which makes the other two learnable.


class HintedParity(System):
    r"""Labels $y = \mathrm{sign}(z_1 z_2 z_3)$ of three directions, with a hint about the first
    one.

    $z_k = w_k \cdot x$ with orthonormal $w_k$ and $n = \alpha d$ inputs $x \sim N(0, 1_d)$,
    $\alpha$ = `sample_ratio`. A unit vector $u$ with $(u \cdot w_1)^2 = Q$ (`hint`) and $u \cdot
    w_2 = u \cdot w_3 = 0$ is given, so that the part $\omega = \sqrt Q\, u \cdot x$ of $z_1 =
    \omega + \sqrt{1 - Q}\, t$ is known. Without the hint (Q = 0) no direction can be found from a
    number of samples of order d.
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0, default=1.0)
    hint: float = parameter(
        "squared cosine Q of the known vector with the first direction",
        above=0,
        maximum=1,
        default=0.5,
    )
    input_dim: float = parameter(
        "input dimension d of a run", minimum=10, integer=True, default=500
    )


class HintedOverlaps(Result):
    """Overlaps with the directions of a parity with a hint.

    Fields:
        overlap: mean of E z_k <z_k> over the two other directions, up to their order and a common
            sign, which the labels do not determine.
        hinted_overlap: E z_1 <z_1>; it equals Q if the labels add no information.
        converged: whether the iteration converged.
        residual: last change of ln(1 + qh / Q^2) in a theory, of the estimates in an experiment.
    """

    overlap: Float[Array, ""]
    hinted_overlap: Float[Array, ""]
    converged: Bool[Array, ""]
    residual: Float[Array, ""]


class HintedSpectrum(Result):
    """Spectral estimate of the two other directions of a parity with a hint.

    Fields:
        overlap: overlap of the best estimate that the eigenvectors allow: the mean of their squared
            cosines with (w2 + w3)/sqrt(2) and (w2 - w3)/sqrt(2).
        eigenvalue: largest eigenvalue, mean of both matrices.
        converged: whether the equations were solved, or the iteration converged.
    """

    overlap: Float[Array, ""]
    eigenvalue: Float[Array, ""]
    converged: Bool[Array, ""]


def correlation(margin: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """The conditional moment E[z2 z3 | y, omega] at the margin y omega / sqrt(1 - Q) if nothing is
    known about z2 and z3: (2/pi) E[y sign z1 | omega].
    """
    return 2 / np.pi * erf(margin / np.sqrt(2))
