"""Random features beyond proportional sizes: n and p of the order of powers of d, and the staircase of polynomial degrees.

Inputs x uniform on the sphere of radius sqrt(d), weights w on that of radius 1. The activation is a sum of Gegenbauer
polynomials of t = w.x, orthonormal under its law: sigma(t + bias) = sum_k c_k q_k(t), so that degree k is a level of B(d, k)
modes with eigenvalue c_k^2 / B(d, k) of the kernel, and the deterministic equivalent of `spectral` does the rest. About d^k
examples and as many features are needed for degree k: Mei, Misiakiewicz, Montanari 2022; Xiao, Hu, Misiakiewicz, Lu, Pennington
2022; Hu, Lu, Misiakiewicz 2024 (arXiv:2403.08160).
"""

import math
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from orderparam.core.system import System, parameter, structure
from orderparam.core.verb import experiment, theory
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.gaussian.draws import normal, unit
from orderparam.kernels.feature_equivalent import FeatureEquivalent, ridge_regression
from orderparam.kernels.spectra import zonal_multiplicities, zonal_polynomials
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.random_features.spectral import MeasuredRisk, SpectralFeatures, deterministic_equivalent

HIGHEST = 12  # degrees beyond act as one flat tail
_NODES, _PANELS = 60, 8


class SphereFeatures(System):
    """phi(x) = activation(W x + bias) / sqrt(p) on the sphere; square loss with `ridge` beside the summed loss (y - f)^2 / 2.

    degree_power: E f_k(x)^2 of the target's part of degree k = 0, 1, ...; each part a random polynomial of its degree.
    """

    input_dim: int = structure("input dimension d", minimum=3)
    width: float = parameter("number of features p", above=0)
    n_train: float = parameter("number of training examples n", above=0)
    ridge: float = parameter("penalty beside the summed loss", above=0)
    degree_power: tuple[float, ...] = structure("power of the target in each degree", minimum=0)
    activation: Activation = structure(
        "nonlinearity of the features", convert=activation, choices=activation_names, default="relu"
    )
    bias: float = structure("bias of the features", default=0.0)
    noise: float = parameter("variance of the label noise", minimum=0, default=0.0)

    def __check_init__(self) -> None:
        if not 1 <= len(self.degree_power) <= HIGHEST + 1:
            raise ValueError(f"SphereFeatures.degree_power = {self.degree_power!r}: must be up to {HIGHEST + 1} numbers >= 0")

    @property
    def spectrum(self) -> Spectrum:
        """Levels of the kernel by degree, and the target's power in them."""
        return _spectrum(self.input_dim, self.activation, self.bias, self.degree_power)


@theory
def polynomial_regime(system: SphereFeatures) -> FeatureEquivalent:
    """`deterministic_equivalent` of the map; for an infinitely wide one (kernel regression) take width = 1e15."""
    return deterministic_equivalent(SpectralFeatures(system.spectrum, system.n_train, system.width, system.ridge, system.noise))


@experiment
def learn_on_sphere(system: SphereFeatures, key: PRNGKeyArray, *, test_points: int = 4000) -> MeasuredRisk:
    """Ridge regression on real features; the error on `test_points` fresh inputs, without label noise.

    The target's part of degree k is sum_j a_j P_k(theta_j.x) with d random directions and Gaussian a_j, scaled to its power.
    """
    n, p, d = system.size("n_train"), system.size("width"), system.input_dim
    keys = jax.random.split(key, 6)
    rows, directions = (unit(normal(k, count, d)) for k, count in ((keys[0], p), (keys[1], d)))
    train, test = (math.sqrt(d) * unit(normal(k, count, d)) for k, count in ((keys[2], n), (keys[3], test_points)))
    weights = normal(keys[4], len(system.degree_power), d)
    noise = jnp.sqrt(system.noise) * normal(keys[5], n)
    return _measured(system, rows, directions, weights, train, test, noise)


@jax.jit
def _measured(
    system: SphereFeatures, rows: Array, directions: Array, weights: Array, train: Array, test: Array, noise: Array
) -> MeasuredRisk:
    def features(x: Array) -> Array:
        return system.activation(x @ rows.T + system.bias) / jnp.sqrt(len(rows))

    target = _targets(system, directions, weights)
    readout, dimension = ridge_regression(features(train), target(train) + noise, system.ridge)
    return MeasuredRisk(jnp.mean((target(test) - features(test) @ readout) ** 2), dimension)


def _targets(system: SphereFeatures, directions: Array, weights: Array) -> Any:
    """x -> f*(x). E P_k(a.x) P_k(b.x) = P_k(a.b) / B(d, k) gives the scale of every degree."""
    d, top = system.input_dim, len(system.degree_power) - 1
    between = list(zonal_polynomials(directions @ directions.T, d, top))
    sizes = zonal_multiplicities(d, top)

    def target(x: Array) -> Array:
        total = jnp.zeros(len(x))
        for k, part in enumerate(zonal_polynomials(x @ directions.T / math.sqrt(d), d, top)):
            scale = jnp.sqrt(system.degree_power[k] * sizes[k] / (weights[k] @ between[k] @ weights[k]))
            total = total + scale * part @ weights[k]
        return total

    return target


@lru_cache(maxsize=64)
def _spectrum(input_dim: int, activation: Activation, bias: float, degree_power: tuple[float, ...]) -> Spectrum:
    """By Gauss-Legendre quadrature over the angle between w and x, cut where the activation has a kink."""
    radius = math.sqrt(input_dim)
    kinks = [math.acos((kink - bias) / radius) for kink in activation.kinks if abs(kink - bias) < radius]
    edges = np.array([0.0, *sorted(kinks), math.pi])
    edges = np.interp(np.linspace(0, len(edges) - 1, _PANELS * (len(edges) - 1) + 1), np.arange(len(edges)), edges)
    x, w = np.polynomial.legendre.leggauss(_NODES)
    half = np.diff(edges)[:, None] / 2
    angle, weight = (edges[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()
    weight = weight * np.sin(angle) ** (input_dim - 2)
    weight = weight / weight.sum()
    cosine = np.cos(angle)
    with jax.ensure_compile_time_eval():
        values = np.asarray(activation(radius * cosine + bias))
    polynomials = np.stack(list(zonal_polynomials(cosine, input_dim, HIGHEST)))
    eigenvalues = (polynomials @ (weight * values)) ** 2  # c_k^2 / B(d, k)
    counts = zonal_multiplicities(input_dim, HIGHEST)
    tail = max(float(weight @ values**2 - eigenvalues @ counts), 0.0)
    power = np.pad(np.array(degree_power), (0, HIGHEST + 1 - len(degree_power)))
    with jax.ensure_compile_time_eval():
        return Spectrum(eigenvalues, power, counts, tail)
