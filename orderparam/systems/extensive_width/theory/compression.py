"""How well a student of limited width can do: the model-size law and the optimal size of a compressed model.

Features that are not represented act as extra Gaussian label noise of variance g(1) sum_{i > p} v_i^2 (information exponent
>= 3), so that the student obeys the same equations on the p strongest features. Its error is exactly flat for p >= k_c.
Reconstructed for this package from the effective-model statement of Nguyen and Barbier 2026.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.extensive_width.model import Teacher, WeightedTeacher, WidthLimitedStudent
from orderparam.systems.extensive_width.theory.bayes import bayes_optimal
from orderparam.systems.extensive_width.theory.channel import channel


class Compressed(Result):
    """The best that a student of a given width can do.

    error:           of its posterior mean against the whole teacher; no factor 1/2, label noise not included.
    one_sample_error: of a network made of one posterior sample, of which only the learned features are kept.
    effective_width: number of features learned; overlap: of every feature, zero for those left out.
    """

    overlap: Float[Array, "feature"]
    error: Float[Array, ""]
    one_sample_error: Float[Array, ""]
    effective_width: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def effective_teacher(student: WidthLimitedStudent) -> WeightedTeacher:
    """The teacher as the student sees it: its strongest `width` features, and the rest as noise."""
    teacher = student.teacher
    v = teacher.readout
    rank = jnp.arange(v.shape[0]) if teacher.decreasing else jnp.argsort(jnp.argsort(-(v**2)))
    kept = rank < student.width
    left_out = channel(teacher.activation).total * jnp.sum(jnp.where(kept, 0.0, v**2))
    noise: Any = teacher.noise + left_out
    return WeightedTeacher(teacher.input_dim, jnp.where(kept, v, 0.0), noise, teacher.n_train, teacher.activation)


@theory
def compressed(student: WidthLimitedStudent) -> Compressed:
    """error_p = g(1) sum_{i>p} v_i^2 + sum_{i<=p} v_i^2 (g(1) - g(q_i)), with q_i at the noise Delta + g(1) sum_{i>p} v_i^2.

    For p << k_c and decay > 1/2 it is the model-size law g(1) p^(1 - 2 beta) / ((2 beta - 1) zeta(2 beta)).
    """
    teacher: Teacher = student.teacher
    seen = effective_teacher(student)
    state = bayes_optimal(seen)
    left_out = seen.noise - teacher.noise
    total = channel(teacher.activation).total
    unlearned = total * jnp.sum(jnp.where(state.overlap > 0, 0.0, seen.readout**2))
    return Compressed(
        overlap=state.overlap,
        error=state.error + left_out,
        one_sample_error=2 * (state.error - unlearned) + unlearned + left_out,
        effective_width=state.effective_width,
        residual=state.residual,
        converged=state.converged,
    )
