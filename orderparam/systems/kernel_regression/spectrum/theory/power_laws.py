"""Exponents and prefactors of the learning curve when spectrum and target are power laws: the four regimes."""

import math

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float
from scipy.special import zeta

from orderparam.core.result import Result
from orderparam.kernels.spectra import check_above


class ScalingRegime(Result):
    """Leading behaviour for many examples: test_error = bias + variance.

    bias_exponent, variance_exponent: bias ~ n^-bias_exponent, variance ~ n^-variance_exponent.
    exponent: that of the larger of the two for n -> infinity; without label noise that of the bias.
    """

    test_error: Float[Array, "n_train"]
    bias: Float[Array, "n_train"]
    variance: Float[Array, "n_train"]
    bias_exponent: Float[Array, ""]
    variance_exponent: Float[Array, ""]
    exponent: Float[Array, ""]


def scaling_law(
    n_train: Float[ArrayLike, "n_train"],
    capacity: float,
    source: float,
    *,
    noise: float = 0.0,
    ridge_exponent: float = math.inf,
    ridge_scale: float = 1.0,
) -> ScalingRegime:
    """lambda_k = k^-alpha, y_k^2 = k^(-1 - 2 r alpha), label noise s2 and ridge T = n ridge_scale n^-l, for n -> infinity.

        l < alpha:  kappa = ridge_scale n^-l,   bias = B(kappa),         variance = s2 (1 - 1/alpha) I kappa^(-1/alpha) / n
        l > alpha:  kappa = (I/n)^alpha,        bias = alpha B(kappa),   variance = s2 (alpha - 1)
        B(kappa) = kappa^2r pi (1 - 2r) / (alpha sin 2 pi r)  for r < 1,   kappa^2 zeta(1 + 2 alpha (r - 1))  for r > 1

    with I = (pi/alpha) / sin(pi/alpha). capacity: alpha > 1; source: r > 0, not 1 (a logarithm there); ridge_exponent: l > 0, not
    alpha. The exponents, bias 2 min(l, alpha) min(r, 1) and variance 1 - min(l, alpha)/alpha, are those of Caponnetto and De Vito
    (2007) and of the four regimes of Cui, Loureiro, Krzakala and Zdeborova (2021); without noise also of Spigler, Geiger and
    Wyart (2020). The prefactors were derived for this package from the self-consistent theory.
    """
    for name, value, least in (("capacity", capacity, 1), ("source", source, 0), ("ridge_scale", ridge_scale, 0)):
        check_above(name, value, least)
    if not (math.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise = {noise!r}: must be finite and >= 0")
    if source == 1:
        raise ValueError("source = 1: the law has a logarithm there; take a value on either side")
    if not ridge_exponent > 0 or ridge_exponent == capacity:
        raise ValueError(f"ridge_exponent = {ridge_exponent!r}: must be > 0 and differ from the capacity, {capacity}")
    n = jnp.asarray(n_train, float)
    ridgeless = ridge_exponent > capacity
    integral = 1 / np.sinc(1 / capacity)  # I: np.sinc(x) is sin(pi x)/(pi x)
    kappa = (integral / n) ** capacity if ridgeless else ridge_scale * n**-ridge_exponent
    if source < 1:
        bias = kappa ** (2 * source) / (capacity * np.sinc(1 - 2 * source))
    else:
        bias = kappa**2 * zeta(1 + 2 * capacity * (source - 1))
    if ridgeless:
        bias, variance = capacity * bias, jnp.full_like(n, noise * (capacity - 1))
    else:
        variance = noise * (1 - 1 / capacity) * integral * kappa ** (-1 / capacity) / n
    slowest = min(ridge_exponent, capacity)
    bias_exponent = 2 * slowest * min(source, 1)
    variance_exponent = 1 - slowest / capacity
    return ScalingRegime(
        test_error=bias + variance,
        bias=bias,
        variance=variance,
        bias_exponent=jnp.asarray(bias_exponent),
        variance_exponent=jnp.asarray(variance_exponent),
        exponent=jnp.asarray(min(bias_exponent, variance_exponent) if noise > 0 else bias_exponent),
    )
