"""Regression on the sphere, where the modes of every kernel are known: spherical harmonics, degree by degree."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.system import parameter
from orderparam.kernels.effective_ridge import effective_ridge
from orderparam.kernels.gp import condition
from orderparam.kernels.spectra import sphere, zonal_polynomials
from orderparam.kernels.spectrum import Spectrum
from orderparam.networks.architecture import Architecture
from orderparam.systems.kernel_regression.experiment import MeasuredCurve, whole_number
from orderparam.systems.kernel_regression.model import KernelRegression
from orderparam.systems.kernel_regression.theory.learning_curve import LearningCurve
from orderparam.systems.kernel_regression.theory.mean_field import self_consistent


class SphereRegression(KernelRegression):
    """Inputs x uniform on |x|^2 = input_dim, and the kernel of an infinitely wide network, which depends on their angle alone.

    The target is y(x) = sum_l sqrt(Y_l N_l) P_l(u.x / sqrt(d)) for a fixed unit vector u, with P_l(1) = 1 the zonal polynomial
    and N_l the number of spherical harmonics of degree l: power Y_l in degree l. `from_architecture` computes the spectrum.
    """

    architecture: Architecture = dataclasses.field(kw_only=True)
    input_dim: int = parameter("input dimension d", minimum=2, integer=True, default=20)

    @classmethod
    def from_architecture(
        cls,
        architecture: Architecture,
        input_dim: int,
        target_power: ArrayLike,
        n_train: float,
        temperature: float,
        noise: float = 0.0,
        max_degree: int = 20,
    ) -> "SphereRegression":
        """target_power: power of the target in degree 0, 1, ...; degrees above max_degree are the spectrum's tail, a ridge."""

        def kernel_function(cosines: Float[Array, "node"]) -> Float[Array, "node"]:
            # Any two points of the plane at that angle: the kernel knows |x|^2/d and the angle only.
            angles = np.arccos(np.clip(cosines, -1, 1))
            plane = jnp.sqrt(2) * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
            return architecture.nngp(jnp.sqrt(2) * jnp.array([[1.0, 0.0]]), plane)[0]

        spectrum = sphere(input_dim, kernel_function, target_power, max_degree)
        return cls(spectrum, n_train, temperature, noise, architecture=architecture, input_dim=input_dim)


class SphereCurve(LearningCurve):
    """Learning curve with learnability: (degree,) L_l, the mean share of a harmonic of degree l that is learned."""

    learnability: Float[Array, "degree"]


class MeasuredSphereCurve(MeasuredCurve):
    """Measured learning curve with learnability: (degree,), as in `SphereCurve`."""

    learnability: Float[Array, "degree"]


def self_consistent_by_degree(system: SphereRegression) -> SphereCurve:
    """The self-consistent theory, with L_l = lambda_l / (lambda_l + kappa) of every degree."""
    curve = self_consistent(system)
    solved = effective_ridge(system.spectrum, system.n_train, system.temperature)
    return SphereCurve(**{name: getattr(curve, name) for name in LearningCurve.dims()}, learnability=solved.learnability)


def sphere_regression(system: SphereRegression, key: PRNGKeyArray) -> MeasuredSphereCurve:
    """Gaussian-process regression on n_train random points of the sphere; all averages over the sphere are exact sums.

    With a = (K + T)^-1 y and the addition theorem, sum over the harmonics of degree l of phi(x) phi(x') = N_l P_l(cos(x, x')),

        E f^2 = sum_l lambda_l^2 N_l a^T P_l a,   E f y = sum_l lambda_l y_l(X).a,   L_l = lambda_l tr [(K + T)^-1 P_l]

    where L_l averages over all harmonics of the degree, those that are not in the target included. Degrees in the tail are left
    out of E f^2 and of the decrease of the posterior variance, to which each mode contributes its eigenvalue squared.
    Raises `ValueError` when n_train is not an integer or K + T is not positive definite.
    """
    if not isinstance(system, SphereRegression):
        raise ValueError(f"sphere_regression needs a SphereRegression, not a {type(system).__name__}")
    count = whole_number(system.n_train)
    input_key, noise_key = jax.random.split(key)
    directions = jax.random.normal(input_key, (count, int(system.input_dim)))
    directions /= jnp.linalg.norm(directions, axis=1, keepdims=True)
    kernel = system.architecture.nngp(jnp.sqrt(float(system.input_dim)) * directions)
    noise = jnp.sqrt(system.noise) * jax.random.normal(noise_key, (count,))
    measured = _on_sphere(kernel, directions, noise, system.spectrum, float(system.temperature), int(system.input_dim))
    if not bool(jnp.isfinite(measured.test_error)):
        raise ValueError(f"the training kernel plus temperature {float(system.temperature):g} is not positive definite; raise it")
    return measured


@partial(jax.jit, static_argnames="input_dim")
def _on_sphere(
    kernel: Float[Array, "train train"],
    directions: Float[Array, "train input"],
    noise: Float[Array, "train"],
    spectrum: Spectrum,
    temperature: float,
    input_dim: int,
) -> MeasuredSphereCurve:
    count = kernel.shape[0]
    eigenvalues, multiplicities = spectrum.eigenvalues, spectrum.multiplicities
    top = eigenvalues.size - 1
    amplitudes = jnp.sqrt(spectrum.target_power * multiplicities)
    parts = amplitudes[:, None] * jnp.stack(list(zonal_polynomials(directions[:, 0], input_dim, top)))  # y_l(X)
    labels = parts.sum(axis=0) + noise
    conditioned = condition(kernel, labels, temperature)
    dual = conditioned.discrepancy
    inverse = jsl.cho_solve((conditioned.cholesky, True), jnp.eye(count))
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
        train_error=temperature**2 * jnp.mean(dual**2),
        posterior_variance=spectrum.total - (eigenvalues * multiplicities) @ learned,
        effective_dimension=count - temperature * jnp.trace(inverse),
        target_learnability=overlap / power,
        squared_discrepancy=jnp.mean(dual**2),
        learnability=learned,
    )
