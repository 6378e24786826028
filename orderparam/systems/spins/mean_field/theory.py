"""The mean-field magnet: exactly at any size, and in the limit of many spins with all its
branches."""

import math
from typing import Literal

import jax.numpy as jnp
from jax.scipy.special import gammaln, xlogy
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.root import decreasing_root
from orderparam.systems.spins.mean_field.model import MeanFieldMagnet
from orderparam.systems.spins.thermodynamics import Thermodynamics, averages

# Binder's ratio at T = 1, h = 0 as N grows, where N^(1/4) m has the density exp(-x^4/12)
CRITICAL_BINDER = 1 - math.gamma(1 / 4) * math.gamma(5 / 4) / (3 * math.gamma(3 / 4) ** 2)


class Branch(Result):
    """One solution of m = tanh((m + h)/T), per spin.

    free_energy m^2/2 - T ln 2cosh((m + h)/T), energy -m^2/2 - h m, heat_capacity its derivative in
    T, susceptibility dm/dh. valid: the solution exists; all numbers are NaN where it does not.
    residual, converged: of the equation.
    """

    magnetisation: Float[Array, ""]
    absolute_magnetisation: Float[Array, ""]
    free_energy: Float[Array, ""]
    energy: Float[Array, ""]
    heat_capacity: Float[Array, ""]
    susceptibility: Float[Array, ""]
    valid: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class Spinodal(Result):
    """spinodal_field: the largest field against which a magnetisation can stand; magnetisation: its
    modulus there.

    valid: T < 1, below which there is a metastable state at all.
    """

    spinodal_field: Float[Array, ""]
    magnetisation: Float[Array, ""]
    valid: Bool[Array, ""]


class Landau(Result):
    """The Landau function f(m) per spin, and its expansion to order m^4, at equally spaced m from
    -1 to 1.
    """

    order_parameter: Float[Array, "point"]
    landau_function: Float[Array, "point"]
    expansion: Float[Array, "point"]


@theory
def exact_magnet(system: MeanFieldMagnet) -> Thermodynamics:
    """Exact at every N: Z = sum_k C(N, k) exp(-E_k/T) over the N + 1 magnetisations m = 2k/N - 1,
    added in logarithms.
    """
    n = system.spins
    up = jnp.arange(n + 1.0)
    log_count = gammaln(n + 1.0) - gammaln(up + 1) - gammaln(n - up + 1)
    m = (2 * up - n) / n
    return averages(log_count, -(m**2) / 2 - system.field * m, m, system.temperature, n)


@theory
def mean_field(
    system: MeanFieldMagnet, *, branch: Literal["stable", "metastable", "unstable"] = "stable"
) -> Branch:
    """m = tanh((m + h)/T), exact as N grows (Weiss 1907): the stable solution, the metastable one
    against the field, or the barrier between them. In zero field the stable one is that with m >=
    0, and the metastable one its mirror image.

    The latter two exist for T < 1 and |h| up to the spinodal field. The unknown is x = (|m| -+
    |h|)/T.
    """
    temperature, strength = system.temperature, jnp.abs(system.field)
    along = jnp.where(system.field < 0, -1.0, 1.0)
    edge = _spinodal_argument(temperature)  # where tanh x has the slope T
    sign, rising = (1.0 if branch == "stable" else -1.0), branch == "unstable"

    def equation(x: Array, args: tuple[Array, Array]) -> Array:
        temperature, strength = args
        value = jnp.tanh(x) + sign * strength - temperature * x
        return -value if rising else value

    low, high = (jnp.zeros(()), edge) if rising else (edge, (1 + strength) / temperature)
    root = decreasing_root(equation, low, high, (temperature, strength))
    paramagnet = (strength == 0) & (temperature >= 1)
    x = jnp.where(paramagnet, 0.0, root.value)
    valid = (
        jnp.asarray(True)
        if branch == "stable"
        else (temperature < 1) & (strength <= _spinodal_field(temperature))
    )

    m = sign * jnp.tanh(x)  # along the field, as everything below
    fade = jnp.exp(-2 * x)
    slope = 4 * fade / (1 + fade) ** 2  # 1 - m^2
    response = slope / (temperature - slope)
    local = m + strength
    warming = jnp.where(local == 0, 0.0, -response * local / temperature)  # dm/dT
    values = (
        along * m,
        jnp.abs(m),
        m**2 / 2 - temperature * (x + jnp.log1p(fade)),
        -(m**2) / 2 - strength * m,
        -local * warming,
        response,
    )
    health = [valid, jnp.where(paramagnet, 0.0, root.residual), paramagnet | root.converged]
    return Branch(*(jnp.where(valid, value, jnp.nan) for value in values), *health)


@theory
def spinodal(system: MeanFieldMagnet) -> Spinodal:
    """Where metastable and unstable solutions meet: m_s = sqrt(1 - T), h_s = m_s - T artanh m_s,
    whatever the field is.
    """
    temperature = jnp.asarray(system.temperature)
    valid = temperature < 1
    m = jnp.sqrt(jnp.where(valid, 1 - temperature, 1.0))
    field = _spinodal_field(temperature)
    return Spinodal(jnp.where(valid, field, jnp.nan), jnp.where(valid, m, jnp.nan), valid)


@theory
def landau(system: MeanFieldMagnet, *, points: int = 201) -> Landau:
    """f(m) = -m^2/2 - h m - T S(m), S(m) = -sum_+- (1 +- m)/2 ln((1 +- m)/2), whose minima are the
    solutions of `mean_field`, and -T ln 2 - h m + (T - 1) m^2/2 + T m^4/12, its expansion."""
    m, temperature = jnp.linspace(-1, 1, points), system.temperature
    entropy = -sum(xlogy(share, share) for share in ((1 + m) / 2, (1 - m) / 2))
    exact = -(m**2) / 2 - system.field * m - temperature * entropy
    expansion = (
        -temperature * jnp.log(2.0)
        - system.field * m
        + (temperature - 1) * m**2 / 2
        + temperature * m**4 / 12
    )
    return Landau(m, exact, expansion)


def _spinodal_argument(temperature: Float[Array, ""] | float) -> Float[Array, ""]:
    """artanh sqrt(1 - T), zero for T >= 1."""
    ordered = temperature < 1
    safe = jnp.where(ordered, temperature, 0.5)
    return jnp.where(ordered, jnp.log1p(jnp.sqrt(1 - safe)) - jnp.log(safe) / 2, 0.0)


def _spinodal_field(temperature: Float[Array, ""] | float) -> Float[Array, ""]:
    m = jnp.sqrt(jnp.where(temperature < 1, 1 - temperature, 0.5))
    return jnp.where(temperature < 1, m - temperature * _spinodal_argument(temperature), 0.0)
