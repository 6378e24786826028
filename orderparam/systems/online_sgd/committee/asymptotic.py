"""The error that weak label noise leaves behind, in closed form."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian import expectation
from orderparam.systems.online_sgd.committee.model import CommitteeSGD


class AsymptoticError(Result):
    """The risk left by weak label noise at the matched solution, to first order in `noise`.

    test_error: R with its factor 1/2. critical_learning_rate: the solution is stable below it.
    small_rate_risk: the limit of small learning rates, learning_rate noise / 4 sum_j v_j^2 E sigma'(lambda_j)^2.
    converged: the learning rate is below the critical one (otherwise there is no steady state and the risk is
    meaningless).
    """

    test_error: Float[Array, ""]
    critical_learning_rate: Float[Array, ""]
    small_rate_risk: Float[Array, ""]
    converged: Bool[Array, ""]


def _matched(system: CommitteeSGD) -> None:
    """Whether the student can be copies of the teacher's units that share its readouts evenly."""
    copies, left = divmod(system.width, system.teacher_width)
    if left:
        raise ValueError(
            f"CommitteeSGD.width = {system.width}: must be teacher_width = {system.teacher_width} here, or a multiple of it"
        )
    student, teacher = system.readouts()
    if not jnp.allclose(student, jnp.tile(teacher, copies) / copies, rtol=1e-9):
        raise ValueError(
            f"CommitteeSGD.student_readout: the {copies} students of a teacher unit must have equal parts of its readout here"
        )


@theory(check=_matched)
def asymptotic_error(system: CommitteeSGD) -> AsymptoticError:
    """The error of a student that has found the teacher: of the teacher's width, or a whole multiple c of it whose readouts are
    1/c of the teacher's.

    Only the weight error orthogonal to W* survives. Its covariance V_jl per dimension obeys (derived for this package,
    not in the cited papers; it is the linear response of the flow of Saad and Solla 1995)

        0 = -eta (H V + V H) + eta^2 (noise H + T : V),   R = Tr(H V) / 2,
        H_jl = v_j v_l E sigma'_j sigma'_l,  T_jlmn = v_j v_l v_m v_n E sigma'_j sigma'_l sigma'_m sigma'_n,

    with independent unit fields, so that the averages are products of the moments of sigma'. The solution is stable
    while H (x) 1 + 1 (x) H - eta T is positive. In a student with c units for every teacher unit those c copies act as one
    whose learning rate is eta / c (only their mean is restored; differences between them cost nothing to this order).
    Raises `ValueError` for other students.
    """
    units = system.teacher_width
    copies = system.width // units
    rate = jnp.asarray(system.learning_rate / (system.batch_size * copies), jnp.float64)
    readout = system.readouts()[1]
    sigma = system.activation

    def slope_power(q: int) -> Array:
        return expectation(lambda z: sigma.derivative(z) ** q)

    moments = jnp.stack([jnp.ones(()), *(slope_power(q) for q in range(1, 5))])
    eye = jnp.eye(units)

    def product_moment(indices: tuple[Array, ...]) -> Array:
        """E of the product of sigma' over the units `indices`: the count of each unit picks its moment."""
        counts = jnp.sum(jnp.stack(jnp.broadcast_arrays(*(eye[index] for index in indices))), axis=0).astype(int)
        return jnp.prod(moments[counts], axis=-1)

    j, l = jnp.meshgrid(jnp.arange(units), jnp.arange(units), indexing="ij")
    pair = (j.ravel(), l.ravel())
    weights = (readout[:, None] * readout).ravel()
    hessian = (weights * product_moment(pair)).reshape(units, units)
    first, second = tuple(index[:, None] for index in pair), tuple(index[None, :] for index in pair)
    quartic = weights[:, None] * weights * product_moment((*first, *second))
    damping = jnp.kron(hessian, eye) + jnp.kron(eye, hessian)
    error = jnp.linalg.solve(damping - rate * quartic, rate * system.noise * hessian.ravel())
    factor = jnp.linalg.cholesky(damping)
    scaled = jax.scipy.linalg.solve_triangular(factor, quartic, lower=True)
    scaled = jax.scipy.linalg.solve_triangular(factor, scaled.T, lower=True)
    critical = 1 / jnp.linalg.eigvalsh(scaled)[-1] * system.batch_size * copies
    return AsymptoticError(
        test_error=0.5 * hessian.ravel() @ error,
        critical_learning_rate=critical,
        small_rate_risk=rate * system.noise / 4 * jnp.trace(hessian),
        converged=system.learning_rate < critical,
    )
