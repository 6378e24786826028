"""The residual error of online SGD with weak label noise."""

import jax
import jax.flatten_util
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian import expectation
from orderparam.systems.online_sgd.model import CommitteeSGD, check_continuous

# The residual error due to weak label noise follows in closed form from linear response.


class AsymptoticError(Result):
    """Risk due to weak label noise at the matched solution, to first order in the noise.

    Fields:
        test_error: risk R with its factor 1/2, without label noise; NaN where there is no steady
            state.
        critical_learning_rate: learning rate below which the solution is stable.
        small_rate_risk: limit of R for small learning rates, learning_rate noise / (4 b c) sum_r
            v*_r^2 E sigma'(lambda_r)^2, with b the batch size and c the number of student units for
            each teacher unit.
        valid: whether there is a steady state: the learning rate is below the critical one.
    """

    test_error: Float[Array, ""]
    critical_learning_rate: Float[Array, ""]
    small_rate_risk: Float[Array, ""]
    valid: Bool[Array, ""]


def _matched(system: CommitteeSGD) -> None:
    """Raise `ValueError` for activations with jumps, and unless every teacher unit can have the
    same number of student units, which share the readout of the teacher unit in equal parts.
    """
    check_continuous(system)
    copies, left = divmod(system.width, system.teacher_width)
    if left:
        raise ValueError(
            f"CommitteeSGD.width = {system.width}: must be teacher_width = {system.teacher_width} "
            "here, or a multiple of it"
        )
    student, teacher = system.readouts()
    if not jnp.allclose(student, jnp.tile(teacher, copies) / copies, rtol=1e-9):
        raise ValueError(
            f"CommitteeSGD.student_readout: the {copies} students of a teacher unit must have "
            "equal parts of its readout here"
        )


@theory(check=_matched)
def asymptotic_error(system: CommitteeSGD) -> AsymptoticError:
    r"""Risk due to weak label noise for a student that has learned the teacher.

    Only the error of the weights orthogonal to the teacher's weights $W^*$ survives. With the
    teacher's readouts v and $\Delta$ = `noise`, its covariance $V_{jl}$ per dimension obeys

    $$ 0 = -\gamma (H V + V H) + \gamma^2 (\Delta H + T : V) , \qquad
       R = \tfrac12 \mathrm{Tr}\, H V , $$

    $$ H_{jl} = v_j v_l E \sigma'_j \sigma'_l , \qquad
       T_{jlmn} = v_j v_l v_m v_n E \sigma'_j \sigma'_l \sigma'_m \sigma'_n , $$

    with independent fields of unit variance, so that the averages are products of moments of
    $\sigma'$. The solution is stable while $H \otimes 1 + 1 \otimes H - \gamma T$ is positive. The
    student has c units for every teacher unit, and each of them has the fraction 1/c of that unit's
    readout (c = 1 for equal widths). The c units act as one unit with $\gamma$ = `learning_rate` /
    (c `batch_size`), because the flow pulls only their mean back to the teacher.

    Raises:
        ValueError: for activations with jumps, and for a student that does not have c units for
            every teacher unit in this way.

    Accuracy: first order in the noise.

    Source: derived here, as the linear response of the flow of Saad, Solla (1995).

    >>> left = asymptotic_error(CommitteeSGD(width=2, teacher_width=2, learning_rate=2.0))
    >>> round(float(left.test_error), 7), round(float(left.critical_learning_rate), 4)
    (0.0001171, 9.2273)
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
        """Mean of the product of sigma' over the units in `indices`. Each unit contributes the
        moment whose order is the number of times that the unit occurs."""
        counts = jnp.sum(
            jnp.stack(jnp.broadcast_arrays(*(eye[index] for index in indices))), axis=0
        ).astype(int)
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
    valid = system.learning_rate < critical
    return AsymptoticError(
        test_error=jnp.where(valid, 0.5 * hessian.ravel() @ error, jnp.nan),
        critical_learning_rate=critical,
        small_rate_risk=rate * system.noise / 4 * jnp.trace(hessian),
        valid=valid,
    )
