"""Ridge regression on random features from the spectrum of their mean kernel: the error for n
examples and p features.

phi(x; w) = sum_k sqrt(s_k) psi_k(x) chi_k(w), with psi_k orthonormal over inputs and chi_k over
weights, so that s_k are the eigenvalues of the kernel E_w phi(x; w) phi(x'; w); the target is sum_k
b_k psi_k. Defilippis, Loureiro, Misiakiewicz 2024 (arXiv:2405.15699).
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.kernels.spectrum import Spectrum
from orderparam.solve.root import decreasing_root

LARGEST_DESIGN = 4 * 10**8  # largest number of entries of a Gaussian matrix: 3.2 GB

Scalar = Float[Array, ""] | float


class FeatureEquivalent(Result):
    """Errors of ridge regression on random features, without label noise (no factor 1/2).

    Fields:
        excess_risk: E (f - f*)^2 = bias + variance, over training sets, features and noise.
        bias: part of it that does not come from label noise.
        variance: part of it that comes from label noise.
        effective_dimension: T = sum_k s_k/(s_k + nu_2), which is also that of the hat matrix.
        sample_threshold: nu_1, the effective ridge of the examples.
        feature_threshold: nu_2 >= nu_1, the effective ridge that includes the finite number of
            features.
        residual: residual of the equation for nu_2.
        converged: True if it was solved.
    """

    excess_risk: Float[Array, ""]
    bias: Float[Array, ""]
    variance: Float[Array, ""]
    effective_dimension: Float[Array, ""]
    sample_threshold: Float[Array, ""]
    feature_threshold: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def feature_equivalent(
    spectrum: Spectrum, n_train: Scalar, width: Scalar, ridge: Scalar, noise: Scalar
) -> FeatureEquivalent:
    """nu_1, nu_2 from n - ridge/nu_1 = T(nu_2), p (1 - nu_1/nu_2) = T(nu_2), T(nu) = sum_k s_k/(s_k
    + nu).

    For min over a of sum_mu (y_mu - a.phi(x_mu)/sqrt(p))^2 + ridge |a|^2 with p = width features
    and n = n_train noisy labels. One monotone equation for nu_2 where T < min(n, p): (n - T)(p - T)
    nu_2 / p = ridge. With df = sum s^2/(s + nu_2)^2, t = sum s/(s + nu_2)^2 and r = nu_1/nu_2,

        Upsilon = (p/n) [(1 - r)^2 + r^2 df/(p - df)],    variance = noise Upsilon/(1 - Upsilon),
        bias = nu_2^2/(1 - Upsilon) [sum b^2/(s + nu_2)^2 + t/(p - df) sum b^2 s/(s + nu_2)^2].

    The unresolved tail of the spectrum enters as infinitely many vanishing eigenvalues of the given
    sum.
    """
    n, p = n_train, width
    fewest = jnp.minimum(n, p)

    def learned(log_threshold: Float[Array, ""], spectrum: Spectrum) -> Float[Array, ""]:
        threshold = jnp.exp(log_threshold)
        s = spectrum.eigenvalues
        return spectrum.multiplicities @ (s / (s + threshold)) + spectrum.tail / threshold

    upper = jnp.log(jnp.maximum(2 * spectrum.total / fewest, 4 * ridge / n))
    lowest = jnp.log(ridge / n)
    edge = decreasing_root(
        lambda u, args: learned(u, args[0]) - args[1], lowest, upper, (spectrum, fewest)
    )
    lower = jnp.where(learned(lowest, spectrum) > fewest, edge.value, lowest)

    def excess(log_threshold: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        spectrum, n, p, ridge = args
        total = learned(log_threshold, spectrum)
        tiny = 1e-300
        left = jnp.log(jnp.maximum(n - total, tiny)) + jnp.log(jnp.maximum(1 - total / p, tiny))
        return jnp.log(ridge) - left - log_threshold

    root = decreasing_root(excess, lower, upper + 1e-6, (spectrum, n, p, ridge))
    nu = jnp.exp(root.value)
    bias, variance, total = errors_at_threshold(spectrum, n, p, nu, noise)
    return FeatureEquivalent(
        excess_risk=bias + variance,
        bias=bias,
        variance=variance,
        effective_dimension=total,
        sample_threshold=nu * (1 - total / p),
        feature_threshold=nu,
        residual=root.residual,
        converged=root.converged,
    )


def errors_at_threshold(
    spectrum: Spectrum, n_train: Scalar, width: Scalar, threshold: Scalar, noise: Scalar
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """(bias, variance, dimension T) for a given nu_2, T(nu_2) < min(n, p), which is that of the
    ridge (n - T)(p - T) nu_2 / p."""
    n, p, nu = n_train, width, threshold
    inverse = 1 / (spectrum.eigenvalues + nu)
    share = spectrum.eigenvalues * inverse
    total = spectrum.multiplicities @ share + spectrum.tail / nu
    df = spectrum.multiplicities @ share**2
    trace = spectrum.multiplicities @ (share * inverse) + spectrum.tail / nu**2
    ratio = 1 - total / p
    upsilon = total**2 / (n * p) + ratio**2 * df / (n * (1 - df / p))
    power = spectrum.target_power
    unlearned = power @ (nu * inverse) ** 2 + spectrum.tail_power
    mixed = nu**2 * trace / (p - df) * (power @ (share * inverse))
    return (unlearned + mixed) / (1 - upsilon), noise * upsilon / (1 - upsilon), total


def ridge_regression(features: Array, labels: Array, ridge: Scalar) -> tuple[Array, Array]:
    """Weights and effective dimension tr F (F^T F + ridge)^-1 F^T, from the smaller of the two Gram
    matrices."""
    n, p = features.shape
    gram = features @ features.T if n <= p else features.T @ features
    values, vectors = jnp.linalg.eigh(gram)
    shrink = 1 / (jnp.maximum(values, 0) + ridge)
    right = labels if n <= p else features.T @ labels
    solved = vectors @ (shrink * (vectors.T @ right))
    return (features.T @ solved if n <= p else solved), jnp.sum(jnp.maximum(values, 0) * shrink)


def gaussian_features(
    eigenvalues: Float[Array, "mode"],
    target_power: Float[Array, "mode"],
    n_train: int,
    width: int,
    ridge: Scalar,
    noise: Scalar,
    key: PRNGKeyArray,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """E (f - f*)^2, exact over inputs, and the effective dimension, with independent Gaussian psi_k
    and chi_k, drawn once.

    Raises `ValueError` where a matrix would be too large.
    """
    modes = eigenvalues.size
    if max(n_train, width) * modes > LARGEST_DESIGN:
        raise ValueError(
            f"{max(n_train, width)} x {modes} numbers are too many: at most {LARGEST_DESIGN}"
        )
    return _drawn(eigenvalues, target_power, ridge, noise, key, n_train, width)


@partial(jax.jit, static_argnames=("n_train", "width"))
def _drawn(
    eigenvalues: Array,
    target_power: Array,
    ridge: Scalar,
    noise: Scalar,
    key: PRNGKeyArray,
    n_train: int,
    width: int,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    weight_key, input_key, noise_key = jax.random.split(key, 3)
    target = jnp.sqrt(target_power)
    weights = jax.random.normal(weight_key, (width, eigenvalues.size)) * jnp.sqrt(
        eigenvalues / width
    )
    inputs = jax.random.normal(input_key, (n_train, eigenvalues.size))
    labels = inputs @ target + jnp.sqrt(noise) * jax.random.normal(noise_key, (n_train,))
    readout, dimension = ridge_regression(inputs @ weights.T, labels, ridge)
    return jnp.sum((target - weights.T @ readout) ** 2), dimension
