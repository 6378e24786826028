"""Regression on random points of the sphere, really done; averages over the sphere are exact."""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.kernels.effective_ridge import ratio
from orderparam.kernels.gp import condition
from orderparam.kernels.spectra import zonal_polynomials
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.kernel_regression.learning_curve import MeasuredLearningCurve, on_training_set, solved
from orderparam.systems.kernel_regression.sphere.model import SphereRegression


class MeasuredSphereCurve(MeasuredLearningCurve):
    """Measured learning curve with learnability: (degree,), as in `SphereCurve`."""

    learnability: Float[Array, "degree"]


@experiment
def sphere_regression(system: SphereRegression, key: PRNGKeyArray) -> MeasuredSphereCurve:
    """Gaussian-process regression on n_train random points of the sphere; all averages over the sphere are exact sums.

    With a = (K + T)^-1 y and the addition theorem, sum over the harmonics of degree l of phi(x) phi(x') = N_l P_l(cos(x, x')),

        E f^2 = sum_l lambda_l^2 N_l a^T P_l a,   E f y = sum_l lambda_l y_l(X).a,   L_l = lambda_l tr [(K + T)^-1 P_l]

    where L_l averages over all harmonics of the degree, those that are not in the target included. Degrees in the tail are left
    out of E f^2 and of the decrease of the posterior variance, to which each mode contributes its eigenvalue squared.
    Raises `ValueError` when n_train is not an integer or K + T is not positive definite.
    """
    count, input_dim = system.size("n_train"), system.size("input_dim")
    input_key, noise_key = jax.random.split(key)
    directions = jax.random.normal(input_key, (count, input_dim))
    directions /= jnp.linalg.norm(directions, axis=1, keepdims=True)
    kernel = system.architecture.nngp(jnp.sqrt(system.input_dim) * directions)
    noise = jnp.sqrt(system.noise) * jax.random.normal(noise_key, (count,))
    return solved(_on_sphere(kernel, directions, noise, system.spectrum, system.temperature), system.temperature)


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
    parts = amplitudes[:, None] * jnp.stack(list(zonal_polynomials(directions[:, 0], input_dim, top)))  # y_l(X)
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
