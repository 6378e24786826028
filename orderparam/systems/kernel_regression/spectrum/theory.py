"""Theories of a learning curve from the spectrum of a kernel: the self-consistent theory, the
best ridge, and kernels on the sphere. The theory for a large ridge is in `equivalent_kernel`, and
the exponents for power-law spectra are in `power_laws`.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.compression import gathered, gathers
from orderparam.kernels.effective_ridge import (
    EffectiveRidge,
    at_threshold,
    effective_ridge,
    learnability,
    ratio,
)
from orderparam.kernels.spectrum import Spectrum
from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.root import decreasing_root
from orderparam.systems.kernel_regression.learning_curve import (
    LearningCurve,
    clean_train_error,
    held_out,
    shrunk,
)
from orderparam.systems.kernel_regression.spectrum.model import KernelRegression, SphereRegression

# ------------------------------------------------------------------------------------------------
# The self-consistent theory of kernel regression. It treats the features of a random input as
# independent Gaussian variables.
#
# The same equations were found as Gaussian-process learning curves (Sollich 1999), by replicas
# (Bordelon, Canatar and Pehlevan 2020; Canatar, Bordelon and Pehlevan 2021), from random matrices
# (Jacot et al. 2020), and as "eigenlearning" (Simon et al. 2021).


@theory
def self_consistent(system: KernelRegression) -> LearningCurve:
    r"""Learning curve of kernel regression in the self-consistent theory, for features that are
    independent Gaussians.

    With P = `n_train`, T = `temperature`, s the label `noise`, and eigenvalues $\lambda_k$ of
    multiplicity $m_k$ and target power $Y_k$ in `spectrum`, the threshold $\kappa$ solves

    $$ P = \frac{T}{\kappa} + \sum_k m_k L_k, \qquad
       L_k = \frac{\lambda_k}{\lambda_k + \kappa}, \qquad \gamma = \frac1P \sum_k m_k L_k^2 $$

    $$ E + s = \frac{B + s}{1 - \gamma}, \qquad B = \sum_k (1 - L_k)^2 Y_k, \qquad
       E_{\mathrm{train}} = \Big( \frac{T}{P\kappa} \Big)^2 (E + s), \qquad V = P\kappa - T $$

    where E is `population_error`, B is `bias`, $E_{\mathrm{train}}$ is `train_error`, $P\kappa$ is
    `effective_ridge` and V is `posterior_variance`. The tail of the spectrum is added to T in the
    first equation, and the target power of the tail to B. For an infinite population `test_error`
    is E. On a pool E is the mean over all points, and `test_error` the mean over the points outside
    the training set.

    Accuracy: the equation is solved to rounding. The theory is exact for Gaussian features up to
    terms of order 1/P; on real data use `cavity`.

    Source: Simon et al. (2021), section 4; also Sollich (1999), Bordelon, Canatar, Pehlevan (2020),
    Canatar, Bordelon, Pehlevan (2021) and Jacot et al. (2020).

    >>> from orderparam.kernels import finite_rank
    >>> system = KernelRegression(finite_rank(20, 0.05), n_train=30, temperature=0.1, noise=0.1)
    >>> round(float(self_consistent(system).test_error), 6)
    0.13589
    """
    few = gathers(system.spectrum)
    if few is None:
        return _of_levels(system)
    return lax.cond(
        few,
        lambda system: _of_levels(system.with_(spectrum=gathered(system.spectrum))),
        _of_levels,
        system,
    )


def _of_levels(system: KernelRegression) -> LearningCurve:
    return from_ridge(system, effective_ridge(system.spectrum, system.n_train, system.temperature))


def from_ridge(system: KernelRegression, ridge: EffectiveRidge) -> LearningCurve:
    """Learning curve of the self-consistent theory, given the solved effective ridge.

    The temperature enters through `ridge` alone; `temperature` of the system is not used.
    """
    spectrum, n_train, noise = system.spectrum, system.n_train, system.noise
    bias = _bias(spectrum, ridge)
    # Because of fluctuations between training sets, bias plus noise is multiplied by 1/(1 - gamma).
    noisy = ratio(bias + noise, ridge.complement)
    # `unused` is (T + tail)/kappa, the number of samples that are not used to learn modes. The
    # ridge T alone shrinks the training error, by the factor T/(P kappa).
    tail = ratio(spectrum.tail, ridge.threshold)
    shrinkage = (ridge.unused - tail) / n_train
    dimension = spectrum.multiplicities @ ridge.learnability
    # (E + s)(1 - gamma)/kappa^2, with the bias divided by kappa^2 mode by mode: the result stays
    # finite where kappa and the bias vanish together.
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
    """Bias B = sum (1 - L_k)^2 Y_k, including the target power of the tail."""
    return (1 - ridge.learnability) ** 2 @ spectrum.target_power + spectrum.tail_power


class ModeDecomposition(Result):
    """Learnability, bias and variance of every level of the spectrum.

    The sum of all biases and variances is the population error if the tail of the spectrum has no
    target power.

    Fields:
        learnability: L, the projection of the mean predictor on a mode, divided by the projection
            of the target on it.
        bias: (1 - L)^2 Y of each level, with Y its target power.
        variance: m (L^2 / P) (E + s) of each level of multiplicity m, over training sets and label
            noise.
        residual: residual of the equation for the effective ridge.
        converged: whether that equation was solved.
    """

    learnability: Float[Array, "level"]
    bias: Float[Array, "level"]
    variance: Float[Array, "level"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def mode_decomposition(system: KernelRegression) -> ModeDecomposition:
    r"""Learnability, bias and variance of every level of the spectrum in the self-consistent
    theory.

    $$ L_k = \frac{\lambda_k}{\lambda_k + \kappa}, \qquad \mathrm{bias}_k = (1 - L_k)^2 Y_k, \qquad
       \mathrm{variance}_k = \frac{m_k L_k^2}{P} (E + s) $$

    with $\kappa$, E and the other symbols as in `self_consistent`.

    Accuracy: that of `self_consistent`.

    Source: Simon et al. (2021); Canatar, Bordelon, Pehlevan (2021).

    >>> from orderparam.kernels import finite_rank
    >>> system = KernelRegression(finite_rank(20, 0.05), n_train=30, temperature=0.1, noise=0.1)
    >>> round(float(mode_decomposition(system).learnability[0]), 6)
    0.86411
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
    r"""Learning curve of a mean-field theory without replicas, for comparison only.

    $$ T_{\mathrm{eff}} = T + V + E_0 + s, \qquad E_0 = \sum_k (1 - L_k)^2 Y_k, \qquad
       L_k = \frac{\lambda_k}{\lambda_k + T_{\mathrm{eff}} / P} $$

    with V the posterior variance, s the label `noise` and the other symbols as in
    `self_consistent`. $T_{\mathrm{eff}}$ is `effective_ridge`, $E_0$ is `test_error`, and
    `variance` is 0. The effective ridge is T plus the mean squared deviation $V + E_0 + s$ of a
    posterior sample from the labels; in `self_consistent` it is T + V.

    Accuracy: the partition function is averaged over training sets instead of its logarithm, which
    overestimates the ridge, and the variance over training sets is missing. If there are several
    solutions, the one with the largest $T_{\mathrm{eff}}$ is returned.

    Source: derived here.

    >>> from orderparam.kernels import finite_rank
    >>> system = KernelRegression(finite_rank(20, 0.05), n_train=30, temperature=0.1, noise=0.1)
    >>> round(float(annealed(system).test_error), 6)
    0.067844
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

    # The right-hand side increases with T_eff. An iteration that starts above all solutions
    # therefore descends to the largest one.
    start = jnp.log(temperature + spectrum.total + spectrum.total_power + noise)
    solution = fixed_point(
        enlarge, start, (spectrum, n_train, temperature, noise), tolerance=1e-13, max_steps=10_000
    )
    ridge = jnp.exp(solution.value)
    # In this theory the predictor does not fluctuate between training sets: the variance is 0.
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
# The temperature (ridge) at which kernel regression generalises best.

# Number of grid points at which the error is evaluated before the minimum is refined. A grid is
# needed because the error may have several minima in T.
_SCAN = 256


class OptimalTemperature(Result):
    """The temperature (ridge) of smallest test error.

    Fields:
        temperature: the best temperature T >= 0.
        test_error: the test error at that temperature.
        residual: |d test_error / d log kappa| at that temperature; 0 if the best temperature is 0.
        converged: whether a minimum was found.
    """

    temperature: Float[Array, ""]
    test_error: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def optimal_temperature(system: KernelRegression) -> OptimalTemperature:
    r"""The temperature T >= 0 of smallest test error in the self-consistent theory.

    The temperature enters the error through the threshold $\kappa$ of `self_consistent` alone, and
    $T = \kappa (P - \sum_k m_k L_k)$, minus the tail of the spectrum, is the temperature that leads
    to a given $\kappa$. The error is an explicit function of $\log \kappa$. It is minimised by a
    scan from $\kappa(T = 0)$ upwards, followed by a search for the zero of its derivative.
    `temperature` of the system is not used.

    Returns:
        `OptimalTemperature`. `converged` is False where the error decreases without bound in T: a
            target that cannot be learned.

    Accuracy: that of `self_consistent`. Derivatives follow from the implicit function theorem.

    Source: derived here, from Simon et al. (2021).

    >>> from orderparam.kernels import finite_rank
    >>> best = optimal_temperature(KernelRegression(finite_rank(20, 0.05), 30, 1.0, noise=0.1))
    >>> round(float(best.temperature), 6)  # noise times trace over target power
    0.1
    """
    spectrum, n_train = system.spectrum, system.n_train
    eigenvalues, multiplicities = spectrum.eigenvalues, spectrum.multiplicities
    smallest = jnp.min(jnp.where(eigenvalues > 0, eigenvalues, jnp.inf))
    largest = jnp.max(eigenvalues)
    ridgeless = effective_ridge(spectrum, n_train, 0.0).threshold
    # For kappa far above all eigenvalues, E + s = (Y + s)(1 + a/kappa^2) - 2 b/kappa with a = sum
    # m_k lambda_k^2/P, b = sum lambda_k Y_k and Y the total target power. It is smallest at kappa =
    # (Y + s) a/b, which the scan must reach.
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
    # The ridge that leads to kappa is the temperature plus the tail of the spectrum.
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
# The self-consistent theory on the sphere, degree by degree.


class SphereCurve(LearningCurve):
    """One point of a learning curve on the sphere.

    Fields:
        learnability: L_l of every degree l, the mean learnability of a harmonic of that degree.
    """

    learnability: Float[Array, "degree"]


@theory
def self_consistent_by_degree(system: SphereRegression) -> SphereCurve:
    r"""Learning curve on the sphere in the self-consistent theory, with the learnability of every
    degree.

    $$ L_l = \frac{\lambda_l}{\lambda_l + \kappa} $$

    is `learnability`; $\kappa$ and all other fields are those of `self_consistent`.

    Accuracy: that of `self_consistent`; harmonics of the sphere are close to independent Gaussians
    in high dimension.

    Source: Bordelon, Canatar, Pehlevan (2020); Simon et al. (2021).

    >>> import numpy as np
    >>> from orderparam.networks import fully_connected
    >>> network = fully_connected(1, None, "relu")
    >>> sphere = SphereRegression.from_architecture(network, 10, [0, 1], 20, 0.1, max_degree=3)
    >>> np.asarray(self_consistent_by_degree(sphere).learnability).round(4).tolist()
    [0.9233, 0.6425, 0.0904, 0.0]
    """
    ridge = effective_ridge(system.spectrum, system.n_train, system.temperature)
    curve = from_ridge(system, ridge)
    return SphereCurve(
        **{name: getattr(curve, name) for name in LearningCurve.dims()},
        learnability=ridge.learnability,
    )
