"""The mean-field magnet solved exactly: at any size, and in the limit of many spins with all its
branches.
"""

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

# Binder's ratio at T = 1, h = 0 for many spins, where x = N^(1/4) m has the density exp(-x^4/12).
CRITICAL_BINDER = 1 - math.gamma(1 / 4) * math.gamma(5 / 4) / (3 * math.gamma(3 / 4) ** 2)


class Branch(Result):
    """One solution of m = tanh((m + h)/T), per spin.

    Every number is NaN where the solution does not exist.

    Fields:
        magnetisation: m.
        absolute_magnetisation: |m|.
        free_energy: m^2/2 - T ln 2cosh((m + h)/T).
        energy: -m^2/2 - h m.
        heat_capacity: derivative of the energy in T along the branch.
        susceptibility: dm/dh.
        valid: whether the solution exists.
        residual: residual of the equation.
        converged: whether the equation was solved.
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
    """End of the metastable state at the system's temperature.

    Fields:
        spinodal_field: largest field against which a magnetisation can be metastable.
        magnetisation: modulus of the magnetisation at that field.
        valid: whether T < 1, so that there is a metastable state.
    """

    spinodal_field: Float[Array, ""]
    magnetisation: Float[Array, ""]
    valid: Bool[Array, ""]


class Landau(Result):
    """The Landau function per spin at equally spaced magnetisations.

    Fields:
        order_parameter: magnetisation m, from -1 to 1.
        landau_function: f(m).
        expansion: f(m) to order m^4.
    """

    order_parameter: Float[Array, "point"]
    landau_function: Float[Array, "point"]
    expansion: Float[Array, "point"]


@theory
def exact_magnet(system: MeanFieldMagnet) -> Thermodynamics:
    r"""Exact averages of the mean-field magnet at any number of spins.

    The energy depends on $m = 2k/N - 1$ alone, where k of the N = `spins` spins are up, so that

    $$ Z = \sum_{k=0}^N \binom{N}{k} e^{-E_k/T}, \qquad E_k = -N \Big( \frac{m^2}{2} + h m \Big) $$

    The sum of N + 1 terms is taken in logarithms.

    Accuracy: that of ln N! in double precision, about 1e-16 N ln N.

    Source: derived here, by counting configurations; the model is that of Weiss (1907).

    >>> round(float(exact_magnet(MeanFieldMagnet(1.2, spins=100)).binder), 8)
    0.11725165
    """
    n = system.spins
    up = jnp.arange(n + 1.0)
    # The energy depends only on the number of spins that are up, so that the degeneracies are
    # binomial coefficients.
    log_count = gammaln(n + 1.0) - gammaln(up + 1) - gammaln(n - up + 1)
    m = (2 * up - n) / n
    return averages(log_count, -(m**2) / 2 - system.field * m, m, system.temperature, n)


@theory
def mean_field(
    system: MeanFieldMagnet, *, branch: Literal["stable", "metastable", "unstable"] = "stable"
) -> Branch:
    r"""One branch of the mean-field magnet in the limit of many spins.

    The magnetisation solves

    $$ m = \tanh \frac{m + h}{T} $$

    with T = `temperature` and h = `field`. The metastable and the unstable branch exist for T < 1
    and |h| up to the spinodal field; `valid` is true there.

    Args:
        branch: "stable" is the solution of lowest free energy, with m >= 0 if there is no field.
            "metastable" is the minimum whose magnetisation points against the field; without a
            field it is the mirror image of the stable one. "unstable" is the maximum of the free
            energy between the two minima.

    Accuracy: that of `residual`. Fewer digits of m are correct near the spinodal, where two
    solutions merge.

    Source: Weiss (1907).

    >>> found = mean_field(MeanFieldMagnet(0.6, 0.05), branch="metastable")
    >>> round(float(found.magnetisation), 8), bool(found.valid)
    (-0.88268938, True)
    """
    temperature, strength = system.temperature, jnp.abs(system.field)
    along = jnp.where(system.field < 0, -1.0, 1.0)
    # The unknown is x = (|m| + |h|)/T on the stable branch and (|m| - |h|)/T on the others, with
    # |m| = tanh x. At the spinodal tanh x has the slope T, and two solutions merge.
    edge = _spinodal_argument(temperature)
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

    m = sign * jnp.tanh(x)  # component along the field, like all numbers that follow
    fade = jnp.exp(-2 * x)
    slope = 4 * fade / (1 + fade) ** 2  # 1 - m^2
    response = slope / (temperature - slope)
    local = m + strength
    warming = jnp.where(local == 0, 0.0, -response * local / temperature)  # dm/dT
    values = {
        "magnetisation": along * m,
        "absolute_magnetisation": jnp.abs(m),
        "free_energy": m**2 / 2 - temperature * (x + jnp.log1p(fade)),
        "energy": -(m**2) / 2 - strength * m,
        "heat_capacity": -local * warming,
        "susceptibility": response,
    }
    return Branch(
        **{name: jnp.where(valid, value, jnp.nan) for name, value in values.items()},
        valid=valid,
        residual=jnp.where(paramagnet, 0.0, root.residual),
        converged=paramagnet | root.converged,
    )


@theory
def spinodal(system: MeanFieldMagnet) -> Spinodal:
    r"""Field and magnetisation at the spinodal, where the metastable and the unstable branch meet.

    $$ m_s = \sqrt{1 - T}, \qquad h_s = m_s - T\, \mathrm{artanh}\, m_s $$

    are `magnetisation` and `spinodal_field` at T = `temperature`. The system's own field does not
    enter.

    Accuracy: rounding.

    Source: derived here, from the double root of the equation of Weiss (1907).

    >>> round(float(spinodal(MeanFieldMagnet(0.6)).spinodal_field), 8)
    0.18515664
    """
    temperature = jnp.asarray(system.temperature)
    valid = temperature < 1
    m = jnp.sqrt(jnp.where(valid, 1 - temperature, 1.0))
    field = _spinodal_field(temperature)
    return Spinodal(
        spinodal_field=jnp.where(valid, field, jnp.nan),
        magnetisation=jnp.where(valid, m, jnp.nan),
        valid=valid,
    )


@theory
def landau(system: MeanFieldMagnet, *, points: int = 201) -> Landau:
    r"""The Landau function of the mean-field magnet and its expansion to fourth order.

    $$ f(m) = -\frac{m^2}{2} - h m + T \sum_\pm \frac{1 \pm m}{2} \ln \frac{1 \pm m}{2}, \qquad
       f(m) \approx -T \ln 2 - h m + \frac{T - 1}{2} m^2 + \frac{T}{12} m^4 $$

    are `landau_function` and `expansion`. The minima of f are the solutions of `mean_field`.

    Args:
        points: number of equally spaced magnetisations from -1 to 1.

    Accuracy: rounding.

    Source: Landau (1937).

    >>> found = landau(MeanFieldMagnet(0.8), points=5)
    >>> [round(float(x), 6) for x in found.landau_function]
    [-0.5, -0.574868, -0.554518, -0.574868, -0.5]
    """
    m, temperature = jnp.linspace(-1, 1, points), system.temperature
    entropy = -sum(xlogy(share, share) for share in ((1 + m) / 2, (1 - m) / 2))
    exact = -(m**2) / 2 - system.field * m - temperature * entropy
    expansion = (
        -temperature * jnp.log(2.0)
        - system.field * m
        + (temperature - 1) * m**2 / 2
        + temperature * m**4 / 12
    )
    return Landau(order_parameter=m, landau_function=exact, expansion=expansion)


def _spinodal_argument(temperature: Float[Array, ""] | float) -> Float[Array, ""]:
    """The value artanh sqrt(1 - T), and zero for T >= 1."""
    ordered = temperature < 1
    safe = jnp.where(ordered, temperature, 0.5)
    return jnp.where(ordered, jnp.log1p(jnp.sqrt(1 - safe)) - jnp.log(safe) / 2, 0.0)


def _spinodal_field(temperature: Float[Array, ""] | float) -> Float[Array, ""]:
    m = jnp.sqrt(jnp.where(temperature < 1, 1 - temperature, 0.5))
    return jnp.where(temperature < 1, m - temperature * _spinodal_argument(temperature), 0.0)
