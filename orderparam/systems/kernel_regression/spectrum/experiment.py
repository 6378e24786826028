"""Experiments with ridge regression: on Gaussian features, on the sphere, and with a ridge that
depends on the input.
"""

import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.needs import at_least
from orderparam.core.result import Result, with_errors
from orderparam.core.verb import experiment
from orderparam.kernels.effective_ridge import ratio
from orderparam.kernels.gp import condition
from orderparam.kernels.spectra import zonal_polynomials
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.kernel_regression.learning_curve import (
    MeasuredLearningCurve,
    on_training_set,
    solved,
)
from orderparam.systems.kernel_regression.spectrum.model import (
    HeteroscedasticRegression,
    KernelRegression,
    SphereRegression,
)

# ------------------------------------------------------------------------------------------------
# Ridge regression on random Gaussian features with a given spectrum, as the theories assume.

LARGEST_DESIGN = 4 * 10**8  # entries of a Gaussian design matrix: 3.2 GB


def _infinite_population(system: KernelRegression) -> None:
    if np.any(np.asarray(system.sampled_fraction) > 0):
        name = type(system).__name__
        raise ValueError(
            f"gaussian_design samples an infinite population: a {name} is measured by gp_regression"
        )


@experiment(check=_infinite_population)
def gaussian_design(system: KernelRegression, key: PRNGKeyArray) -> MeasuredLearningCurve:
    r"""Ridge regression on n_train inputs with independent standard Gaussian features, as the
    theories assume them.

    $$ f(x) = k_x^T (K + T)^{-1} y, \qquad K(x, x') = \sum_k \lambda_k \phi_k(x) \phi_k(x'), \qquad
       \phi_k \sim N(0, 1) $$

    A level of multiplicity m is m modes that share its target power equally. The tail of the
    spectrum acts as a ridge on the training points, and its target power as label noise. Averages
    over the population are exact sums over modes. Without any ridge, and with at least as many
    samples as the kernel has modes, the result is the limit T -> 0: least squares.

    Raises:
        ValueError: where n_train or a multiplicity is not an integer, the design has more than 4e8
            entries, the system is a pool, or K + T is not positive definite to working precision.

    Cost: O(n_train^2 modes + n_train^3) operations.

    Source: Simon et al. (2021); Canatar, Bordelon, Pehlevan (2021).

    >>> import jax
    >>> from orderparam.kernels import finite_rank
    >>> system = KernelRegression(finite_rank(20, 0.05), n_train=30, temperature=0.1)
    >>> bool(gaussian_design(system, jax.random.key(0)).test_error > 0)
    True
    """
    count = system.size("n_train")
    ridge, noise = jnp.full(count, system.temperature), jnp.full(count, system.noise)
    return solved(
        draw_design(system.spectrum, ridge, noise, key, float(system.temperature)),
        system.temperature,
    )


def draw_design(
    spectrum: Spectrum,
    ridge: Float[Array, "train"],
    noise: Float[Array, "train"],
    key: PRNGKeyArray,
    smallest: float,
) -> MeasuredLearningCurve:
    """Regression on one Gaussian design, with a ridge and a label-noise variance for each sample.

    Args:
        spectrum: with integer multiplicities.
        ridge: ridge of each sample.
        noise: variance of the label noise of each sample.
        smallest: the smallest ridge that a sample may have.

    Raises:
        ValueError: where a multiplicity is not an integer or the design is too large.
    """
    multiplicities = np.asarray(spectrum.multiplicities)
    if np.any(multiplicities != np.round(multiplicities)):
        raise ValueError(
            "spectrum.multiplicities: a Gaussian design needs integers; build the spectrum from "
            "single modes"
        )
    modes, count = int(multiplicities.sum()), ridge.size
    if count * modes > LARGEST_DESIGN:
        raise ValueError(
            f"a design of {count} x {modes} Gaussian features is too large; use fewer modes and a "
            "tail"
        )
    repeats = multiplicities.astype(int)
    eigenvalues = np.repeat(np.asarray(spectrum.eigenvalues), repeats)
    target = np.sqrt(np.repeat(np.asarray(spectrum.target_power) / np.maximum(repeats, 1), repeats))
    # Features with a positive eigenvalue come before those with eigenvalue 0.
    first = np.argsort(eigenvalues == 0, kind="stable")
    rank = int(np.count_nonzero(eigenvalues))
    singular = smallest + float(spectrum.tail) == 0 and count >= rank
    return _design(
        jnp.asarray(eigenvalues[first]),
        jnp.asarray(target[first]),
        jnp.asarray(spectrum.tail),
        jnp.asarray(spectrum.tail_power),
        ridge,
        noise,
        key,
        rank if singular else None,
    )


@partial(jax.jit, static_argnames="rank")
def _design(
    eigenvalues: Float[Array, "mode"],
    target: Float[Array, "mode"],
    tail: Float[Array, ""],
    tail_power: Float[Array, ""],
    ridge: Float[Array, "train"],
    noise: Float[Array, "train"],
    key: PRNGKeyArray,
    rank: int | None,
) -> MeasuredLearningCurve:
    """Regression on one Gaussian design.

    Args:
        rank: number of features with a positive eigenvalue, which come first, where samples without
            a ridge may determine all of them; otherwise None.
    """
    feature_key, noise_key = jax.random.split(key)
    features = jax.random.normal(feature_key, (ridge.size, eigenvalues.size))
    labels = features @ target + jnp.sqrt(noise + tail_power) * jax.random.normal(
        noise_key, ridge.shape
    )
    measured = on_features(features, labels, eigenvalues, target, tail, tail_power, ridge)
    if rank is None:
        return measured
    limit = _least_squares(
        features[:, :rank],
        eigenvalues[:rank],
        target,
        labels,
        ridge,
        noise + tail_power,
        tail_power,
    )
    determined = jnp.sum(ridge == 0) >= rank
    return jax.tree.map(lambda one, other: jnp.where(determined, one, other), limit, measured)


def on_features(
    features: Float[Array, "train mode"],
    labels: Float[Array, "train"],
    eigenvalues: Float[Array, "mode"],
    target: Float[Array, "mode"],
    tail: Float[Array, ""] | float,
    tail_power: Float[Array, ""] | float,
    ridge: Float[Array, "train"],
) -> MeasuredLearningCurve:
    """Regression on a training set with given features phi_k(x), and exact averages over the
    population, in which E phi_k phi_l = delta_kl.

    Args:
        features: phi_k of every training input.
        labels: noisy labels of the training set.
        eigenvalues: lambda_k of every mode.
        target: y_k of every mode.
        tail: sum of the eigenvalues of all other modes, a ridge on the training points.
        tail_power: target power on all other modes.
        ridge: ridge of each sample.
    """
    conditioned = condition(
        (features * eigenvalues) @ features.T + jnp.diag(ridge + tail), labels, 0.0
    )
    # f(x) = sum_k coefficients_k phi_k(x): the error over the population is a sum over modes.
    coefficients = eigenvalues * (features.T @ conditioned.discrepancy)
    # The posterior variance is the prior variance minus E_x k_x^T (K + T)^-1 k_x.
    half = jsl.solve_triangular(conditioned.cholesky, features * eigenvalues, lower=True)
    error = jnp.sum((coefficients - target) ** 2) + tail_power
    return MeasuredLearningCurve(
        test_error=error,
        population_error=error,
        posterior_variance=jnp.sum(eigenvalues) + tail - jnp.sum(half**2),
        target_learnability=ratio(coefficients @ target, target @ target + tail_power),
        **on_training_set(conditioned.discrepancy[:, None], conditioned.inverse_diagonal, ridge),
    )


def _least_squares(
    features: Float[Array, "train rank"],
    eigenvalues: Float[Array, "rank"],
    target: Float[Array, "mode"],
    labels: Float[Array, "train"],
    ridge: Float[Array, "train"],
    noise: Float[Array, "train"],
    tail_power: Float[Array, ""],
) -> MeasuredLearningCurve:
    """Regression in the limit T -> 0 for the samples without a ridge, if these samples determine
    all modes of the kernel. The samples with a ridge then have no influence on f.

    The discrepancy t = (y - f)/T of samples without a ridge is finite if they are fitted exactly,
    and follows from coefficients = Lambda Phi^T t.
    """
    rank = eigenvalues.size
    free = jnp.where(ridge == 0, 1.0, 0.0)
    heard = features * free[:, None]
    coefficients = jnp.linalg.lstsq(heard, free * labels)[0]
    gap = labels - features @ coefficients
    others = jnp.where(ridge > 0, gap / jnp.where(ridge > 0, ridge, 1.0), 0.0)
    discrepancy = (
        others + jnp.linalg.lstsq(heard.T, coefficients / eigenvalues - features.T @ others)[0]
    )
    unexplained = jnp.sum(free * noise) + jnp.sum(target[rank:] ** 2) > 0
    error = jnp.sum((coefficients - target[:rank]) ** 2) + jnp.sum(target[rank:] ** 2) + tail_power
    return MeasuredLearningCurve(
        test_error=error,
        population_error=error,
        train_error=jnp.mean(gap**2),
        posterior_variance=jnp.zeros(()),
        effective_dimension=jnp.asarray(float(rank)),
        target_learnability=ratio(coefficients @ target[:rank], target @ target + tail_power),
        squared_discrepancy=jnp.where(
            unexplained & (jnp.sum(free) > rank), jnp.inf, jnp.mean(discrepancy**2)
        ),
        converged=jnp.isfinite(error),
    )


# ------------------------------------------------------------------------------------------------
# Regression on random points of the sphere; averages over the sphere are exact.


class MeasuredSphereCurve(MeasuredLearningCurve):
    """One point of a learning curve on the sphere, measured on one training set.

    Fields:
        learnability: L_l of every degree l, averaged over all harmonics of that degree.
    """

    learnability: Float[Array, "degree"]


@experiment
def sphere_regression(system: SphereRegression, key: PRNGKeyArray) -> MeasuredSphereCurve:
    r"""Gaussian-process regression on n_train random points of the sphere, with exact averages over
    the sphere.

    With $a = (K + T)^{-1} y$ and the addition theorem, $\sum \phi(x) \phi(x') = N_l P_l(\cos(x,
    x'))$ over the harmonics of degree l,

    $$ E f^2 = \sum_l \lambda_l^2 N_l\, a^T P_l a, \qquad E f y = \sum_l \lambda_l\, y_l(X) \cdot a,
       \qquad L_l = \lambda_l\, \mathrm{tr} \big[ (K + T)^{-1} P_l \big] $$

    with $\lambda_l$ the eigenvalue of degree l, $P_l$ the matrix of zonal polynomials of the
    training points and $y_l(X)$ the part of degree l of the target at these points. `learnability`
    $L_l$ is an average over all harmonics of the degree, including those that are not in the
    target.

    Raises:
        ValueError: where n_train is not an integer or K + T is not positive definite.

    Accuracy: degrees in the tail of the spectrum are left out of E f^2 and of the decrease of the
    posterior variance, to which each mode contributes its eigenvalue squared.

    Source: derived here, with the theory of Bordelon, Canatar, Pehlevan (2020) in mind.

    >>> import jax
    >>> from orderparam.networks import fully_connected
    >>> network = fully_connected(1, None, "relu")
    >>> sphere = SphereRegression.from_architecture(network, 10, [0, 1], 20, 0.1, max_degree=3)
    >>> sphere_regression(sphere, jax.random.key(0)).learnability.shape
    (4,)
    """
    sizes = system.size("n_train"), system.size("input_dim")
    return solved(_one_set(system, key, *sizes), system.temperature)


class MeanSphereErrors(Result):
    """Errors on the sphere, averaged over training sets.

    Fields:
        test_error, test_error_error: mean over training sets of the mean of (f(x) - y(x))^2 over
            the sphere, against targets without noise, and its standard error.
        train_error, train_error_error: mean over training sets of (1/P) sum (f - y_noisy)^2 over
            the training set, and its standard error.
    """

    test_error: Float[Array, ""]
    test_error_error: Float[Array, ""]
    train_error: Float[Array, ""]
    train_error_error: Float[Array, ""]


@experiment(needs={"training_sets": at_least(2)})
def mean_sphere_errors(
    system: SphereRegression, key: PRNGKeyArray, *, training_sets: int = 100
) -> MeanSphereErrors:
    """Errors of `sphere_regression`, averaged over many training sets in one compiled program.

    Args:
        training_sets: number of independent training sets, at least 2.

    Raises:
        ValueError: where n_train is not an integer, or for fewer than two training sets. A set
            whose K + T is not positive definite gives NaN.

    Source: derived here, as in `sphere_regression`.

    >>> import jax
    >>> from orderparam.networks import fully_connected
    >>> network = fully_connected(1, None, "relu")
    >>> sphere = SphereRegression.from_architecture(network, 10, [0, 1], 20, 0.1, max_degree=3)
    >>> bool(mean_sphere_errors(sphere, jax.random.key(0), training_sets=8).test_error > 0)
    True
    """
    sizes = system.size("n_train"), system.size("input_dim")
    return _mean_errors(system, jax.random.split(key, training_sets), *sizes)


@eqx.filter_jit
def _mean_errors(
    system: SphereRegression, keys: PRNGKeyArray, count: int, input_dim: int
) -> MeanSphereErrors:
    def one(key: PRNGKeyArray) -> tuple[Array, Array]:
        found = _one_set(system, key, count, input_dim)
        return found.test_error, found.train_error

    test, train = jax.lax.map(one, keys)

    def mean(values: Array) -> tuple[Array, Array]:
        return jnp.mean(values), jnp.std(values, ddof=1) / math.sqrt(len(keys))

    return MeanSphereErrors(**with_errors(test_error=mean(test), train_error=mean(train)))


def _one_set(
    system: SphereRegression, key: PRNGKeyArray, count: int, input_dim: int
) -> MeasuredSphereCurve:
    input_key, noise_key = jax.random.split(key)
    directions = jax.random.normal(input_key, (count, input_dim))
    # A normalised Gaussian vector is uniform on the sphere.
    directions /= jnp.linalg.norm(directions, axis=1, keepdims=True)
    kernel = system.architecture.nngp(jnp.sqrt(system.input_dim) * directions)
    noise = jnp.sqrt(system.noise) * jax.random.normal(noise_key, (count,))
    return _on_sphere(kernel, directions, noise, system.spectrum, system.temperature)


@jax.jit
def _on_sphere(
    kernel: Float[Array, "train train"],
    directions: Float[Array, "train input"],
    noise: Float[Array, "train"],
    spectrum: Spectrum,
    temperature: Float[Array, ""],
) -> MeasuredSphereCurve:
    eigenvalues, multiplicities = spectrum.eigenvalues, spectrum.multiplicities
    top, input_dim = eigenvalues.size - 1, directions.shape[1]
    amplitudes = jnp.sqrt(spectrum.target_power * multiplicities)
    # y_l(X), the part of degree l of the target at the training points, for every degree
    parts = amplitudes[:, None] * jnp.stack(
        list(zonal_polynomials(directions[:, 0], input_dim, top))
    )
    labels = parts.sum(axis=0) + noise
    conditioned = condition(kernel, labels, temperature)
    dual = conditioned.discrepancy
    inverse = jsl.cho_solve((conditioned.cholesky, True), jnp.eye(kernel.shape[0]))
    squares, traces = [], []
    for polynomial in zonal_polynomials(directions @ directions.T, input_dim, top):
        squares.append(dual @ polynomial @ dual)
        traces.append(jnp.sum(inverse * polynomial))
    learned = eigenvalues * jnp.stack(traces)
    overlap = jnp.sum(eigenvalues * (parts @ dual))
    power = jnp.sum(spectrum.target_power)
    # E f^2 - 2 E f y + E y^2 over the whole sphere.
    error = (eigenvalues**2 * multiplicities) @ jnp.stack(squares) - 2 * overlap + power
    return MeasuredSphereCurve(
        test_error=error,
        population_error=error,
        posterior_variance=spectrum.total - (eigenvalues * multiplicities) @ learned,
        target_learnability=ratio(overlap, power),
        learnability=learned,
        **on_training_set(dual[:, None], jnp.diagonal(inverse), temperature),
    )


# ------------------------------------------------------------------------------------------------
# Regression on Gaussian features whose ridge and label noise depend on the region of every input.


@experiment
def heteroscedastic_design(
    system: HeteroscedasticRegression, key: PRNGKeyArray
) -> MeasuredLearningCurve:
    r"""Ridge regression with a ridge and a label noise that depend on the region of the input, on
    independent standard Gaussian features.

    $$ f(x) = k_x^T (K + D)^{-1} y, \qquad D = \mathrm{diag}\, T(x_\mu) $$

    Each input is in a random region, with probabilities `weights`; the region determines the ridge
    T(x) and the variance of the label noise. Everything else is as in `gaussian_design`.

    Raises:
        ValueError: where `gaussian_design` does.

    Source: Howard, Jefferson, Maiti, Ringel (2024).

    >>> import jax
    >>> from orderparam.kernels import finite_rank
    >>> system = HeteroscedasticRegression(
    ...     finite_rank(20, 0.05), 30, 0.0, weights=[0.5, 0.5], extra_temperature=[0.01, 1.0],
    ...     extra_noise=[0.0, 0.0],
    ... )
    >>> bool(heteroscedastic_design(system, jax.random.key(0)).test_error > 0)
    True
    """
    region_key, design_key = jax.random.split(key)
    region = jax.random.choice(
        region_key, system.weights.size, (system.size("n_train"),), p=system.weights
    )
    ridges = system.temperature + system.extra_temperature
    noises = system.noise + system.extra_noise
    measured = draw_design(
        system.spectrum, ridges[region], noises[region], design_key, float(jnp.min(ridges))
    )
    return solved(measured, jnp.min(ridges))
