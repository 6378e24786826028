"""The same flow in rescaled couplings: k -> k e^l after each shell, f rescaled so that the kinetic term stays.

    r = m lambda_Lambda,    g = m'(Q) lambda_Lambda^2 Lambda,    w = y_Lambda^2 / lambda_Lambda        (Lambda: the cutoff)

obey the one-loop flow (see `one_loop`) with sigma = 1 + alpha, eps = 1 + 2 alpha, a = b = 1 and dw/dl = (beta - alpha) w: a
magnet in one dimension with long-range couplings, in the limit of many components, and with a background. Derived here.
"""

import jax.numpy as jnp
import jax.scipy.special as jsp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.flow import flow
from orderparam.systems.renormalization.one_loop import OneLoop, beta, fixed_point
from orderparam.systems.renormalization.wilsonian.model import ScaleFreeRegression


class CouplingFlow(Result):
    """Couplings from the cutoff Lambda = modes (scale l = 0) to Lambda = 1.

    cutoff: (scale,) Lambda. mass_coupling r, quartic_coupling g, background w. shift: m / rho - 1 at the end of the flow.
    """

    cutoff: Float[Array, "scale"]
    mass_coupling: Float[Array, "scale"]
    quartic_coupling: Float[Array, "scale"]
    background: Float[Array, "scale"]
    shift: Float[Array, ""]
    converged: Bool[Array, ""]


class ScalingInterval(Result):
    """First order in u, for infinitely many modes and large rho (see `scaling_interval`).

    shift: m / rho - 1 = fluctuation_shift + background_shift. fluctuation_exponent, background_exponent: the two fall as
    rho^-exponent. fluctuation_dimension, background_dimension: alpha and beta, the ends of the interval of scaling dimensions by
    which the interaction grows towards the large modes. frozen: rho^(1/(1 + alpha)), the mode at which the flow ends.
    valid: beta < 2 (1 + alpha), beyond which the first modes decide.
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
    """The fixed point of the couplings without background, r* < 0 < g*, and the eigenvalues of the flow about it; those about
    the Gaussian fixed point are 1 + alpha and 1 + 2 alpha. No flow of learning reaches it: r starts positive, and grows."""

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
    """The one-loop flow of r, g and w with the curvature of m(Q) dropped, from the bare loss to the largest mode.

    Shells are integrated as if modes were a continuum: at the end m differs from `gap_equation` by the difference of sum and
    integral, and in second order of u.
    """
    loop = learning_loop(system)
    start, rate = jnp.log(system.modes), system.target_decay - system.kernel_decay

    def couplings(l: Float[Array, "..."], y: Float[Array, "..."], x: Float[Array, "..."]) -> tuple:
        cutoff = jnp.exp(start - l)
        r = system.density * jnp.exp(y) * cutoff**-loop.sigma
        return r, r * x, cutoff**-rate

    def field(state: dict, _: None) -> dict:
        """In y = ln(m / rho) and x = g / r, which stay of order one while r grows by many decades."""
        r, g, w = couplings(state["l"], state["y"], state["x"])
        drift, change = beta(r, g, loop, w)
        growth = drift / r - loop.sigma
        return {
            "l": jnp.ones(()),
            "y": growth,
            "x": state["x"] * (loop.epsilon - loop.sigma - growth) + (change - loop.epsilon * g) / r,
        }

    first = 6 * system.quartic * system.modes**-system.kernel_decay
    scales = jnp.linspace(0.0, 1.0, points) * start
    found = flow(field, {"l": jnp.zeros(()), "y": jnp.zeros(()), "x": first}, scales, rtol=1e-10)
    y, x = found.value["y"], found.value["x"]
    r, g, w = couplings(scales, y, x)
    return CouplingFlow(jnp.exp(start - scales), r, g, w, jnp.expm1(y[-1]), found.converged)


@theory
def scaling_interval(system: ScaleFreeRegression) -> ScalingInterval:
    """m / rho - 1 = 6 u [C_f rho^(-alpha/(1 + alpha)) + C_y rho^(-beta/(1 + alpha))] to first order in u:

        C_f = int dx / (1 + x^a) = pi / (a sin(pi/a)),   C_y = int x^(2a-b) dx / (1 + x^a)^2 = Gamma(2 - beta/a) Gamma(beta/a) / a

    with a = 1 + alpha, b = 1 + beta. Fluctuations and mean scale differently, so that a coupling has no scaling dimension but an
    interval of them; both ends are positive (relevant), and the interaction nevertheless vanishes at large P, because the data
    end the flow at the mode rho^(1/a). The relative change of the error falls with the same powers. Derived here.
    """
    alpha, target = system.kernel_decay, system.target_decay
    a, rho = 1 + alpha, system.density
    valid = target < 2 * a
    inside = jnp.where(valid, target, a) / a
    fluctuation = 6 * system.quartic * jnp.pi / (a * jnp.sin(jnp.pi / a)) * rho ** (-alpha / a)
    background = 6 * system.quartic * jsp.gamma(2 - inside) * jsp.gamma(inside) / a * rho ** (-target / a)
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
    """r* = -(1 + 2 alpha)/(2 + 3 alpha), g* = (1 + 2 alpha)(1 + r*)^2: that of a long-range magnet of many components."""
    loop = learning_loop(system)
    numbers = (*fixed_point(loop), loop.sigma, loop.epsilon)
    return SphericalPoint(*(jnp.asarray(number) for number in numbers))
