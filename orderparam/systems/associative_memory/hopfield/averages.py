"""Averages of functions of tanh(h/T) over a Gaussian field h, at every temperature, zero included.

Two sums are used. If the standard deviation of the field is below T, tanh(h/T) is smooth on the
scale of the field, and the average is a sum over h. Otherwise the average of sign h is taken in
closed form, and the difference of tanh x and sign x is summed over x = h/T; this difference decays
like exp(-2|x|), a scale on which the density of the field is smooth. Neither sum loses digits, and
neither do its derivatives with respect to the mean, the standard deviation and the temperature.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Float

from orderparam.gaussian.rules import normal_steps, panel_rule

Number = Float[Array, ""]


class FieldAverages(NamedTuple):
    """Averages over a Gaussian field h ~ N(mean, deviation^2).

    tanh: E tanh(h/T). square: E tanh(h/T)^2. response: E d tanh(h/T)/dh. fourth: T E (d
    tanh(h/T)/dh)^2. log_cosh: T E ln 2cosh(h/T). entropy: E [ln 2cosh(h/T) - (h/T) tanh(h/T)].
    """

    tanh: Number
    square: Number
    response: Number
    fourth: Number
    log_cosh: Number
    entropy: Number


# Grid of z: the trapezoidal rule has an error of exp(-2 pi (pi/2) / step) for tanh(u + w z) with w
# <= 1.
_Z, _DZ = normal_steps(0.25, 36)
_X, _DX = panel_rule(np.array([0.0, 1.25, 2.5, 5.0, 10.0, 20.0]), 16)
_FADE = np.exp(-2 * _X)
_SLOPE = 4 * _FADE / (1 + _FADE) ** 2  # 1 - tanh^2
_BELOW = 2 * _FADE / (1 + _FADE)  # 1 - tanh
_EXCESS = np.log1p(_FADE)  # ln 2cosh x - x


# compiled code evaluates it many times: traced once for all of them
@jax.jit
def field_averages(mean: Number, deviation: Number, temperature: Number | float) -> FieldAverages:
    """All averages over the Gaussian field, to 1e-14.

    Args:
        mean: mean of the field.
        deviation: standard deviation of the field, above 0.
        temperature: temperature T, 0 included.
    """
    narrow = deviation < temperature
    chosen = zip(
        _over_field(mean, jnp.where(narrow, deviation, 1.0), jnp.where(narrow, temperature, 1.0)),
        _over_ratio(mean, jnp.where(narrow, 1.0, deviation), jnp.where(narrow, 0.0, temperature)),
    )
    return FieldAverages(*(jnp.where(narrow, first, second) for first, second in chosen))


def _over_field(mean: Number, deviation: Number, temperature: Number) -> FieldAverages:
    """Averages as sums over the field h = mean + deviation z."""
    x = (mean + deviation * _Z) / temperature
    size = jnp.abs(x)
    tanh, fade = jnp.tanh(x), jnp.exp(-2 * size)
    slope = 4 * fade / (1 + fade) ** 2
    log_cosh = size + jnp.log1p(fade)
    averaged = (
        tanh,
        tanh**2,
        slope / temperature,
        slope**2 / temperature,
        temperature * log_cosh,
        log_cosh - x * tanh,
    )
    return FieldAverages(*(jnp.sum(_DZ * values) for values in averaged))


def _over_ratio(mean: Number, deviation: Number, temperature: Number) -> FieldAverages:
    """Averages as their values at T = 0, where tanh is the sign, plus the difference from these
    values, which is a sum over x = |h|/T."""
    positive, negative = (
        jnp.exp(-(((temperature * x - mean) / deviation) ** 2) / 2)
        / (deviation * np.sqrt(2 * np.pi))
        for x in (_X, -_X)
    )
    both, difference = _DX * (positive + negative), _DX * (positive - negative)
    # With h = T x the factor T of dh cancels the 1/T of d tanh(h/T)/dh, so that T = 0 needs no
    # limit.
    response = jnp.sum(_SLOPE * both)
    size = mean * erf(mean / (deviation * np.sqrt(2))) + deviation * np.sqrt(2 / np.pi) * jnp.exp(
        -((mean / deviation) ** 2) / 2
    )
    return FieldAverages(
        tanh=erf(mean / (deviation * np.sqrt(2))) - temperature * jnp.sum(_BELOW * difference),
        square=1 - temperature * response,
        response=response,
        fourth=jnp.sum(_SLOPE**2 * both),
        log_cosh=size + temperature**2 * jnp.sum(_EXCESS * both),
        entropy=temperature * jnp.sum((_EXCESS + _X * _BELOW) * both),
    )
