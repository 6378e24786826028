"""The effective ridge of kernel regression, which replaces the temperature when data are finite and
random.

A kernel mode is learned when its eigenvalue exceeds a threshold kappa, fixed by sharing the P
samples between modes and ridge,

    P = T / kappa + sum_k m_k lambda_k / (lambda_k + kappa).

The effective ridge is P kappa = T + (posterior variance). The equation appears as the "learning
curve" of Sollich (1999), as the replica saddle point of Bordelon, Canatar and Pehlevan (2020), as
the signal capture threshold of Jacot et al. (2020), and in this form in Simon et al. (2021).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.kernels.spectrum import Spectrum
from orderparam.solve.root import decreasing_root


class EffectiveRidge(eqx.Module):
    """Solution of P = T/kappa + sum_k m_k lambda_k/(lambda_k + kappa).

    threshold:   kappa, the eigenvalue at which L = 1/2. The effective ridge is n_train * threshold.
    learnability: (level,) L = lambda / (lambda + kappa).
    unused:      T/kappa = P - sum m L, the samples that the ridge takes; for T = 0 and P > rank it
    is P - rank. spread:      gamma = (1/P) sum m L^2; errors are enlarged by 1/(1 - gamma).
    complement:  1 - gamma = [T/kappa + sum m L (1 - L)] / P, computed without cancellation near
    interpolation. residual:    |log(right-hand side / P)|; converged: True if kappa solves the
    equation.
    """

    threshold: Float[Array, ""]
    learnability: Float[Array, "level"]
    unused: Float[Array, ""]
    spread: Float[Array, ""]
    complement: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def learnability(
    eigenvalues: Float[Array, "level"], threshold: Float[Array, ""] | float
) -> Float[Array, "level"]:
    """L = lambda / (lambda + kappa); 0 where lambda = 0, and 1 elsewhere when kappa = 0."""
    positive = eigenvalues > 0
    return jnp.where(
        positive, eigenvalues / (jnp.where(positive, eigenvalues, 1.0) + threshold), 0.0
    )


@jax.custom_jvp
def _learnability_of_log(
    eigenvalues: Float[Array, "level"], log_threshold: Float[Array, ""]
) -> Float[Array, "level"]:
    return learnability(eigenvalues, jnp.exp(log_threshold))


@_learnability_of_log.defjvp
def _(primals: tuple, tangents: tuple) -> tuple:
    # dL = L (1 - L) (d log lambda - d log kappa): cheaper than the rule for the quotient, and it
    # neither over- nor underflows.
    eigenvalues, change = primals[0], tangents[0]
    learned = _learnability_of_log(*primals)
    relative = jnp.where(
        eigenvalues > 0, change / jnp.where(eigenvalues > 0, eigenvalues, 1.0), 0.0
    )
    return learned, learned * (1 - learned) * (relative - tangents[1])


def effective_ridge(
    spectrum: Spectrum, n_train: float | Float[Array, ""], temperature: float | Float[Array, ""]
) -> EffectiveRidge:
    """Threshold kappa for P = n_train samples (any positive number) and ridge T = temperature added
    to the Gram matrix.

    The unresolved tail of the spectrum acts as a further ridge: T stands for temperature +
    spectrum.tail. With T = 0 and P >= rank the data determine every mode: kappa = 0, L = 1 and
    gamma = rank / P.

    Accurate to rounding for any spectrum: the unknown is log kappa, so that no absolute tolerance
    enters. Derivatives follow from the implicit function theorem, for example d kappa/d T = 1/(P (1
    - gamma)). Vectorises over all arguments.
    """
    ridge = temperature + spectrum.tail
    rank = spectrum.rank
    interpolates = (ridge <= 0) & (n_train >= rank)
    # Where no equation has to be solved, a harmless one is solved instead, so that derivatives stay
    # finite.
    solved_ridge = jnp.where(interpolates, 1.0, ridge)

    eigenvalues, multiplicities = spectrum.eigenvalues, spectrum.multiplicities
    # Upper bound of the root: lambda/(lambda + kappa) < lambda/kappa. Lower bound: one of the two
    # sums is omitted, or all eigenvalues but the smallest.
    upper = jnp.log(eigenvalues @ multiplicities + solved_ridge) - jnp.log(n_train)
    smallest = jnp.min(jnp.where(eigenvalues > 0, eigenvalues, jnp.inf))
    spread = jnp.where(jnp.isfinite(smallest), smallest, 0.0) * (rank - n_train)
    lower = jnp.log(jnp.maximum(solved_ridge, spread)) - jnp.log(n_train)

    def excess(log_threshold: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        eigenvalues, multiplicities, ridge, n_train = args
        samples = ridge * jnp.exp(-log_threshold) + multiplicities @ _learnability_of_log(
            eigenvalues, log_threshold
        )
        return jnp.log(samples / n_train)

    root = decreasing_root(
        excess, lower - 1e-6, upper + 1e-6, (eigenvalues, multiplicities, solved_ridge, n_train)
    )

    # T/(P - rank) is zero here, and has the right derivative with respect to T.
    spare = jnp.where(interpolates & (n_train > rank), n_train - rank, 1.0)
    threshold = jnp.where(interpolates, ridge / spare, jnp.exp(root.value))
    unused = jnp.where(
        interpolates, n_train - rank, ridge / jnp.where(interpolates, 1.0, threshold)
    )
    residual, converged = jnp.where(interpolates, 0.0, root.residual), interpolates | root.converged
    return _solution(spectrum, n_train, threshold, unused, residual, converged)


def at_threshold(
    spectrum: Spectrum, n_train: float | Float[Array, ""], threshold: Float[Array, ""]
) -> EffectiveRidge:
    """The effective ridge for a given threshold kappa > 0. The corresponding ridge T is kappa *
    `unused`, which is negative when no ridge leads to kappa."""
    unused = n_train - spectrum.multiplicities @ learnability(spectrum.eigenvalues, threshold)
    return _solution(
        spectrum, n_train, threshold, unused, jnp.zeros_like(unused), jnp.ones_like(unused, bool)
    )


def _solution(
    spectrum: Spectrum,
    n_train: Any,
    threshold: Array,
    unused: Array,
    residual: Array,
    converged: Array,
) -> EffectiveRidge:
    learned = learnability(spectrum.eigenvalues, threshold)
    return EffectiveRidge(
        threshold=threshold,
        learnability=learned,
        unused=unused,
        spread=spectrum.multiplicities @ learned**2 / n_train,
        complement=(unused + spectrum.multiplicities @ (learned * (1 - learned))) / n_train,
        residual=residual,
        converged=converged,
    )


def ratio(
    numerator: float | Float[Array, "..."], denominator: float | Float[Array, "..."]
) -> Float[Array, "..."]:
    """numerator / denominator, both >= 0, with 0 / 0 = 0 (an error of zero stays zero)
    and finite derivatives."""
    numerator, denominator = jnp.asarray(numerator), jnp.asarray(denominator)
    positive = denominator > 0
    return jnp.where(
        positive,
        numerator / jnp.where(positive, denominator, 1.0),
        jnp.where(numerator > 0, jnp.inf, 0.0),
    )
