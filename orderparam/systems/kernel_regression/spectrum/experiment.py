"""Ridge regression really done: on Gaussian features, on the sphere, and with a ridge that depends
on the input.
"""

from functools import partial

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

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
# Ridge regression on random Gaussian features with a given spectrum: what the theories assume, really done.

LARGEST_DESIGN = 4 * 10**8  # entries of a Gaussian design matrix: 3.2 GB


def _infinite_population(system: KernelRegression) -> None:
    if np.any(np.asarray(system.sampled_fraction) > 0):
        name = type(system).__name__
        raise ValueError(
            f"gaussian_design samples an infinite population: a {name} is measured by gp_regression"
        )


@experiment(check=_infinite_population)
def gaussian_design(system: KernelRegression, key: PRNGKeyArray) -> MeasuredLearningCurve:
    """Ridge regression on n_train inputs whose features phi_k are independent standard Gaussians:
    the theories' own assumption.

    A level of multiplicity m is m modes that share its target power equally; the unresolved tail
    acts as ridge on the training points and its target power as label noise. Population averages
    are exact sums over modes. Without any ridge, and with at least as many samples as the kernel
    has modes, it is the limit T -> 0: least squares. Raises `ValueError` when n_train or a
    multiplicity is not an integer, the design matrix would be too large, or K + T is not positive
    definite to working precision.
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
    """One Gaussian design, with a ridge and a label-noise variance for each sample. smallest: the
    least ridge any may have.
    """
    multiplicities = np.asarray(spectrum.multiplicities)
    if np.any(multiplicities != np.round(multiplicities)):
        raise ValueError(
            "spectrum.multiplicities: a Gaussian design needs integers; build the spectrum from single modes"
        )
    modes, count = int(multiplicities.sum()), ridge.size
    if count * modes > LARGEST_DESIGN:
        raise ValueError(
            f"a design of {count} x {modes} Gaussian features is too large; use fewer modes and a tail"
        )
    repeats = multiplicities.astype(int)
    eigenvalues = np.repeat(np.asarray(spectrum.eigenvalues), repeats)
    target = np.sqrt(np.repeat(np.asarray(spectrum.target_power) / np.maximum(repeats, 1), repeats))
    # the features of the kernel before those that it does not have
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
    """rank: number of features with a positive eigenvalue, which come first, where samples without
    a ridge may determine all.
    """
    feature_key, noise_key = jax.random.split(key)
    features = jax.random.normal(feature_key, (ridge.size, eigenvalues.size))
    labels = features @ target + jnp.sqrt(noise + tail_power) * jax.random.normal(
        noise_key, ridge.shape
    )
    conditioned = condition(
        (features * eigenvalues) @ features.T + jnp.diag(ridge + tail), labels, 0.0
    )
    coefficients = eigenvalues * (features.T @ conditioned.discrepancy)
    half = jsl.solve_triangular(conditioned.cholesky, features * eigenvalues, lower=True)
    error = jnp.sum((coefficients - target) ** 2) + tail_power
    measured = MeasuredLearningCurve(
        test_error=error,
        population_error=error,
        posterior_variance=jnp.sum(eigenvalues) + tail - jnp.sum(half**2),
        target_learnability=ratio(coefficients @ target, target @ target + tail_power),
        **on_training_set(conditioned.discrepancy[:, None], conditioned.inverse_diagonal, ridge),
    )
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


def _least_squares(
    features: Float[Array, "train rank"],
    eigenvalues: Float[Array, "rank"],
    target: Float[Array, "mode"],
    labels: Float[Array, "train"],
    ridge: Float[Array, "train"],
    noise: Float[Array, "train"],
    tail_power: Float[Array, ""],
) -> MeasuredLearningCurve:
    """The limit of a vanishing ridge where the samples without one determine all modes of the
    kernel; the others are not heard.

    t = (y - f)/T stays finite on the samples without a ridge where they are fitted exactly, and
    follows from coefficients = Lambda Phi^T t.
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
# Regression on random points of the sphere, really done; averages over the sphere are exact.


class MeasuredSphereCurve(MeasuredLearningCurve):
    """Measured learning curve with learnability: (degree,), as in `SphereCurve`."""

    learnability: Float[Array, "degree"]


@experiment
def sphere_regression(system: SphereRegression, key: PRNGKeyArray) -> MeasuredSphereCurve:
    """Gaussian-process regression on n_train random points of the sphere; all averages over the
    sphere are exact sums.

    With a = (K + T)^-1 y and the addition theorem, sum over the harmonics of degree l of phi(x)
    phi(x') = N_l P_l(cos(x, x')),

        E f^2 = sum_l lambda_l^2 N_l a^T P_l a,   E f y = sum_l lambda_l y_l(X).a,   L_l = lambda_l tr [(K + T)^-1 P_l]

    where L_l averages over all harmonics of the degree, those that are not in the target included.
    Degrees in the tail are left out of E f^2 and of the decrease of the posterior variance, to
    which each mode contributes its eigenvalue squared. Raises `ValueError` when n_train is not an
    integer or K + T is not positive definite.
    """
    count, input_dim = system.size("n_train"), system.size("input_dim")
    input_key, noise_key = jax.random.split(key)
    directions = jax.random.normal(input_key, (count, input_dim))
    directions /= jnp.linalg.norm(directions, axis=1, keepdims=True)
    kernel = system.architecture.nngp(jnp.sqrt(system.input_dim) * directions)
    noise = jnp.sqrt(system.noise) * jax.random.normal(noise_key, (count,))
    return solved(
        _on_sphere(kernel, directions, noise, system.spectrum, system.temperature),
        system.temperature,
    )


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
    # y_l(X)
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
# Regression on Gaussian features whose ridge and label noise depend on the region of every input, really done.


@experiment
def heteroscedastic_design(
    system: HeteroscedasticRegression, key: PRNGKeyArray
) -> MeasuredLearningCurve:
    """f(x) = k_x^T (K + D)^-1 y, D = diag(T(x_mu)), on n_train inputs with independent standard
    Gaussian features.

    Each input falls into a region, which decides its ridge T(x) and the variance s2(x) of its label
    noise; all else as in `gaussian_design`. Raises `ValueError` as that does.
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
