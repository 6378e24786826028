"""The systems of training on re-used data, and their tasks.

A student trains for many steps on one set of examples. From the second step on its weights depend
on every example that it sees again, so that its field on such an example is no longer Gaussian.

A task enters the dynamics through its labels, the slope of its loss, and its errors
(`LearningTask`).
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.fields import is_number
from orderparam.core.system import System, parameter, structure
from orderparam.losses import Logistic, SmoothHinge, Square


class LearningTask(NamedTuple):
    """A task as functions of fields; the first axis of a field is the component, the other axes are
    examples.

    Fields:
        teachers: number r of components of the teacher's field.
        label: function of the teacher's fields (r, ...) and of standard normal noise (...) that
            returns the label y (...).
        slope: function of the student's fields (p, ...) and y that returns the derivative l'(h, y)
            of the loss by h, (p, ...).
        loss: function of the student's fields (p, ...) and y that returns the loss l(h, y), (...).
        test_error: function of the overlaps M (p, r) and Q (p, p) that returns the error on new
            inputs.
    """

    teachers: int
    label: Callable[[Array, Array], Array]
    slope: Callable[[Array, Array], Array]
    loss: Callable[[Array, Array], Array]
    test_error: Callable[[Array, Array], Array]


Task = Literal["regression", "logistic", "hinge", "phase retrieval"]


class ReusedData(System):
    r"""A student of one direction that trains on one set of examples, with all of them in every
    step or in mini-batches.

    There are $n = \alpha d$ inputs $x_\mu \sim N(0, 1_d)$ (`sample_ratio` $\alpha$). The teacher's
    field is $h^*_\mu = w^* \cdot x_\mu / \sqrt d + \sqrt\Delta\, \xi_\mu$ with $|w^*|^2 = d$
    (`noise` $\Delta$), the student's field is $h_\mu = w \cdot x_\mu / \sqrt d$. One step is

    $$ w_{t+1} = w_t + \beta (w_t - w_{t-1}) - \eta \left[ \lambda w_t + \frac{1}{\sqrt d}
       \sum_\mu s_{\mu t}\, \ell'(h_\mu, y_\mu)\, x_\mu \right] + \sqrt{2 \eta T}\, \xi_t, \qquad
       w_{-1} = w_0 $$

    where $s_{\mu t} = 1/b$ if example $\mu$ is in the batch of step t, which has the probability b
    (`batch_fraction`), and $s_{\mu t} = 0$ otherwise. The loss is summed over examples; for the
    mean over examples the corresponding learning rate is $\alpha\eta$. As $\eta \to 0$ the
    stationary law of Langevin steps is $\exp(-L/T)$, $L = \sum_\mu \ell + \lambda
    |w|^2/2$.

    Tasks, with the loss $\ell(h, y)$: "regression" $y = h^*$, $(h - y)^2/2$; "logistic" $y =
    \mathrm{sign}\, h^*$, $\log(1 + e^{-y h})$; "hinge" $y = \mathrm{sign}\, h^*$, $\max(0, 1 - y
    h)$ with its kink rounded over the width `softness`; "phase retrieval" $y = h^{*2}$,
    $(h^2 - y)^2 / (4 (1 + y))$.

    Raises:
        ValueError: for m^2 > q at the start, because no weights have such overlaps.
    """

    sample_ratio: float = parameter("examples per dimension alpha = n/d", above=0)
    learning_rate: float = parameter("learning rate eta, for the summed loss", above=0, default=0.2)
    noise: float = parameter(
        "variance Delta of the noise on the teacher's field", minimum=0, default=0.0
    )
    weight_decay: float = parameter("ridge lambda of the summed loss", minimum=0, default=0.0)
    batch_fraction: float = parameter(
        "share b of the examples in a step", above=0, maximum=1, default=1.0
    )
    momentum: float = parameter("momentum beta", minimum=0, below=1, default=0.0)
    temperature: float = parameter("temperature T of Langevin noise", minimum=0, default=0.0)
    teacher_overlap: float = parameter("overlap m = w.w*/d at the start", default=0.0)
    self_overlap: float = parameter("overlap q = w.w/d at the start", minimum=0, default=1.0)
    softness: float = parameter("width over which the hinge is rounded", above=0, default=0.5)
    input_dim: int = parameter(
        "input dimension d of an experiment", minimum=3, integer=True, default=1000
    )
    task: Task = structure("labels and loss", default="regression")
    steps: int = structure("number of steps", minimum=1, default=40)

    def __check_init__(self) -> None:
        overlaps = (self.teacher_overlap, self.self_overlap)
        if all(is_number(value) for value in overlaps) and overlaps[0] ** 2 > overlaps[1]:
            raise ValueError(
                f"ReusedData.teacher_overlap = {overlaps[0]}: its square must be <= "
                f"self_overlap = {overlaps[1]}"
            )

    @property
    def start(self) -> tuple[Array, Array]:
        """The overlaps M and Q at the start, as 1 x 1 matrices."""
        first, second = jnp.asarray(self.teacher_overlap), jnp.asarray(self.self_overlap)
        return first[None, None], second[None, None]

    @property
    def problem(self) -> LearningTask:
        """Labels, loss, its slope and test error of the task, for fields with one component."""
        scale = jnp.sqrt(self.noise)
        if self.task == "phase retrieval":
            return LearningTask(
                1,
                lambda teacher, noise: (teacher[0] + scale * noise) ** 2,
                lambda h, y: h * (h**2 - y) / (1 + y),
                lambda h, y: (h[0] ** 2 - y) ** 2 / (4 * (1 + y)),
                _intensity_error,
            )
        if self.task == "regression":
            square = Square()
            return LearningTask(
                1,
                lambda teacher, noise: teacher[0] + scale * noise,
                lambda h, y: square.slope(y, h),
                lambda h, y: square(y, h[0]),
                lambda m, q: q[0, 0] - 2 * m[0, 0] + 1,
            )
        loss = Logistic() if self.task == "logistic" else SmoothHinge(self.softness)
        return LearningTask(
            1,
            lambda teacher, noise: jnp.where(teacher[0] + scale * noise >= 0, 1.0, -1.0),
            lambda h, y: loss.slope(y, h),
            lambda h, y: loss(y, h[0]),
            _angle_error,
        )


def _intensity_error(m: Array, q: Array) -> Array:
    """E (h^2 - h*^2)^2 for Gaussian fields."""
    own, teacher = q[0, 0], m[0, 0]
    return 3 * own**2 - 2 * (own + 2 * teacher**2) + 3


def _angle_error(m: Array, q: Array) -> Array:
    """P(sign h != sign h*) for Gaussian fields; 1/2 for weights 0."""
    across = jnp.maximum(q[0, 0] - m[0, 0] ** 2, 0.0)
    moved = (across > 0) | (m[0, 0] != 0)
    return jnp.where(
        moved,
        jnp.arctan2(
            jnp.sqrt(jnp.where(across > 0, across, 1.0)) * (across > 0),
            jnp.where(moved, m[0, 0], 1.0),
        )
        / jnp.pi,
        0.5,
    )


class ReusedCommittee(System):
    r"""A committee of erf units that trains on one set of examples with the labels of another
    committee.

    The student's fields $h_\mu = W x_\mu / \sqrt d$ have p components, the teacher's $h^*_\mu = W^*
    x_\mu/\sqrt d$ have r components, with orthogonal $w^*_a$ of norm $\sqrt d$. Outputs and labels
    are

    $$ f = \sum_{i=1}^p \mathrm{erf}(h_i/\sqrt2), \qquad y = \sum_{a=1}^r
       \mathrm{erf}(h^*_a/\sqrt2) + c\, h^*_1 h^*_2 + \sqrt\Delta\, \xi $$

    with c = `product`, $\Delta$ = `noise` and the loss $(f - y)^2/2$; the steps are the same as in
    `ReusedData`. No committee without biases can fit the product, which is even in the input.

    Raises:
        ValueError: for overlaps at the start that no weights can have ($Q - M M^T$ must be
            positive definite), and for a product with a single teacher.
    """

    sample_ratio: float = parameter("examples per dimension alpha = n/d", above=0)
    teacher_overlap: Float[Array, "student teacher"] = parameter("overlaps M = w.w*/d at the start")
    self_overlap: Float[Array, "student other_student"] = parameter(
        "overlaps Q = w.w/d at the start"
    )
    learning_rate: float = parameter("learning rate eta, for the summed loss", above=0, default=0.2)
    product: float = parameter("coefficient c of the product of two teachers", default=0.0)
    noise: float = parameter("variance Delta of the label noise", minimum=0, default=0.0)
    weight_decay: float = parameter("ridge lambda of the summed loss", minimum=0, default=0.0)
    batch_fraction: float = parameter(
        "share b of the examples in a step", above=0, maximum=1, default=1.0
    )
    momentum: float = parameter("momentum beta", minimum=0, below=1, default=0.0)
    temperature: float = parameter("temperature T of Langevin noise", minimum=0, default=0.0)
    input_dim: int = parameter(
        "input dimension d of an experiment", minimum=4, integer=True, default=1000
    )
    steps: int = structure("number of steps", minimum=1, default=20)

    def __check_init__(self) -> None:
        overlaps: tuple[Any, ...] = (self.teacher_overlap, self.self_overlap)
        if any(isinstance(x, jax.core.Tracer) for x in overlaps):
            return
        m, q = (np.asarray(x) for x in overlaps)
        if m.ndim != 2 or q.shape != (len(m), len(m)):
            raise ValueError(
                f"ReusedCommittee.self_overlap has shape {q.shape}: must be ({len(m)}, {len(m)}), "
                "a row for each student of teacher_overlap"
            )
        if not np.allclose(q, q.T) or np.linalg.eigvalsh(q - m @ m.T).min() <= 0:
            raise ValueError(
                "ReusedCommittee.self_overlap: Q - M M^T must be symmetric and positive definite, "
                "to be overlaps of weights"
            )
        if is_number(self.product) and self.product != 0 and m.shape[1] < 2:
            raise ValueError(
                f"ReusedCommittee.product = {self.product}: must be 0 where there is one teacher"
            )

    @property
    def start(self) -> tuple[Array, Array]:
        """The overlaps M (student, teacher) and Q (student, student) at the start."""
        return jnp.asarray(self.teacher_overlap), jnp.asarray(self.self_overlap)

    @property
    def problem(self) -> LearningTask:
        """Labels, loss, its slope and test error of the committee."""
        scale = jnp.sqrt(self.noise)
        teachers = self.teacher_overlap.shape[1]

        def label(teacher: Array, noise: Array) -> Array:
            product = teacher[0] * teacher[1] if teachers > 1 else 0.0
            return jnp.sum(_unit(teacher), axis=0) + self.product * product + scale * noise

        def error(m: Array, q: Array) -> Array:
            own, other = jnp.diagonal(q), jnp.ones(teachers)
            return (
                jnp.sum(_pair(q, own, own))
                - 2 * jnp.sum(_pair(m, own, other))
                + jnp.sum(_pair(jnp.eye(teachers), other, other))
                + self.product**2
            )

        return LearningTask(
            teachers,
            label,
            lambda h, y: (jnp.sum(_unit(h), axis=0) - y) * _unit_slope(h),
            lambda h, y: (jnp.sum(_unit(h), axis=0) - y) ** 2 / 2,
            error,
        )


def _unit(h: Array) -> Array:
    return jax.scipy.special.erf(h / jnp.sqrt(2.0))


def _unit_slope(h: Array) -> Array:
    return jnp.sqrt(2 / jnp.pi) * jnp.exp(-(h**2) / 2)


def _pair(covariance: Array, rows: Array, columns: Array) -> Array:
    """E erf(u/sqrt2) erf(v/sqrt2) for Gaussian u of `rows` and v of `columns`, which is 2/pi times
    an arcsine."""
    norms = jnp.sqrt((1 + rows)[:, None] * (1 + columns))
    return 2 / jnp.pi * jnp.arcsin(covariance / norms)
