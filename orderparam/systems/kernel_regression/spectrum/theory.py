"""Theories of a learning curve from the spectrum of a kernel: self-consistent, equivalent kernel,
best ridge, power laws.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float
from scipy.special import zeta

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import (
    EffectiveRidge,
    at_threshold,
    effective_ridge,
    learnability,
    ratio,
)
from orderparam.kernels.spectra import check_above
from orderparam.kernels.spectrum import Spectrum
from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.root import decreasing_root
from orderparam.systems.kernel_regression.learning_curve import (
    LearningCurve,
    clean_train_error,
    held_out,
    shrunk,
)
from orderparam.systems.kernel_regression.spectrum.model import (
    HeteroscedasticRegression,
    KernelRegression,
    SphereRegression,
)

# ------------------------------------------------------------------------------------------------
# The self-consistent theory of kernel regression: discrepancies at the training points are independent Gaussians.
#
# The same equations were found as Gaussian-process learning curves (Sollich 1999), by replicas
# (Bordelon, Canatar and Pehlevan 2020; Canatar, Bordelon and Pehlevan 2021), from random matrices
# (Jacot et al. 2020), and as "eigenlearning" (Simon et al. 2021).


@theory
def self_consistent(system: KernelRegression) -> LearningCurve:
    """Learning curve of the self-consistent theory, with s2 the label noise.

        P = T/kappa + sum_k m_k L_k,   L_k = lambda_k / (lambda_k + kappa),   gamma = (1/P) sum_k m_k L_k^2
        bias B = sum_k (1 - L_k)^2 Y_k,   E_noisy = (B + s2) / (1 - gamma),   population_error = E_noisy - s2
        train_error = (T / (P kappa))^2 E_noisy,   posterior_variance = P kappa - T

    (Simon et al. 2021, section 4.) The features phi_k(x) of a random x are treated as independent
    Gaussians. On a pool the population error covers all its points; `test_error` covers those
    outside the training set.
    """
    return from_ridge(system, effective_ridge(system.spectrum, system.n_train, system.temperature))


def from_ridge(system: KernelRegression, ridge: EffectiveRidge) -> LearningCurve:
    """The learning curve that belongs to a solved effective ridge; the temperature enters through
    `ridge` alone.
    """
    spectrum, n_train, noise = system.spectrum, system.n_train, system.noise
    bias = _bias(spectrum, ridge)
    noisy = ratio(bias + noise, ridge.complement)
    # Of the samples the ridge takes, T/kappa + tail/kappa, only the first part shrinks the training
    # error.
    tail = ratio(spectrum.tail, ridge.threshold)
    shrinkage = (ridge.unused - tail) / n_train
    dimension = spectrum.multiplicities @ ridge.learnability
    # E_noisy / kappa^2, with the bias divided mode by mode: it stays finite where kappa and the
    # bias vanish together.
    divided = ratio(spectrum.target_power, (spectrum.eigenvalues + ridge.threshold) ** 2)
    discrepancy = jnp.sum(divided) + ratio(spectrum.tail_power + noise, ridge.threshold**2)
    return LearningCurve(
        test_error=held_out(
            noisy - noise,
            clean_train_error(shrinkage, noisy - noise, noise),
            system.sampled_fraction,
        ),
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
    """How the population error of the self-consistent theory is spread over the levels of the
    spectrum.

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
    """Learnability, bias and variance of every level (Simon et al. 2021; Canatar, Bordelon and
    Pehlevan 2021).
    """
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
    """Mean-field theory without replicas: the ridge is enlarged by the whole squared discrepancy
    instead of its thermal part.

        T_eff = T + (posterior variance) + E_0 + s2,   E_0 = sum_k (1 - L_k)^2 Y_k,   L_k = lambda_k / (lambda_k + T_eff / P)

    with E_0 reported as the error. For comparison only: averaging the partition function over data
    sets overestimates the ridge, and the variance over data sets is missing (`variance` is 0). Of
    several solutions the one with the largest T_eff is returned.
    """
    spectrum, n_train, noise, temperature = (
        system.spectrum,
        system.n_train,
        system.noise,
        system.temperature,
    )

    def errors(
        ridge: Float[Array, ""], spectrum: Spectrum, n_train: Array | float
    ) -> tuple[Array, Array, Array]:
        learned = learnability(spectrum.eigenvalues, ridge / n_train)
        bias = (1 - learned) ** 2 @ spectrum.target_power + spectrum.tail_power
        return learned, bias, ridge / n_train * (spectrum.multiplicities @ learned) + spectrum.tail

    def enlarge(log_ridge: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        spectrum, n_train, temperature, noise = args
        _, bias, posterior_variance = errors(jnp.exp(log_ridge), spectrum, n_train)
        return jnp.log(temperature + posterior_variance + bias + noise)

    # The right-hand side increases with T_eff: from above, the iteration descends to the largest
    # solution.
    start = jnp.log(temperature + spectrum.total + spectrum.total_power + noise)
    solution = fixed_point(
        enlarge, start, (spectrum, n_train, temperature, noise), tolerance=1e-13, max_steps=10_000
    )
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


# ------------------------------------------------------------------------------------------------
# The equivalent kernel and the first correction to it: kernel regression when the ridge is large.
#
# At high temperature the data act as a continuum, and the sum over samples becomes P times the
# integral over the input measure. The corrections due to finite and random data form a series in
# v/T, where v is the posterior variance at a point.

VALID = 0.1  # the first neglected order, in relative size, up to which a curve counts as valid


class EquivalentKernelCurve(LearningCurve):
    """A learning curve from the expansion in v/T.

    fluctuation_ratio: v/T, the parameter of the expansion (posterior variance over ridge).
    valid:             whether the first neglected order, v/T or its square, is below 0.1.
    """

    fluctuation_ratio: Float[Array, ""]
    valid: Bool[Array, ""]


@theory
def equivalent_kernel(system: KernelRegression) -> EquivalentKernelCurve:
    """Zeroth order: L_k = lambda_k / (lambda_k + T/P), error sum_k (1 - L_k)^2 Y_k, posterior
    variance (T/P) sum_k m_k L_k.

    (Silverman 1984; Sollich and Williams 2005.) Differences between data sets are neglected, and so
    is label noise in the predictor. The unresolved tail of the spectrum is added to the ridge T.
    Useless at small T: see `fluctuation_ratio`.
    """
    return _homogeneous(system, order=0)


@theory
def equivalent_kernel_corrected(system: KernelRegression) -> EquivalentKernelCurve:
    """First order in v/T, averaged over position: the equivalent kernel and the fluctuations
    between data sets.

        v = (T/P) sum_k m_k L_k,   E = E_0 + 2 (v/T) sum_k L_k (1 - L_k)^2 Y_k + (1/P) sum_k m_k L_k^2 (E_0 + s2)
        train_error = (T / (T + v))^2 (E + s2),   target_learnability that of the ridge T + v

    with E_0 and L_k of the equivalent kernel (Cohen, Malka and Ringel 2021, to order 1/T^2, with
    features of constant square). It is the expansion of the self-consistent theory in (P kappa -
    T)/T and overshoots where that is not small. Train error and learnability are written so that
    they have a sign, whatever v/T; to the same order they are the expanded ones.
    """
    return _homogeneous(system, order=1)


def _homogeneous(system: KernelRegression, order: int) -> EquivalentKernelCurve:
    spectrum, n_train, noise = system.spectrum, system.n_train, system.noise
    ridge = system.temperature + spectrum.tail
    learned = learnability(spectrum.eigenvalues, ridge / n_train)
    dimension = spectrum.multiplicities @ learned
    small = order * dimension / n_train  # v/T

    lost = (1 - learned) ** 2 * spectrum.target_power
    zeroth = jnp.sum(lost) + spectrum.tail_power
    mean_shift = small * (learned @ lost)
    between_sets = order * (spectrum.multiplicities @ learned**2) / n_train * (zeroth + noise)
    error = zeroth + 2 * mean_shift + between_sets

    shrinkage = jnp.where(ridge > 0, ratio(system.temperature, ridge), 1.0) / (1 + small)
    raised = learned / (1 + small * (1 - learned))  # lambda / (lambda + (T + v)/P)
    return EquivalentKernelCurve(
        test_error=held_out(
            error, clean_train_error(shrinkage, error, noise), system.sampled_fraction
        ),
        population_error=error,
        train_error=shrunk(shrinkage, error + noise),
        bias=zeroth + 2 * mean_shift,
        variance=between_sets,
        posterior_variance=ridge * dimension / n_train + spectrum.tail,
        effective_ridge=ridge * (1 + small),
        effective_dimension=dimension,
        target_learnability=ratio(raised @ spectrum.target_power, spectrum.total_power),
        squared_discrepancy=ratio(error + noise, (ridge * (1 + small)) ** 2),
        fluctuation_ratio=dimension / n_train,
        valid=(dimension / n_train) ** (order + 1) < VALID,
        residual=jnp.zeros_like(error),
        converged=jnp.isfinite(error),
    )


# ------------------------------------------------------------------------------------------------
# The temperature (ridge) at which kernel regression generalises best.

# Points at which the error is looked up before the best is refined: it may have several minima in
# T.
_SCAN = 256


class OptimalTemperature(Result):
    """The best temperature, the test error there, and |d test_error / d log kappa| as the
    residual."""

    temperature: Float[Array, ""]
    test_error: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def optimal_temperature(system: KernelRegression) -> OptimalTemperature:
    """argmin of the self-consistent test error over T >= 0; the temperature of `system` is not
    used.

    The ridge enters only through kappa, and T = kappa (P - sum_k m_k L_k) - tail is the ridge that
    leads to a kappa. The error is therefore minimised over log kappa, where it is explicit: a scan
    from kappa(T = 0) upwards, then Newton's method on its derivative. T = 0 when the error
    increases from there. `converged` is False when the error decreases without bound in T (a target
    that cannot be learned). Derivatives of the optimum follow from the implicit function theorem.
    """
    spectrum, n_train = system.spectrum, system.n_train
    eigenvalues, multiplicities = spectrum.eigenvalues, spectrum.multiplicities
    smallest = jnp.min(jnp.where(eigenvalues > 0, eigenvalues, jnp.inf))
    largest = jnp.max(eigenvalues)
    ridgeless = effective_ridge(spectrum, n_train, 0.0).threshold
    # For kappa far above all eigenvalues E = (Y + s2)(1 + a/kappa^2) - 2 b/kappa is smallest at
    # kappa = (Y + s2) a/b.
    variance = (spectrum.total_power + system.noise) * (multiplicities @ eigenvalues**2) / n_train
    signal = eigenvalues @ spectrum.target_power
    far = jnp.where(signal > 0, variance / jnp.where(signal > 0, signal, 1.0), 0.0)
    lower = jnp.log(jnp.maximum(ridgeless, 1e-6 * smallest))
    upper = jnp.log(100 * jnp.maximum(jnp.maximum(largest, far), ridgeless))
    grid = jax.lax.stop_gradient(jnp.linspace(lower, upper, _SCAN))

    def error(log_threshold: Float[Array, ""], system: KernelRegression) -> Float[Array, ""]:
        return from_ridge(
            system, at_threshold(system.spectrum, system.n_train, jnp.exp(log_threshold))
        ).test_error

    def downhill(log_threshold: Float[Array, ""], system: KernelRegression) -> Float[Array, ""]:
        return -jax.grad(error)(log_threshold, system)

    best = jnp.argmin(jax.lax.map(lambda u: error(u, system), grid, batch_size=16))
    at_zero = (best == 0) & (downhill(grid[0], system) <= 0)
    left, right = grid[jnp.maximum(best - 1, 0)], grid[jnp.minimum(best + 1, _SCAN - 1)]
    root = decreasing_root(downhill, left, right, system)

    threshold = jnp.where(at_zero, ridgeless, jnp.exp(root.value))
    solved = at_threshold(spectrum, n_train, threshold)
    temperature = jnp.where(
        at_zero, 0.0, jnp.maximum(threshold * solved.unused - spectrum.tail, 0.0)
    )
    return OptimalTemperature(
        temperature=temperature,
        test_error=from_ridge(system, effective_ridge(spectrum, n_train, temperature)).test_error,
        residual=jnp.where(at_zero, 0.0, root.residual),
        converged=at_zero | (root.converged & (best < _SCAN - 1)),
    )


# ------------------------------------------------------------------------------------------------
# Exponents and prefactors of the learning curve when spectrum and target are power laws: the four regimes.


class ScalingRegime(Result):
    """Leading behaviour for many examples: test_error = bias + variance.

    bias_exponent, variance_exponent: bias ~ n^-bias_exponent, variance ~ n^-variance_exponent.
    exponent: that of the larger of the two for n -> infinity; without label noise that of the bias.
    """

    test_error: Float[Array, "n_train"]
    bias: Float[Array, "n_train"]
    variance: Float[Array, "n_train"]
    bias_exponent: Float[Array, ""]
    variance_exponent: Float[Array, ""]
    exponent: Float[Array, ""]


def scaling_law(
    n_train: Float[ArrayLike, "n_train"],
    capacity: float,
    source: float,
    *,
    noise: float = 0.0,
    ridge_exponent: float = math.inf,
    ridge_scale: float = 1.0,
) -> ScalingRegime:
    """lambda_k = k^-alpha, y_k^2 = k^(-1 - 2 r alpha), label noise s2 and ridge T = n ridge_scale
    n^-l, for n -> infinity.

        l < alpha:  kappa = ridge_scale n^-l,   bias = B(kappa),         variance = s2 (1 - 1/alpha) I kappa^(-1/alpha) / n
        l > alpha:  kappa = (I/n)^alpha,        bias = alpha B(kappa),   variance = s2 (alpha - 1)
        B(kappa) = kappa^2r pi (1 - 2r) / (alpha sin 2 pi r)  for r < 1,   kappa^2 zeta(1 + 2 alpha (r - 1))  for r > 1

    with I = (pi/alpha) / sin(pi/alpha). capacity: alpha > 1; source: r > 0, not 1 (a logarithm
    there); ridge_exponent: l > 0, not alpha. The exponents, bias 2 min(l, alpha) min(r, 1) and
    variance 1 - min(l, alpha)/alpha, are those of Caponnetto and De Vito (2007) and of the four
    regimes of Cui, Loureiro, Krzakala and Zdeborova (2021); without noise also of Spigler, Geiger
    and Wyart (2020). The prefactors were derived for this package from the self-consistent theory.
    """
    for name, value, least in (
        ("capacity", capacity, 1),
        ("source", source, 0),
        ("ridge_scale", ridge_scale, 0),
    ):
        check_above(name, value, least)
    if not (math.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise = {noise!r}: must be finite and >= 0")
    if source == 1:
        raise ValueError("source = 1: the law has a logarithm there; take a value on either side")
    if not ridge_exponent > 0 or ridge_exponent == capacity:
        raise ValueError(
            f"ridge_exponent = {ridge_exponent!r}: must be > 0 and differ from the capacity, {capacity}"
        )
    n = jnp.asarray(n_train, float)
    ridgeless = ridge_exponent > capacity
    integral = 1 / np.sinc(1 / capacity)  # I: np.sinc(x) is sin(pi x)/(pi x)
    kappa = (integral / n) ** capacity if ridgeless else ridge_scale * n**-ridge_exponent
    if source < 1:
        bias = kappa ** (2 * source) / (capacity * np.sinc(1 - 2 * source))
    else:
        bias = kappa**2 * zeta(1 + 2 * capacity * (source - 1))
    if ridgeless:
        bias, variance = capacity * bias, jnp.full_like(n, noise * (capacity - 1))
    else:
        variance = noise * (1 - 1 / capacity) * integral * kappa ** (-1 / capacity) / n
    slowest = min(ridge_exponent, capacity)
    bias_exponent = 2 * slowest * min(source, 1)
    variance_exponent = 1 - slowest / capacity
    return ScalingRegime(
        test_error=bias + variance,
        bias=bias,
        variance=variance,
        bias_exponent=jnp.asarray(bias_exponent),
        variance_exponent=jnp.asarray(variance_exponent),
        exponent=jnp.asarray(min(bias_exponent, variance_exponent) if noise > 0 else bias_exponent),
    )


# ------------------------------------------------------------------------------------------------
# The self-consistent theory on the sphere, degree by degree.


class SphereCurve(LearningCurve):
    """Learning curve with learnability: (degree,) L_l, the mean share of a harmonic of degree l
    that is learned.
    """

    learnability: Float[Array, "degree"]


@theory
def self_consistent_by_degree(system: SphereRegression) -> SphereCurve:
    """The self-consistent theory, with L_l = lambda_l / (lambda_l + kappa) of every degree."""
    ridge = effective_ridge(system.spectrum, system.n_train, system.temperature)
    curve = from_ridge(system, ridge)
    return SphereCurve(
        **{name: getattr(curve, name) for name in LearningCurve.dims()},
        learnability=ridge.learnability,
    )


# ------------------------------------------------------------------------------------------------
# The self-consistent theory of a ridge and a label noise that depend on the input. Derived for this package.


@theory
def heteroscedastic(system: HeteroscedasticRegression) -> LearningCurve:
    """Self-consistent theory with ridge T(x) and label noise s2(x) that are independent of the
    learnable features.

        1/kappa = P E_x[1 / (T(x) + V)],   V = kappa sum_k m_k L_k,   L_k = lambda_k / (lambda_k + kappa)
        A = kappa^2 sum_k m_k L_k^2,   S = P E_x[1 / (T(x) + V)^2],   S_n = P E_x[s2(x) / (T(x) + V)^2]
        population_error = (B + A S_n) / (1 - A S),   train_error = E_x[(T(x) / (T(x) + V))^2 (population_error + s2(x))]

    with B = sum_k (1 - L_k)^2 Y_k; for a constant T(x) this is `self_consistent`. `effective_ridge`
    is P kappa, the harmonic mean of T(x) + V. Derived for this package, not in the cited papers.
    """
    spectrum, n_train = system.spectrum, system.n_train
    weights = system.weights
    bare = system.temperature + system.extra_temperature
    noise = system.noise + system.extra_noise
    ridge = bare + spectrum.tail
    rank = spectrum.rank

    # Samples without any ridge determine all modes if they outnumber them: then kappa = 0.
    free = n_train * jnp.sum(jnp.where(ridge > 0, 0.0, weights))
    determined = free >= rank
    solved_ridge = jnp.where(determined, 1.0, ridge)

    def excess(log_threshold: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        spectrum, ridge, weights, n_train = args
        threshold = jnp.exp(log_threshold)
        dimension = spectrum.multiplicities @ learnability(spectrum.eigenvalues, threshold)
        return -jnp.log(weights @ (n_train / (ridge * jnp.exp(-log_threshold) + dimension)))

    # At the lower end the samples with a ridge and the spread of the eigenvalues each take at most
    # half of the room that the samples without a ridge leave in 1 = P E[1 / (T/kappa + sum m L)].
    taken = jnp.where(determined, 0.0, ratio(free, rank))
    smallest = jnp.min(jnp.where(spectrum.eigenvalues > 0, spectrum.eigenvalues, jnp.inf))
    inverse = n_train * jnp.sum(
        jnp.where(solved_ridge > 0, weights / jnp.where(solved_ridge > 0, solved_ridge, 1.0), 0.0)
    )
    lower = 0.5 * (1 - taken) * jnp.minimum(ratio(1.0, inverse), ratio(smallest, taken))
    upper = (spectrum.eigenvalues @ spectrum.multiplicities + jnp.max(solved_ridge)) / n_train
    root = decreasing_root(
        excess, jnp.log(lower), jnp.log(upper) + 1e-6, (spectrum, solved_ridge, weights, n_train)
    )

    threshold = jnp.where(determined, 0.0, jnp.exp(root.value))
    safe_threshold = jnp.where(determined, 1.0, threshold)
    learned = learnability(spectrum.eigenvalues, threshold)
    dimension = spectrum.multiplicities @ learned
    # T(x)/kappa. Where kappa = 0 it is infinite for inputs with a ridge, which are treated apart.
    unused = jnp.where(determined, free - rank, ridge / safe_threshold)
    ridged = determined & (ridge > 0)
    share = jnp.where(ridged, 0.0, 1 / (unused + dimension))  # kappa / (T(x) + V)
    shrinkage = jnp.where(determined, 1 - dimension * share, bare / safe_threshold * share)

    bias = (1 - learned) ** 2 @ spectrum.target_power + spectrum.tail_power
    enlarging = spectrum.multiplicities @ learned**2
    left_over = unused + spectrum.multiplicities @ (learned * (1 - learned))
    # 1 - A S = P E[u (1 - u sum m L^2)] with u = kappa/(T + V), because P E[u] = 1.
    complement = n_train * (weights @ (share * jnp.where(ridged, 1.0, left_over * share)))
    heard = weights @ (noise * share**2)
    error = ratio(bias + enlarging * n_train * heard, complement)
    # E_x (error + s2) / (T + V)^2, the error divided by kappa^2 mode by mode: both may vanish
    # together.
    divided = jnp.sum(
        ratio(spectrum.target_power, (spectrum.eigenvalues + threshold) ** 2)
    ) + ratio(spectrum.tail_power, threshold**2)
    discrepancy = ratio(divided + enlarging * n_train * ratio(heard, threshold**2), complement) * (
        weights @ share**2
    )
    held = jnp.where(ridged, (error + noise) / jnp.where(ridged, ridge, 1.0) ** 2, 0.0)
    tail = ratio(spectrum.tail, threshold)
    return LearningCurve(
        test_error=error,
        population_error=error,
        train_error=weights @ shrunk(shrinkage, error + noise),
        bias=bias,
        variance=error - bias,
        posterior_variance=threshold * dimension + spectrum.tail,
        effective_ridge=n_train * threshold,
        effective_dimension=dimension + tail,
        target_learnability=ratio(learned @ spectrum.target_power, spectrum.total_power),
        squared_discrepancy=discrepancy + ratio(heard, threshold**2) + weights @ held,
        residual=jnp.where(determined, 0.0, root.residual),
        converged=jnp.where(determined, True, root.converged),
    )
