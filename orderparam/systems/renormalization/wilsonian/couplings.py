"""The flow of the couplings of a scale-free problem of learning."""

import jax.numpy as jnp
import jax.scipy.special as jsp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.flow import flow
from orderparam.systems.renormalization.one_loop import OneLoop, beta, fixed_point
from orderparam.systems.renormalization.wilsonian.model import (
    ScaleFreeRegression,
)

# The flow in rescaled couplings: after each shell is integrated out, k becomes k e^l, and f is
# rescaled so that the kinetic term stays the same.
#
#     r = m lambda_Lambda,    g = m'(Q) lambda_Lambda^2 Lambda,    w = y_Lambda^2 / lambda_Lambda
#
# with the cutoff Lambda obey the one-loop flow (see `one_loop`) with sigma = 1 + alpha, eps = 1 + 2
# alpha, a = b = 1 and dw/dl = (beta - alpha) w (derived here). These are the equations of a
# one-dimensional magnet of many components with long-range couplings and a background.


class CouplingFlow(Result):
    """Rescaled couplings from the cutoff Lambda = modes (scale l = 0) to Lambda = 1.

    Fields:
        cutoff: Lambda.
        mass_coupling: r.
        quartic_coupling: g.
        background: w.
        shift: m / rho - 1 at the end of the flow.
        converged: whether the flow was integrated to the end.
    """

    cutoff: Float[Array, "scale"]
    mass_coupling: Float[Array, "scale"]
    quartic_coupling: Float[Array, "scale"]
    background: Float[Array, "scale"]
    shift: Float[Array, ""]
    converged: Bool[Array, ""]


class ScalingInterval(Result):
    """Change of the mass to first order in u, for infinitely many modes and large rho.

    Fields:
        shift: m / rho - 1, the sum of the next two.
        fluctuation_shift: part of the shift due to fluctuations.
        background_shift: part of the shift due to the mean.
        fluctuation_exponent: alpha / (1 + alpha); `fluctuation_shift` falls as rho to minus this
            power.
        background_exponent: beta / (1 + alpha); `background_shift` falls as rho to minus this
            power.
        fluctuation_dimension: alpha, scaling dimension of the interaction among fluctuations.
        background_dimension: beta, scaling dimension of the interaction with the mean.
        frozen: rho^(1/(1 + alpha)), the mode at which the flow ends.
        valid: whether beta < 2 (1 + alpha); for larger beta the sum is dominated by the first
            modes.
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
    """Fixed point of the couplings without background, r* < 0 < g*.

    No flow of learning reaches this point, because r starts positive and grows.

    Fields:
        mass_coupling: r*.
        quartic_coupling: g*.
        relevant: larger eigenvalue of the flow about this point.
        irrelevant: smaller eigenvalue, negative.
        gaussian_relevant: 1 + alpha, eigenvalue of r about the Gaussian fixed point.
        gaussian_quartic: 1 + 2 alpha, eigenvalue of g about the Gaussian fixed point.
    """

    mass_coupling: Float[Array, ""]
    quartic_coupling: Float[Array, ""]
    relevant: Float[Array, ""]
    irrelevant: Float[Array, ""]
    gaussian_relevant: Float[Array, ""]
    gaussian_quartic: Float[Array, ""]


def learning_loop(system: ScaleFreeRegression) -> OneLoop:
    """Constants of the one-loop flow of learning: a magnet with d = 1, sigma = 1 + alpha."""
    return OneLoop(1 + system.kernel_decay, 1 + 2 * system.kernel_decay, 1.0, 1.0)


@theory
def coupling_flow(system: ScaleFreeRegression, *, points: int = 200) -> CouplingFlow:
    r"""Rescaled couplings along the one-loop flow, from the bare loss to the largest mode.

    With cutoff $\Lambda$, $r = m \lambda_\Lambda$ (`mass_coupling`), $g = m'(Q)\, \lambda_\Lambda^2
    \Lambda$ (`quartic_coupling`), $w = y_\Lambda^2 / \lambda_\Lambda$ (`background`) and the
    curvature of $m(Q)$ neglected,

    $$ \frac{dr}{dl} = (1 + \alpha) r + g \Big[ \frac{1}{1 + r} + \frac{w}{(1 + r)^2} \Big] , \quad
       \frac{dg}{dl} = (1 + 2\alpha) g
       - g^2 \Big[ \frac{1}{(1 + r)^2} + \frac{2w}{(1 + r)^3} \Big] , \quad
       \frac{dw}{dl} = (\beta - \alpha) w $$

    with $\Lambda = n e^{-l}$, $n$ = `modes`. It starts at $m = \rho$ and $m' = 6 u \rho$.

    Args:
        points: number of scales l, equally spaced from 0 to ln `modes`; 200 by default.

    Accuracy: the differential equations are solved to 1e-10. They treat the modes as a continuum:
    `shift` differs from that of `gap_equation` by the difference between sum and integral, and in
    second order in u.

    Source: derived here; the equations are those of Wilson, Fisher (1972) for a long-range magnet.

    >>> system = ScaleFreeRegression(1.0, 1.0, n_train=1000, temperature=1.0, quartic=0.05)
    >>> round(float(coupling_flow(system).shift), 5)
    0.02182
    """
    loop = learning_loop(system)
    start, rate = jnp.log(system.modes), system.target_decay - system.kernel_decay

    def couplings(l: Float[Array, "..."], y: Float[Array, "..."], x: Float[Array, "..."]) -> tuple:
        cutoff = jnp.exp(start - l)
        r = system.density * jnp.exp(y) * cutoff**-loop.sigma
        return r, r * x, cutoff**-rate

    def field(state: dict, _: None) -> dict:
        """The flow of y = ln(m / rho) and x = g / r, which stay of order one while r grows by many
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

    # g / r of the bare loss, m'(Q) = 6 u rho
    first = 6 * system.quartic * system.modes**-system.kernel_decay
    scales = jnp.linspace(0.0, 1.0, points) * start
    found = flow(field, {"l": jnp.zeros(()), "y": jnp.zeros(()), "x": first}, scales, rtol=1e-10)
    y, x = found.value["y"], found.value["x"]
    r, g, w = couplings(scales, y, x)
    return CouplingFlow(
        cutoff=jnp.exp(start - scales),
        mass_coupling=r,
        quartic_coupling=g,
        background=w,
        shift=jnp.expm1(y[-1]),
        converged=found.converged,
    )


@theory
def scaling_interval(system: ScaleFreeRegression) -> ScalingInterval:
    r"""Change of the mass by a weak quartic loss, and the two exponents with which it falls with
    P/T.

    To first order in $u$, for infinitely many modes and large $\rho = P/T$,

    $$ \frac m\rho - 1 = 6u \Big[ \frac{\pi / a}{\sin(\pi/a)}\, \rho^{-\alpha/a}
       + \frac{\Gamma(2 - \beta/a)\, \Gamma(\beta/a)}{a}\, \rho^{-\beta/a} \Big] , \qquad
       a = 1 + \alpha . $$

    The first term is `fluctuation_shift`, the second `background_shift`. Along the flow towards the
    large modes the interaction among fluctuations grows with the scaling dimension $\alpha$, and
    the interaction with the mean grows with $\beta$; these two are the ends of the scaling
    interval. Both dimensions are positive, which means that the interaction is relevant. It
    nevertheless vanishes at large $P$, because the data end the flow at the mode $\rho^{1/a}$. The
    relative change of the error falls with the same powers.

    Source: derived here; the statement is that of Coppola, Helias, Ringel (2025).

    >>> system = ScaleFreeRegression(1.0, 0.5, n_train=1000, temperature=1.0, quartic=0.05)
    >>> found = scaling_interval(system)
    >>> round(float(found.fluctuation_shift), 5), round(float(found.background_shift), 5)
    (0.0149, 0.08888)
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
    r"""Fixed point of the rescaled couplings without background, other than the Gaussian one.

    $$ r^* = -\frac{1 + 2\alpha}{2 + 3\alpha} , \qquad g^* = (1 + 2\alpha)(1 + r^*)^2 $$

    A magnet of many components in dimension $d = 1$ with long-range couplings, $\sigma = 1 +
    \alpha$, has the same fixed point.

    Source: derived here; the flow is that of Wilson, Fisher (1972).

    >>> point = spherical_point(ScaleFreeRegression(0.5, 0.5, n_train=100, temperature=1.0))
    >>> round(float(point.mass_coupling), 4), round(float(point.quartic_coupling), 4)
    (-0.5714, 0.3673)
    """
    loop = learning_loop(system)
    point = fixed_point(loop)
    return SphericalPoint(
        mass_coupling=jnp.asarray(point.mass),
        quartic_coupling=jnp.asarray(point.quartic),
        relevant=jnp.asarray(point.relevant),
        irrelevant=jnp.asarray(point.irrelevant),
        gaussian_relevant=jnp.asarray(loop.sigma),
        gaussian_quartic=jnp.asarray(loop.epsilon),
    )
