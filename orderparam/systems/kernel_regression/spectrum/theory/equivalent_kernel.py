"""The equivalent kernel and the first correction to it: kernel regression when the ridge is large.

At high temperature the data act as a continuum, and the sum over samples becomes P times the integral over the input measure. The
corrections due to finite and random data form a series in v/T, where v is the posterior variance at a point.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import learnability, ratio
from orderparam.systems.kernel_regression.learning_curve import LearningCurve, clean_train_error, held_out, shrunk
from orderparam.systems.kernel_regression.spectrum.model import KernelRegression

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
    """Zeroth order: L_k = lambda_k / (lambda_k + T/P), error sum_k (1 - L_k)^2 Y_k, posterior variance (T/P) sum_k m_k L_k.

    (Silverman 1984; Sollich and Williams 2005.) Differences between data sets are neglected, and so is label noise in the
    predictor. The unresolved tail of the spectrum is added to the ridge T. Useless at small T: see `fluctuation_ratio`.
    """
    return _homogeneous(system, order=0)


@theory
def equivalent_kernel_corrected(system: KernelRegression) -> EquivalentKernelCurve:
    """First order in v/T, averaged over position: the equivalent kernel and the fluctuations between data sets.

        v = (T/P) sum_k m_k L_k,   E = E_0 + 2 (v/T) sum_k L_k (1 - L_k)^2 Y_k + (1/P) sum_k m_k L_k^2 (E_0 + s2)
        train_error = (T / (T + v))^2 (E + s2),   target_learnability that of the ridge T + v

    with E_0 and L_k of the equivalent kernel (Cohen, Malka and Ringel 2021, to order 1/T^2, with features of constant square). It
    is the expansion of the self-consistent theory in (P kappa - T)/T and overshoots where that is not small. Train error and
    learnability are written so that they have a sign, whatever v/T; to the same order they are the expanded ones.
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
        test_error=held_out(error, clean_train_error(shrinkage, error, noise), system.sampled_fraction),
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
