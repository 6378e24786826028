"""A linear read-out with a Gaussian prior, given the features it reads: its posterior is Gaussian
and known exactly.

f(x) = Phi(x) u with whitened read-out u ~ N(0, 1) and labels y = f + N(0, T), that is a loss |y -
f|^2 / 2 at temperature T. With A = Phi Phi^T + T the posterior of u is N(Phi^T A^-1 y, 1 - Phi^T
A^-1 Phi) (Rasmussen and Williams 2006, section 2.1). Averaging over u gives the posterior of the
hidden weights of a network, p(W | data) ∝ p(W) p(y | Phi_W), which samplers of networks need.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Float


class Readout(eqx.Module):
    """Posterior of the read-out on given features; several outputs share the features and have
    independent read-outs.

    half:         L^-1 Phi with A = L L^T; the posterior covariance of each output's u is
                  1 - half^T half.
    discrepancy:  A^-1 y = (y - mean of f) / T at the training points.
    mean:         Phi^T A^-1 y, the posterior mean of u.
    log_evidence: log p(y | Phi), summed over the outputs, with the Gaussian constants.
    """

    half: Float[Array, "train feature"]
    discrepancy: Float[Array, "train output"]
    mean: Float[Array, "feature output"]
    log_evidence: Float[Array, ""]

    def variance(self, features: Float[Array, "test feature"]) -> Float[Array, "test"]:
        """Posterior variance of f at points with these features, the same for every output."""
        return jnp.sum(features**2, axis=1) - jnp.sum((features @ self.half.T) ** 2, axis=1)


def condition_readout(
    features: Float[Array, "train feature"],
    labels: Float[Array, "train output"],
    temperature: float | Float[Array, ""],
) -> Readout:
    """The read-out's posterior from one Cholesky factorisation of A. Unchecked, for use inside
    samplers: NaN if A is singular."""
    count, outputs = labels.shape
    cholesky = jnp.linalg.cholesky(features @ features.T + temperature * jnp.eye(count))
    discrepancy = jsl.cho_solve((cholesky, True), labels)
    log_det = 2 * jnp.sum(jnp.log(jnp.diagonal(cholesky)))
    return Readout(
        half=jsl.solve_triangular(cholesky, features, lower=True),
        discrepancy=discrepancy,
        mean=features.T @ discrepancy,
        log_evidence=-(
            jnp.sum(labels * discrepancy) + outputs * (log_det + count * jnp.log(2 * jnp.pi))
        )
        / 2,
    )


def log_evidence(
    features: Float[Array, "train feature"],
    labels: Float[Array, "train output"],
    temperature: float | Float[Array, ""],
) -> Float[Array, ""]:
    """Only the `log_evidence` of `condition_readout`, from the smaller of Phi Phi^T + T and Phi^T
    Phi + T (T > 0).

    With B = Phi^T Phi + T: log det(Phi Phi^T + T) = log det B + (n - N) log T and (Phi Phi^T +
    T)^-1 = (1 - Phi B^-1 Phi^T) / T. With n > N the quadratic form is a difference that loses
    digits as T falls: relative error 1e-16 |y|^2 / (T * form). Features in single precision are
    multiplied in it; what follows has the precision of the labels.
    """
    (count, units), outputs = features.shape, labels.shape[1]
    wide = count <= units
    gram = features @ features.T if wide else features.T @ features
    noisy = gram.astype(labels.dtype) + temperature * jnp.eye(gram.shape[0])
    log_det, form = log_det_and_form(noisy, labels if wide else features.T @ labels)
    if not wide:
        log_det += (count - units) * jnp.log(temperature)
        form = (jnp.sum(labels**2) - form) / temperature
    return -(form + outputs * (log_det + count * jnp.log(2 * jnp.pi))) / 2


@jax.custom_jvp
def inverse(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Inverse of a symmetric positive definite matrix A, with the derivative dA^{-1} = -A^{-1} dA
    A^{-1}. Unchecked: NaN if A is singular."""
    return jsl.cho_solve((jnp.linalg.cholesky(matrix), True), jnp.eye(matrix.shape[0]))


@inverse.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    inverted = inverse(primals[0])
    return inverted, -inverted @ tangents[0] @ inverted


@jax.custom_jvp
def log_det_and_form(
    matrix: Float[Array, "n n"], sides: Float[Array, "n output"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """log det A and tr b^T A^-1 b for a symmetric positive definite matrix A.

    The derivatives are tr A^-1 dA and 2 tr c^T db - tr c c^T dA with c = A^-1 b, which costs a half
    of a derivative through the Cholesky factor. Derivatives of any order exist.
    """
    cholesky = jnp.linalg.cholesky(matrix)
    half = jsl.solve_triangular(cholesky, sides, lower=True)
    return 2 * jnp.sum(jnp.log(jnp.diagonal(cholesky))), jnp.sum(half**2)


@log_det_and_form.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Any, Any]:
    (matrix, sides), (change, moved) = primals, tangents
    inverted = inverse(matrix)
    solved = inverted @ sides
    slopes = (
        jnp.sum(inverted * change),
        2 * jnp.sum(solved * moved) - jnp.sum((solved @ solved.T) * change),
    )
    return log_det_and_form(matrix, sides), slopes
