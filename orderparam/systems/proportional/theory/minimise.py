"""What Newton's method for the order parameters of a deep network needs: each evaluation of the action costs O(P^3)."""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Float

from orderparam.solve.minimum import minimise

__all__ = ["inverse", "minimise"]


@jax.custom_jvp
def inverse(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """A^{-1} of a symmetric positive definite matrix; dA^{-1} = -A^{-1} dA A^{-1}."""
    return jsl.cho_solve((jnp.linalg.cholesky(matrix), True), jnp.eye(matrix.shape[-1]))


@inverse.defjvp
def _(primals, tangents):
    inverted = inverse(primals[0])
    return inverted, -inverted @ tangents[0] @ inverted
