"""Empirical risk minimisation to rounding: Newton's method for smooth losses, an interior-point
method for the hinge.

min over a of  sum_mu l(y_mu, F_mu.a) + (ridge/2) |a|^2
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Bool, Float

from orderparam.losses.base import Loss
from orderparam.losses.hinge import Hinge

_NEWTON_STEPS, _INTERIOR_STEPS = 60, 80
_HALVINGS = 12


class FittedWeights(eqx.Module):
    """The minimiser a (feature,), its predictions F a (train,), the effective number of parameters,
    and the quality of the solution.

    residual: for Newton's method |gradient| / |ridge a|, for the interior point the mean violation
    of complementarity.
    """

    weights: Float[Array, "feature"]
    fields: Float[Array, "train"]
    effective_dimension: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def minimise(
    loss: Loss,
    matrix: Float[Array, "train feature"],
    labels: Float[Array, "train"],
    ridge: Float[Array, ""],
) -> FittedWeights:
    """The minimiser for any of the losses. With more features than examples the problem is solved
    in the space that the examples span.

    effective_dimension: tr F (F^T H F + ridge)^-1 F^T H, H = diag l''; for the hinge the number of
    examples with y f = 1.
    """
    if isinstance(loss, Hinge):
        return _interior_point(matrix, labels, ridge)
    examples, features = matrix.shape
    if features <= examples:
        return _newton(loss, matrix, labels, ridge)
    # F = U sqrt(S) V^T: minimise over b = V^T a, which has |b| = |a|.
    values, vectors = jnp.linalg.eigh(matrix @ matrix.T)
    values = jnp.maximum(values, examples * jnp.finfo(jnp.float64).eps * values[-1])
    reduced = _newton(loss, vectors * jnp.sqrt(values), labels, ridge)
    weights = matrix.T @ (vectors @ (reduced.weights / jnp.sqrt(values)))
    return eqx.tree_at(lambda minimum: minimum.weights, reduced, weights)


def _newton(
    loss: Loss,
    matrix: Float[Array, "train feature"],
    labels: Float[Array, "train"],
    ridge: Float[Array, ""],
) -> FittedWeights:
    """Newton steps, each as long as the best of 1, 1/2, 1/4 ...; the objective is convex, with
    curvature >= ridge."""
    identity = jnp.eye(matrix.shape[1])

    def factor(fields: Float[Array, "train"]) -> Float[Array, "feature feature"]:
        return jnp.linalg.cholesky(
            (matrix.T * loss.curvature(labels, fields)) @ matrix + ridge * identity
        )

    def gradient(
        weights: Float[Array, "feature"], fields: Float[Array, "train"]
    ) -> Float[Array, "feature"]:
        return matrix.T @ loss.slope(labels, fields) + ridge * weights

    lengths = 0.5 ** jnp.arange(_HALVINGS)

    def step(state: tuple) -> tuple:
        weights, fields, _, count = state
        slope = gradient(weights, fields)
        direction = -jsl.cho_solve((factor(fields), True), slope)
        along = matrix @ direction
        tried = jnp.sum(loss(labels[:, None], fields[:, None] + along[:, None] * lengths), axis=0)
        tried = tried + ridge / 2 * (
            2 * lengths * (weights @ direction) + lengths**2 * (direction @ direction)
        )
        length = lengths[jnp.argmin(tried)]
        decrement = -slope @ direction  # twice the height above the minimum, close to it
        # below the resolution of rounding
        length = jnp.where(decrement < 1e-10 * (1 + tried[0]), 1.0, length)
        return (
            weights + length * direction,
            fields + length * along,
            decrement / (1 + jnp.abs(tried[0])),
            count + 1,
        )

    def unfinished(state: tuple) -> Bool[Array, ""]:
        return (state[2] > 1e-26) & (state[3] < _NEWTON_STEPS)

    start = (
        jnp.zeros(matrix.shape[1]),
        jnp.zeros(matrix.shape[0]),
        jnp.asarray(jnp.inf),
        jnp.asarray(0),
    )
    weights, fields, _, _ = jax.lax.while_loop(unfinished, step, start)
    fields = matrix @ weights
    residual = jnp.linalg.norm(gradient(weights, fields)) / (ridge * jnp.linalg.norm(weights))
    inverse = jsl.solve_triangular(factor(fields), identity, lower=True)
    dimension = matrix.shape[1] - ridge * jnp.sum(inverse**2)
    return FittedWeights(weights, fields, dimension, residual, residual < 1e-6)


def _interior_point(
    matrix: Float[Array, "train feature"], labels: Float[Array, "train"], ridge: Float[Array, ""]
) -> FittedWeights:
    """The dual: min over 0 <= alpha <= 1 of alpha Q alpha / (2 ridge) - sum alpha, Q = y F F^T y; a
    = F^T (alpha y) / ridge.

    Predictor and corrector after Mehrotra (1992), and not a general solver of quadratic programs
    (qpax): that takes the box as 2n dense constraints, does not report which examples lie on the
    margin, and reports no convergence to 1e-9 for 200 examples. z and v belong to alpha >= 0 and
    alpha <= 1: where both alpha < 1 and z < alpha at the end, the example lies on the margin.
    """
    signed = matrix * labels[:, None]
    quadratic = signed @ signed.T / ridge
    count = labels.size

    def longest(value: Float[Array, "train"], change: Float[Array, "train"]) -> Float[Array, ""]:
        return jnp.minimum(
            1.0,
            jnp.min(jnp.where(change < 0, -value / jnp.where(change < 0, change, -1.0), jnp.inf)),
        )

    def step(state: tuple) -> tuple:
        alpha, room, z, v, _, steps = state
        dual = quadratic @ alpha - 1 - z + v
        gap = (alpha @ z + room @ v) / (2 * count)
        cholesky = jnp.linalg.cholesky(quadratic + jnp.diag(z / alpha + v / room))

        def solve(first: Float[Array, "train"], second: Float[Array, "train"]) -> tuple:
            # alpha dz + z dalpha = first, room dv - v dalpha = second, Q dalpha - dz + dv = -dual
            change = jsl.cho_solve((cholesky, True), -dual + first / alpha - second / room)
            return change, (first - z * change) / alpha, (second + v * change) / room

        def lengths(
            change: Float[Array, "train"], dz: Float[Array, "train"], dv: Float[Array, "train"]
        ) -> tuple:
            return jnp.minimum(longest(alpha, change), longest(room, -change)), jnp.minimum(
                longest(z, dz), longest(v, dv)
            )

        change, dz, dv = solve(-alpha * z, -room * v)
        primal, other = lengths(change, dz, dv)
        reached = (
            (alpha + primal * change) @ (z + other * dz)
            + (room - primal * change) @ (v + other * dv)
        ) / (2 * count)
        centre = gap * (reached / gap) ** 3
        change, dz, dv = solve(centre - alpha * z - change * dz, centre - room * v + change * dv)
        primal, other = (0.995 * length for length in lengths(change, dz, dv))
        alpha, room = alpha + primal * change, room - primal * change
        z, v = z + other * dz, v + other * dv
        return alpha, room, z, v, (alpha @ z + room @ v) / (2 * count), steps + 1

    start = (
        *(jnp.full(count, 0.5),) * 2,
        *(jnp.ones(count),) * 2,
        jnp.asarray(jnp.inf),
        jnp.asarray(0),
    )
    alpha, room, z, v, gap, _ = jax.lax.while_loop(
        lambda state: (state[4] > 1e-13) & (state[5] < _INTERIOR_STEPS), step, start
    )
    weights = signed.T @ alpha / ridge
    on_margin = jnp.sum((alpha > z) & (room > v), dtype=float)
    return FittedWeights(weights, matrix @ weights, on_margin, gap, gap < 1e-9)
