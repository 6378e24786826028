"""Teachers with an extensive number of hidden units: the network to be learned, its noise and the
size of the data set.

    y = sum_i v_i sigma(w_i . x / sqrt(d)) + sqrt(noise) z,
    x ~ N(0, I_d), z ~ N(0, 1), |w_i|^2 = d,

with width k of the order of the input dimension d, and n_train = n samples, of the order of d^2.
The learner knows v, sigma and the noise, and its prior is w_i ~ N(0, I_d). Nguyen and Barbier 2026.

The constant and the linear part of sigma are learned from O(d) samples, a negligible number at this
scale. Theories and posterior sampling therefore omit them; students trained by gradient descent
keep the full activation.
"""

from functools import cache
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.late import ndtri
from orderparam.core.system import System, parameter, part, structure
from orderparam.gaussian import Activation, activation, activation_names, hermite_coefficients
from orderparam.gaussian.numerical import Numerical


def _tanh_of_twice(z: Array) -> Array:
    return jnp.tanh(2 * z)


TANH_2 = Numerical(_tanh_of_twice, "tanh(2z)", parity="odd")


class HierarchicalTeacher(System):
    r"""A two-layer teacher whose read-outs fall as a power law of their rank.

    $$ y = \sum_{i=1}^{k} v_i\, \sigma(w_i \cdot x / \sqrt d) + \sqrt\Delta\, z, \qquad
       v_i \propto i^{-\beta}, \qquad \sum_i v_i^2 = 1 $$

    with k = `width`, d = `input_dim`, $\beta$ = `decay` (0: all equal), $\Delta$ = `noise`,
    $|w_i|^2 = d$, and x and z standard normal. The learner has n = `n_train` samples, of order
    $d^2$, knows v, $\sigma$ and $\Delta$, and has the prior $w_i \sim N(0, 1_d)$. The noise is to
    be compared with $E \sigma(z)^2$, the variance of the labels without noise. The width is at most
    $10^6$, because theories hold some hundred numbers of each hidden unit in memory.

    Source: Nguyen, Barbier (2026).

    >>> np.asarray(HierarchicalTeacher(200, 2, decay=1.0, noise=0.1).readout**2).round(6).tolist()
    [0.8, 0.2]
    """

    decreasing: ClassVar[bool] = True  # the read-outs come in decreasing order
    input_dim: float = parameter("input dimension d", minimum=1)
    width: int = structure("number of hidden units k", minimum=1, maximum=1_000_000)
    decay: float = parameter("exponent beta of the read-outs, v_i ~ i^-beta", minimum=0)
    noise: float = parameter("variance Delta of the label noise", above=0)
    n_train: float = parameter("number of training samples n", above=0, default=10_000)
    activation: Activation = structure(
        "activation sigma", convert=activation, choices=activation_names, default=TANH_2
    )

    @property
    def readout(self) -> Float[Array, "feature"]:
        """The read-outs v_i, in decreasing order."""
        rank = jnp.arange(1, self.width + 1, dtype=jnp.float64)
        v = jnp.exp(-self.decay * jnp.log(rank))
        return v / jnp.sqrt(jnp.sum(v**2))


class WeightedTeacher(System):
    """A two-layer teacher with a given list of read-outs.

    The model is that of `HierarchicalTeacher`. The read-outs are not normalised; they may be zero
    or negative, in any order. Multiplying all read-outs by c and the noise by c^2 multiplies the
    errors by c^2 and leaves the overlaps unchanged.

    Raises:
        ValueError: unless the read-outs are a vector of finite numbers, not all zero.

    Source: Nguyen, Barbier (2026).

    >>> WeightedTeacher(200, [0.8, -0.6], noise=0.1).readout.shape
    (2,)
    """

    decreasing: ClassVar[bool] = False

    input_dim: float = parameter("input dimension d", minimum=1)
    readout: Float[Array, "feature"] = parameter("read-outs v, one per feature")
    noise: float = parameter("variance Delta of the label noise", above=0)
    n_train: float = parameter("number of training samples n", above=0, default=10_000)
    activation: Activation = structure(
        "activation sigma", convert=activation, choices=activation_names, default=TANH_2
    )

    def __check_init__(self) -> None:
        if not isinstance(self.readout, jax.core.Tracer) and not np.any(np.asarray(self.readout)):
            raise ValueError("WeightedTeacher.readout: must not be all zero (read-outs v)")


Teacher = HierarchicalTeacher | WeightedTeacher


class WidthLimitedStudent(System):
    """A student of smaller width than its teacher, which learns from the same data.

    The student represents at most `width` features; the others act on it as additional Gaussian
    noise.

    Source: Nguyen, Barbier (2026).

    >>> WidthLimitedStudent(HierarchicalTeacher(200, 10, 1.0, 0.1), width=5).teacher.width
    10
    """

    teacher: HierarchicalTeacher | WeightedTeacher = part("the teacher")
    width: float = parameter("number of hidden units p of the student", minimum=1)


@cache  # a sweep builds one teacher for every point
def _quadratic_component(activation: Activation) -> float:
    with jax.ensure_compile_time_eval():
        return float(hermite_coefficients(activation, 3, 1.0, activation.kinks)[2])


class QuadraticTeacher(System):
    """A two-layer teacher whose activation has a quadratic component c_2, so that the features are
    first learned collectively.

    The model is that of `HierarchicalTeacher` with read-outs that take few values. `readouts` are
    the values of sqrt(k) v_i, each taken by the same fraction of the hidden units: (1,)
    homogeneous, (1, -1) Rademacher, `gaussian_readouts(m)` Gaussian. They are rescaled to a mean
    square of one, so that sum_i v_i^2 = 1.

    Raises:
        ValueError: for read-outs that are zero or not finite, or whose number does not divide the
            width; for an activation without a quadratic component.

    Source: Barbier et al. (2025).

    >>> QuadraticTeacher(100, 50, noise=0.5, readouts=(1.0, -1.0)).values
    (1.0, -1.0)
    """

    input_dim: int = structure("input dimension d", minimum=1)
    width: int = structure("number of hidden units k", minimum=1, maximum=1_000_000)
    noise: float = parameter("variance Delta of the label noise", above=0)
    n_train: float = parameter("number of training samples n", above=0, default=10_000)
    activation: Activation = structure(
        "activation sigma", convert=activation, choices=activation_names, default="relu"
    )
    readouts: tuple[float, ...] = structure(
        "values of the read-outs, equally frequent", default=(1.0,)
    )

    def __check_init__(self) -> None:
        if not self.readouts or 0.0 in self.readouts:
            raise ValueError(
                f"QuadraticTeacher.readouts = {self.readouts!r}: must be numbers different from "
                "zero, at least one"
            )
        if self.width % len(self.readouts):
            count = len(self.readouts)
            raise ValueError(
                f"QuadraticTeacher.width = {self.width}: must be a multiple of {count}, the number "
                "of read-outs"
            )
        if abs(_quadratic_component(self.activation)) < 1e-10:
            raise ValueError(
                f"QuadraticTeacher.activation = {self.activation.name}: has no quadratic "
                "component; use HierarchicalTeacher"
            )

    @property
    def values(self) -> tuple[float, ...]:
        """The values of sqrt(k) v, of mean square one, in decreasing order of their modulus."""
        given = np.asarray(self.readouts, float)
        given = given[np.argsort(-np.abs(given), kind="stable")]
        return tuple((given / np.sqrt(np.mean(given**2))).tolist())

    @property
    def readout(self) -> Float[Array, "feature"]:
        """The read-outs v_i of all units, in decreasing order of their modulus; sum_i v_i^2 = 1."""
        return jnp.repeat(jnp.asarray(self.values), self.width // len(self.values)) / jnp.sqrt(
            self.width
        )


def gaussian_readouts(count: int) -> tuple[float, ...]:
    """Equally likely values of a standard normal variable: its quantiles at (j - 1/2) / count.

    Args:
        count: number of values, even.

    Raises:
        ValueError: for a count that is not an even integer >= 2.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 2 or count % 2:
        raise ValueError(f"count = {count!r}: must be an even integer >= 2")
    return tuple(ndtri((np.arange(count) + 0.5) / count).tolist())
