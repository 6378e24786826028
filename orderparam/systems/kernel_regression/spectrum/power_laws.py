"""Exponents and prefactors of the learning curve when spectrum and target are power laws: the four
regimes."""

import math

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from orderparam.core.late import zeta
from orderparam.core.result import Result
from orderparam.kernels.spectra import check_above


class ScalingRegime(Result):
    """Leading behaviour of the error for a large number n of examples, with its exponents.

    Fields:
        test_error: bias + variance, against targets without noise.
        bias: bias, which falls as n^-bias_exponent.
        variance: variance due to the label noise, which falls as n^-variance_exponent.
        bias_exponent: exponent of the bias.
        variance_exponent: exponent of the variance.
        exponent: exponent of the test error: the smaller of both exponents, or that of the bias if
            there is no label noise.
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
    r"""Test error for many examples when the spectrum and the target are power laws.

    The eigenvalues are $\lambda_k = k^{-\alpha}$ with $\alpha$ = `capacity`, the target power is
    $y_k^2 = k^{-1-2r\alpha}$ with r = `source`, the ridge is $T = n\, c\, n^{-l}$ with c =
    `ridge_scale` and l = `ridge_exponent`, and s = `noise`. Bias and variance follow from the
    threshold $\kappa$ of `self_consistent`. With $I = (\pi/\alpha) / \sin(\pi/\alpha)$,

    $$ l < \alpha: \quad \kappa = c\, n^{-l}, \quad \mathrm{bias} = B(\kappa), \quad
       \mathrm{variance} = s (1 - 1/\alpha)\, I\, \kappa^{-1/\alpha} / n $$

    $$ l > \alpha: \quad \kappa = (I/n)^\alpha, \quad \mathrm{bias} = \alpha B(\kappa), \quad
       \mathrm{variance} = s (\alpha - 1) $$

    with $B = \kappa^{2r} \pi (1 - 2r) / (\alpha \sin 2\pi r)$ for r < 1 and $B = \kappa^2 \zeta(1 +
    2\alpha(r - 1))$ for r > 1. The exponents are 2 min(l, alpha) min(r, 1) of the bias and 1 -
    min(l, alpha)/alpha of the variance.

    Args:
        n_train: numbers n of examples.
        capacity: exponent alpha > 1 of the spectrum.
        source: exponent r > 0 of the target. r = 1, where the law has a logarithm, is excluded.
        noise: variance s >= 0 of the label noise. Default 0.
        ridge_exponent: exponent l > 0, different from alpha. Default infinity: no ridge.
        ridge_scale: c > 0. Default 1.

    Raises:
        ValueError: for a value outside of these ranges.

    Accuracy: leading order for n -> infinity.

    Source: exponents by Caponnetto, De Vito (2007) and Cui et al. (2021), without noise also by
    Spigler, Geiger, Wyart (2020); prefactors derived here from the self-consistent theory.

    >>> law = scaling_law([100.0], capacity=1.5, source=0.4, noise=0.1, ridge_exponent=0.5)
    >>> float(law.bias_exponent), round(float(law.variance_exponent), 6)
    (0.4, 0.666667)
    """
    for name, value, least in (
        ("capacity", capacity, 1),
        ("source", source, 0),
        ("ridge_scale", ridge_scale, 0),
    ):
        check_above(name, value, least)
    if not (math.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise = {noise!r}: must be finite and >= 0")
    if source == 1:
        raise ValueError("source = 1: the law has a logarithm there; take a value on either side")
    if not ridge_exponent > 0 or ridge_exponent == capacity:
        raise ValueError(
            f"ridge_exponent = {ridge_exponent!r}: must be > 0 and differ from the capacity, "
            f"{capacity}"
        )
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
    # kappa is the larger of the given ridge per example, n^-l, and the ridge due to the unlearned
    # modes, n^-alpha: kappa ~ n^-min(l, alpha).
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
