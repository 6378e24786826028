"""Power laws of random-feature ridge regression: exponents of the error when width and ridge are powers of the sample size."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import System, parameter, part
from orderparam.core.verb import theory
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.random_features.spectral import SpectralFeatures, deterministic_equivalent


class DecayExponents(NamedTuple):
    """Bias ~ n^-bias, variance ~ n^-variance; total: of the excess risk with label noise, by the slower of the two."""

    bias: float
    variance: float
    total: float


def scaling_exponents(capacity: float, source: float, ridge_exponent: float, width_exponent: float) -> DecayExponents:
    """For s_k = k^-capacity, b_k^2 = k^(-1 - 2 source capacity), ridge = n^(1 - l), p = n^q.

    l = ridge_exponent is that of the ridge beside the mean loss, q = width_exponent. With k = min(l/capacity, q, 1): variance
    1 - k, bias min(2 capacity k min(source, 1), 2 capacity k min(source, 1/2) + q - k). Derived from
    `deterministic_equivalent` for this package and checked against its slopes. Raises `ValueError` for numbers without meaning.
    """
    if not (capacity > 0 and source > 0 and ridge_exponent >= 0 and width_exponent > 0):
        raise ValueError(
            f"capacity = {capacity}, source = {source}, ridge_exponent = {ridge_exponent}, width_exponent = {width_exponent}: "
            "must be > 0, ridge_exponent >= 0"
        )
    k = min(ridge_exponent / capacity, width_exponent, 1.0)
    infinite = 2 * capacity * k * min(source, 1.0)
    bias = min(infinite, 2 * capacity * k * min(source, 0.5) + width_exponent - k)
    return DecayExponents(bias, 1 - k, min(bias, 1 - k))


class LocalExponents(Result):
    """-d log(error) / d log n along p = n^q and ridge = n^(1-l). converged: solved, and no error is too small to have a slope."""

    bias_exponent: Float[Array, ""]
    variance_exponent: Float[Array, ""]
    risk_exponent: Float[Array, ""]
    converged: Bool[Array, ""]


class ScalingPath(System):
    """p = n^width_exponent and ridge = n^(1 - ridge_exponent), label noise 1."""

    spectrum: Spectrum = part("spectrum of the kernel")
    ridge_exponent: float = parameter("l: the ridge beside the mean loss falls as n^-l", minimum=0)
    width_exponent: float = parameter("q: the width grows as n^q", above=0)
    log10_examples: float = parameter("log10 of n", default=9.0)
    noise: float = parameter("variance of the label noise", minimum=0, default=1.0)


@theory
def local_exponents(system: ScalingPath) -> LocalExponents:
    """By differentiation of `deterministic_equivalent` at one n."""

    def logs(log_n: Float[Array, ""]) -> tuple[Array, ...]:
        ridge, width = jnp.exp((1 - system.ridge_exponent) * log_n), jnp.exp(system.width_exponent * log_n)
        sizes: Any = {"n_train": jnp.exp(log_n), "width": width, "ridge": ridge}
        curve = deterministic_equivalent(SpectralFeatures(system.spectrum, **sizes, noise=system.noise))
        return jnp.log(curve.bias), jnp.log(curve.variance), jnp.log(curve.excess_risk), curve.converged.astype(float)

    at = system.log10_examples * math.log(10)
    values, slopes = jax.jvp(logs, (at,), (jnp.ones(()),))
    bias, variance, risk = -jnp.stack(slopes[:3])
    return LocalExponents(bias, variance, risk, (values[3] > 0.5) & jnp.isfinite(bias + variance + risk))
