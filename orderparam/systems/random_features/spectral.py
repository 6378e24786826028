"""Random-feature ridge regression from a kernel's spectrum: a deterministic equivalent without a dimension.

phi(x; w) = sum_k sqrt(s_k) psi_k(x) chi_k(w), with psi_k orthonormal over inputs and chi_k over weights, so that s_k are the
eigenvalues of the kernel E_w phi(x; w) phi(x'; w); the target is sum_k b_k psi_k. Defilippis, Loureiro, Misiakiewicz 2024
(arXiv:2405.15699).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.system import System, parameter, part
from orderparam.core.verb import experiment, theory
from orderparam.kernels.spectrum import Spectrum
from orderparam.solve.root import decreasing_root

LARGEST_DESIGN = 4 * 10**8  # entries of a Gaussian matrix: 3.2 GB


class SpectralFeatures(System):
    """min over a of sum_mu (y_mu - a.phi(x_mu)/sqrt(p))^2 + ridge |a|^2 with p = width features and n_train noisy labels."""

    spectrum: Spectrum = part("spectrum of the kernel that the features have in the mean")
    n_train: float = parameter("number of training examples n", above=0)
    width: float = parameter("number of features p", above=0)
    ridge: float = parameter("penalty beside the summed loss", above=0)
    noise: float = parameter("variance of the label noise", minimum=0, default=0.0)


class SpectralCurve(Result):
    """Errors without label noise: excess_risk = E (f - f*)^2 = bias + variance, over training sets, features and noise.

    effective_dimension: sum_k s_k/(s_k + nu_2), the same for the hat matrix; thresholds nu_1 <= nu_2: the ridge that the examples
    see, and with the finite number of features.
    """

    excess_risk: Float[Array, ""]
    bias: Float[Array, ""]
    variance: Float[Array, ""]
    effective_dimension: Float[Array, ""]
    sample_threshold: Float[Array, ""]
    feature_threshold: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class MeasuredRisk(Result):
    """Of one training set and one draw of the features, exact over inputs."""

    excess_risk: Float[Array, ""]
    effective_dimension: Float[Array, ""]


@theory
def deterministic_equivalent(system: SpectralFeatures) -> SpectralCurve:
    """nu_1, nu_2 from n - ridge/nu_1 = T(nu_2), p (1 - nu_1/nu_2) = T(nu_2), T(nu) = sum_k s_k/(s_k + nu).

    One monotone equation for nu_2 where T < min(n, p): (n - T)(p - T) nu_2 / p = ridge. With df = sum s^2/(s + nu_2)^2,
    t = sum s/(s + nu_2)^2 and r = nu_1/nu_2,

        Upsilon = (p/n) [(1 - r)^2 + r^2 df/(p - df)],    Var = noise Upsilon/(1 - Upsilon),
        Bias = nu_2^2/(1 - Upsilon) [sum b^2/(s + nu_2)^2 + t/(p - df) sum b^2 s/(s + nu_2)^2].

    The unresolved tail of the spectrum enters as infinitely many vanishing eigenvalues of the given sum.
    """
    spectrum, n, p, ridge = system.spectrum, system.n_train, system.width, system.ridge
    fewest = jnp.minimum(n, p)

    def learned(log_threshold: Float[Array, ""], spectrum: Spectrum) -> Float[Array, ""]:
        threshold = jnp.exp(log_threshold)
        s = spectrum.eigenvalues
        return spectrum.multiplicities @ (s / (s + threshold)) + spectrum.tail / threshold

    upper = jnp.log(jnp.maximum(2 * spectrum.total / fewest, 4 * ridge / n))
    lowest = jnp.log(ridge / n)
    edge = decreasing_root(lambda u, args: learned(u, args[0]) - args[1], lowest, upper, (spectrum, fewest))
    lower = jnp.where(learned(lowest, spectrum) > fewest, edge.value, lowest)

    def excess(log_threshold: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        spectrum, n, p, ridge = args
        total = learned(log_threshold, spectrum)
        tiny = 1e-300
        left = jnp.log(jnp.maximum(n - total, tiny)) + jnp.log(jnp.maximum(1 - total / p, tiny))
        return jnp.log(ridge) - left - log_threshold

    root = decreasing_root(excess, lower, upper + 1e-6, (spectrum, n, p, ridge))
    nu, total = jnp.exp(root.value), learned(root.value, spectrum)
    inverse = 1 / (spectrum.eigenvalues + nu)
    share = spectrum.eigenvalues * inverse
    df = spectrum.multiplicities @ share**2
    trace = spectrum.multiplicities @ (share * inverse) + spectrum.tail / nu**2
    ratio = 1 - total / p
    upsilon = total**2 / (n * p) + ratio**2 * df / (n * (1 - df / p))
    power = spectrum.target_power
    unlearned = power @ (nu * inverse) ** 2 + spectrum.tail_power
    mixed = nu**2 * trace / (p - df) * (power @ (share * inverse))
    bias, variance = (unlearned + mixed) / (1 - upsilon), system.noise * upsilon / (1 - upsilon)
    return SpectralCurve(bias + variance, bias, variance, total, nu * ratio, nu, root.residual, root.converged)


@experiment
def spectral_learning(system: SpectralFeatures, key: PRNGKeyArray) -> MeasuredRisk:
    """Independent Gaussian psi_k and chi_k, ridge regression, and the exact error |b - weights of f|^2.

    Levels must be single modes without a tail. Raises `ValueError` when they are not, or when a matrix would be too large.
    """
    spectrum = system.spectrum
    if np.any(np.asarray(spectrum.multiplicities) != 1) or float(spectrum.tail) != 0:
        raise ValueError("spectral_learning needs a spectrum of single modes without a tail")
    n, p, modes = system.size("n_train"), system.size("width"), len(spectrum.eigenvalues)
    if max(n, p) * modes > LARGEST_DESIGN:
        raise ValueError(f"{max(n, p)} x {modes} numbers are too many: at most {LARGEST_DESIGN}")
    return _spectral(system, key, n, p)


@jax.jit
def ridge_regression(features: Array, labels: Array, ridge: Array) -> tuple[Array, Array]:
    """Weights and effective dimension tr F (F^T F + ridge)^-1 F^T, from the smaller of the two Gram matrices."""
    n, p = features.shape
    gram = features @ features.T if n <= p else features.T @ features
    values, vectors = jnp.linalg.eigh(gram)
    shrink = 1 / (jnp.maximum(values, 0) + ridge)
    right = labels if n <= p else features.T @ labels
    solved = vectors @ (shrink * (vectors.T @ right))
    return (features.T @ solved if n <= p else solved), jnp.sum(jnp.maximum(values, 0) * shrink)


def _spectral(system: SpectralFeatures, key: PRNGKeyArray, n: int, p: int) -> MeasuredRisk:
    weight_key, input_key, noise_key = jax.random.split(key, 3)
    modes = system.spectrum.eigenvalues.size
    target = jnp.sqrt(system.spectrum.target_power)
    weights = jax.random.normal(weight_key, (p, modes)) * jnp.sqrt(system.spectrum.eigenvalues / p)
    inputs = jax.random.normal(input_key, (n, modes))
    labels = inputs @ target + jnp.sqrt(system.noise) * jax.random.normal(noise_key, (n,))
    readout, dimension = ridge_regression(inputs @ weights.T, labels, system.ridge)
    return MeasuredRisk(jnp.sum((target - weights.T @ readout) ** 2), dimension)
