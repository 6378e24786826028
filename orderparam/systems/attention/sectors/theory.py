"""Theory of learning in each sector with a permutation-symmetric kernel, from its spectrum."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.points import normal_points
from orderparam.kernels.effective_ridge import effective_ridge, ratio
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.attention.sectors.model import SequenceRegression, attended

Scalar = Float[Array, ""]


class SectorSpectrum(Result):
    """The spectrum of the kernel on linear functions of tokens.

    Fields:
        eigenvalue: eigenvalues of the two symmetric levels and of the standard level.
        dimension: number of modes of each level.
        symmetric_power: share of the symmetric target in each level; the standard target lies in
            the standard level.
        half_learned: number of examples at which the learnability of each level is 1/2, infinite
            for an eigenvalue of 0.
    """

    eigenvalue: Float[Array, "level"]
    dimension: Float[Array, "level"]
    symmetric_power: Float[Array, "level"]
    half_learned: Float[Array, "level"]


class SectorLearning(Result):
    """Test error and learnability of the target of a sector.

    Fields:
        test_error: E (f - y)^2 on new sequences.
        learnability: E f y/E y^2, the share of the target that is learned.
        residual: error of the equation for the effective ridge.
        converged: whether the equation was solved.
    """

    test_error: Scalar
    learnability: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


@theory(differentiable=False)
def sector_spectrum(system: SequenceRegression, *, log2_points: int = 13) -> SectorSpectrum:
    r"""Eigenvalues of the kernel on linear functions in each sector, and the number of examples at
    which each is half learned.

    In the standard sector the eigenvalue is $b/(T d)$, with $d (T - 1)$ modes. In the symmetric
    sector the features $\psi_i = \sqrt{T a/d}\, (\bar a^T X)_i$ and $s_i = \sum_t x_{ti}/\sqrt T$
    of every channel are correlated for $c > 0$, and the two eigenvalues of

    $$ \begin{pmatrix} E \psi^2 & \sqrt{b/(Td)}\, E \psi s \\ \sqrt{b/(Td)}\, E \psi s & b/(Td)
       \end{pmatrix} $$

    have d modes each; with the unit eigenvectors U the target s has the power $U_{2k}^2 w_k T d/b$
    in level k. A level is half learned at $n = T_{\mathrm{ridge}}/\lambda + \sum_j m_j
    \lambda_j/(\lambda_j + \lambda)$ examples: the sector with few modes is learned first.

    Args:
        log2_points: logarithm to the base 2 of the number of points of the average over sequences;
            each is used with its mirror image.

    Accuracy: that of the average over sequences. With the default number of points it is about 4e-4
    relative for the largest level and 4e-3 for the small symmetric level; the standard level is
    exact.

    Source: sectors by Lavie, Gur-Ari, Ringel (2024); this spectrum is derived here.

    >>> found = sector_spectrum(SequenceRegression(20.0, scale=0.0), log2_points=6)
    >>> [round(float(value), 6) for value in found.eigenvalue]  # a/d + b/(T d), 0, b/(T d)
    [0.145833, 0.0, 0.020833]
    """
    spectrum, power = _spectrum(system, log2_points)
    eigenvalues = spectrum.eigenvalues

    def needed(eigenvalue: Scalar) -> Scalar:
        learned = spectrum.multiplicities @ (eigenvalues / (eigenvalues + eigenvalue))
        return system.ridge / eigenvalue + learned

    absent = eigenvalues <= 0
    half = jax.vmap(needed)(jnp.where(absent, 1.0, eigenvalues))
    return SectorSpectrum(
        eigenvalue=eigenvalues,
        dimension=spectrum.multiplicities,
        symmetric_power=power,
        half_learned=jnp.where(absent, jnp.inf, half),
    )


@theory(differentiable=False)
def sector_learning(system: SequenceRegression, *, log2_points: int = 13) -> SectorLearning:
    r"""Test error and learnability of the target by regression with infinitely many heads.

    This is the self-consistent theory of kernel regression for the spectrum of `sector_spectrum`.
    With the eigenvalues $\lambda_k$, the numbers of modes $m_k$ and the power $Y_k$ of the target
    in the levels,

    $$ n = \frac{T_{\mathrm{ridge}}}\kappa + \sum_k m_k L_k, \quad L_k =
       \frac{\lambda_k}{\lambda_k + \kappa}, \quad E = \frac{\sum_k (1 - L_k)^2 Y_k}{1 - \frac1n
       \sum_k m_k L_k^2} . $$

    Args:
        log2_points: see `sector_spectrum`.

    Accuracy: that of the average over sequences; features are treated as Gaussian.

    Source: Simon et al. (2021) for the curve; the spectrum is derived here.

    >>> found = sector_learning(SequenceRegression(60.0, scale=0.0), log2_points=6)
    >>> round(float(found.test_error), 5)
    0.00108
    """
    spectrum, power = _spectrum(system, log2_points)
    if system.target == "standard":
        power = jnp.array([0.0, 0.0, 1.0])
    found = effective_ridge(spectrum, system.n_train, system.ridge)
    error = ratio(jnp.sum((1 - found.learnability) ** 2 * power), found.complement)
    return SectorLearning(
        test_error=error,
        learnability=found.learnability @ power,
        residual=found.residual,
        converged=found.converged,
    )


def _spectrum(
    system: SequenceRegression, log2_points: int
) -> tuple[Spectrum, Float[Array, "level"]]:
    """The spectrum, and the power of the symmetric target in its levels."""
    tokens, d = system.tokens, system.input_dim
    alone = system.token_share / (tokens * d)
    # the barrier keeps the compiler from evaluating the average at compile time
    points = jax.lax.optimization_barrier(jnp.asarray(normal_points(tokens * d, log2_points)))
    x = points.reshape(-1, tokens, d)
    psi = attended(system, x)
    total = jnp.sum(x, axis=1) / jnp.sqrt(tokens)
    # Averages are over all channels. E s^2 is taken from the same points: otherwise an error of the
    # average would remain at c = 0.
    square, cross, norm = (jnp.mean(u * v) for u, v in ((psi, psi), (psi, total), (total, total)))
    corner = jnp.sqrt(alone / norm) * cross
    matrix = jnp.array([[square, corner], [corner, alone]])
    values, vectors = jnp.linalg.eigh(matrix)
    # by the Cauchy-Schwarz inequality eigenvalues are negative only by rounding
    values = jnp.where(values > 1e-12 * values[1], values, 0.0)[::-1]
    power = jnp.concatenate([vectors[1, ::-1] ** 2 * values / alone, jnp.zeros(1)])
    levels = jnp.append(values, alone)
    counts = jnp.array([d, d, d * (tokens - 1)], dtype=float)
    return Spectrum(levels, power, counts), power
