"""log det A + y^T A^{-1} y, the part of an effective action that sees the data, with cheap derivatives of any order."""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Float


@jax.custom_jvp
def inverse(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """A^{-1} of a symmetric positive definite matrix; dA^{-1} = -A^{-1} dA A^{-1}."""
    return jsl.cho_solve((jnp.linalg.cholesky(matrix), True), jnp.eye(matrix.shape[-1]))


@inverse.defjvp
def _(primals, tangents):
    inverted = inverse(primals[0])
    return inverted, -inverted @ tangents[0] @ inverted


@jax.custom_jvp
def data_term(noisy: Float[Array, "train train"], targets: Float[Array, "train *output"]) -> Float[Array, ""]:
    """D log det A + tr y^T A^{-1} y, A = `noisy` symmetric positive definite, D the number of outputs.

    Its derivative is tr (D A^{-1} - a a^T) dA + 2 tr a^T dy, a = A^{-1} y, from the same Cholesky factor.
    """
    cholesky = jnp.linalg.cholesky(noisy)
    half = jsl.solve_triangular(cholesky, targets, lower=True)
    outputs = 1 if targets.ndim == 1 else targets.shape[1]
    return 2 * outputs * jnp.sum(jnp.log(jnp.diag(cholesky))) + jnp.sum(half**2)


@data_term.defjvp
def _(primals, tangents):
    noisy, targets = primals
    inverted = inverse(noisy)
    dual = inverted @ targets
    outputs, spread = (1, jnp.outer(dual, dual)) if targets.ndim == 1 else (targets.shape[1], dual @ dual.T)
    change = jnp.sum((outputs * inverted - spread) * tangents[0]) + 2 * jnp.sum(dual * tangents[1])
    return data_term(noisy, targets), change
