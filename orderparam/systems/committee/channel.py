"""Probability of a committee's label when the fields of its hidden units have a Gaussian law.

The fields z of the K hidden units for one example have the law z ~ N(w, V). V is symmetric under
exchange of the units, so that V = D 1 - C 11^T with two numbers D (`own`) and C (`common`). Written
with one common normal variable e, the fields are independent of one another given e: z_k = w_k +
sqrt(-C) e + sqrt(D) x_k with e and x_k standard normal. For C > 0 the factor sqrt(-C) is imaginary,
and the normal distribution function Phi is continued analytically. With [t^m], the coefficient of
t^m,

    P(m of the signs are +) = E_e [t^m] prod_k (1 - p_k + t p_k),
    p_k = Phi((w_k + sqrt(-C) e) / sqrt(D)).

This is one integral over e for any K. The trapezoidal rule in e gives it to rounding, and the
integral converges as long as V is positive definite. For K = 2 the probability is the bivariate
normal distribution function, a real integral over the correlation of the two fields (Plackett
1954).
"""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, Complex, Float

from orderparam.gaussian.rules import legendre_rule

_STEPS, _REACH = 28, 8.5  # number of quadrature nodes of e, and the largest |e| if V is regular
_FINITE = 37.0  # exp(37^2/2) does not overflow
_GROWING = 8.0  # the steps of e are nearly equal up to here, and grow beyond
_RATIONAL = 32  # number of terms of the rational approximation of the error function
# The mean over e and -e is a smooth function of C at C = 0, but sqrt(-C) is not. This offset under
# the root makes the derivative in C finite; at C = 0 it is accurate to 1e-7.
_OFF_ROOT = 1e-18
# nodes of Plackett's integral: accurate to 1e-15 up to correlations of 0.95, to 1e-9 up to 0.99
_ANGLES = 20


def label_counts(hidden: int, rule: str) -> Float[np.ndarray, "label count"]:
    """Numbers of positive signs that give each label.

    Args:
        hidden: number K of hidden units.
        rule: "majority" or "parity".

    Returns:
        an array of shape (label, K + 1): 1 where m = 0 .. K positive signs give the label, else 0.
            The labels are -1, 1, with 0 between them for a majority of an even number of units.
    """
    m = np.arange(hidden + 1)
    value = np.sign(2 * m - hidden) if rule == "majority" else (-1.0) ** (hidden - m)
    return (value == np.unique(value)[:, None]).astype(float)


def label_values(hidden: int, rule: str) -> Float[np.ndarray, "label"]:
    """Values of the labels, in the order of `label_counts`."""
    return (
        np.array([-1.0, 0.0, 1.0])
        if rule == "majority" and hidden % 2 == 0
        else np.array([-1.0, 1.0])
    )


def evidence(
    fields: Float[Array, "*batch hidden"],
    own: Float[Array, ""],
    common: Float[Array, ""],
    counts: Float[np.ndarray, "label count"],
) -> tuple[Float[Array, "*batch label"], Float[Array, "*batch label hidden"]]:
    """Probability Z_y(w, V) = P(y | z ~ N(w, V)) of every label, and its gradient in w.

    Args:
        fields: means w of the fields of the hidden units, along the last axis.
        own: D of the covariance V = D 1 - C 11^T, which must be positive definite.
        common: C of the covariance V.
        counts: the result of `label_counts`.

    Returns:
        the probabilities, of shape (..., label), and the gradients, of shape (..., label, hidden).
    """
    chance, slope = (_two_units if fields.shape[-1] == 2 else _units)(fields, own, common)
    label = jnp.asarray(counts)
    return chance @ label.T, jnp.einsum("...km,lm->...lk", slope, label)


def _two_units(
    fields: Float[Array, "*batch hidden"], own: Float[Array, ""], common: Float[Array, ""]
) -> tuple[Float[Array, "*batch count"], Float[Array, "*batch hidden count"]]:
    """P(m of the signs are +) and its gradient in the fields, for two units."""
    # Both fields have the variance D - C and the covariance -C.
    variance = own - common
    correlation = -common / variance
    h = fields / jnp.sqrt(variance)
    other = (h[..., ::-1] - correlation * h) / jnp.sqrt(1 - correlation**2)
    nodes, weights = legendre_rule(_ANGLES)
    angle = jnp.arcsin(correlation) * (1 + nodes) / 2
    squares, product = jnp.sum(h**2, axis=-1)[..., None], jnp.prod(h, axis=-1)[..., None]
    density = jnp.exp((product * jnp.sin(angle) - squares / 2) / jnp.cos(angle) ** 2)
    together = density @ jnp.asarray(weights) * jnp.arcsin(correlation) / (4 * math.pi)
    # P(both signs +) = Phi(h_1) Phi(h_2) + (1/2 pi) times an integral over the angle, from 0 to
    # asin(correlation); P(both signs -) has -h_k in the first term and the same integral.
    none, both = (jnp.prod(ndtr(sign * h), axis=-1) + together for sign in (-1, 1))
    here = jnp.exp(-(h**2) / 2) / jnp.sqrt(2 * math.pi * variance)
    down, up = -here * ndtr(-other), here * ndtr(other)
    return jnp.stack([none, 1 - none - both, both], axis=-1), jnp.stack(
        [down, -down - up, up], axis=-1
    )


def _units(
    fields: Float[Array, "*batch hidden"], own: Float[Array, ""], common: Float[Array, ""]
) -> tuple[Float[Array, "*batch count"], Float[Array, "*batch hidden count"]]:
    """P(m of the signs are +) and its gradient in the fields, for any number of units."""
    hidden = fields.shape[-1]
    # If V is nearly singular the integrand is wide: the range of e is larger, and the steps of e
    # grow away from zero. For C >= 0 the integrands at e and -e are complex conjugates, so that e >
    # 0 suffices.
    reach = _REACH / jnp.sqrt(jnp.maximum(1 - hidden * jnp.maximum(common, 0.0) / own, 1e-2))
    reach = jnp.minimum(reach, _FINITE * jnp.sqrt(own / jnp.maximum(common, 1e-9)))
    part, length = (jnp.arange(_STEPS) + 0.5) / _STEPS, jnp.arcsinh(reach / _GROWING)
    t = length * jnp.where(common >= 0, part, 2 * part - 1)
    e = _GROWING * jnp.sinh(t)
    weight = 2 * length / _STEPS * _GROWING * jnp.cosh(t) / math.sqrt(2 * math.pi)
    # Each of the K factors of the product carries the K-th root of the normal density of e, so that
    # no partial product overflows.
    share = jnp.exp(-(e**2) / (2 * hidden))[:, None]
    h = (fields / jnp.sqrt(own))[..., None, :] + (
        jnp.sqrt((-common / own - _OFF_ROOT).astype(complex)) * e
    )[:, None]
    slope = share * jnp.exp(-(h**2) / 2) / jnp.sqrt(2 * np.pi * own)
    up = share * normal_cdf(h)
    whole, without = _products(share - up, up)
    # Derivative in w_k: unit k turns from - to +, and m grows by one. The other units have m signs
    # + before and after.
    none = jnp.zeros_like(without[..., :1])
    turned = jnp.concatenate([none, without], axis=-1) - jnp.concatenate([without, none], axis=-1)
    return jnp.einsum("s,...sm->...m", weight, whole).real, jnp.einsum(
        "s,...sk,...skm->...km", weight, slope, turned
    ).real


def _products(
    down: Complex[Array, "*batch hidden"], up: Complex[Array, "*batch hidden"]
) -> tuple[Complex[Array, "*batch count"], Complex[Array, "*batch hidden rest"]]:
    """Coefficients in t of prod_k (down_k + t up_k), and of the products without the factor k, for
    each k.
    """
    hidden = up.shape[-1]

    def times(polynomial: Array, k: int) -> Array:
        zero = jnp.zeros_like(polynomial[..., :1])
        same, more = polynomial * down[..., k, None], polynomial * up[..., k, None]
        return jnp.concatenate([same, zero], -1) + jnp.concatenate([zero, more], -1)

    def product(chosen: list[int]) -> Array:
        total = jnp.ones_like(up[..., :1])
        for k in chosen:
            total = times(total, k)
        return total

    units = list(range(hidden))
    return product(units), jnp.stack(
        [product([j for j in units if j != k]) for k in units], axis=-2
    )


@cache
def _rational() -> tuple[float, np.ndarray]:
    """Weideman's rational approximation of the complex error function, SIAM J. Numer. Anal. 31,
    1497 (1994)."""
    size = 2 * _RATIONAL
    length = math.sqrt(_RATIONAL / math.sqrt(2))
    theta = np.arange(-size + 1, size) * math.pi / size
    t = length * np.tan(theta / 2)
    values = np.concatenate([[0.0], np.exp(-(t**2)) * (length**2 + t**2)])
    transform = np.fft.fft(np.fft.fftshift(values)).real / (2 * size)
    return length, transform[1 : _RATIONAL + 1][::-1]


def normal_cdf(h: Complex[Array, "*batch"]) -> Complex[Array, "*batch"]:
    """Phi(h) for complex h, to 1e-13 of max(1, |phi(h)|)."""
    length, coefficients = _rational()
    u = jnp.where(h.real > 0, h, -h) / math.sqrt(2)  # erfc(u) = exp(-u^2) w(iu), Im(iu) >= 0
    below = 1 / (length + u)
    ratio = (length - u) * below
    # Real and imaginary parts are carried separately, which is several times faster than complex
    # arithmetic.
    x, y = ratio.real, ratio.imag

    def horner(i: Array, value: tuple[Array, Array]) -> tuple[Array, Array]:
        a, b = value
        return a * x - b * y + jnp.asarray(coefficients)[i], a * y + b * x

    a, b = jax.lax.fori_loop(0, len(coefficients), horner, (jnp.zeros_like(x), jnp.zeros_like(y)))
    value = jax.lax.complex(a, b)
    tail = jnp.exp(-(u**2)) * (2 * value * below**2 + below / math.sqrt(math.pi)) / 2
    return jnp.where(h.real > 0, 1 - tail, tail)
