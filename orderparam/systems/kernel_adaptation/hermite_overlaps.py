"""Overlaps of an activation with the Hermite modes of the target."""

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.gaussian import Activation
from orderparam.gaussian.arcsine import Erf
from orderparam.gaussian.interpolation import chebyshev_nodes, chebyshev_transform, clenshaw
from orderparam.systems.kernel_adaptation.network import HOMOGENEOUS, Degrees

# The contribution of one hidden unit to the component k of the output is m_k(w) = E_x[phi(w . x)
# h_k(w_* . x)].
#
# With rho = w . w_*, q = |w|^2 and phi(sqrt(q) u) = sum_k c_k(q) h_k(u),
#
#     m_k = c_k(q) (rho / sqrt q)^k = (rho^k / sqrt k!) E phi^(k)(g),   g ~ N(0, q).
#
# Closed forms: erf(s z), odd k, m = (k-1)/2:  E phi^(k) = (2/sqrt pi) (-1)^m ((k-1)!/m!) s^k (1 + 2
# s^2 q)^(-k/2); phi(cz) = c phi(z):  c_k(q) = sqrt(q) c_k(1).  Other activations: c_k(q) on
# Chebyshev nodes in log q.

_NODES = 64

Overlaps = Callable[[Float[Array, "*batch"], Float[Array, "*batch"]], list[Float[Array, "*batch"]]]


def overlaps(phi: Activation, degrees: Degrees, lowest: Array, highest: Array) -> Overlaps:
    """The function (rho, q) -> [m_k for k in degrees], elementwise.

    Args:
        lowest: lower end of the range of q, for activations without a closed form; values of q
            outside the range are replaced by its ends.
        highest: upper end of that range.
    """
    if isinstance(phi, Erf):
        return lambda rho, q: _erf(phi.gain, degrees, rho, q)
    if isinstance(phi, HOMOGENEOUS):
        coefficients = phi.hermite_coefficients(max(degrees) + 1)

        def homogeneous(rho: Array, q: Array) -> list[Array]:
            root = jnp.sqrt(jnp.maximum(q, 1e-300))
            return [coefficients[k] * root * (rho / root) ** k for k in degrees]

        return homogeneous
    table = interpolated(
        lambda q: phi.hermite_coefficients(max(degrees) + 1, q)[:, np.asarray(degrees)],
        lowest,
        highest,
    )
    return lambda rho, q: [c * (rho / jnp.sqrt(q)) ** k for k, c in zip(degrees, table(q))]


def interpolated(
    values: Callable[[Array], Array], lowest: Array, highest: Array
) -> Callable[[Array], Array]:
    """The function q -> (function, *batch) for functions of a variance q that are given as (node,
    function), by Chebyshev's series in log q.

    Outside of [lowest, highest] the functions are continued as constants.
    """
    middle, half = (
        (jnp.log(highest) + jnp.log(lowest)) / 2,
        (jnp.log(highest) - jnp.log(lowest)) / 2,
    )
    # (order, function)
    series = chebyshev_transform(values(jnp.exp(middle + half * chebyshev_nodes(_NODES))), 0)

    def table(q: Array) -> Array:
        x = jnp.clip((jnp.log(q) - middle) / half, -1.0, 1.0)
        return clenshaw(x, series, lambda row: row.reshape(-1, *(1 for _ in x.shape)))

    return table


def _erf(gain: float, degrees: Degrees, rho: Array, q: Array) -> list[Array]:
    t = gain * rho / jnp.sqrt(1 + 2 * gain**2 * q)
    found = []
    for k in degrees:
        if k % 2 == 0:
            found.append(jnp.zeros_like(t))
            continue
        m = (k - 1) // 2
        factor = (
            2
            / math.sqrt(math.pi)
            * (-1) ** m
            * math.factorial(k - 1)
            / math.factorial(m)
            / math.sqrt(math.factorial(k))
        )
        found.append(factor * t**k)
    return found
