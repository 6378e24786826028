r"""Theory of learning from models: a recursion over the generations for every mode.

The weight on mode k has a mean and a variance over the data of all earlier generations. A ridge
regression on fresh Gaussian inputs multiplies the mean by the learnability L and adds to the
variance. The deterministic equivalent of one regression is that of kernel regression.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import EffectiveRidge, effective_ridge, ratio
from orderparam.systems.learning_from_models.model import ModelChain, ShiftedPool

Scalar = Float[Array, ""]


class GenerationErrors(Result):
    """Errors of every generation of a chain of models.

    Fields:
        test_error: error of every generation against the truth without noise, under the law of
            tests.
        final_error: error of the last generation.
        bias: the part of the error due to the mean of the weights.
        variance: the part of the error due to the scatter of the weights over training sets.
        residual: largest relative error of the equations for kappa.
        converged: whether the equations for kappa of the first and later generations were solved.
    """

    test_error: Float[Array, "generation"]
    final_error: Scalar
    bias: Float[Array, "generation"]
    variance: Float[Array, "generation"]
    residual: Scalar
    converged: Bool[Array, ""]


class ShiftedErrors(Result):
    """Errors of one regression under several test laws.

    Fields:
        test_error: error against the targets of the new inputs, which have no noise, under every
            law.
        bias: the part of the error due to the mean of the predictions.
        variance: the part of the error due to the scatter of the predictions over training sets.
        residual: relative error of the equation for kappa.
        converged: whether the equation for kappa was solved.
    """

    test_error: Float[Array, "law"]
    bias: Float[Array, "law"]
    variance: Float[Array, "law"]
    residual: Scalar
    converged: Bool[Array, ""]


class BestMixing(Result):
    """The best mixture of true labels and of a teacher's labels.

    Fields:
        truth_share: weight omega of the true labels at the smallest error; may lie outside 0 to 1.
        test_error: the smallest error.
        teacher_error: error with the teacher's labels alone.
        truth_error: error with true labels alone.
        residual: largest relative error of the equations for kappa.
        converged: whether the equations for kappa were solved and the error has a minimum.
    """

    truth_share: Scalar
    test_error: Scalar
    teacher_error: Scalar
    truth_error: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class BestLabels(Result):
    """Errors of one ridge regression whose labels are chosen for it.

    Fields:
        truth_error: error with the labels of the truth.
        optimal_error: error with the best labels that are linear in the features.
        mask_error: error with the truth's labels on the best set of modes only.
        kept: number of modes in the best set.
        threshold: learnability above which a mode belongs to the best set.
        gain: weight of the best labels divided by the true weight, for every level.
        error_by_kept: error with labels that contain the truth on the first 0, 1, ... levels only.
        residual: relative error of the equation for kappa.
        converged: whether the equation for kappa was solved.
    """

    truth_error: Scalar
    optimal_error: Scalar
    mask_error: Scalar
    kept: Scalar
    threshold: Scalar
    gain: Float[Array, "level"]
    error_by_kept: Float[Array, "shown"]
    residual: Scalar
    converged: Bool[Array, ""]


@theory
def generation_errors(system: ModelChain) -> GenerationErrors:
    r"""Errors of all generations of a chain of ridge regressions, averaged over their training
    sets.

    Let the labels of a generation have, on mode k, weights of mean $m_k$ and variance $v_k$, and
    noise of variance $\sigma^2$. In the first generation these are $\beta_k$, 0 and $s_1$. In a
    later generation they are those of the mixture, $\omega \beta + (1 - \omega) m$, $(1 - \omega)^2
    v$ and $\omega^2 s_1 + (1 - \omega)^2 s$. With n examples, ridge T and $n = \frac T\kappa +
    \sum_k \frac{\lambda_k}{\lambda_k + \kappa}$,

    $$ L = \frac{\lambda}{\lambda + \kappa}, \qquad \gamma = \frac1n \sum_k L_k^2, \qquad
       E = \frac{\sum_k \lambda_k (1 - L_k)^2 (m_k^2 + v_k) + \sigma^2}{1 - \gamma} $$

    $$ m' = L m, \qquad v' = L^2 v + \frac{\lambda}{(\lambda + \kappa)^2} \frac En $$

    and the error under test variances $\lambda'$ is $\sum_k \lambda'_k [(\beta_k - m'_k)^2 + v'_k]$
    ($\lambda$ and $\beta$ from `spectrum`, $\lambda'$ `test_eigenvalues`, $n$ `n_train`, $T$
    `ridge`, $s$ `noise`, $s_1$ `teacher_noise`, $\omega$ `truth_share`).

    Accuracy: the equations are solved to rounding. They hold for Gaussian features at large n, to
    0.1 to 0.5 % at n = 200, and for inputs that are fresh in every generation.

    Source: derived here; one generation is kernel regression (Simon et al. 2021).

    >>> import numpy as np
    >>> from orderparam.kernels.spectrum import Spectrum
    >>> k = np.arange(1, 501)
    >>> spectrum = Spectrum(k**-2.0, k**-1.5)
    >>> found = generation_errors(
    ...     ModelChain(spectrum, n_train=200, ridge=0.1, noise=0.05, generations=3)
    ... )
    >>> [round(float(error), 6) for error in found.test_error]
    [0.221038, 0.299291, 0.348476]
    """
    mean, scatter = _start(system)
    first, later, residual, converged = _solved(system)
    errors = []
    for generation in range(system.generations):
        if generation == 0:
            examples, _, noise = system.teacher
            solved = first
        else:
            examples, solved = system.n_train, later
            mean, scatter, noise = _mixed(system, mean, scatter, system.truth_share)
        mean, scatter = _learn(system, solved, examples, mean, scatter, noise)
        errors.append(_parts(system, mean, scatter))
    bias, variance = (jnp.stack(part) for part in zip(*errors))
    return GenerationErrors(
        test_error=bias + variance,
        final_error=bias[-1] + variance[-1],
        bias=bias,
        variance=variance,
        residual=residual,
        converged=converged,
    )


@theory
def shifted_errors(system: ShiftedPool) -> ShiftedErrors:
    r"""Errors of kernel regression under laws of inputs other than that of training.

    With $L$ and $\kappa$ of `generation_errors`, and $E$ its error under the law of training, label
    noise $s$ included, the prediction at a new input $q$ with target $y_q$ has a mean and a
    variance over training sets:

    $$ \bar f_q = \sum_k L_k \beta_k x_k(q), \qquad
       v_q = \frac En \sum_k \frac{\lambda_k}{(\lambda_k + \kappa)^2}\, x_k(q)^2 $$

    The error under a law of weights $w_q$ is $\sum_q w_q [(y_q - \bar f_q)^2 + v_q]$. The new
    inputs need not have the eigenvectors of the training law, and their targets need not be in the
    span of its features.

    Returns:
        Errors against the targets of the new inputs, which have no noise.

    Accuracy: that of `generation_errors`: exact for Gaussian features at large n.

    Source: derived here; Canatar, Bordelon, Pehlevan (2021), for other test laws.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((40, 5))
    >>> pool, new = x[:30], np.concatenate([x[30:], 2 * x[30:]])
    >>> laws = np.repeat(np.eye(2), 10, axis=1) / 10
    >>> shifted = ShiftedPool.from_kernels(
    ...     pool @ pool.T, new @ pool.T, pool[:, 0], new[:, 0], laws, n_train=8, ridge=1.0
    ... )
    >>> own, doubled = shifted_errors(shifted).test_error
    >>> bool(abs(doubled / own - 4) < 1e-9)
    True
    """
    examples, ridge, noise = system.teacher
    solved = effective_ridge(system.spectrum, examples, ridge)
    mean, scatter = _learn(system, solved, examples, *_start(system), noise)
    prediction = system.new_features @ (mean * system.coefficients)
    bias = system.laws @ (system.new_targets - prediction) ** 2
    variance = system.laws @ (system.new_features**2 @ (scatter / system.spectrum.eigenvalues))
    return ShiftedErrors(
        test_error=bias + variance,
        bias=bias,
        variance=variance,
        residual=solved.residual,
        converged=solved.converged,
    )


@theory
def best_mixing(system: ModelChain) -> BestMixing:
    r"""Weight of true labels, in a mixture with a teacher's labels, at which the error of a student
    is smallest.

    The error of the second generation (`generation_errors`) is a quadratic function of the weight
    $\omega$ of true labels, because its bias, its variance and the noise $\omega^2 s_1 + (1 -
    \omega)^2 s$ are quadratic in $\omega$. The minimum follows from the errors at three weights.
    Weights above 1 extrapolate away from the teacher, weights below 0 away from the truth.
    `truth_share` and `generations` are not used.

    Accuracy: 1e-9 relative to the errors.

    Source: derived here.

    >>> import numpy as np
    >>> from orderparam.kernels.spectrum import Spectrum
    >>> k = np.arange(1, 501)
    >>> chain = ModelChain(Spectrum(k**-2.0, k**-1.5), n_train=200, ridge=0.01, teacher_noise=0.5)
    >>> found = best_mixing(chain)
    >>> bool(found.test_error < found.truth_error) and bool(found.test_error < found.teacher_error)
    True
    """
    first, later, residual, converged = _solved(system)
    examples, _, noise = system.teacher
    learned = _learn(system, first, examples, *_start(system), noise)

    def error(share: float) -> Scalar:
        mean, scatter, noise = _mixed(system, *learned, share)
        bias, variance = _parts(
            system, *_learn(system, later, system.n_train, mean, scatter, noise)
        )
        return bias + variance

    teacher, half, truth = (error(share) for share in (0.0, 0.5, 1.0))
    curvature = 2 * (teacher - 2 * half + truth)  # E = teacher + slope w + curvature w^2
    slope = truth - teacher - curvature
    convex = curvature > 0
    share = -slope / (2 * jnp.where(convex, curvature, 1.0))
    lowest = teacher + share * (slope + share * curvature)
    return BestMixing(
        truth_share=share,
        test_error=lowest,
        teacher_error=teacher,
        truth_error=truth,
        residual=residual,
        converged=converged & convex,
    )


@theory
def best_labels(system: ModelChain) -> BestLabels:
    r"""Errors of one ridge regression with optimal labels, and with the truth on some modes only.

    A surrogate $b$ in place of the truth $\beta$ leaves the error $\sum_k \lambda_k (\beta_k - L_k
    b_k)^2 + c\, [\sum_k \lambda_k (1 - L_k)^2 b_k^2 + s]$, $c = \gamma/(1 - \gamma)$, with $L$ and
    $\gamma$ of `n_train` and `ridge` as in `generation_errors` and $s$ `noise`. The best one is

    $$ b_k = \frac{L_k \beta_k}{L_k^2 + c (1 - L_k)^2} , $$

    and the best subset of modes on which to keep the truth's weights is $(1 - L_k)^2 < 1 - \gamma$.
    Modes that are hardly learned act as noise: the best labels reduce the weight of modes with $L_k
    < \gamma$ and exaggerate the weight of all other modes. The fields of the teacher,
    `truth_share`, `generations` and the test variances are not used.

    Accuracy: that of `generation_errors`.

    Source: Ildiz et al. (2025), the surrogate and the mask; the form by learnabilities derived
    here.

    >>> import numpy as np
    >>> from orderparam.kernels.spectrum import Spectrum
    >>> k = np.arange(1, 501)
    >>> found = best_labels(
    ...     ModelChain(Spectrum(k**-2.0, k**-1.5), n_train=200, ridge=0.0, noise=0.01)
    ... )
    >>> [round(float(e), 6) for e in (found.truth_error, found.optimal_error, found.mask_error)]
    [0.135206, 0.09909, 0.105501]
    >>> int(found.kept)
    203
    """
    spectrum = system.spectrum
    solved = effective_ridge(spectrum, system.n_train, system.ridge)
    learned, power = solved.learnability, spectrum.target_power
    left = 1 - learned
    harm = ratio(solved.spread, solved.complement)  # c
    floor = harm * system.noise
    gain = learned / (learned**2 + harm * left**2)

    def terms(weight: Any) -> Array:
        return power * ((1 - learned * weight) ** 2 + harm * (left * weight) ** 2)

    kept = left**2 < solved.complement
    hidden, shown = terms(0.0), terms(1.0)
    steps = jnp.cumsum(shown - hidden)
    by_kept = floor + jnp.sum(hidden) + jnp.concatenate([jnp.zeros(1), steps])
    return BestLabels(
        truth_error=floor + jnp.sum(shown),
        optimal_error=floor + jnp.sum(terms(gain)),
        mask_error=floor + jnp.sum(jnp.where(kept, shown, hidden)),
        kept=spectrum.multiplicities @ kept,
        threshold=1 - jnp.sqrt(jnp.maximum(solved.complement, 0.0)),
        gain=gain,
        error_by_kept=by_kept,
        residual=solved.residual,
        converged=solved.converged,
    )


# Means are stored as m/beta, one number for each level. Variances are stored as lambda v of one
# mode of the level.


def _start(system: ModelChain) -> tuple[Array, Array]:
    levels = system.spectrum.eigenvalues
    return jnp.ones_like(levels), jnp.zeros_like(levels)


def _solved(
    system: ModelChain,
) -> tuple[EffectiveRidge, EffectiveRidge, Scalar, Bool[Array, ""]]:
    """Effective ridges of the first and of the later generations, the larger residual of both
    equations, and whether both were solved."""
    first = effective_ridge(system.spectrum, *system.teacher[:2])
    later = effective_ridge(system.spectrum, system.n_train, system.ridge)
    residual = jnp.maximum(first.residual, later.residual)
    return first, later, residual, first.converged & later.converged


def _mixed(
    system: ModelChain, mean: Array, scatter: Array, share: Any
) -> tuple[Array, Array, Scalar]:
    """Mean, scatter and noise variance of labels that contain a share of the truth."""
    rest = 1 - share
    noise = share**2 * system.teacher[2] + rest**2 * system.noise
    return share + rest * mean, rest**2 * scatter, noise


def _learn(
    system: ModelChain, solved: EffectiveRidge, n: Any, mean: Array, scatter: Array, noise: Any
) -> tuple[Array, Array]:
    """Mean and scatter of the weights after one regression."""
    spectrum, learned = system.spectrum, solved.learnability
    labels = spectrum.target_power * mean**2 + spectrum.multiplicities * scatter
    error = ratio((1 - learned) ** 2 @ labels + noise, solved.complement)
    return learned * mean, learned**2 * (scatter + error / n)


def _parts(system: ModelChain, mean: Array, scatter: Array) -> tuple[Scalar, Scalar]:
    """Bias and variance of the error against the truth, under the law of test inputs."""
    spectrum, shift = system.spectrum, system.test_ratio
    bias = jnp.sum(shift * spectrum.target_power * (1 - mean) ** 2)
    return bias, jnp.sum(shift * spectrum.multiplicities * scatter)
