"""The self-consistent theory of kernel regression: discrepancies at the training points are independent Gaussians.

The same equations were found as Gaussian-process learning curves (Sollich 1999), by replicas (Bordelon, Canatar and Pehlevan
2020; Canatar, Bordelon and Pehlevan 2021), from random matrices (Jacot et al. 2020), and as "eigenlearning" (Simon et al. 2021).
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import EffectiveRidge, effective_ridge, learnability, ratio
from orderparam.kernels.spectrum import Spectrum
from orderparam.solve.fixed_point import fixed_point
from orderparam.systems.kernel_regression.learning_curve import LearningCurve, clean_train_error, held_out, shrunk
from orderparam.systems.kernel_regression.spectrum.model import KernelRegression


@theory
def self_consistent(system: KernelRegression) -> LearningCurve:
    """Learning curve of the self-consistent theory, with s2 the label noise.

        P = T/kappa + sum_k m_k L_k,   L_k = lambda_k / (lambda_k + kappa),   gamma = (1/P) sum_k m_k L_k^2
        bias B = sum_k (1 - L_k)^2 Y_k,   E_noisy = (B + s2) / (1 - gamma),   population_error = E_noisy - s2
        train_error = (T / (P kappa))^2 E_noisy,   posterior_variance = P kappa - T

    (Simon et al. 2021, section 4.) The features phi_k(x) of a random x are treated as independent Gaussians. On a pool the
    population error covers all its points; `test_error` covers those outside the training set.
    """
    return from_ridge(system, effective_ridge(system.spectrum, system.n_train, system.temperature))


def from_ridge(system: KernelRegression, ridge: EffectiveRidge) -> LearningCurve:
    """The learning curve that belongs to a solved effective ridge; the temperature enters through `ridge` alone."""
    spectrum, n_train, noise = system.spectrum, system.n_train, system.noise
    bias = _bias(spectrum, ridge)
    noisy = ratio(bias + noise, ridge.complement)
    # Of the samples the ridge takes, T/kappa + tail/kappa, only the first part shrinks the training error.
    tail = ratio(spectrum.tail, ridge.threshold)
    shrinkage = (ridge.unused - tail) / n_train
    dimension = spectrum.multiplicities @ ridge.learnability
    # E_noisy / kappa^2, with the bias divided mode by mode: it stays finite where kappa and the bias vanish together.
    divided = ratio(spectrum.target_power, (spectrum.eigenvalues + ridge.threshold) ** 2)
    discrepancy = jnp.sum(divided) + ratio(spectrum.tail_power + noise, ridge.threshold**2)
    return LearningCurve(
        test_error=held_out(noisy - noise, clean_train_error(shrinkage, noisy - noise, noise), system.sampled_fraction),
        population_error=noisy - noise,
        train_error=shrunk(shrinkage, noisy),
        bias=bias,
        variance=noisy - noise - bias,
        posterior_variance=ridge.threshold * dimension + spectrum.tail,
        effective_ridge=n_train * ridge.threshold,
        effective_dimension=dimension + tail,
        target_learnability=ratio(ridge.learnability @ spectrum.target_power, spectrum.total_power),
        squared_discrepancy=ratio(discrepancy, ridge.complement) / n_train**2,
        residual=ridge.residual,
        converged=ridge.converged,
    )


def _bias(spectrum: Spectrum, ridge: EffectiveRidge) -> Float[Array, ""]:
    return (1 - ridge.learnability) ** 2 @ spectrum.target_power + spectrum.tail_power


class ModeDecomposition(Result):
    """How the population error of the self-consistent theory is spread over the levels of the spectrum.

    learnability: (level,) L, the projection of the mean predictor on a mode relative to the target's.
    bias:         (level,) (1 - L)^2 Y.
    variance:     (level,) m (L^2 / P) E_noisy, over data sets and label noise.
    Bias and variance sum to the population error when the spectrum has no target power on its tail.
    """

    learnability: Float[Array, "level"]
    bias: Float[Array, "level"]
    variance: Float[Array, "level"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def mode_decomposition(system: KernelRegression) -> ModeDecomposition:
    """Learnability, bias and variance of every level (Simon et al. 2021; Canatar, Bordelon and Pehlevan 2021)."""
    spectrum = system.spectrum
    ridge = effective_ridge(spectrum, system.n_train, system.temperature)
    noisy = ratio(_bias(spectrum, ridge) + system.noise, ridge.complement)
    return ModeDecomposition(
        learnability=ridge.learnability,
        bias=(1 - ridge.learnability) ** 2 * spectrum.target_power,
        variance=spectrum.multiplicities * ridge.learnability**2 * noisy / system.n_train,
        residual=ridge.residual,
        converged=ridge.converged,
    )


@theory
def annealed(system: KernelRegression) -> LearningCurve:
    """Mean-field theory without replicas: the ridge is enlarged by the whole squared discrepancy instead of its thermal part.

        T_eff = T + (posterior variance) + E_0 + s2,   E_0 = sum_k (1 - L_k)^2 Y_k,   L_k = lambda_k / (lambda_k + T_eff / P)

    with E_0 reported as the error. For comparison only: averaging the partition function over data sets overestimates the
    ridge, and the variance over data sets is missing (`variance` is 0). Of several solutions the one with the largest T_eff is
    returned.
    """
    spectrum, n_train, noise, temperature = system.spectrum, system.n_train, system.noise, system.temperature

    def errors(ridge: Float[Array, ""], spectrum: Spectrum, n_train: Array | float) -> tuple[Array, Array, Array]:
        learned = learnability(spectrum.eigenvalues, ridge / n_train)
        bias = (1 - learned) ** 2 @ spectrum.target_power + spectrum.tail_power
        return learned, bias, ridge / n_train * (spectrum.multiplicities @ learned) + spectrum.tail

    def enlarge(log_ridge: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        spectrum, n_train, temperature, noise = args
        _, bias, posterior_variance = errors(jnp.exp(log_ridge), spectrum, n_train)
        return jnp.log(temperature + posterior_variance + bias + noise)

    # The right-hand side increases with T_eff: from above, the iteration descends to the largest solution.
    start = jnp.log(temperature + spectrum.total + spectrum.total_power + noise)
    solution = fixed_point(enlarge, start, (spectrum, n_train, temperature, noise), tolerance=1e-13, max_steps=10_000)
    ridge = jnp.exp(solution.value)
    learned, bias, posterior_variance = errors(ridge, spectrum, n_train)
    return LearningCurve(
        test_error=bias,
        population_error=bias,
        train_error=(temperature / ridge) ** 2 * (bias + noise),
        bias=bias,
        variance=jnp.zeros_like(bias),
        posterior_variance=posterior_variance,
        effective_ridge=ridge,
        effective_dimension=posterior_variance * n_train / ridge,
        target_learnability=ratio(learned @ spectrum.target_power, spectrum.total_power),
        squared_discrepancy=(bias + noise) / ridge**2,
        residual=solution.residual,
        converged=solution.converged,
    )
