"""Theory of learning in time: errors of wide networks along their training.

A function of the covariance S = X^T X/n is a contour integral of the resolvent of S. Averaged over
training sets, the resolvent has a deterministic equivalent, which is given by the effective ridge
at complex ridges (`resolvent.py`). The theory is derived here; at infinite time it is the known
theory of kernel regression.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.marchenko_pastur import spectral_rule
from orderparam.kernels.effective_ridge import effective_ridge, ratio
from orderparam.solve.contour import NODES, WEIGHTS
from orderparam.solve.root import decreasing_root
from orderparam.systems.training_in_time.model import (
    FeatureTraining,
    IsotropicTraining,
    NetworkDescent,
)
from orderparam.systems.training_in_time.resolvent import quadratic
from orderparam.systems.training_in_time.resolvent import threshold as complex_threshold

Scalar = Float[Array, ""]


class TrainingError(Result):
    """Errors after a training time, averaged over training sets.

    Fields:
        test_error: E (f(x) - theta.x)^2 on new inputs, without label noise: bias + variance +
            start.
        bias: error without label noise and with zero weights at the start, averaged over training
            sets.
        variance: part of the error that the label noise causes.
        start: part of the error that is due to the weights at the start.
        residual: largest relative error of the equations for kappa.
        converged: whether all equations were solved.
    """

    test_error: Scalar
    bias: Scalar
    variance: Scalar
    start: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class TrainError(Result):
    """Error on the training set after a training time.

    Fields:
        train_error: E (1/n) |X w - y|^2 against the noisy labels, without a factor 1/2.
        residual: largest relative error of the equations for kappa.
        converged: whether all equations were solved.
    """

    train_error: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class StoppingTime(Result):
    """The best time to stop, and the best ridge for comparison.

    Fields:
        time: training time t with the smallest test error.
        test_error: test error at the best time.
        ridge: the ridge lambda, for the mean loss, with the smallest test error after full
            training.
        ridge_error: test error with the best ridge.
        cost_of_stopping: test_error / ridge_error.
        end_error: test error after an infinite time without a ridge.
        residual: largest slope of the logarithm of the error at the two minima that were found.
        converged: whether both minima lie inside the range that was searched.
    """

    time: Scalar
    test_error: Scalar
    ridge: Scalar
    ridge_error: Scalar
    cost_of_stopping: Scalar
    end_error: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class DescentError(Result):
    """Errors along gradient descent, the start included.

    Fields:
        test_error: error on new inputs against targets without noise, after 0, 1, ... steps.
        train_error: mean squared error on the training set against its labels, at the same steps.
    """

    test_error: Float[Array, "step"]
    train_error: Float[Array, "step"]


@theory
def gradient_flow_error(system: FeatureTraining) -> TrainingError:
    r"""Test error after a time of gradient flow, averaged over Gaussian training sets.

    With $e^{-u} = \sum_j w_j/(z_j + u)$ on the Talbot contour, $\ell_j = z_j/t + \lambda$ (`time`
    t, `weight_decay` $\lambda$), $q_{kj} = \kappa_j/(\sigma_k + \kappa_j)$ at $\kappa_j =
    \kappa(\ell_j)$ and $G_{ij} = \frac1n \sum_k (1 - q_{ki})(1 - q_{kj})$,

    $$ \mathrm{bias} = \sum_{ij} a_i a_j
       \frac{\sum_k \sigma_k \theta_k^2\, q_{ki} q_{kj}}{1 - G_{ij}}, \qquad
       a_j = \frac{w_j (1 + \lambda t/z_j)}{t \ell_j} $$

    and the part `start` is the same sum with $w_j/(t\ell_j)$ in place of $a_j$ and the power of
    $w_0$ in place of the power of the target. The variance is linear in the noise $\Delta$ and
    contains single resolvents only, at the times t and 2t: $\frac{\Delta}{n} (2t [F_1(t) - F_1(2t)]
    - \lambda t^2 [4 F_2(2t) - 2 F_2(t)])$ with $F_m(s) = \mathrm{Re} \sum_j \frac{w_j}{z_j^m}
    \frac{1}{s\ell_j} \sum_k \sigma_k q_k(\ell_j)$ and $\ell_j = z_j/s + \lambda$.

    Errors are in units of the square of y.

    Accuracy: 1e-9 relative for Gaussian features at large n; the deterministic equivalent has
    corrections of order 1/n. Features of real kernels are not Gaussian: on images the theory agrees
    with experiments within a few per cent at the best time, but not when training interpolates the
    data.

    Cost: some hundred sums over the levels for each of 12 nodes.

    Source: derived here; Simon et al. (2021) for the equations at infinite time.

    >>> from orderparam.kernels.spectra import power_law
    >>> spectrum = power_law(1.2, 0.5, 400, infinite=False)
    >>> found = gradient_flow_error(FeatureTraining(spectrum, n_train=300, time=100.0, noise=0.2))
    >>> bool(found.converged)
    True
    """
    spectrum, time, decay = system.spectrum, system.time, system.weight_decay
    z, w = jnp.asarray(NODES), jnp.asarray(WEIGHTS)
    ridge = z / time + decay
    threshold, residual = complex_threshold(spectrum, system.n_train, ridge)
    left = threshold[:, None] / (spectrum.eigenvalues + threshold[:, None])  # q, (node, level)
    target = w * (1 + decay * time / z) / (time * ridge)
    from_start = w / (time * ridge)
    bias = quadratic(target, left, spectrum.target_power, spectrum, system.n_train)
    initial = system.start * spectrum.eigenvalues * spectrum.multiplicities
    start = quadratic(from_start, left, initial, spectrum, system.n_train)

    # The part due to the noise contains single resolvents at the two times t and 2 t.
    once = _noise_sums(system, time, threshold, ridge)
    other = z / (2 * time) + decay
    double, residual_double = complex_threshold(spectrum, system.n_train, other)
    twice = _noise_sums(system, 2 * time, double, other)
    variance = 2 * time * (once[0] - twice[0]) - decay * time**2 * (4 * twice[1] - 2 * once[1])
    variance = system.noise / system.n_train * variance
    residual = jnp.maximum(residual, residual_double)
    total = bias + variance + start
    return TrainingError(
        test_error=total,
        bias=bias,
        variance=variance,
        start=start,
        residual=residual,
        converged=residual < 1e-10,
    )


@theory
def gradient_flow_train_error(system: FeatureTraining) -> TrainError:
    r"""Training error after a time of gradient flow, averaged over Gaussian training sets.

    With $e = e^{-(S + \lambda) t}$ and $\rho = \lambda/(S + \lambda)$ the residual of the labels
    is $f = \rho + (1 - \rho) e$ (time $t$ `time`, $\lambda$ `weight_decay`, $\Delta$ `noise`), and

    $$ E_\mathrm{train} = \theta^T S f^2 \theta + w_0^2\, \mathrm{tr}(S e^2) + \frac{\Delta}{n}
       \big[ n - d + \mathrm{tr} f^2 \big] $$

    Every term is a function of S alone. With $S \rho = \lambda (1 - \rho)$ the terms become
    products of $\rho$ and e at the times t and 2t, and each is one sum over the contour of
    `gradient_flow_error`.

    Accuracy: 1e-9 absolute at large n, or 1e-16 times the square of `weight_decay` * `time` where
    that is larger.

    Source: derived here.

    >>> from orderparam.kernels.spectra import power_law
    >>> spectrum = power_law(1.2, 0.5, 400, infinite=False)
    >>> system = FeatureTraining(spectrum, n_train=300, time=100.0, noise=0.2)
    >>> bool(gradient_flow_train_error(system).converged)
    True
    """
    spectrum, time, decay = system.spectrum, system.time, system.weight_decay
    sigma, many = spectrum.eigenvalues, spectrum.multiplicities
    solved = effective_ridge(spectrum, system.n_train, decay * system.n_train)
    # rho and its square follow from the resolvent at the real ridge lambda and its derivative there
    rest = solved.threshold / (sigma + solved.threshold)
    slope = jnp.where(decay > 0, solved.complement, 1.0)
    rest_square = rest - decay * sigma / (sigma + solved.threshold) ** 2 / slope

    def products(time: Any) -> tuple[Array, Array, Array, Array, Scalar]:
        """exp(-(S + lambda) t) times 1, rho, rho^2 and S in every mode, and the residual of the
        equations."""
        z, w = jnp.asarray(NODES), jnp.asarray(WEIGHTS)
        ridge = z / time + decay
        threshold, residual = complex_threshold(spectrum, system.n_train, ridge)
        left = threshold[:, None] / (sigma + threshold[:, None])
        plain, once, twice = (
            jnp.real((w / z**power / (time * ridge)) @ left) for power in (0, 1, 2)
        )
        grown = decay * time
        with_s = jnp.real((w / time) @ (1 - left))
        return (
            plain,
            rest - grown * once,
            rest_square - grown * rest + grown**2 * twice,
            with_s,
            residual,
        )

    e, rest_e, square_e, _, residual = products(time)
    e2, rest_e2, square_e2, s_e2, residual_2 = products(2 * time)
    squared = rest_square + 2 * (rest_e - square_e) + e2 - 2 * rest_e2 + square_e2
    with_s = decay * (rest - rest_square) + 2 * decay * (e - 2 * rest_e + square_e)
    with_s = with_s + s_e2 - 2 * decay * (e2 - rest_e2) + decay * (rest_e2 - square_e2)
    signal = (spectrum.target_power / sigma) @ with_s + system.start * (many @ s_e2)
    noise = 1 + many @ (squared - 1) / system.n_train
    residual = jnp.maximum(residual, residual_2)
    converged = (residual < 1e-10) & solved.converged
    # rounding may make an error of zero negative
    return TrainError(
        train_error=jnp.maximum(signal + system.noise * noise, 0.0),
        residual=residual,
        converged=converged,
    )


@theory
def stopping_time(system: FeatureTraining) -> StoppingTime:
    r"""The time at which gradient flow has its smallest test error, and the best ridge for
    comparison.

    Two errors are minimised, each by a scan and a search for the root of the slope: the error of
    `gradient_flow_error` over $\ln t$, and the error of ridge regression after full training,

    $$ E(\lambda) = \frac{\sum_k \sigma_k\theta_k^2 q_k^2 + \Delta G}{1 - G}, \qquad
       n\lambda = \text{ridge added to the Gram matrix} $$

    over $\ln \lambda$. `time` and `weight_decay` of the system are not used; `start` is used for
    gradient flow.

    Accuracy: 1e-8 relative for the errors and 1e-5 for time and ridge, because the minima are flat.

    Source: derived here; early stopping and ridge were compared by Ali, Kolter, Tibshirani (2019).

    >>> from orderparam.kernels.spectra import power_law
    >>> system = FeatureTraining(
    ...     power_law(1.2, 0.5, 400, infinite=False), n_train=300, time=1.0, noise=0.2
    ... )
    >>> found = stopping_time(system)
    >>> bool(found.cost_of_stopping < 1.2)
    True
    """
    spectrum, n_train = system.spectrum, system.n_train

    def flow(log_time: Scalar, system: FeatureTraining) -> Scalar:
        at = system.with_(time=jnp.exp(log_time), weight_decay=0.0)
        return jnp.log(gradient_flow_error(at).test_error)

    def ridge(log_ridge: Scalar, system: FeatureTraining) -> Scalar:
        return jnp.log(_ridge_error(system, jnp.exp(log_ridge)))

    # A mode is learned after a time of order 1/sigma; the scan covers the times of all modes and
    # more.
    largest = jnp.max(spectrum.eigenvalues)
    smallest = jnp.min(jnp.where(spectrum.eigenvalues > 0, spectrum.eigenvalues, jnp.inf))
    ends = jnp.log(1e-2 / largest), jnp.log(1e2 / smallest) + 2 * jnp.log1p(spectrum.rank / n_train)
    log_time, error, slope, inside = _minimum(flow, system, *ends)
    low = jnp.log(1e-4 * smallest)
    high = jnp.log(1e4 * (largest + spectrum.total / n_train))
    log_ridge, ridge_error, ridge_slope, ridge_inside = _minimum(ridge, system, low, high)
    residual = jnp.maximum(slope, ridge_slope)
    return StoppingTime(
        time=jnp.exp(log_time),
        test_error=jnp.exp(error),
        ridge=jnp.exp(log_ridge),
        ridge_error=jnp.exp(ridge_error),
        cost_of_stopping=jnp.exp(error - ridge_error),
        end_error=_ridge_error(system, 0.0),
        residual=residual,
        converged=inside & ridge_inside & (residual < 1e-6),
    )


@theory
def descent_error(system: IsotropicTraining) -> DescentError:
    r"""Errors after every step of gradient descent with momentum, averaged over training sets.

    For isotropic inputs the error is an integral over the Marchenko-Pastur law $\rho$ of $S = X^T
    X/n$ with aspect ratio $\psi = d/n$. This holds for any residual polynomial $r_k$; the
    polynomial of the heavy ball is $r_{k+1} = r_k - \eta (s + \lambda) r_k + \beta (r_k -
    r_{k-1})$. The test error is

    $$ E_k = \int \rho(ds)\, [f^2 + \Delta \psi s g^2], \qquad
       g = \frac{1 - r_k}{s + \lambda}, \quad f = 1 - s g $$

    and the training error is $\int \rho(ds) s f^2 + \Delta [1 - 2\psi \int s g + \psi \int s^2
    g^2]$.

    Accuracy: 1e-10. Beyond the stable range, at $\eta (s + \lambda) \ge 2 (1 + \beta)$, training
    diverges, and so do the errors of the theory.

    Source: derived here; the errors equal those of the dynamical mean-field equations of ridge
    regression.

    >>> import numpy as np
    >>> found = descent_error(IsotropicTraining(sample_ratio=2.0, noise=0.1, steps=3))
    >>> np.round(np.asarray(found.test_error), 6).tolist()[0]
    1.0
    """
    aspect = 1 / system.sample_ratio
    s, mass = spectral_rule(aspect)
    rate = s + system.weight_decay
    safe = jnp.where(rate > 0, rate, 1.0)

    def errors(left: Array) -> tuple[Scalar, Scalar]:
        # Modes with s = 0 have rate 0 without weight decay. Their g is arbitrary, because g enters
        # with a factor s.
        step = jnp.where(rate > 0, (1 - left) / safe, 0.0)
        unlearned = 1 - s * step
        test = mass @ (unlearned**2 + system.noise * aspect * s * step**2)
        noise = 1 - 2 * aspect * mass @ (s * step) + aspect * mass @ (s * step) ** 2
        return test, mass @ (s * unlearned**2) + system.noise * noise

    def advance(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Any]:
        now, before = state
        following = now - system.learning_rate * rate * now + system.momentum * (now - before)
        return (following, now), errors(following)

    one = jnp.ones_like(s)
    _, (test, train) = jax.lax.scan(advance, (one, one), length=system.steps)
    first = errors(one)
    return DescentError(
        test_error=jnp.concatenate([first[0][None], test]),
        train_error=jnp.concatenate([first[1][None], train]),
    )


@theory
def frozen_kernel(system: NetworkDescent) -> DescentError:
    r"""Errors of an infinitely wide network along gradient descent, averaged over its start.

    The tangent kernel $\Theta = V \mathrm{diag}(\omega) V^T$ of the training set stays fixed, and
    with the residual polynomial $r_k$ of the heavy ball,

    $$ A_k = \Theta_{*X} V \mathrm{diag}\Big(\frac{1 - r_k(\omega)}{\omega}\Big) V^T, \qquad
       \text{mean} = A_k y, \qquad
       \mathrm{cov} = K_{**} + A_k K A_k^T - A_k K_{X*} - K_{*X} A_k^T $$

    The mean error of a network is the squared error of the mean plus the mean variance; an
    antisymmetric start has no variance. `width` is not used.

    Accuracy: 1e-10 relative, for the kernel that is used.

    Cost: one eigendecomposition of an n x n matrix.

    Source: Lee et al. (2019), equations 14-16; momentum derived here.

    >>> import jax.numpy as jnp
    >>> from orderparam.networks.fully_connected import fully_connected
    >>> x = jnp.eye(3)
    >>> network = fully_connected(1, None, "relu")
    >>> system = NetworkDescent(x, jnp.ones(3), x, jnp.ones(3), network, steps=2)
    >>> frozen_kernel(system).test_error[0].item()
    1.0
    """
    kernels = system.architecture.kernel(system.inputs)
    cross = system.architecture.kernel(system.test_inputs, system.inputs)
    own = jnp.diagonal(system.architecture.kernel(system.test_inputs).nngp)
    rates, modes = jnp.linalg.eigh(kernels.ntk)
    rates = jnp.maximum(rates, 0.0)
    projected = cross.ntk @ modes
    target = modes.T @ system.targets
    prior = modes.T @ kernels.nngp @ modes
    mixed = cross.nngp @ modes
    random_start = 0.0 if system.antisymmetric else 1.0
    safe = jnp.where(rates > 0, rates, 1.0)

    def errors(left: Array, slope: Array) -> tuple[Scalar, Scalar]:
        # (1 - r)/omega is a polynomial in omega; its value at omega = 0 is computed by its own
        # recursion
        response = projected * jnp.where(rates > 0, (1 - left) / safe, slope)
        mean = response @ target
        spread = (
            own + jnp.sum((response @ prior) * response, axis=1) - 2 * jnp.sum(response * mixed, 1)
        )
        test = jnp.mean((mean - system.test_targets) ** 2 + random_start * spread)
        kept = left**2 @ (target**2 + random_start * jnp.diagonal(prior))
        return test, kept / len(target)

    def advance(state: Any, _: None) -> tuple[Any, Any]:
        now, before, slope, slope_before = state
        following = now - system.learning_rate * rates * now + system.momentum * (now - before)
        steeper = slope + system.learning_rate + system.momentum * (slope - slope_before)
        return (following, now, steeper, slope), errors(following, steeper)

    one, zero = jnp.ones_like(rates), jnp.zeros(())
    _, (test, train) = jax.lax.scan(advance, (one, one, zero, zero), length=system.steps)
    first = errors(one, zero)
    return DescentError(
        test_error=jnp.concatenate([first[0][None], test]),
        train_error=jnp.concatenate([first[1][None], train]),
    )


def _noise_sums(
    system: FeatureTraining, time: Any, threshold: Array, ridge: Array
) -> tuple[Scalar, Scalar]:
    """The sums F_1 and F_2 of the variance at a time."""
    z, w = jnp.asarray(NODES), jnp.asarray(WEIGHTS)
    sigma = system.spectrum.eigenvalues
    traced = (sigma * threshold[:, None] / (sigma + threshold[:, None])) @ (
        system.spectrum.multiplicities
    )
    terms = w / z / (time * ridge) * traced
    return jnp.real(jnp.sum(terms)), jnp.real(jnp.sum(terms / z))


def _ridge_error(system: FeatureTraining, ridge: Any) -> Scalar:
    """Test error of ridge regression with the mean loss, after full training."""
    spectrum = system.spectrum
    solved = effective_ridge(spectrum, system.n_train, ridge * system.n_train)
    unlearned = (1 - solved.learnability) ** 2 @ spectrum.target_power
    return ratio(unlearned + system.noise * solved.spread, solved.complement)


def _minimum(
    function: Any, system: FeatureTraining, low: Scalar, high: Scalar
) -> tuple[Scalar, Scalar, Scalar, Bool[Array, ""]]:
    """The minimum of a function next to the lowest of 64 scanned points: the argument, the value,
    the slope there, and whether the minimum lies inside the range.
    """
    grid = jax.lax.stop_gradient(jnp.linspace(low, high, 64))
    best = jnp.argmin(jax.lax.map(lambda u: function(u, system), grid, batch_size=8))
    last = len(grid) - 1
    ends = grid[jnp.maximum(best - 1, 0)], grid[jnp.minimum(best + 1, last)]
    found = decreasing_root(lambda u, system: -jax.grad(function)(u, system), *ends, system)
    inside = (best > 0) & (best < last)
    return found.value, function(found.value, system), found.residual, inside & found.converged
