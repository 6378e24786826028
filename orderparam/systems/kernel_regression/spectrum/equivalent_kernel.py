"""The equivalent kernel and the first correction to it: kernel regression with a large ridge T.

At large T the sum over the P samples may be replaced by P times the integral over the inputs. The
corrections, due to the finite number and the randomness of the samples, form a series in v/T, where
v is the posterior variance at a point.
"""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import (
    learnability,
    ratio,
)
from orderparam.systems.kernel_regression.learning_curve import (
    LearningCurve,
    clean_train_error,
    held_out,
    shrunk,
)
from orderparam.systems.kernel_regression.spectrum.model import (
    KernelRegression,
)

# a curve counts as valid if the first neglected order, relative to 1, is below this value
VALID = 0.1


class EquivalentKernelCurve(LearningCurve):
    """One point of a learning curve from the expansion in v/T, the posterior variance over the
    ridge.

    Fields:
        fluctuation_ratio: v/T, the parameter of the expansion.
        valid: whether the first neglected order, v/T or its square, is below 0.1.
    """

    fluctuation_ratio: Float[Array, ""]
    valid: Bool[Array, ""]


@theory
def equivalent_kernel(system: KernelRegression) -> EquivalentKernelCurve:
    r"""Learning curve of the equivalent kernel: the limit of a large ridge, in which modes are
    learned independently.

    $$ L_k = \frac{\lambda_k}{\lambda_k + T/P}, \qquad E = \sum_k (1 - L_k)^2 Y_k, \qquad
       V = \frac{T}{P} \sum_k m_k L_k $$

    with E = `test_error`, V = `posterior_variance` and the other symbols as in `self_consistent`.
    The fluctuations of the predictor between training sets, also those due to label noise, are
    neglected. The tail of the spectrum is added to the ridge T.

    Accuracy: relative error of order v/T (`fluctuation_ratio`); far too optimistic at small T.

    Source: Silverman (1984); Sollich, Williams (2005).

    >>> from orderparam.kernels import finite_rank
    >>> curve = equivalent_kernel(KernelRegression(finite_rank(20, 0.05), 30, temperature=10.0))
    >>> round(float(curve.test_error), 6), bool(curve.valid)
    (0.756144, True)
    """
    return _homogeneous(system, order=0)


@theory
def equivalent_kernel_corrected(
    system: KernelRegression, *, examples: Literal["poisson", "fixed"] = "poisson"
) -> EquivalentKernelCurve:
    r"""Learning curve to first order in v/T: the equivalent kernel corrected for the fluctuations
    of the predictor between training sets.

    $$ E = E_0 + \frac{2v}{T} \sum_k L_k (1 - L_k)^2 Y_k + \frac1P \sum_k m_k L_k^2\, (E_0 + s),
       \qquad v = \frac TP \sum_k m_k L_k $$

    $$ E_{\mathrm{train}} = \Big( \frac{T}{T + v} \Big)^2 (E + s) $$

    with $E_0$ and $L_k$ of `equivalent_kernel` and s = `noise`; v is `fluctuation_ratio` times T,
    the posterior variance averaged over inputs. `target_learnability` is that of the ridge T + v.
    The training error and this learnability agree with the expansion to first order, and are
    written such that they are positive at every v/T.

    These are averages over a Poisson number of examples of mean P = `n_train`. With exactly P
    examples

    $$ E \to E - \frac3P \sum_k L_k^2 (1 - L_k)^2 Y_k, \qquad
       E_{\mathrm{train}} = \Big( \frac{T}{T + v} \Big)^2
          \Big( E + \frac2P \sum_k L_k (1 - L_k)^2 Y_k + s \Big) $$

    Two thirds of the first term are in `bias`, because the examples of a product of kernels are all
    different: the learnability of mode k is larger by $L_k^2 (1 - L_k) / P$. One third is in
    `variance`. The second term in $E_{\mathrm{train}}$ turns E into the error with one example
    less.

    Args:
        examples: "poisson" averages over their number, "fixed" takes exactly `n_train`. The
            difference is of order 1/P, which matters where few modes are learned.

    Accuracy: relative error of order (v/T)^2. For a Poisson number this is the expansion of
    `self_consistent` in (P kappa - T)/T and overshoots where that is not small.

    Source: Cohen, Malka, Ringel (2021), to order 1/T^2, for features of constant square; the fixed
    number is derived here.

    >>> from orderparam.kernels import finite_rank
    >>> curve = equivalent_kernel_corrected(KernelRegression(finite_rank(20, 0.05), 30, 10.0))
    >>> round(float(curve.test_error), 6), bool(curve.valid)
    (0.781873, True)
    """
    return _homogeneous(system, order=1, fixed=examples == "fixed")


def _homogeneous(
    system: KernelRegression, order: int, fixed: bool = False
) -> EquivalentKernelCurve:
    spectrum, n_train, noise = system.spectrum, system.n_train, system.noise
    # Modes that are not resolved (the tail of the spectrum) act as a ridge.
    ridge = system.temperature + spectrum.tail
    learned = learnability(spectrum.eigenvalues, ridge / n_train)
    dimension = spectrum.multiplicities @ learned
    small = order * dimension / n_train  # v/T

    lost = (1 - learned) ** 2 * spectrum.target_power
    zeroth = jnp.sum(lost) + spectrum.tail_power
    mean_shift = small * (learned @ lost)
    between_sets = order * (spectrum.multiplicities @ learned**2) / n_train * (zeroth + noise)
    # A sum over P independent examples has P times the variance of one term; a Poisson number of
    # examples adds P times the squared mean of a term.
    squared_mean = fixed * (learned**2 @ lost) / n_train
    mean_shift = mean_shift - squared_mean
    between_sets = between_sets - squared_mean
    error = zeroth + 2 * mean_shift + between_sets
    one_less = error + fixed * 2 * (learned @ lost) / n_train

    shrinkage = jnp.where(ridge > 0, ratio(system.temperature, ridge), 1.0) / (1 + small)
    raised = learned / (1 + small * (1 - learned))  # lambda / (lambda + (T + v)/P)
    raised = raised + fixed * learned**2 * (1 - learned) / n_train
    return EquivalentKernelCurve(
        test_error=held_out(
            error, clean_train_error(shrinkage, one_less, noise), system.sampled_fraction
        ),
        population_error=error,
        train_error=shrunk(shrinkage, one_less + noise),
        bias=zeroth + 2 * mean_shift,
        variance=between_sets,
        posterior_variance=ridge * dimension / n_train + spectrum.tail,
        effective_ridge=ridge * (1 + small),
        effective_dimension=dimension,
        target_learnability=ratio(raised @ spectrum.target_power, spectrum.total_power),
        squared_discrepancy=ratio(one_less + noise, (ridge * (1 + small)) ** 2),
        fluctuation_ratio=dimension / n_train,
        valid=(dimension / n_train) ** (order + 1) < VALID,
        residual=jnp.zeros_like(error),
        converged=jnp.isfinite(error),
    )
