"""Kernels renormalised by a positive definite matrix Q: the minimum of the effective action by majorisation.

With several outputs, or with several patches under shared weights, the order parameter is a symmetric positive definite n x n
matrix, KR = sum_ab Q_ab K_ab, and per hidden unit

    S(Q) = tr Q - log det Q + (1/N) [ log det(T + KR) + y^T (T + KR)^{-1} y ],      p(Q) ~ exp(-N S / 2)

(Aiudi, Pacelli, Baglioni, Vezzani, Burioni, Rotondo 2025; Baglioni, Giambagli, Vezzani, Burioni, Rotondo, Pacelli 2024 for
outputs). With A = T + KR, a = A^{-1} y, G_ab = tr A^{-1} K_ab and B_ab = a^T K_ab a, the gradient is 1 - Q^{-1} + (G - B)/N.

log det A is concave in Q, hence below its tangent, and y^T A^{-1} y is below tr(Q'^{-1} Q B Q) up to a constant, so that S lies
below tr (1 + G/N) Q' - log det Q' + tr(Q'^{-1} Q B Q)/N, whose minimum solves a Riccati equation: with M = (1 + G/N)^{1/2},

    Q' = M^{-1} (1/2) { 1 + [1 + (4/N) M Q B Q M]^{1/2} } M^{-1}.

Each step lowers S and keeps Q positive definite, without a step size (derived for this package, not in the cited papers).
Anderson's extrapolation of log Q, taken back whenever S rises, makes the convergence fast.

The same bound works where tr Q is replaced by the trace of a concave function u(Q), as for deep networks: 1 becomes u'(Q).

A vector in the place of Q stands for a diagonal matrix: networks without weight sharing.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.sparse.linalg import cg
from jaxtyping import Array, Bool, Float, Int

_MEMORY = 6  # iterates that the extrapolation looks back
_TOLERANCE = 1e-11
_MAX_STEPS = 1500

Scale = Float[Array, "*index"]


class Response(eqx.Module):
    """What the data say at Q: the bracket of the action, and G and B."""

    data: Float[Array, ""]
    spread: Scale
    pull: Scale


class Prior(eqx.Module):
    """u in S = tr u(Q) - log det Q + ..: a concave increasing function of one eigenvalue. Here u(q) = q, of one hidden layer."""

    def slope(self, scale: Scale) -> Scale:
        """u'(Q)."""
        return _identity(scale)

    def trace(self, scale: Scale) -> Float[Array, ""]:
        """tr u(Q)."""
        return jnp.sum(scale) if scale.ndim == 1 else jnp.trace(scale)


class Minimum(eqx.Module):
    """The order parameter, S there, max |Q (dS/dQ) Q|, and the number of evaluations."""

    scale: Scale
    action: Float[Array, ""]
    residual: Float[Array, ""]
    steps: Int[Array, ""]


def spectral(function: Callable[[Array], Array], matrix: Scale) -> Scale:
    """A function of a symmetric matrix (of every entry of a diagonal one)."""
    if matrix.ndim == 1:
        return function(matrix)
    values, vectors = jnp.linalg.eigh(_symmetric(matrix))
    return (vectors * function(values)) @ vectors.T


def times(*factors: Scale) -> Scale:
    """Product of matrices (of diagonal ones)."""
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor if product.ndim == 1 else product @ factor
    return product


def _symmetric(scale: Scale) -> Scale:
    return scale if scale.ndim == 1 else (scale + scale.T) / 2


def _identity(scale: Scale) -> Scale:
    return jnp.ones_like(scale) if scale.ndim == 1 else jnp.eye(scale.shape[0])


def _inverse(scale: Scale) -> Scale:
    return 1 / scale if scale.ndim == 1 else jnp.linalg.inv(scale)


def action(scale: Scale, response: Response, units: Float[Array, ""], prior: Prior) -> Float[Array, ""]:
    """S(Q)."""
    log_det = jnp.sum(jnp.log(scale)) if scale.ndim == 1 else jnp.linalg.slogdet(scale)[1]
    return prior.trace(scale) - log_det + response.data / units


def gradient(scale: Scale, response: Response, units: Float[Array, ""], prior: Prior) -> Scale:
    """dS/dQ = u'(Q) - Q^{-1} + (G - B)/N."""
    return prior.slope(scale) - _inverse(scale) + (response.spread - response.pull) / units


def majorised_step(scale: Scale, response: Response, units: Float[Array, ""], prior: Prior) -> Scale:
    """Q', the minimum of the majorant."""
    one = _identity(scale)
    root = spectral(jnp.sqrt, prior.slope(scale) + response.spread / units)
    inner = times(root, scale, response.pull, scale, root)
    inverse_root = _inverse(root)
    square_root = spectral(lambda x: jnp.sqrt(1 + 4 / units * jnp.maximum(x, 0.0)), inner)
    step = times(inverse_root, (one + square_root) / 2, inverse_root)
    return _symmetric(step)


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


def minimise(
    respond: Callable[[Scale], Response], start: Scale, units: Float[Array, ""], prior: Prior | None = None
) -> Minimum:
    """The minimum of S, from `start` downhill. respond: Q -> `Response`; its cost is that of a step.

    Derivatives with respect to what `respond` closes over, and to `units`, follow from the implicit function theorem.
    """
    prior = Prior() if prior is None else prior
    shape = start.shape

    def extrapolate(points: Array, moves: Array, kept: Array) -> Scale:
        """Anderson's mixing: the combination of the last points whose moves nearly cancel."""
        valid = jnp.arange(_MEMORY) < kept
        newest = moves[0]
        changes = jnp.where((valid[1:] & valid[:-1])[:, None], moves[:-1] - moves[1:], 0.0)
        shifts = jnp.where((valid[1:] & valid[:-1])[:, None], points[:-1] - points[1:], 0.0)
        gram = changes @ changes.T
        ridge = 1e-14 * jnp.trace(gram) + 1e-300
        mix = jnp.linalg.solve(gram + ridge * jnp.eye(_MEMORY - 1), changes @ newest)
        return spectral(jnp.exp, (points[0] + newest - mix @ (shifts + changes)).reshape(shape))

    def solve(respond: Callable[[Scale], Response], start: Scale, units: Array) -> tuple[Scale, Array]:
        def step(state: _State) -> _State:
            response = respond(state.scale)
            value = action(state.scale, response, units, prior)
            accepted = value <= state.lowest + 1e-13 * (1 + jnp.abs(value))
            slope = gradient(state.scale, response, units, prior)
            residual = jnp.max(jnp.abs(times(state.scale, slope, state.scale)))
            plain = majorised_step(state.scale, response, units, prior)
            point = spectral(jnp.log, state.scale).ravel()
            points = jnp.concatenate([point[None], state.points[:-1]])
            moves = jnp.concatenate([(spectral(jnp.log, plain).ravel() - point)[None], state.moves[:-1]])
            kept = jnp.minimum(state.kept + 1, _MEMORY)
            new = _State(
                extrapolate(points, moves, kept), plain, state.scale, value, residual, points, moves, kept, state.steps + 1
            )
            # After a rise: the plain step from the best point, which cannot fail, and a fresh memory.
            back = _State(
                state.fallback, state.fallback, state.best, state.lowest, state.residual, state.points, state.moves,
                jnp.zeros_like(kept), state.steps + 1,
            )  # fmt: skip
            return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, back)

        def unfinished(state: _State) -> Bool[Array, ""]:
            return (state.residual > _TOLERANCE) & (state.steps < _MAX_STEPS)

        memory = jnp.zeros((_MEMORY, start.size))
        zero, infinity = jnp.asarray(0), jnp.asarray(jnp.inf)
        initial = _State(start, start, start, infinity, infinity, memory, memory, zero, zero)
        final = lax.while_loop(unfinished, step, initial)
        return final.best, final.steps

    # The iteration sees the data without derivatives. These follow from the implicit function theorem,
    # dQ = -(d^2 S / dQ^2)^{-1} d(dS/dQ), written as a Newton step that is zero but for its derivatives.
    converted, data = jax.closure_convert(respond, start)
    frozen_units = lax.stop_gradient(units)

    def frozen(scale: Scale) -> Response:
        return converted(scale, *lax.stop_gradient(data))

    found, steps = solve(frozen, start, frozen_units)
    slope = gradient(found, respond(found), units, prior)

    def curvature(direction: Scale) -> Scale:
        """d^2 S/dQ^2 on symmetric directions, the identity on antisymmetric ones, which never occur: self-adjoint for `cg`."""
        even = _symmetric(direction)
        return _symmetric(jax.jvp(lambda q: gradient(q, frozen(q), frozen_units, prior), (found,), (even,))[1]) + direction - even

    newton = cg(curvature, slope - lax.stop_gradient(slope), tol=1e-13, maxiter=1000)[0]
    scale = found - newton
    response = respond(scale)
    slope = lax.stop_gradient(times(scale, gradient(scale, response, units, prior), scale))
    return Minimum(scale, action(scale, response, units, prior), jnp.max(jnp.abs(slope)), steps)
