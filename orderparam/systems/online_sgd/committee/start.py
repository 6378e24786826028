"""Where training starts: the overlaps of the first student with the teacher and with itself.

M = W W*^T / d (unit, teacher unit) and Q = W W^T / d (unit, unit); the teacher is orthonormal, W* W*^T / d = 1.
"""

import abc

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.system import Record, parameter
from orderparam.gaussian.draws import unit


class Start(Record):
    """A family of first students."""

    @abc.abstractmethod
    def overlaps(
        self, units: int, teacher_units: int, input_dim: Float[Array, ""]
    ) -> tuple[Float[Array, "unit unit"], Float[Array, "unit teacher_unit"]]:
        """(Q, M) of `units` student units in `input_dim` dimensions."""


class ReproducibleStart(Start):
    """M_jr = teacher_overlap cos(1 + 3j + 5r + jr) and Q = self_overlap 1 + M M^T, j and r from 0.

    Generic (no symmetry between the units), the same in every dimension, and the same on every machine. teacher_overlap
    = 0 is the symmetric start that never leaves the plateau.
    """

    teacher_overlap: float = parameter("size of the first student-teacher overlaps", minimum=0, default=0.02)
    self_overlap: float = parameter("squared length of the part outside the teacher's span", minimum=0, default=0.25)

    def overlaps(self, units, teacher_units, input_dim):
        j, r = jnp.arange(units)[:, None], jnp.arange(teacher_units)[None, :]
        teacher = self.teacher_overlap * jnp.cos(1.0 + 3 * j + 5 * r + j * r)
        return self.self_overlap * jnp.eye(units) + teacher @ teacher.T, teacher


class SphereStart(Start):
    """Rows of W uniform on the sphere |w|^2 = d: overlaps of order 1/sqrt(d), exactly as drawn in d dimensions.

    w_j / sqrt(d) is a normalised Gaussian vector; its components along the teacher are normal and the Gram matrix of
    the rest is Wishart, drawn by its Bartlett decomposition.
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
    """Unit rows inside the teacher's span (Veiga et al. 2022, appendix D): Q = M M^T whatever the dimension, and no
    long plateau."""

    seed: float = parameter("which student", minimum=0, integer=True, default=0)

    def overlaps(self, units, teacher_units, input_dim):
        rows = unit(jax.random.normal(jax.random.key(jnp.asarray(self.seed, jnp.int64)), (units, teacher_units)))
        return rows @ rows.T, rows


class TeacherStart(Start):
    """The student is the teacher (unit j copies teacher unit j modulo their number): Q and M of the informed start."""

    def overlaps(self, units, teacher_units, input_dim):
        rows = (jnp.arange(units)[:, None] % teacher_units == jnp.arange(teacher_units)[None, :]).astype(jnp.float64)
        return rows @ rows.T, rows
