"""Regression on random points of a torus, with all waves of the kernel as features."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.kernels.spectra import lattice_shells
from orderparam.systems.kernel_regression.learning_curve import MeasuredLearningCurve, solved
from orderparam.systems.kernel_regression.spectrum.experiment import LARGEST_DESIGN, on_features
from orderparam.systems.kernel_regression.torus.model import TorusRegression


@experiment
def torus_regression(system: TorusRegression, key: PRNGKeyArray) -> MeasuredLearningCurve:
    r"""Regression on n_train random points of a torus, with exact averages over the torus.

    The features are the waves of the kernel,

    $$ \phi_0 = 1, \qquad \phi_k = \sqrt 2 \cos k \cdot x \ \text{and}\ \sqrt 2 \sin k \cdot x $$

    with one wave vector k of each pair k, -k. Every run draws a new target $y = \sum_k y_k \phi_k$
    with independent Gaussian $y_k$ of mean 0 and the variance that `spectrum` gives.

    Raises:
        ValueError: where n_train is not an integer, `spectrum` does not belong to `input_dim`,
            `target_dim` and `cut`, the training set has more than 4e8 features in all, or K + T is
            not positive definite.

    Cost: O(n_train^2 modes) operations.

    Source: derived here.

    >>> import jax
    >>> line = TorusRegression.from_smoothness(1, 1.0, 1.0, 64, 0.1, 0.1, cut=100)
    >>> bool(torus_regression(line, jax.random.key(0)).test_error < 0.2)
    True
    """
    count, input_dim = system.size("n_train"), system.size("input_dim")
    cut, spectrum = float(system.cut), system.spectrum
    shells = lattice_shells(input_dim, cut)
    multiplicities = np.asarray(spectrum.multiplicities)
    if not np.array_equal(shells[shells > 0], multiplicities):
        raise ValueError(
            f"spectrum does not belong to a torus with input_dim = {input_dim} and cut = {cut:g}: "
            "build the system with from_smoothness"
        )
    if count * multiplicities.sum() > LARGEST_DESIGN:
        raise ValueError(
            f"n_train = {count}: {count} x {multiplicities.sum():g} waves are too many; take a "
            "smaller cut"
        )
    waves = half_lattice(input_dim, cut)
    level = np.searchsorted(np.flatnonzero(shells), np.sum(waves**2, axis=1))
    relevant = np.all(waves[:, system.size("target_dim") :] == 0, axis=1)
    # Number of wave vectors of each level that the target may contain. A pair k, -k counts as two,
    # k = 0 as one.
    pairs = np.where(np.any(waves != 0, axis=1), 2.0, 1.0)
    on_target = np.bincount(level, weights=relevant * pairs, minlength=multiplicities.size)
    power = np.asarray(spectrum.target_power) / np.maximum(on_target, 1)
    if np.any(power[on_target == 0] > 0):
        raise ValueError(
            "spectrum has target power where a target of target_dim = "
            f"{float(system.target_dim):g} has none: build the system with from_smoothness"
        )
    return solved(
        _on_torus(
            jnp.asarray(waves, float),
            spectrum.eigenvalues[level],
            jnp.asarray(power[level] * relevant),
            system.temperature,
            system.noise,
            key,
            count,
        ),
        system.temperature,
    )


def half_lattice(input_dim: int, cut: float) -> Int[np.ndarray, "wave input"]:
    """Integer vectors k with |k| <= cut, zero first, and one vector of each pair k, -k: the one
    whose first component other than zero is positive."""
    top = math.floor(cut**2 + 1e-9)
    line = np.arange(-math.isqrt(top), math.isqrt(top) + 1)
    found = np.zeros((1, 0), int)
    for _ in range(input_dim):
        # Add one component to the vectors found so far, and keep those that are not too long.
        found = np.concatenate(
            [np.repeat(found, line.size, axis=0), np.tile(line, len(found))[:, None]], axis=1
        )
        found = found[np.sum(found**2, axis=1) <= top]
    first = np.argmax(found != 0, axis=1)
    sign = found[np.arange(len(found)), first]
    return np.concatenate([np.zeros((1, input_dim), int), found[sign > 0]])


@partial(jax.jit, static_argnames="count")
def _on_torus(
    waves: Float[Array, "wave input"],
    eigenvalues: Float[Array, "wave"],
    power: Float[Array, "wave"],
    temperature: Float[Array, ""],
    noise: Float[Array, ""],
    key: PRNGKeyArray,
    count: int,
) -> MeasuredLearningCurve:
    input_key, target_key, noise_key = jax.random.split(key, 3)
    inputs = jax.random.uniform(input_key, (count, waves.shape[1]), maxval=2 * np.pi)
    phases = inputs @ waves.T
    cosines, sines = jnp.sqrt(2) * jnp.cos(phases), jnp.sqrt(2) * jnp.sin(phases)
    # k = 0 has no sine, and its cosine is 1
    features = jnp.concatenate([cosines.at[:, 0].set(1.0), sines[:, 1:]], axis=1)

    def of_features(values: Float[Array, "wave"]) -> Float[Array, "feature"]:
        return jnp.concatenate([values, values[1:]])

    target = jnp.sqrt(of_features(power)) * jax.random.normal(target_key, features.shape[1:])
    labels = features @ target + jnp.sqrt(noise) * jax.random.normal(noise_key, (count,))
    return on_features(
        features, labels, of_features(eigenvalues), target, 0.0, 0.0, jnp.full(count, temperature)
    )
