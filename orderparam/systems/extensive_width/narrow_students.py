"""The smallest error of a student of limited width."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.extensive_width.channel import channel
from orderparam.systems.extensive_width.model import Teacher, WeightedTeacher, WidthLimitedStudent
from orderparam.systems.extensive_width.theory import bayes_optimal

# The smallest error of a student of limited width: the model-size law and the optimal size of a
# compressed model.
#
# Features that are not represented act as extra Gaussian label noise of variance g(1) sum_{i > p}
# v_i^2 (information exponent >= 3), so that the student obeys the same equations on the p strongest
# features. Its error is exactly flat for p >= k_c. Reconstructed for this package from the
# effective-model statement of Nguyen and Barbier 2026.


class Compressed(Result):
    """The Bayes-optimal state of a student of a given width.

    Fields:
        overlap: overlap of every feature of the teacher; zero for features that are not
            represented.
        error: error of the student's posterior mean against the whole teacher; no factor 1/2, label
            noise not included.
        one_sample_error: error of a single posterior sample in which only the learned features are
            kept.
        effective_width: number of features learned.
        residual: as in `BayesOptimal`.
        converged: whether the residual is below 1e-8.
    """

    overlap: Float[Array, "feature"]
    error: Float[Array, ""]
    one_sample_error: Float[Array, ""]
    effective_width: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def effective_teacher(student: WidthLimitedStudent) -> WeightedTeacher:
    """The effective teacher of a student of limited width: the strongest `width` features, with the
    other features as noise.
    """
    teacher = student.teacher
    v = teacher.readout
    rank = jnp.arange(v.shape[0]) if teacher.decreasing else jnp.argsort(jnp.argsort(-(v**2)))
    kept = rank < student.width
    # A feature that is not represented is Gaussian noise of variance g(1) v_i^2 to the student.
    left_out = channel(teacher.activation).total * jnp.sum(jnp.where(kept, 0.0, v**2))
    noise: Any = teacher.noise + left_out
    return WeightedTeacher(
        teacher.input_dim, jnp.where(kept, v, 0.0), noise, teacher.n_train, teacher.activation
    )


@theory
def compressed(student: WidthLimitedStudent) -> Compressed:
    r"""Smallest error of a student of limited width p against the whole teacher.

    $$ \mathrm{error}_p = g(1) \sum_{i > p} v_i^2
       + \sum_{i \le p} v_i^2 \big( g(1) - g(q_i) \big) $$

    with the overlaps $q_i$ of `bayes_optimal` at the noise $\Delta + g(1) \sum_{i > p} v_i^2$ and p
    = `width`. For p << k_c and decay > 1/2 this is the model-size law $g(1)\, p^{1 - 2\beta} /
    ((2\beta - 1) \zeta(2\beta))$.

    Raises:
        ValueError: for an activation with a quadratic component.

    Accuracy: 1e-8.

    Source: derived here, from the effective model of Nguyen, Barbier (2026).

    >>> from orderparam.systems.extensive_width import HierarchicalTeacher
    >>> teacher = HierarchicalTeacher(200, 20, decay=1.0, noise=0.1, n_train=40_000)
    >>> round(float(compressed(WidthLimitedStudent(teacher, width=2)).error), 6)
    0.023614
    """
    teacher: Teacher = student.teacher
    seen = effective_teacher(student)
    state = bayes_optimal(seen)
    left_out = seen.noise - teacher.noise
    total = channel(teacher.activation).total
    # A single sample doubles the error of the learned features; it does not contain the unlearned
    # ones.
    unlearned = total * jnp.sum(jnp.where(state.overlap > 0, 0.0, seen.readout**2))
    return Compressed(
        overlap=state.overlap,
        error=state.error + left_out,
        one_sample_error=2 * (state.error - unlearned) + unlearned + left_out,
        effective_width=state.effective_width,
        residual=state.residual,
        converged=state.converged,
    )
