"""One hidden layer whose activation has a mean, E phi(h) = m(x): a second order parameter for the direction of the mean.

With M = m m^T over the training set and K the kernel without the read-out variance v, the renormalised kernel is

    v [ Q (K - M) + kappa M ],     kappa = 1 / (1 + R)

and F(Q, R) = N [ -Q R + log(1 + R) ] + log det(T + KR) + y^T (T + KR)^{-1} y is stationary (a saddle point) in both. For an odd
activation m = 0 and kappa = Q  (Pacelli et al. 2023, supplement; the two equations below are its derivatives).

Over the posterior, with v_i the read-out weight of unit i and v their prior variance, Q = <v_i^2> / v and
kappa = <v_i^2 - v_i v_j> / v, i and j different units: what the weights have in common is what reads the mean.

Several outputs, or the patches of a convolutional network, have matrices Q and kappa (`stationary_matrices`).
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix
from jaxtyping import Array, Float

from orderparam.kernels.common_scale import Eigenbasis, minima
from orderparam.solve.fixed_point import FixedPoint, fixed_point
from orderparam.systems.proportional.theory.losses import losses
from orderparam.systems.proportional.theory.matrix_scale import Prior, Response, Scale, majorised_step, times

_SWEEPS = 3000


class Centred(eqx.Module):
    """v (K - M) in its eigenbasis U, with sqrt(v) U^T m of the training set and sqrt(v) m of the test points."""

    basis: Eigenbasis
    mean: Float[Array, "train"]
    test_mean: Float[Array, "test"]

    @classmethod
    def of(
        cls,
        kernel: Float[Array, "train train"],
        rows: Float[Array, "test train"],
        diagonal: Float[Array, "test"],
        mean: Float[Array, "train"],
        test_mean: Float[Array, "test"],
        targets: Float[Array, "train *output"],
    ) -> "Centred":
        """From the kernel v K and sqrt(v) m."""
        basis = Eigenbasis.of(
            kernel - jnp.outer(mean, mean), rows - jnp.outer(test_mean, mean), diagonal - test_mean**2, targets
        )
        return cls(basis, basis.vectors.T @ mean, test_mean)


def conjugates(unknowns: Float[Array, "2"], args: tuple[Centred, Float[Array, ""], Float[Array, ""]]) -> Float[Array, "2"]:
    """Both stationarity conditions, in units of one, at (log Q, log kappa). args: the kernel, T, N.

    Q:  R     = (1/N) [ tr A^{-1} v (K - M) - a^T v (K - M) a ]
    R:  Q     = kappa - (v kappa^2 / N) [ m^T A^{-1} m - (m^T a)^2 ],     a = A^{-1} y, A = T + KR
    """
    centred, temperature, width = args
    eigenvalues, mean = centred.basis.eigenvalues, centred.mean
    scale, kappa = jnp.exp(unknowns)
    weights, dual, inverse_mean = _solve(centred, temperature, scale, kappa)
    # diag of A^{-1} in the basis of K - M, by the Sherman-Morrison formula
    diagonal = weights - kappa * weights * mean * inverse_mean
    first = 1 / kappa - 1 - (jnp.sum(eigenvalues * (diagonal - dual**2))) / width
    second = scale - kappa + kappa**2 / width * (mean @ inverse_mean - (mean @ dual) ** 2)
    return jnp.stack([first * kappa, second / scale])


def _solve(
    centred: Centred, temperature: Float[Array, ""], scale: Float[Array, ""], kappa: Float[Array, ""]
) -> tuple[Array, Array, Array]:
    """1/(T + Q k_i), and A^{-1} y and A^{-1} m in the basis, A = T + Q diag(k) + kappa m m^T (Sherman-Morrison)."""
    basis, mean = centred.basis, centred.mean
    weights = 1 / (temperature + scale * basis.eigenvalues)
    inverse_mean = weights * mean / (1 + kappa * jnp.sum(weights * mean**2))
    dual = weights * basis.targets - kappa * inverse_mean * jnp.sum(weights * mean * basis.targets)
    return weights, dual, inverse_mean


def stationary(
    centred: Centred, temperature: Float[Array, ""], width: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Q, kappa and the residual, from the solution without the mean."""
    start = minima(centred.basis.eigenvalues, centred.basis.power, temperature, width[None])
    args = (centred, temperature, width)
    guess = jax.lax.stop_gradient(jnp.repeat(start.log_scale[0], 2))
    solution = optimistix.root_find(
        conjugates, optimistix.Dogleg(rtol=1e-13, atol=1e-13), guess, args, max_steps=100, throw=False
    )
    scale, kappa = jnp.exp(solution.value)
    return scale, kappa, jnp.max(jnp.abs(jax.lax.stop_gradient(conjugates(solution.value, args))))


def action(
    centred: Centred,
    temperature: Float[Array, ""],
    width: Float[Array, ""],
    scale: Float[Array, ""],
    kappa: Float[Array, ""],
) -> Float[Array, ""]:
    """F(Q, R), by the matrix determinant lemma."""
    weights, dual, _ = _solve(centred, temperature, scale, kappa)
    log_det = -jnp.sum(jnp.log(weights)) + jnp.log1p(kappa * jnp.sum(weights * centred.mean**2))
    return width * (-scale * (1 / kappa - 1) - jnp.log(kappa)) + log_det + centred.basis.targets @ dual


def predict(
    centred: Centred,
    temperature: Float[Array, ""],
    scale: Float[Array, ""],
    kappa: Float[Array, ""],
    test_targets: Float[Array, "test"],
) -> dict[str, Float[Array, "..."]]:
    """The fields of `Prediction`."""
    basis, mean, test_mean = centred.basis, centred.mean, centred.test_mean
    weights, dual, inverse_mean = _solve(centred, temperature, scale, kappa)
    count = weights.shape[0]
    rows = scale * basis.rows + kappa * test_mean[:, None] * mean
    explained = rows**2 @ weights - kappa * (rows @ (weights * mean)) * (rows @ inverse_mean)
    trace = jnp.sum(weights) - kappa * jnp.sum(weights * mean * inverse_mean)
    return losses(
        temperature**2 * jnp.sum(dual**2) / count,
        temperature * (count - temperature * trace) / count,
        rows @ dual,
        jnp.maximum(scale * basis.diagonal + kappa * test_mean**2 - explained, 0.0),
        test_targets,
    )


def stationary_matrices(
    respond: Callable[[Scale, Scale], tuple[Response, Scale]], start: Scale, units: Float[Array, ""]
) -> FixedPoint:
    """Q and kappa, matrices or diagonals, where S(Q, kappa) = -tr Q (kappa^{-1} - 1) - log det kappa + (1/N) [..] is stationary.

    respond: (Q, kappa) -> G and B as in `matrix_scale`, of K - M, and W_ab = m_a^T A^{-1} m_b - (m_a . a)(m_b . a), v included.
    From `start`, by kappa <- its majorised step and Q <- kappa - kappa W kappa / N until both stand still.
    """

    def step(state: tuple[Scale, Scale], _: None) -> tuple[Scale, Scale]:
        scale, kappa = state
        response, along = respond(scale, kappa)
        kappa = majorised_step(kappa, response, units, Prior())
        return kappa - times(kappa, along, kappa) / units, kappa

    start = jax.lax.stop_gradient(start)
    return fixed_point(step, (start, start), max_steps=_SWEEPS)


def prior_action(scale: Scale, kappa: Scale) -> Float[Array, ""]:
    """tr Q - tr Q kappa^{-1} - log det kappa."""
    if scale.ndim == 1:
        return jnp.sum(scale - scale / kappa - jnp.log(kappa))
    return jnp.trace(scale) - jnp.trace(jnp.linalg.solve(kappa, scale)) - jnp.linalg.slogdet(kappa)[1]
