r"""The resolvent of the features of a diffusion model, averaged over features and data.

At the time t of the diffusion the mean over the noise of the features' second moments is

    U = M^T M/n + D mu^2 S + v^2,    S = W W^T/d,    M_{nu i} = m(W_i x_nu / sqrt d),

and with S kept its resolvent Q = (U + ridge)^{-1} has the deterministic equivalent

    Q = (A0 + A1 S)^{-1},   A1 = D mu^2 + a^2 mu^2/(1+e),   A0 = v^2 + s^2/(1+e) + ridge,
    e = (1/n) tr C Q,       C = a^2 mu^2 S + s^2 .

Here mu^2 is the linear power of the activation, s^2 the part of its nonlinear power that remains
after the average over the noise, and v^2 the remaining part. All traces over S, whose law is that
of Marchenko and Pastur, are rational in the root m = (1/p) tr (S + y)^{-1} at y = A0/A1.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from orderparam.systems.diffusion.score_model import Powers

Scalar = Float[Array, ""]
Nodes = Complex[Array, "node"]

# Steps of the path from an infinite ridge, where e = 0, to the given ridge.
_PATH, _CORRECTIONS, _POLISH = 100, 2, 8
_NEAREST = 1e-4  # end of that path, relative to the ridge


class Resolvent(NamedTuple):
    """The deterministic equivalent at each ridge: e, A1, m, and 1/(1 + psi m) with psi = p/d."""

    example: Nodes
    slope: Nodes
    trace: Nodes
    damping: Nodes


def _equivalent(powers: Powers, ridge: Array, example: Array) -> Resolvent:
    """All quantities of the equivalent at a given e."""
    psi = powers.feature_ratio
    slope = powers.linear * (powers.noise + powers.kept / (1 + example))
    y = (powers.rest + powers.example / (1 + example) + ridge) / slope
    # psi y m^2 + (y + 1 - psi) m = 1; take the root whose branch cut is the support of S
    linear = y + 1 - psi
    root = jnp.sqrt(y + (1 + jnp.sqrt(psi)) ** 2) * jnp.sqrt(y + (1 - jnp.sqrt(psi)) ** 2)
    same = jnp.real(linear * jnp.conj(root)) >= 0
    safe_y, safe_sum = jnp.where(same, 1.0, y), jnp.where(same, linear + root, 1.0)
    trace = jnp.where(same, 2 / safe_sum, (root - linear) / (2 * psi * safe_y))
    return Resolvent(example, slope, trace, 1 / (1 + psi * trace))


def excess(powers: Powers, ridge: Any, example: Any) -> tuple[Array, Array]:
    """The difference e - (1/n) tr C Q at a given e, and its derivative."""
    found = _equivalent(powers, ridge, example)
    ratio = powers.feature_ratio / powers.sample_ratio / found.slope
    linear = powers.kept * powers.linear
    filled = linear * found.damping + powers.example
    value = example - ratio * found.trace * filled
    # dm/dy = -<1/(S + y)^2>, and that of <S/(S + y)> is damping^2 times it
    square = 1 / (1 / found.trace**2 - powers.feature_ratio * found.damping**2)
    y = 1 / found.trace - found.damping
    fall = -1 / (1 + example) ** 2
    y_slope = fall * (powers.example - y * linear) / found.slope
    slope = found.trace * filled * fall * linear / found.slope
    return value, 1 + ratio * (
        slope + square * (linear * found.damping**2 + powers.example) * y_slope
    )


def resolvent(
    powers: Powers, ridge: Nodes, direction: Nodes | None = None
) -> tuple[Resolvent, Scalar]:
    """The equivalent at complex ridges, and the largest relative residual of its equation.

    At a large ridge e = 0. From there the ridge is reduced geometrically along a straight line,
    with Newton steps at each point. `direction` is the unit vector of this line, by default that of
    the ridge.
    """

    def newton(powers: Powers, ridge: Array, example: Array) -> tuple[Array, Array]:
        value, slope = excess(powers, ridge, example)
        return value, example - value / slope

    frozen, fixed = jax.lax.stop_gradient((powers, ridge))
    size = jnp.abs(fixed)
    if direction is None:
        direction = jnp.where(size > 0, fixed / jnp.where(size > 0, size, 1.0), 1.0)
    far = jnp.log(1e3 * (frozen.rest + largest_bound(frozen)))
    near = jnp.log(_NEAREST * jnp.maximum(size, 1e-2 * frozen.rest) + 1e-290)

    def down(example: Array, share: Array) -> tuple[Array, None]:
        offset = jnp.exp(near + jnp.maximum(far - near, 0.0) * share)
        at = fixed + direction * jnp.where(share < 0, 0.0, offset)
        return newton(frozen, at, example)[1], None

    path = np.repeat(np.linspace(1.0, 0.0, _PATH), _CORRECTIONS)
    shares = jnp.asarray(np.append(path, -np.ones(_POLISH)))
    example, _ = jax.lax.scan(down, jnp.zeros_like(fixed), shares)
    value, _ = newton(frozen, fixed, example)
    residual = jnp.max(jnp.abs(value) / (1e-3 + jnp.abs(example)))
    # Two more Newton steps are differentiated: the first makes first derivatives exact, the second
    # makes second derivatives exact.
    for _ in range(2):
        example = newton(powers, ridge, example)[1]
    return _equivalent(powers, ridge, example), residual


def largest_bound(powers: Powers) -> Scalar:
    """A bound on the largest eigenvalue of U - v^2."""
    psi, ratio = powers.feature_ratio, powers.sample_ratio
    weights = powers.linear * (1 + jnp.sqrt(psi)) ** 2
    linear = jnp.sqrt(powers.kept * weights) * (1 + 1 / jnp.sqrt(ratio))
    rest = jnp.sqrt(powers.example) * (1 + jnp.sqrt(psi / ratio))
    return (linear + rest) ** 2 + powers.noise * weights


def linear_trace(powers: Powers, at: Resolvent) -> Nodes:
    """The trace (1/d) tr S Q."""
    return powers.feature_ratio * at.trace * at.damping / at.slope


def quadratic_trace(
    powers: Powers, one: Resolvent, two: Resolvent, flat: Any, slope: Any
) -> Complex[Array, "node node"]:
    r"""The traces (1/d) tr S Q_i B Q_j for B = flat + slope S and all pairs of ridges.

    The equivalent of Q B Q is Q B Q + Q C Q g(B)/(1 - g(C)) with g(B) = (1/n) tr(C Q B Q)/((1 +
    e_i)(1 + e_j)), with the equivalents of Q on the right.
    """
    psi = powers.feature_ratio
    m, other = one.trace[:, None], two.trace
    damped = one.damping[:, None] * two.damping
    # <S^k/((S + y_i)(S + y_j))> for k = 0, 1, 2, without cancellation
    plain = 1 / (1 / (m * other) - psi * damped)
    first = plain * damped
    second = first * (one.damping[:, None] + two.damping + psi - 1)
    scale = psi / (one.slope[:, None] * two.slope)
    c_flat, c_slope = powers.example, powers.kept * powers.linear

    def feedback(flat: Any, slope: Any) -> Array:
        cross = c_flat * flat * plain + (c_flat * slope + c_slope * flat) * first
        total = scale * (cross + c_slope * slope * second) / powers.sample_ratio
        return total / ((1 + one.example[:, None]) * (1 + two.example))

    own = flat * first + slope * second
    through = c_flat * first + c_slope * second
    return scale * (own + through * feedback(flat, slope) / (1 - feedback(c_flat, c_slope)))
