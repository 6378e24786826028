"""What the label of a committee says of the fields of its hidden units.

The fields z of an example are known up to a Gaussian, z ~ N(w, V) with V = D 1 - C 11^T (V is symmetric under exchange of the
units). A factor e common to all makes the units independent: z_k = w_k + sqrt(-C) e + sqrt(D) x_k with e, x_k standard normal, an
imaginary factor for C > 0, to which the normal distribution function continues analytically:

    P(m of the signs are +) = E_e [t^m] prod_k (1 - p_k + t p_k),    p_k = Phi((w_k + sqrt(-C) e) / sqrt(D)),

one integral for any K, which equal steps of e give to rounding; it converges as long as V is positive definite. For K = 2 it is
the bivariate normal distribution function.
"""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

_STEPS, _REACH = 40, 8.5
_RATIONAL = 32


def label_counts(hidden: int, rule: str) -> Float[np.ndarray, "label count"]:
    """For every label, the numbers m = 0 .. K of positive signs that give it: labels -1, (0,) 1."""
    m = np.arange(hidden + 1)
    value = np.sign(2 * m - hidden) if rule == "majority" else (-1.0) ** (hidden - m)
    return (value == np.unique(value)[:, None]).astype(float)


def label_values(hidden: int, rule: str) -> Float[np.ndarray, "label"]:
    return np.array([-1.0, 0.0, 1.0]) if rule == "majority" and hidden % 2 == 0 else np.array([-1.0, 1.0])


def evidence(
    fields: Float[Array, "*batch hidden"],
    own: Float[Array, ""],
    common: Float[Array, ""],
    counts: Float[np.ndarray, "label count"],
) -> tuple[Float[Array, "*batch label"], Float[Array, "*batch label hidden"]]:
    """Z_y(w, V) = P(y | z ~ N(w, V)) and its gradient in w, V = own 1 - common 11^T positive definite."""
    hidden = fields.shape[-1]
    # The factor reaches further where V is nearly singular.
    reach = _REACH / jnp.sqrt(jnp.maximum(1 - hidden * jnp.maximum(common, 0.0) / own, 1e-4))
    e = reach * jnp.linspace(-1.0, 1.0, _STEPS)
    weight = 2 * reach / (_STEPS - 1) * jnp.exp(-(e**2) / 2) / math.sqrt(2 * math.pi)
    shift = jnp.sqrt((-common / own).astype(complex)) * e
    h = (fields / jnp.sqrt(own))[..., None, :] + shift[:, None]
    up = normal_cdf(h)
    slope = jnp.exp(-(h**2) / 2) / jnp.sqrt(2 * np.pi * own)
    whole, without = _products(up)
    label = jnp.asarray(counts)
    difference = label[:, 1:] - label[:, :-1]  # of a unit that turns from - to +
    value = jnp.einsum("s,...sm,lm->...l", weight, whole, label).real
    gradient = jnp.einsum("s,...sk,...skm,lm->...lk", weight, slope, without, difference).real
    return value, gradient


def _products(up: Complex[Array, "*batch hidden"]) -> tuple[Complex[Array, "*batch count"], Complex[Array, "*batch hidden rest"]]:
    """The coefficients of prod_k (1 - p_k + t p_k), and those of the products with one factor left out."""
    hidden = up.shape[-1]

    def times(polynomial: Array, p: Array) -> Array:
        p, zero = p[..., None], jnp.zeros_like(polynomial[..., :1])
        return jnp.concatenate([polynomial * (1 - p), zero], -1) + jnp.concatenate([zero, polynomial * p], -1)

    def product(chosen: list[int]) -> Array:
        total = jnp.ones_like(up[..., :1])
        for k in chosen:
            total = times(total, up[..., k])
        return total

    units = list(range(hidden))
    return product(units), jnp.stack([product([j for j in units if j != k]) for k in units], axis=-2)


@cache
def _rational() -> tuple[float, np.ndarray]:
    """Weideman's rational approximation of the complex error function, SIAM J. Numer. Anal. 31, 1497 (1994)."""
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
    # A loop, and real numbers: several times faster than what is made of complex ones.
    x, y = ratio.real, ratio.imag

    def horner(i: Array, value: tuple[Array, Array]) -> tuple[Array, Array]:
        a, b = value
        return a * x - b * y + jnp.asarray(coefficients)[i], a * y + b * x

    a, b = jax.lax.fori_loop(0, len(coefficients), horner, (jnp.zeros_like(x), jnp.zeros_like(y)))
    value = jax.lax.complex(a, b)
    tail = jnp.exp(-(u**2)) * (2 * value * below**2 + below / math.sqrt(math.pi)) / 2
    return jnp.where(h.real > 0, 1 - tail, tail)
