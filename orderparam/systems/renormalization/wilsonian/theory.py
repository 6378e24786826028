"""The functional flow of a loss that is not quadratic, as a function of the squared deviation Q."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import safe_sqrt
from orderparam.kernels.spectrum import Spectrum
from orderparam.solve.root import decreasing_root
from orderparam.systems.renormalization.decimation.model import DecimatedRegression
from orderparam.systems.renormalization.spectra import kept_levels
from orderparam.systems.renormalization.wilsonian.model import (
    InteractingRegression,
    ScaleFreeRegression,
)

# ------------------------------------------------------------------------------------------------
# The functional flow of the loss: modes are integrated out one by one, and the effective loss of
# the remaining modes is again a function of Q.
#
# W_k(Q), with Q = sum_{l <= k} (f_l - y_l)^2, is the part of the action of modes 1 ... k that is
# not their prior. To leading order in the number of modes
#
#     W_{k-1}(Q) = W_k(Q) + (1/2) ln(1 + 2 lambda_k W_k') + y_k^2 W_k' / (1 + 2 lambda_k W_k'),
#
# which is a Wegner-Houghton equation. The slope m = 2 W' is constant along characteristics (derived
# here):
#
#     m_c(Q) = m_0(Q + sum_{k > c} A_k(m_c(Q))),
#     A_k(m) = lambda_k / (1 + lambda_k m) + y_k^2 / (1 + lambda_k m)^2.
#
# The replicated likelihood of Gaussian-process regression has m_0(Q) = P / (T + Q), and then A_k
# consists of its first term only.

FieldTheory = InteractingRegression | ScaleFreeRegression

_LOOKED_AT = 200  # number of masses between which the code looks for changes of sign


class FunctionalFlow(Result):
    """Slope of the effective loss of the modes within the cut.

    Fields:
        squared_deviation: Q of every point.
        mass: m(Q) = 2 W'(Q).
        relative_mass: m(Q) / rho.
        residual: largest residual of the equation for m; for `recursive_flow` the largest relative
            distance to `characteristic_flow`.
        converged: whether the equation for m was solved at every point.
        valid: whether that equation has a single solution at every point.
    """

    squared_deviation: Float[Array, "point"]
    mass: Float[Array, "point"]
    relative_mass: Float[Array, "point"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    valid: Bool[Array, ""]


class Gap(Result):
    """Solution of the gap equation, with all modes integrated out.

    Fields:
        mass: m.
        shift: m / rho - 1, the relative change of the mass by the interaction.
        squared_deviation: Q* = sum_k <(f_k - y_k)^2>, the mean squared error of a sample of the
            posterior.
        test_error: mean squared error of the posterior mean, without label noise (no factor 1/2).
        fluctuation: posterior variance; Q* is the sum of test_error and fluctuation.
        relative_change: relative change of `test_error` by the interaction at the same rho.
        learnability: <f_k> / y_k of the modes of each level.
        mode_mean: |<f_k>|, root of the sum of squares over the modes of a level.
        mode_variance: Var f_k of one mode of each level.
        residual: residual of the gap equation (difference of logarithms).
        converged: whether the gap equation was solved.
        valid: whether it has a single solution.
    """

    mass: Float[Array, ""]
    shift: Float[Array, ""]
    squared_deviation: Float[Array, ""]
    test_error: Float[Array, ""]
    fluctuation: Float[Array, ""]
    relative_change: Float[Array, ""]
    learnability: Float[Array, "level"]
    mode_mean: Float[Array, "level"]
    mode_variance: Float[Array, "level"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    valid: Bool[Array, ""]


class _Transport(NamedTuple):
    """Root m of m = m_0(Q + sum A_k(m)) at one Q, and whether it is the only one."""

    mass: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    unique: Bool[Array, ""]


def bare_mass(
    system: FieldTheory | DecimatedRegression, square: Float[Array, ""]
) -> Float[Array, ""]:
    """m_0(Q) = rho (E l''(sqrt(Q) z) / 2 + 6 u Q); P / (T + Q) for the likelihood of a Gaussian
    process.
    """
    if isinstance(system, DecimatedRegression):
        return system.n_train / (system.temperature + square)
    return system.density * (system.loss.stiffness(square) + 6 * system.quartic * square)


def moved(
    system: FieldTheory | DecimatedRegression, gone: Float[Array, "level"], mass: Float[Array, ""]
) -> Float[Array, ""]:
    """Sum of A_k(m) over the levels that are integrated out and over the tail that is not
    resolved."""
    spectrum = system.spectrum
    variance = _variances(spectrum, mass)
    total = gone @ variance + spectrum.tail
    if isinstance(system, DecimatedRegression):
        return total
    return (
        total
        + gone @ (spectrum.target_power / (1 + spectrum.eigenvalues * mass) ** 2)
        + spectrum.tail_power
    )


def _variances(spectrum: Spectrum, mass: Float[Array, ""]) -> Float[Array, "level"]:
    return spectrum.multiplicities * spectrum.eigenvalues / (1 + spectrum.eigenvalues * mass)


def _transport(
    system: FieldTheory | DecimatedRegression, gone: Float[Array, "level"], square: Float[Array, ""]
) -> _Transport:
    """The root m at one Q.

    The root lies between the extremes of m_0 on all values that Q + sum A_k can take. If there are
    several roots, `unique` is False, and which of them is returned is arbitrary.
    """
    zero = jnp.zeros(())
    reach = square + moved(system, gone, zero) * jnp.concatenate(
        [jnp.zeros(1), jnp.geomspace(1e-9, 1.0, 100)]
    )
    seen = jax.vmap(lambda q: bare_mass(system, q))(reach)
    low, high = jnp.log(jnp.min(seen)) - 0.1, jnp.log(jnp.max(seen)) + 0.1

    def excess(log_mass: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        system, gone, square = args
        return (
            jnp.log(bare_mass(system, square + moved(system, gone, jnp.exp(log_mass)))) - log_mass
        )

    args = (system, gone, square)
    root = decreasing_root(excess, low, high, args)
    signs = jax.lax.map(lambda u: excess(u, args) > 0, jnp.linspace(low, high, _LOOKED_AT))
    unique = jnp.sum(signs[1:] != signs[:-1]) <= 1
    return _Transport(jnp.exp(root.value), root.residual, root.converged, unique)


@theory
def gap_equation(system: FieldTheory) -> Gap:
    r"""Mass, errors, and means and variances of modes at the end of the functional flow.

    The mass $m$ solves the gap equation

    $$ m = \rho \Big[ \tfrac12 E\, \ell''(\sqrt{Q^*} z) + 6 u Q^* \Big] , \qquad
       Q^* = \sum_k \Big[ \frac{\lambda_k}{1 + m \lambda_k}
       + \frac{y_k^2}{(1 + m \lambda_k)^2} \Big] $$

    with $Q^*$ = `squared_deviation`, and the posterior of the modes is Gaussian with

    $$ \langle f_k \rangle = \frac{m \lambda_k y_k}{1 + m \lambda_k} , \qquad
       \mathrm{Var} f_k = \frac{\lambda_k}{1 + m \lambda_k} . $$

    All modes are integrated out; `cut` is not used.

    Accuracy: exact in the limit of many fluctuating modes; corrections are of order one over the
    number of modes with $m \lambda_k < 1$.

    Source: derived here, in the setting of Coppola, Helias, Ringel (2025).

    >>> k = np.arange(1.0, 101)
    >>> system = InteractingRegression(Spectrum(k**-2, k**-2), 100, 1.0, quartic=0.5)
    >>> gap = gap_equation(system)
    >>> round(float(gap.mass), 4), round(float(gap.test_error), 6)
    (150.6655, 0.054133)
    """
    spectrum = system.spectrum
    every = jnp.ones_like(spectrum.eigenvalues)
    found = _transport(system, every, jnp.zeros(()))
    # the error with the interaction, and the error without it at the same rho
    bias, without = (_bias(spectrum, mass) for mass in (found.mass, system.density))
    learned = found.mass * spectrum.eigenvalues / (1 + found.mass * spectrum.eigenvalues)
    # The modes of the tail are too small to be learned, so that they keep all of their variance.
    fluctuation = jnp.sum(_variances(spectrum, found.mass)) + spectrum.tail
    return Gap(
        mass=found.mass,
        shift=found.mass / system.density - 1,
        squared_deviation=bias + fluctuation,
        test_error=bias,
        fluctuation=fluctuation,
        relative_change=jnp.where(
            without > 0, bias / jnp.where(without > 0, without, 1.0) - 1, 0.0
        ),
        learnability=learned,
        mode_mean=learned * safe_sqrt(spectrum.target_power),
        mode_variance=spectrum.eigenvalues / (1 + found.mass * spectrum.eigenvalues),
        residual=found.residual,
        converged=found.converged,
        valid=found.unique,
    )


def _bias(spectrum: Spectrum, mass: Float[Array, ""]) -> Float[Array, ""]:
    return (
        jnp.sum(spectrum.target_power / (1 + mass * spectrum.eigenvalues) ** 2)
        + spectrum.tail_power
    )


@theory
def characteristic_flow(
    system: InteractingRegression | DecimatedRegression, *, points: int = 65, reach: float = 2.0
) -> FunctionalFlow:
    r"""Slope m(Q) of the effective loss of the modes within the cut, by the method of
    characteristics.

    Integrating out the modes beyond the cut $\Lambda$ gives, at every $Q$,

    $$ m_\Lambda(Q) = m_0\Big( Q + \sum_{k > \Lambda} A_k(m_\Lambda(Q)) \Big) , \qquad
       A_k(m) = \frac{\lambda_k}{1 + m \lambda_k} + \frac{y_k^2}{(1 + m \lambda_k)^2} $$

    with $m_0(Q) = \rho\,[\frac12 E\, \ell''(\sqrt Q z) + 6 u Q]$. For a `DecimatedRegression`
    $m_0(Q) = P / (T + Q)$ and $A_k$ consists of its first term only, so that $m_\Lambda(Q) = P /
    (T^* + Q)$ with the exact ridge $T^*$ of `decimation_flow`.

    Args:
        points: number of values of Q, equally spaced from 0; 65 by default.
        reach: largest Q, in units of Q* of `gap_equation`; positive, 2 by default.

    Accuracy: exact to rounding at each Q, to leading order in the number of modes.

    Source: derived here, in the setting of Coppola, Helias, Ringel (2025).

    >>> k = np.arange(1.0, 101)
    >>> system = InteractingRegression(Spectrum(k**-2, k**-2), 100, 1.0, quartic=0.5, cut=20)
    >>> characteristic_flow(system, points=3).relative_mass.round(4)
    Array([1.1992, 1.6951, 2.1924], dtype=float64)
    """
    spectrum = system.spectrum
    gone = jnp.where(kept_levels(system), 0.0, 1.0)
    squares = (
        jnp.linspace(0.0, 1.0, points) * reach * _end(system, jnp.ones_like(spectrum.eigenvalues))
    )
    found = jax.lax.map(lambda square: _transport(system, gone, square), squares)
    return _flow(
        system,
        squares,
        found.mass,
        jnp.max(found.residual),
        jnp.all(found.converged),
        jnp.all(found.unique),
    )


@theory
def recursive_flow(
    system: InteractingRegression | DecimatedRegression,
    *,
    points: int = 65,
    reach: float = 2.0,
    grid: int = 1024,
) -> FunctionalFlow:
    r"""Slope m(Q) of the effective loss of the modes within the cut, by the recursion from mode to
    mode.

    Integrating out mode $k$, from the smallest eigenvalue on, changes the loss $W(Q)$ by

    $$ W_{k-1}(Q) = W_k(Q) + \frac12 \ln(1 + 2 \lambda_k W_k')
       + \frac{y_k^2 W_k'}{1 + 2 \lambda_k W_k'} , \qquad m = 2 W' . $$

    A point $(Q, m)$ of the slope after the step comes from $(Q + A_k(m), m)$ before it, with $A_k$
    as in `characteristic_flow`; the slope is then interpolated to the grid by cubic polynomials.

    Args:
        points: number of values of Q, equally spaced from 0; 65 by default.
        reach: largest Q, in units of Q* of `gap_equation`; positive, 2 by default.
        grid: number of points of the grid on which the slope is kept; 1024 by default.

    Returns:
        The slope, with the largest relative distance to `characteristic_flow` as `residual`.
        `converged` is true if the distance is below 1e-3 and no two points of the grid met (a
            shock).

    Accuracy: the error falls as the square of 1/`grid`.

    Cost: proportional to the number of levels times `grid`.

    Source: derived here, in the setting of Coppola, Helias, Ringel (2025).

    >>> k = np.arange(1.0, 101)
    >>> system = InteractingRegression(Spectrum(k**-2, k**-2), 100, 1.0, quartic=0.5, cut=20)
    >>> recursive_flow(system, points=3).relative_mass.round(4)
    Array([1.1992, 1.6951, 2.1924], dtype=float64)
    """
    spectrum = system.spectrum
    order = jnp.argsort(spectrum.eigenvalues)
    gone = jnp.where(kept_levels(system), 0.0, 1.0)
    exact = characteristic_flow.fn(system, points=points, reach=reach)
    farthest = exact.squared_deviation[-1] + moved(system, gone, jnp.zeros(()))
    smallest = jnp.min(
        jax.lax.map(
            lambda square: bare_mass(system, square), jnp.linspace(0.0, 1.0, 100) * farthest
        )
    )
    end = exact.squared_deviation[-1] + moved(system, gone, 0.99 * smallest)
    squares = jnp.linspace(0.0, 1.0, grid) ** 2 * end
    tail = (
        spectrum.tail
        if isinstance(system, DecimatedRegression)
        else spectrum.tail + spectrum.tail_power
    )
    start = jax.lax.map(lambda square: bare_mass(system, square + tail), squares)

    def step(carry: tuple, level: tuple) -> tuple[tuple, None]:
        mass, sound = carry
        eigenvalue, multiplicity, power, goes = level
        shift = goes * multiplicity * eigenvalue / (1 + eigenvalue * mass)
        if not isinstance(system, DecimatedRegression):
            shift = shift + goes * power / (1 + eigenvalue * mass) ** 2
        places = squares - shift
        return (_cubic(squares, places, mass), sound & jnp.all(jnp.diff(places) > 0)), None

    levels = tuple(
        part[order]
        for part in (spectrum.eigenvalues, spectrum.multiplicities, spectrum.target_power, gone)
    )
    (mass, sound), _ = jax.lax.scan(step, (start, jnp.asarray(True)), levels)
    found = _cubic(exact.squared_deviation, squares, mass)
    distance = jnp.max(jnp.abs(found / exact.mass - 1))
    return _flow(
        system,
        exact.squared_deviation,
        found,
        distance,
        sound & (distance < 1e-3) & exact.converged,
        exact.valid,
    )


def _cubic(
    x: Float[Array, "point"], places: Float[Array, "node"], values: Float[Array, "node"]
) -> Float[Array, "point"]:
    """Cubic Hermite interpolation between increasing nodes, with slopes accurate to second order,
    continued linearly beyond the last node.
    """
    width, secant = jnp.diff(places), jnp.diff(values) / jnp.diff(places)
    inner = (width[:-1] * secant[1:] + width[1:] * secant[:-1]) / (width[1:] + width[:-1])
    slopes = jnp.concatenate([2 * secant[:1] - inner[:1], inner, 2 * secant[-1:] - inner[-1:]])
    left = jnp.clip(jnp.searchsorted(places, x) - 1, 0, width.size - 1)
    h, d = width[left], secant[left]
    t = (x - places[left]) / h
    cubic = values[left] + h * t * (
        d + (1 - t) * ((1 - t) * (slopes[left] - d) - t * (slopes[left + 1] - d))
    )
    return jnp.where(t > 1, values[-1] + slopes[-1] * (x - places[-1]), cubic)


def _end(
    system: FieldTheory | DecimatedRegression, every: Float[Array, "level"]
) -> Float[Array, ""]:
    return moved(system, every, _transport(system, every, jnp.zeros(())).mass)


def _flow(
    system: InteractingRegression | DecimatedRegression,
    squares: Float[Array, "point"],
    mass: Float[Array, "point"],
    residual: Float[Array, ""],
    converged: Bool[Array, ""],
    valid: Bool[Array, ""],
) -> FunctionalFlow:
    density = (
        system.n_train / system.temperature
        if isinstance(system, DecimatedRegression)
        else system.density
    )
    return FunctionalFlow(
        squared_deviation=squares,
        mass=mass,
        relative_mass=mass / density,
        residual=residual,
        converged=converged,
        valid=valid,
    )
