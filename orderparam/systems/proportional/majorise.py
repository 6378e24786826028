"""The minimum of the effective action of a matrix of order parameters."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from orderparam.kernels.common_scale import order_parameters
from orderparam.solve.anderson import anderson_correction, ridge_weights
from orderparam.solve.implicit import implicit_root, symmetric
from orderparam.solve.root import decreasing_root

# The minimum of the effective action of a matrix of order parameters, by majorisation.
#
# Let the order parameters Q be a symmetric positive definite n x n matrix, and let KR = sum_ab Q_ab
# K_ab. The action of one hidden unit is
#
#     S(Q) = tr Q - log det Q + (1/N) [ log det(T + KR) + y^T (T + KR)^{-1} y ],
#     p(Q) ~ exp(-N S / 2)
#
# (Aiudi, Pacelli, Baglioni, Vezzani, Burioni, Rotondo 2025; Baglioni, Giambagli, Vezzani, Burioni,
# Rotondo, Pacelli 2024 for outputs). With A = T + KR, a = A^{-1} y, G_ab = tr A^{-1} K_ab and B_ab
# = a^T K_ab a, the gradient is 1 - Q^{-1} + (G - B)/N.
#
# At any other point Q', log det A lies below its tangent at Q, because it is concave. Up to a
# constant, y^T A^{-1} y lies below tr(Q'^{-1} Q B Q). Therefore S(Q') lies below tr (1 + G/N) Q' -
# log det Q' + tr(Q'^{-1} Q B Q)/N. The minimum of this bound solves a Riccati equation. With M = (1
# + G/N)^{1/2} it is
#
#     Q' = M^{-1} (1/2) { 1 + [1 + (4/N) M Q B Q M]^{1/2} } M^{-1}.
#
# Each step lowers S and keeps Q positive definite, without a step size (derived for this package,
# not in the cited papers). Anderson's extrapolation of log Q accelerates the convergence; an
# extrapolated step is undone if S rises.
#
# The bound also holds if tr Q is replaced by the trace of a concave function u(Q), as in deep
# networks. The matrix 1 in the bound then becomes u'(Q).

_MEMORY = 6  # earlier iterates that the extrapolation uses
_TOLERANCE = 1e-11
_MAX_STEPS = 1500

Scale = Float[Array, "index other"]
Data = tuple[Float[Array, ""], Scale, Scale]  # the bracket [log det A + y^T A^{-1} y], G and B


class Layers(eqx.Module):
    """The function u in S = tr u(Q) - log det Q + .. for layers of the given widths, with N the
    width of the narrowest; u(q) = q at one layer.

    In the closure "common" of a deep network every layer has a matrix Q_l, and KR = W (x) K with W
    the product of all Q_l. At the minimum all Q_l have the eigenvectors of W. For an eigenvalue w
    of W the factors are q_l = 1 + c/N_l, with the same c for all layers. Then u(w) = log w + sum_l
    (N_l/N) (q_l - log q_l), and u'(w) = (N + c)/(N w). Exact for linear units (derived for this
    package).
    """

    widths: Float[Array, "layer"]

    @property
    def units(self) -> Float[Array, ""]:
        """The width N of the narrowest layer."""
        return jnp.min(self.widths)

    def _log_share(self, eigenvalue: Float[Array, ""]) -> Float[Array, ""]:
        """The value log q of the narrowest layer, from sum_l log(1 + (q - 1) N / N_l) = log w."""
        ratios, target = self.units / self.widths, jnp.log(eigenvalue)

        def excess(t: Float[Array, ""], args: tuple[Array, Array]) -> Float[Array, ""]:
            ratios, target = args
            return target - jnp.sum(jnp.log1p(jnp.expm1(t) * ratios))

        depth = self.widths.shape[0]
        lower, upper = jnp.minimum(target, target / depth), jnp.maximum(target, target / depth)
        return decreasing_root(excess, lower - 0.1, upper + 0.1, (ratios, target)).value

    def slope(self, scale: Scale) -> Scale:
        """The derivative u'(Q)."""
        if self.widths.shape[0] == 1:
            return jnp.eye(scale.shape[0])
        return _spectral(lambda w: jnp.exp(jax.vmap(self._log_share)(w)) / w, scale)

    def trace(self, scale: Scale) -> Float[Array, ""]:
        """The trace tr u(Q)."""
        if self.widths.shape[0] == 1:
            return jnp.trace(scale)
        eigenvalues = jnp.linalg.eigvalsh(scale)
        shares = self._shares(eigenvalues)
        return (
            jnp.sum(jnp.log(eigenvalues))
            + jnp.sum((shares - jnp.log(shares)) @ self.widths) / self.units
        )

    def _shares(self, eigenvalues: Float[Array, "index"]) -> Float[Array, "index layer"]:
        logarithms = jax.vmap(self._log_share)(eigenvalues)
        return jax.vmap(lambda t: order_parameters(t, self.widths))(logarithms)

    def split(self, scale: Scale) -> Float[Array, "layer index other"]:
        """The factors Q_1 .. Q_L of the product W."""
        if self.widths.shape[0] == 1:
            return scale[None]
        values, vectors = jnp.linalg.eigh(scale)
        return jnp.einsum("ak,kl,bk->lab", vectors, self._shares(values), vectors)


class ActionMinimum(eqx.Module):
    """The order parameter at the minimum, S and max |Q (dS/dQ) Q| there, and the number of
    evaluations."""

    scale: Scale
    action: Float[Array, ""]
    residual: Float[Array, ""]
    steps: Int[Array, ""]


def _spectral(function: Callable[[Array], Array], matrix: Scale) -> Scale:
    """The function of a symmetric matrix, applied to its eigenvalues."""
    values, vectors = jnp.linalg.eigh(_symmetric(matrix))
    return (vectors * function(values)) @ vectors.T


def _symmetric(matrix: Scale) -> Scale:
    return (matrix + matrix.T) / 2


def _action(scale: Scale, data: Data, layers: Layers) -> Float[Array, ""]:
    """The action S(Q)."""
    return layers.trace(scale) - jnp.linalg.slogdet(scale)[1] + data[0] / layers.units


def _gradient(scale: Scale, data: Data, layers: Layers) -> Scale:
    """The gradient dS/dQ = u'(Q) - Q^{-1} + (G - B)/N."""
    return layers.slope(scale) - jnp.linalg.inv(scale) + (data[1] - data[2]) / layers.units


def majorised_step(scale: Scale, spread: Scale, pull: Scale, layers: Layers) -> Scale:
    """Next iterate Q', which is the minimum of the upper bound on S that touches S at Q."""
    root = _spectral(jnp.sqrt, layers.slope(scale) + spread / layers.units)
    inner = root @ scale @ pull @ scale @ root
    square_root = _spectral(lambda x: jnp.sqrt(1 + 4 / layers.units * jnp.maximum(x, 0.0)), inner)
    inverse_root = jnp.linalg.inv(root)
    return _symmetric(inverse_root @ (jnp.eye(scale.shape[0]) + square_root) @ inverse_root) / 2


class _State(eqx.Module):
    scale: Scale  # the next point to evaluate
    fallback: Scale  # the plain step from the best point so far
    best: Scale
    lowest: Float[Array, ""]
    residual: Float[Array, ""]
    points: Float[Array, "memory entry"]  # log Q of earlier points
    moves: Float[Array, "memory entry"]  # log Q' - log Q there
    kept: Int[Array, ""]
    steps: Int[Array, ""]


def _extrapolate(
    points: Float[Array, "memory entry"], moves: Float[Array, "memory entry"], kept: Array
) -> Scale:
    """The combination of the last points whose moves nearly cancel (Anderson mixing)."""
    valid = jnp.arange(_MEMORY) < kept
    both = (valid[1:] & valid[:-1])[:, None]
    changes, shifts = (jnp.where(both, rows[:-1] - rows[1:], 0.0) for rows in (moves, points))
    correction = anderson_correction(shifts, changes, moves[0], ridge_weights)
    size = round(points.shape[1] ** 0.5)
    return _spectral(jnp.exp, (points[0] + moves[0] - correction).reshape(size, size))


def minimise(
    respond: Callable[[Scale], Data], start: Scale, widths: Float[Array, "layer"]
) -> ActionMinimum:
    """Minimum of S that is reached downhill from `start`.

    Derivatives with respect to `widths` and to the variables in the closure of `respond` follow
    from the implicit function theorem. The function never raises an error; the residual shows
    whether it converged.

    Args:
        respond: function Q -> (log det A + y^T A^{-1} y, G, B); its cost dominates that of a step.
        start: a positive definite matrix Q.
        widths: widths of the layers.
    """
    layers = Layers(widths)

    def solve(_: Callable, start: Scale) -> tuple[Scale, Array]:
        def step(state: _State) -> _State:
            data = respond(state.scale)
            value = _action(state.scale, data, layers)
            accepted = value <= state.lowest + 1e-13 * (1 + jnp.abs(value))
            residual = jnp.max(
                jnp.abs(state.scale @ _gradient(state.scale, data, layers) @ state.scale)
            )
            plain = majorised_step(state.scale, *data[1:], layers)
            point = _spectral(jnp.log, state.scale).ravel()
            points = jnp.concatenate([point[None], state.points[:-1]])
            moves = jnp.concatenate(
                [(_spectral(jnp.log, plain).ravel() - point)[None], state.moves[:-1]]
            )
            kept = jnp.minimum(state.kept + 1, _MEMORY)
            following = _extrapolate(points, moves, kept)
            new = _State(
                following, plain, state.scale, value, residual, points, moves, kept, state.steps + 1
            )
            # After a rise of S, take the plain step from the best point, which always lowers S, and
            # clear the memory.
            back = eqx.tree_at(
                lambda s: (s.scale, s.kept, s.steps),
                state,
                (state.fallback, 0 * kept, state.steps + 1),
            )
            return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, back)

        def unfinished(state: _State) -> Bool[Array, ""]:
            return (state.residual > _TOLERANCE) & (state.steps < _MAX_STEPS)

        memory = jnp.zeros((_MEMORY, start.size))
        zero, infinity = jnp.asarray(0), jnp.asarray(jnp.inf)
        final = lax.while_loop(
            unfinished,
            step,
            _State(start, start, start, infinity, infinity, memory, memory, zero, zero),
        )
        return final.best, final.steps

    def slope_at(scale: Scale) -> Scale:
        """The gradient dS/dQ plus the antisymmetric part of Q. The latter is always zero; with it
        the derivative is self-adjoint on all matrices."""
        even = _symmetric(scale)
        return _symmetric(_gradient(even, respond(even), layers)) + scale - even

    scale, steps = implicit_root(slope_at, start, solve, symmetric)
    data = respond(scale)
    slope = lax.stop_gradient(scale @ _gradient(scale, data, layers) @ scale)
    return ActionMinimum(scale, _action(scale, data, layers), jnp.max(jnp.abs(slope)), steps)
