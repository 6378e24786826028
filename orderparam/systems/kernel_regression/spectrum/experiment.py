"""Ridge regression on random Gaussian features with a given spectrum: what the theories assume, really done."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.kernels.effective_ridge import ratio
from orderparam.kernels.gp import condition
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.kernel_regression.learning_curve import MeasuredLearningCurve, on_training_set, solved
from orderparam.systems.kernel_regression.spectrum.model import KernelRegression

LARGEST_DESIGN = 4 * 10**8  # entries of a Gaussian design matrix: 3.2 GB


def _infinite_population(system: KernelRegression) -> None:
    if np.any(np.asarray(system.sampled_fraction) > 0):
        name = type(system).__name__
        raise ValueError(f"gaussian_design samples an infinite population: a {name} is measured by gp_regression")


@experiment(check=_infinite_population)
def gaussian_design(system: KernelRegression, key: PRNGKeyArray) -> MeasuredLearningCurve:
    """Ridge regression on n_train inputs whose features phi_k are independent standard Gaussians: the theories' own assumption.

    A level of multiplicity m is m modes that share its target power equally; the unresolved tail acts as ridge on the training
    points and its target power as label noise. Population averages are exact sums over modes. Without any ridge, and with
    at least as many samples as the kernel has modes, it is the limit T -> 0: least squares.
    Raises `ValueError` when n_train or a multiplicity is not an integer, the design matrix would be too large, or K + T is not
    positive definite to working precision.
    """
    count = system.size("n_train")
    ridge, noise = jnp.full(count, system.temperature), jnp.full(count, system.noise)
    return solved(draw_design(system.spectrum, ridge, noise, key, float(system.temperature)), system.temperature)


def draw_design(
    spectrum: Spectrum, ridge: Float[Array, "train"], noise: Float[Array, "train"], key: PRNGKeyArray, smallest: float
) -> MeasuredLearningCurve:
    """One Gaussian design, with a ridge and a label-noise variance for each sample. smallest: the least ridge any may have."""
    multiplicities = np.asarray(spectrum.multiplicities)
    if np.any(multiplicities != np.round(multiplicities)):
        raise ValueError("spectrum.multiplicities: a Gaussian design needs integers; build the spectrum from single modes")
    modes, count = int(multiplicities.sum()), ridge.size
    if count * modes > LARGEST_DESIGN:
        raise ValueError(f"a design of {count} x {modes} Gaussian features is too large; use fewer modes and a tail")
    repeats = multiplicities.astype(int)
    eigenvalues = np.repeat(np.asarray(spectrum.eigenvalues), repeats)
    target = np.sqrt(np.repeat(np.asarray(spectrum.target_power) / np.maximum(repeats, 1), repeats))
    first = np.argsort(eigenvalues == 0, kind="stable")  # the features of the kernel before those that it does not have
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
    """rank: number of features with a positive eigenvalue, which come first, where samples without a ridge may determine all."""
    feature_key, noise_key = jax.random.split(key)
    features = jax.random.normal(feature_key, (ridge.size, eigenvalues.size))
    labels = features @ target + jnp.sqrt(noise + tail_power) * jax.random.normal(noise_key, ridge.shape)
    conditioned = condition((features * eigenvalues) @ features.T + jnp.diag(ridge + tail), labels, 0.0)
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
    limit = _least_squares(features[:, :rank], eigenvalues[:rank], target, labels, ridge, noise + tail_power, tail_power)
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
    """The limit of a vanishing ridge where the samples without one determine all modes of the kernel; the others are not heard.

    t = (y - f)/T stays finite on the samples without a ridge where they are fitted exactly, and follows from
    coefficients = Lambda Phi^T t.
    """
    rank = eigenvalues.size
    free = jnp.where(ridge == 0, 1.0, 0.0)
    heard = features * free[:, None]
    coefficients = jnp.linalg.lstsq(heard, free * labels)[0]
    gap = labels - features @ coefficients
    others = jnp.where(ridge > 0, gap / jnp.where(ridge > 0, ridge, 1.0), 0.0)
    discrepancy = others + jnp.linalg.lstsq(heard.T, coefficients / eigenvalues - features.T @ others)[0]
    unexplained = jnp.sum(free * noise) + jnp.sum(target[rank:] ** 2) > 0
    error = jnp.sum((coefficients - target[:rank]) ** 2) + jnp.sum(target[rank:] ** 2) + tail_power
    return MeasuredLearningCurve(
        test_error=error,
        population_error=error,
        train_error=jnp.mean(gap**2),
        posterior_variance=jnp.zeros(()),
        effective_dimension=jnp.asarray(float(rank)),
        target_learnability=ratio(coefficients @ target[:rank], target @ target + tail_power),
        squared_discrepancy=jnp.where(unexplained & (jnp.sum(free) > rank), jnp.inf, jnp.mean(discrepancy**2)),
        converged=jnp.isfinite(error),
    )
