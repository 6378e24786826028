"""The flow of a loss that is not quadratic: of the loss as a function, and of its rescaled
couplings.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import safe_sqrt
from orderparam.kernels.spectrum import Spectrum
from orderparam.solve.flow import flow
from orderparam.solve.root import decreasing_root
from orderparam.systems.renormalization.decimation.model import DecimatedRegression
from orderparam.systems.renormalization.one_loop import OneLoop, beta, fixed_point
from orderparam.systems.renormalization.spectra import kept_levels
from orderparam.systems.renormalization.wilsonian.model import (
    InteractingRegression,
    ScaleFreeRegression,
)

# ------------------------------------------------------------------------------------------------
# The functional flow of the loss: modes are integrated out one by one, and the loss that is left is a function of Q again.
#
# W_k(Q), Q = sum_{l <= k} (f_l - y_l)^2, is what stands beside the prior of the modes 1 ... k. To
# leading order in their number
#
#     W_{k-1}(Q) = W_k(Q) + (1/2) ln(1 + 2 lambda_k W_k'(Q)) + y_k^2 W_k'(Q) / (1 + 2 lambda_k W_k'(Q)),
#
# a Wegner-Houghton equation whose slope m = 2 W' is carried along characteristics (derived here):
#
#     m_c(Q) = m_bare(Q + sum_{k > c} A_k(m_c(Q))),      A_k(m) = lambda_k / (1 + lambda_k m) + y_k^2 / (1 + lambda_k m)^2.
#
# The replicated likelihood of Gaussian-process regression is m_bare(q) = P / (T + q), with the
# variance in A_k alone.

FieldTheory = InteractingRegression | ScaleFreeRegression

_LOOKED_AT = 200  # masses between which roots are counted


class FunctionalFlow(Result):
    """The slope of the loss that is left to the modes of the cut.

    squared_deviation: (point,) Q. mass: (point,) m(Q) = 2 W'(Q). relative_mass: m(Q) / rho.
    valid: the slope is unique everywhere. residual, converged: of the equation for m.
    """

    squared_deviation: Float[Array, "point"]
    mass: Float[Array, "point"]
    relative_mass: Float[Array, "point"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    valid: Bool[Array, ""]


class Gap(Result):
    """All modes are integrated out but one: what they feel of the others is the mass m of the gap
    equation.

    mass: m. shift: m / rho - 1, what the interaction adds. squared_deviation: Q* = sum_k <(f_k -
    y_k)^2>, the error of one sample; test_error: that of the posterior mean, and fluctuation: the
    posterior variance; they add up to Q*. relative_change: of test_error, by all of the loss but
    its d^2, at the same rho. learnability: (level,) <f_k> / y_k. mode_mean: (level,) |<f_k>|, of
    all modes of a level together. mode_variance: (level,) Var f_k of one of its modes. valid: the
    solution is unique. residual, converged: of the equation.
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
    """Roots m of m = bare(Q + shift(m)) for one Q."""

    mass: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    unique: Bool[Array, ""]


def bare_mass(
    system: FieldTheory | DecimatedRegression, square: Float[Array, ""]
) -> Float[Array, ""]:
    """m_bare(Q) = rho (E l''(sqrt(Q) z) / 2 + 6 u Q), or P / (T + Q) for the likelihood of a
    Gaussian process.
    """
    if isinstance(system, DecimatedRegression):
        return system.n_train / (system.temperature + square)
    return system.density * (system.loss.stiffness(square) + 6 * system.quartic * square)


def moved(
    system: FieldTheory | DecimatedRegression, gone: Float[Array, "level"], mass: Float[Array, ""]
) -> Float[Array, ""]:
    """sum of A_k(m) over the levels that are gone, and over the unresolved tail."""
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
    """m lies between the extremes of m_bare on all that Q + shift can be; several roots are told
    and not chosen among.
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
    """m = m_bare(Q*), Q* = sum_k [lambda_k / (1 + m lambda_k) + y_k^2 / (1 + m lambda_k)^2], the
    end of the functional flow.

    <f_k> = m lambda_k y_k / (1 + m lambda_k), Var f_k = lambda_k / (1 + m lambda_k). Exact for many
    modes that share the fluctuations; corrections are of order 1/(number of modes with m lambda <
    1). Derived here. All modes are integrated out, whatever the cut.
    """
    spectrum = system.spectrum
    every = jnp.ones_like(spectrum.eigenvalues)
    found = _transport(system, every, jnp.zeros(()))
    bias, without = (_bias(spectrum, mass) for mass in (found.mass, system.density))
    learned = found.mass * spectrum.eigenvalues / (1 + found.mass * spectrum.eigenvalues)
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
    """m_c(Q) at the system's cut c, for Q from 0 to `reach` times the Q* of all modes, by
    characteristics: exact for each Q.

    For a `DecimatedRegression` it is P / (T*(c) + q), with the ridge T* of the exact decimation.
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
    """The same by the recursion itself, one level after the other from the smallest eigenvalue, on
    a grid of Q (semi-Lagrangian).

    A point (Q, m) moves to (Q - A_k(m), m), where m is the slope after the step, and the function
    is read off the grid again by cubic interpolation: the error falls as grid^-2. (Differences on
    the grid in place of the motion are unstable.) residual: relative distance to the
    characteristics. converged: it is below 1e-3, and no two points have met (a shock).
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
    """Hermite's cubic between increasing places, with slopes of second order; the last one goes on
    beyond the places.
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
    return FunctionalFlow(squares, mass, mass / density, residual, converged, valid)


# ------------------------------------------------------------------------------------------------
# The same flow in rescaled couplings: k -> k e^l after each shell, f rescaled so that the kinetic term stays.
#
#     r = m lambda_Lambda,    g = m'(Q) lambda_Lambda^2 Lambda,    w = y_Lambda^2 / lambda_Lambda        (Lambda: the cutoff)
#
# obey the one-loop flow (see `one_loop`) with sigma = 1 + alpha, eps = 1 + 2 alpha, a = b = 1 and
# dw/dl = (beta - alpha) w: a magnet in one dimension with long-range couplings, in the limit of
# many components, and with a background. Derived here.


class CouplingFlow(Result):
    """Couplings from the cutoff Lambda = modes (scale l = 0) to Lambda = 1.

    cutoff: (scale,) Lambda. mass_coupling r, quartic_coupling g, background w. shift: m / rho - 1
    at the end of the flow.
    """

    cutoff: Float[Array, "scale"]
    mass_coupling: Float[Array, "scale"]
    quartic_coupling: Float[Array, "scale"]
    background: Float[Array, "scale"]
    shift: Float[Array, ""]
    converged: Bool[Array, ""]


class ScalingInterval(Result):
    """First order in u, for infinitely many modes and large rho (see `scaling_interval`).

    shift: m / rho - 1 = fluctuation_shift + background_shift. fluctuation_exponent,
    background_exponent: the two fall as rho^-exponent. fluctuation_dimension, background_dimension:
    alpha and beta, the ends of the interval of scaling dimensions by which the interaction grows
    towards the large modes. frozen: rho^(1/(1 + alpha)), the mode at which the flow ends. valid:
    beta < 2 (1 + alpha), beyond which the first modes decide.
    """

    shift: Float[Array, ""]
    fluctuation_shift: Float[Array, ""]
    background_shift: Float[Array, ""]
    fluctuation_exponent: Float[Array, ""]
    background_exponent: Float[Array, ""]
    fluctuation_dimension: Float[Array, ""]
    background_dimension: Float[Array, ""]
    frozen: Float[Array, ""]
    valid: Bool[Array, ""]


class SphericalPoint(Result):
    """The fixed point of the couplings without background, r* < 0 < g*, and the eigenvalues of the
    flow about it; those about the Gaussian fixed point are 1 + alpha and 1 + 2 alpha. No flow of
    learning reaches it: r starts positive, and grows."""

    mass_coupling: Float[Array, ""]
    quartic_coupling: Float[Array, ""]
    relevant: Float[Array, ""]
    irrelevant: Float[Array, ""]
    gaussian_relevant: Float[Array, ""]
    gaussian_quartic: Float[Array, ""]


def learning_loop(system: ScaleFreeRegression) -> OneLoop:
    """Learning as a magnet: d = 1, sigma = 1 + alpha."""
    return OneLoop(1 + system.kernel_decay, 1 + 2 * system.kernel_decay, 1.0, 1.0)


@theory
def coupling_flow(system: ScaleFreeRegression, *, points: int = 200) -> CouplingFlow:
    """The one-loop flow of r, g and w with the curvature of m(Q) dropped, from the bare loss to the
    largest mode.

    Shells are integrated as if modes were a continuum: at the end m differs from `gap_equation` by
    the difference of sum and integral, and in second order of u.
    """
    loop = learning_loop(system)
    start, rate = jnp.log(system.modes), system.target_decay - system.kernel_decay

    def couplings(l: Float[Array, "..."], y: Float[Array, "..."], x: Float[Array, "..."]) -> tuple:
        cutoff = jnp.exp(start - l)
        r = system.density * jnp.exp(y) * cutoff**-loop.sigma
        return r, r * x, cutoff**-rate

    def field(state: dict, _: None) -> dict:
        """In y = ln(m / rho) and x = g / r, which stay of order one while r grows by many
        decades."""
        r, g, w = couplings(state["l"], state["y"], state["x"])
        drift, change = beta(r, g, loop, w)
        growth = drift / r - loop.sigma
        return {
            "l": jnp.ones(()),
            "y": growth,
            "x": state["x"] * (loop.epsilon - loop.sigma - growth)
            + (change - loop.epsilon * g) / r,
        }

    first = 6 * system.quartic * system.modes**-system.kernel_decay
    scales = jnp.linspace(0.0, 1.0, points) * start
    found = flow(field, {"l": jnp.zeros(()), "y": jnp.zeros(()), "x": first}, scales, rtol=1e-10)
    y, x = found.value["y"], found.value["x"]
    r, g, w = couplings(scales, y, x)
    return CouplingFlow(jnp.exp(start - scales), r, g, w, jnp.expm1(y[-1]), found.converged)


@theory
def scaling_interval(system: ScaleFreeRegression) -> ScalingInterval:
    """m / rho - 1 = 6 u [C_f rho^(-alpha/(1 + alpha)) + C_y rho^(-beta/(1 + alpha))] to first order
    in u:

        C_f = int dx / (1 + x^a) = pi / (a sin(pi/a)),   C_y = int x^(2a-b) dx / (1 + x^a)^2 = Gamma(2 - beta/a) Gamma(beta/a) / a

    with a = 1 + alpha, b = 1 + beta. Fluctuations and mean scale differently, so that a coupling
    has no scaling dimension but an interval of them; both ends are positive (relevant), and the
    interaction nevertheless vanishes at large P, because the data end the flow at the mode
    rho^(1/a). The relative change of the error falls with the same powers. Derived here.
    """
    alpha, target = system.kernel_decay, system.target_decay
    a, rho = 1 + alpha, system.density
    valid = target < 2 * a
    inside = jnp.where(valid, target, a) / a
    fluctuation = 6 * system.quartic * jnp.pi / (a * jnp.sin(jnp.pi / a)) * rho ** (-alpha / a)
    background = (
        6 * system.quartic * jsp.gamma(2 - inside) * jsp.gamma(inside) / a * rho ** (-target / a)
    )
    return ScalingInterval(
        shift=fluctuation + background,
        fluctuation_shift=fluctuation,
        background_shift=background,
        fluctuation_exponent=jnp.asarray(alpha / a),
        background_exponent=jnp.asarray(target / a),
        fluctuation_dimension=jnp.asarray(alpha),
        background_dimension=jnp.asarray(target),
        frozen=rho ** (1 / a),
        valid=jnp.asarray(valid),
    )


@theory
def spherical_point(system: ScaleFreeRegression) -> SphericalPoint:
    """r* = -(1 + 2 alpha)/(2 + 3 alpha), g* = (1 + 2 alpha)(1 + r*)^2: that of a long-range magnet
    of many components.
    """
    loop = learning_loop(system)
    numbers = (*fixed_point(loop), loop.sigma, loop.epsilon)
    return SphericalPoint(*(jnp.asarray(number) for number in numbers))
