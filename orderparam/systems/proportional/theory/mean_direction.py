"""One hidden layer whose activation has a mean, E phi(h) = m(x): a second order parameter for the direction of the mean.

With M = m m^T over the training set and K the kernel without the read-out variance v, the renormalised kernel is

    v [ Q (K - M) + kappa M ],     kappa = 1 / (1 + R)

and F(Q, R) = N [ -Q R + log(1 + R) ] + log det(T + KR) + y^T (T + KR)^{-1} y is stationary (a saddle point) in both. For an odd
activation m = 0 and kappa = Q  (Pacelli et al. 2023, supplement; the two equations below are its derivatives).
"""

import jax
import jax.numpy as jnp
import optimistix
from jaxtyping import Array, Float

from orderparam.kernels.common_scale import Eigenbasis, minima
from orderparam.systems.proportional.theory.losses import losses


def conjugates(
    unknowns: Float[Array, "2"], args: tuple[Eigenbasis, Float[Array, "train"], Float[Array, ""], Float[Array, ""]]
) -> Float[Array, "2"]:
    """Both stationarity conditions, in units of one, at (log Q, log kappa). args: basis of v (K - M), sqrt(v) U^T m, T, N.

    Q:  R     = (1/N) [ tr A^{-1} v (K - M) - a^T v (K - M) a ]
    R:  Q     = kappa - (v kappa^2 / N) [ m^T A^{-1} m - (m^T a)^2 ],     a = A^{-1} y, A = T + KR
    """
    basis, mean, temperature, width = args
    scale, kappa = jnp.exp(unknowns)
    weights, dual, inverse_mean = _solve(basis, mean, temperature, scale, kappa)
    # diag of A^{-1} in the basis of K - M, by the Sherman-Morrison formula
    diagonal = weights - kappa * weights * mean * inverse_mean
    first = 1 / kappa - 1 - (jnp.sum(basis.eigenvalues * (diagonal - dual**2))) / width
    second = scale - kappa + kappa**2 / width * (mean @ inverse_mean - (mean @ dual) ** 2)
    return jnp.stack([first * kappa, second / scale])


def _solve(
    basis: Eigenbasis,
    mean: Float[Array, "train"],
    temperature: Float[Array, ""],
    scale: Float[Array, ""],
    kappa: Float[Array, ""],
) -> tuple[Array, Array, Array]:
    """1/(T + Q k_i), and A^{-1} y and A^{-1} m in the basis, A = T + Q diag(k) + kappa m m^T (Sherman-Morrison)."""
    weights = 1 / (temperature + scale * basis.eigenvalues)
    inverse_mean = weights * mean / (1 + kappa * jnp.sum(weights * mean**2))
    dual = weights * basis.targets - kappa * inverse_mean * jnp.sum(weights * mean * basis.targets)
    return weights, dual, inverse_mean


def stationary(
    basis: Eigenbasis, mean: Float[Array, "train"], temperature: Float[Array, ""], width: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Q, kappa and the residual, from the solution without the mean."""
    start = minima(basis.eigenvalues, basis.power, temperature, width[None])
    args = (basis, mean, temperature, width)
    guess = jax.lax.stop_gradient(jnp.repeat(start.log_scale[0], 2))
    solution = optimistix.root_find(
        conjugates, optimistix.Dogleg(rtol=1e-13, atol=1e-13), guess, args, max_steps=100, throw=False
    )
    scale, kappa = jnp.exp(solution.value)
    return scale, kappa, jnp.max(jnp.abs(jax.lax.stop_gradient(conjugates(solution.value, args))))


def action(
    basis: Eigenbasis,
    mean: Float[Array, "train"],
    temperature: Float[Array, ""],
    width: Float[Array, ""],
    scale: Float[Array, ""],
    kappa: Float[Array, ""],
) -> Float[Array, ""]:
    """F(Q, R), by the matrix determinant lemma."""
    weights, dual, _ = _solve(basis, mean, temperature, scale, kappa)
    log_det = -jnp.sum(jnp.log(weights)) + jnp.log1p(kappa * jnp.sum(weights * mean**2))
    return width * (-scale * (1 / kappa - 1) - jnp.log(kappa)) + log_det + basis.targets @ dual


def predict(
    basis: Eigenbasis,
    mean: Float[Array, "train"],
    test_mean: Float[Array, "test"],
    temperature: Float[Array, ""],
    scale: Float[Array, ""],
    kappa: Float[Array, ""],
    test_targets: Float[Array, "test"],
) -> dict[str, Float[Array, "..."]]:
    """The fields of `Prediction`; basis.rows and basis.diagonal are those of v (K - M) at the test points."""
    weights, dual, inverse_mean = _solve(basis, mean, temperature, scale, kappa)
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
