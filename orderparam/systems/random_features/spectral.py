"""Ridge regression on random features at any numbers of examples and features, from the spectrum of
a kernel: the deterministic equivalent (`orderparam.kernels.feature_equivalent`), features on the
sphere, and power laws.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.system import System, parameter, part, structure
from orderparam.core.verb import experiment, theory
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.gaussian.draws import normal, unit
from orderparam.gaussian.rules import panel_rule
from orderparam.kernels.feature_equivalent import (
    FeatureEquivalent,
    feature_equivalent,
    gaussian_features,
    ridge_regression,
)
from orderparam.kernels.spectra import zonal_multiplicities, zonal_polynomials
from orderparam.kernels.spectrum import Spectrum


class SpectralFeatures(System):
    r"""Ridge regression on random features of a kernel with a given spectrum.

    $$ \min_a \sum_\mu \Big( y_\mu - \frac{a \cdot \phi(x_\mu)}{\sqrt p} \Big)^2 + \lambda |a|^2 $$

    with p = `width` features, `n_train` noisy labels and $\lambda$ = `ridge`.
    """

    spectrum: Spectrum = part("spectrum of the kernel that the features have in the mean")
    n_train: float = parameter("number of training examples n", above=0)
    width: float = parameter("number of features p", above=0)
    ridge: float = parameter("penalty beside the summed loss", above=0)
    noise: float = parameter("variance of the label noise", minimum=0, default=0.0)


class MeasuredRisk(Result):
    """Error of one training set and one draw of the features.

    Fields:
        excess_risk: E (f - f*)^2 (no factor 1/2, without label noise).
        effective_dimension: effective number of parameters.
    """

    excess_risk: Float[Array, ""]
    effective_dimension: Float[Array, ""]


@theory
def deterministic_equivalent(system: SpectralFeatures) -> FeatureEquivalent:
    r"""Error of ridge regression on random features for any n and p, from the kernel's spectrum.

    With eigenvalues $s_k$, target powers $b_k^2$ and $T(\nu) = \sum_k s_k / (s_k + \nu)$, the
    threshold $\nu$ (`feature_threshold`) solves

    $$ \frac{(n - T)(p - T)\, \nu}{p} = \lambda . $$

    With $q = \sum_k s_k^2 / (s_k + \nu)^2$, $t = \sum_k s_k / (s_k + \nu)^2$ and $\Upsilon =
    T^2/(np) + (1 - T/p)^2 q / (n (1 - q/p))$,

    $$ \text{bias} = \frac{\nu^2}{1 - \Upsilon} \Big[ \sum_k \frac{b_k^2}{(s_k + \nu)^2}
       + \frac{t}{p - q} \sum_k \frac{b_k^2 s_k}{(s_k + \nu)^2} \Big] , \qquad
       \text{variance} = \frac{\sigma^2 \Upsilon}{1 - \Upsilon} . $$

    Accuracy: relative corrections fall with n and p. With very few features and a vanishing ridge
    the difference p - T is lost to rounding, and `converged` is False.

    Source: Defilippis, Loureiro, Misiakiewicz (2024).

    >>> spectrum = Spectrum(np.arange(1.0, 1001) ** -2, np.arange(1.0, 1001) ** -2)
    >>> found = deterministic_equivalent(SpectralFeatures(spectrum, 200, 80, 0.1))
    >>> round(float(found.excess_risk), 5)
    0.04368
    """
    return feature_equivalent(
        system.spectrum, system.n_train, system.width, system.ridge, system.noise
    )


@experiment
def spectral_learning(system: SpectralFeatures, key: PRNGKeyArray) -> MeasuredRisk:
    r"""Measured error of ridge regression on drawn Gaussian features of a kernel whose levels are
    single modes.

    $$ \phi_i(x) = \sum_k \sqrt{s_k}\, \psi_k(x)\, \chi_{ki} $$

    with independent standard Gaussian $\psi_k(x)$ and $\chi_{ki}$. The average of the error over
    inputs is exact.

    Raises:
        ValueError: for levels of several modes, for a spectrum with a tail, and for matrices that
            would be too large.

    Cost: proportional to the number of modes times n p, plus the cube of the smaller of n and p.

    Source: Defilippis, Loureiro, Misiakiewicz (2024).

    >>> spectrum = Spectrum(np.arange(1.0, 201) ** -2, np.arange(1.0, 201) ** -2)
    >>> run = spectral_learning(SpectralFeatures(spectrum, 50, 20, 0.1), jax.random.key(0))
    >>> bool(0 < run.excess_risk < 1)
    True
    """
    spectrum = system.spectrum
    if np.any(np.asarray(spectrum.multiplicities) != 1) or float(spectrum.tail) != 0:
        raise ValueError("spectral_learning needs a spectrum of single modes without a tail")
    sizes = system.size("n_train"), system.size("width")
    risk, dimension = gaussian_features(
        spectrum.eigenvalues, spectrum.target_power, *sizes, system.ridge, system.noise, key
    )
    return MeasuredRisk(excess_risk=risk, effective_dimension=dimension)


# ------------------------------------------------------------------------------------------------
# Random features beyond proportional sizes: n and p of the order of powers of d, and the staircase
# of polynomial degrees.
#
# Inputs x uniform on the sphere of radius sqrt(d), weights w on that of radius 1. The activation is
# a sum of Gegenbauer polynomials of t = w.x, orthonormal under its law: sigma(t + bias) = sum_k c_k
# q_k(t), so that degree k is a level of B(d, k) modes with eigenvalue c_k^2 / B(d, k) of the
# kernel, to which the deterministic equivalent is applied. About d^k examples and as
# many features are needed for degree k: Mei, Misiakiewicz, Montanari 2022; Xiao, Hu, Misiakiewicz,
# Lu, Pennington 2022; Hu, Lu, Misiakiewicz 2024 (arXiv:2403.08160).

HIGHEST = 12  # all higher degrees together act as one flat tail
_NODES, _PANELS = 60, 8


class SphereFeatures(System):
    r"""Features $\phi(x) = \sigma(W x + b) / \sqrt p$ of inputs on the sphere of radius $\sqrt d$.

    The square loss $(y - f)^2/2$ is summed over the examples, and `ridge` is added to the sum.
    `degree_power` contains $E f_k(x)^2$, the power of that part $f_k$ of the target that has degree
    k = 0, 1, ...; each part is a random polynomial of its degree.

    Raises:
        ValueError: for more than 13 degrees.
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
            raise ValueError(
                f"SphereFeatures.degree_power = {self.degree_power!r}: must be up to {HIGHEST + 1} "
                "numbers >= 0"
            )

    @property
    def spectrum(self) -> Spectrum:
        """Levels of the kernel by degree, and the target's power in them."""
        return _spectrum(self.input_dim, self.activation, self.bias, self.degree_power)


@theory
def polynomial_regime(system: SphereFeatures) -> FeatureEquivalent:
    r"""Error of random features on the sphere for n and p of the order of powers of d.

    The activation is a sum of Gegenbauer polynomials, $\sigma(t + b) = \sum_k c_k q_k(t)$, and
    degree $k$ is a level of $B(d, k)$ modes with the eigenvalue

    $$ s_k = \frac{c_k^2}{B(d, k)} , $$

    to which `deterministic_equivalent` is applied. Degree k is learned from about d^k examples with
    as many features. For infinitely many features, which is kernel regression, set width = 1e15.

    Accuracy: relative corrections fall with n and p.

    Source: Mei, Misiakiewicz, Montanari (2022); Hu, Lu, Misiakiewicz (2024); Defilippis, Loureiro,
    Misiakiewicz (2024).

    >>> system = SphereFeatures(30, 300, 200, 0.01, (0.0, 1.0, 1.0))
    >>> round(float(polynomial_regime(system).excess_risk), 4)
    1.3598
    """
    return deterministic_equivalent(
        SpectralFeatures(system.spectrum, system.n_train, system.width, system.ridge, system.noise)
    )


@experiment
def learn_on_sphere(
    system: SphereFeatures, key: PRNGKeyArray, *, test_points: int = 4000
) -> MeasuredRisk:
    r"""Error of ridge regression on random features of inputs on the sphere, on fresh inputs.

    The part of degree $k$ of the target is $\sum_j a_j P_k(\theta_j \cdot x)$ with d random
    directions $\theta_j$ and Gaussian $a_j$, scaled such that its power is that of `degree_power`.

    Args:
        test_points: number of fresh inputs on which the error is measured; 4000 by default.

    Source: Mei, Misiakiewicz, Montanari (2022); Hu, Lu, Misiakiewicz (2024).

    >>> system = SphereFeatures(10, 50, 40, 0.01, (0.0, 1.0, 1.0))
    >>> run = learn_on_sphere(system, jax.random.key(0), test_points=1000)
    >>> bool(run.excess_risk > 0)
    True
    """
    n, p, d = system.size("n_train"), system.size("width"), system.input_dim
    keys = jax.random.split(key, 6)
    rows, directions = (unit(normal(k, count, d)) for k, count in ((keys[0], p), (keys[1], d)))
    train, test = (
        math.sqrt(d) * unit(normal(k, count, d))
        for k, count in ((keys[2], n), (keys[3], test_points))
    )
    weights = normal(keys[4], len(system.degree_power), d)
    noise = jnp.sqrt(system.noise) * normal(keys[5], n)
    return _measured(system, rows, directions, weights, train, test, noise)


@jax.jit
def _measured(
    system: SphereFeatures,
    rows: Array,
    directions: Array,
    weights: Array,
    train: Array,
    test: Array,
    noise: Array,
) -> MeasuredRisk:
    def features(x: Array) -> Array:
        return system.activation(x @ rows.T + system.bias) / jnp.sqrt(len(rows))

    target = _targets(system, directions, weights)
    readout, dimension = ridge_regression(features(train), target(train) + noise, system.ridge)
    return MeasuredRisk(
        excess_risk=jnp.mean((target(test) - features(test) @ readout) ** 2),
        effective_dimension=dimension,
    )


def _targets(system: SphereFeatures, directions: Array, weights: Array) -> Any:
    """The target function x -> f*(x). The scale of every degree follows from E P_k(a.x) P_k(b.x) =
    P_k(a.b) / B(d, k).
    """
    d, top = system.input_dim, len(system.degree_power) - 1
    between = list(zonal_polynomials(directions @ directions.T, d, top))
    sizes = zonal_multiplicities(d, top)

    def target(x: Array) -> Array:
        total = jnp.zeros(len(x))
        for k, zonal in enumerate(zonal_polynomials(x @ directions.T / math.sqrt(d), d, top)):
            scale = jnp.sqrt(
                system.degree_power[k] * sizes[k] / (weights[k] @ between[k] @ weights[k])
            )
            total = total + scale * zonal @ weights[k]
        return total

    return target


@lru_cache(maxsize=64)
def _spectrum(
    input_dim: int, activation: Activation, bias: float, degree_power: tuple[float, ...]
) -> Spectrum:
    """The spectrum, by Gauss-Legendre quadrature over the angle between w and x. The interval is
    divided where the activation has a kink.
    """
    radius = math.sqrt(input_dim)
    kinks = [
        math.acos((kink - bias) / radius) for kink in activation.kinks if abs(kink - bias) < radius
    ]
    edges = np.array([0.0, *sorted(kinks), math.pi])
    edges = np.interp(
        np.linspace(0, len(edges) - 1, _PANELS * (len(edges) - 1) + 1), np.arange(len(edges)), edges
    )
    angle, weight = panel_rule(edges, _NODES)
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


# ------------------------------------------------------------------------------------------------
# Power laws of random-feature ridge regression: exponents of the error when width and ridge are
# powers of the sample size.


class DecayExponents(NamedTuple):
    """Exponents of the error in n.

    Fields:
        bias: the bias falls as n^-bias.
        variance: the variance falls as n^-variance.
        total: exponent of the excess risk with label noise, which is the smaller of the two.
    """

    bias: float
    variance: float
    total: float


def scaling_exponents(
    capacity: float, source: float, ridge_exponent: float, width_exponent: float
) -> DecayExponents:
    """Exponents of bias and variance for power-law spectra, where width and ridge are powers of n.

    For s_k = k^-capacity, b_k^2 = k^(-1 - 2 source capacity), ridge = n^(1 - l) and p = n^q, let k
    = min(l/capacity, q, 1). The variance falls with the exponent 1 - k, and the bias with the
    exponent min(2 capacity k min(source, 1), 2 capacity k min(source, 1/2) + q - k).

    Args:
        capacity: decay of the eigenvalues, positive.
        source: source exponent of the target, positive.
        ridge_exponent: l >= 0; the ridge of the mean loss falls as n^-l.
        width_exponent: q > 0.

    Raises:
        ValueError: for numbers outside of these ranges.

    Source: derived here, from the equations of Defilippis, Loureiro, Misiakiewicz (2024).

    >>> scaling_exponents(2.0, 0.5, 1.0, 1.0)
    DecayExponents(bias=1.0, variance=0.5, total=0.5)
    """
    if not (capacity > 0 and source > 0 and ridge_exponent >= 0 and width_exponent > 0):
        raise ValueError(
            f"capacity = {capacity}, source = {source}, ridge_exponent = {ridge_exponent}, "
            f"width_exponent = {width_exponent}: must be > 0, ridge_exponent >= 0"
        )
    k = min(ridge_exponent / capacity, width_exponent, 1.0)
    infinite = 2 * capacity * k * min(source, 1.0)
    bias = min(infinite, 2 * capacity * k * min(source, 0.5) + width_exponent - k)
    return DecayExponents(bias, 1 - k, min(bias, 1 - k))


class LocalExponents(Result):
    """Local exponents -d log(error) / d log n along p = n^q and ridge = n^(1-l).

    Fields:
        bias_exponent: exponent of the bias.
        variance_exponent: exponent of the variance.
        risk_exponent: exponent of the excess risk.
        converged: whether the equations were solved and all errors are large enough for a slope.
    """

    bias_exponent: Float[Array, ""]
    variance_exponent: Float[Array, ""]
    risk_exponent: Float[Array, ""]
    converged: Bool[Array, ""]


class ScalingPath(System):
    """A path p = n^width_exponent, ridge = n^(1 - ridge_exponent) on which the sizes grow
    together."""

    spectrum: Spectrum = part("spectrum of the kernel")
    ridge_exponent: float = parameter("l: the ridge beside the mean loss falls as n^-l", minimum=0)
    width_exponent: float = parameter("q: the width grows as n^q", above=0)
    log10_examples: float = parameter("log10 of n", default=9.0)
    noise: float = parameter("variance of the label noise", minimum=0, default=1.0)


@theory
def local_exponents(system: ScalingPath) -> LocalExponents:
    r"""Slopes of bias, variance and excess risk in n along a path of widths and ridges.

    $$ \text{risk\_exponent} = -\frac{d \ln \text{excess\_risk}}{d \ln n} , \qquad
       p = n^q , \quad \lambda = n^{1 - l} , $$

    computed by differentiating `deterministic_equivalent` at n = 10^`log10_examples`.
    `scaling_exponents` gives the limits of large n for power laws.

    Source: Defilippis, Loureiro, Misiakiewicz (2024).

    >>> from orderparam.kernels.spectra import power_law
    >>> path = ScalingPath(power_law(2.0, 0.5), 1.0, 1.0, log10_examples=5.0)
    >>> round(float(local_exponents(path).variance_exponent), 3)
    0.499
    """

    def logs(log_n: Float[Array, ""]) -> tuple[Array, ...]:
        ridge, width = (
            jnp.exp((1 - system.ridge_exponent) * log_n),
            jnp.exp(system.width_exponent * log_n),
        )
        sizes: Any = {"n_train": jnp.exp(log_n), "width": width, "ridge": ridge}
        curve = deterministic_equivalent(
            SpectralFeatures(system.spectrum, **sizes, noise=system.noise)
        )
        return (
            jnp.log(curve.bias),
            jnp.log(curve.variance),
            jnp.log(curve.excess_risk),
            curve.converged.astype(float),
        )

    at = system.log10_examples * math.log(10)
    values, slopes = jax.jvp(logs, (at,), (jnp.ones(()),))
    bias, variance, risk = -jnp.stack(slopes[:3])
    return LocalExponents(
        bias_exponent=bias,
        variance_exponent=variance,
        risk_exponent=risk,
        converged=(values[3] > 0.5) & jnp.isfinite(bias + variance + risk),
    )
