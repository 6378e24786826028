"""The four-point average of piecewise linear activations (relu, leaky relu, absolute value), from orthant integrals.

sigma(z) = (m + h s) z and sigma'(z) = m + h s with s = sign(z), m and h half the sum and the difference of the slopes, so that

    E[sigma'(j) sigma'(l) sigma(a) sigma(b)] = sum_S m^(4 - |S|) h^|S| E[lambda_a lambda_b prod_S s],  S a subset of {j, l, a, b}.

Odd subsets vanish. Gaussian integration by parts turns the others into averages of signs at fewer and fewer free fields (C_xy|q
is the covariance given lambda_q = 0 and D_qo = C_qq C_oo - C_qo^2):

    E[lambda_a lambda_b s_x s_y] = (2/pi) (C_ab asin rho_xy + [C_ax C_by|x + C_ay C_bx|y] / sqrt D_xy),
    E[lambda_a lambda_b s_w s_x s_y s_z]
        = C_ab E[s_w s_x s_y s_z] + (2/pi)^2 sum_{q, o} C_aq C_bo|q asin(rho_rest|qo) / sqrt D_qo,

and the last average, the only one without a closed form, is an integral along the scaling rho -> t rho (Plackett 1954),

    E[s_w s_x s_y s_z] = (2/pi)^2 int_0^1 dt sum_{q < o} rho_qo asin(rho_rest|qo(t)) / sqrt(1 - t^2 rho_qo^2).

Derived for this package.
"""

import itertools
import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.gaussian.covariance import angle, sine

_APART = 1e-11  # fields that are the same up to rounding are taken to differ by this fraction of their variance
_PAIRS = tuple(itertools.combinations(range(4), 2))


@cache
def _path_rule() -> tuple[np.ndarray, np.ndarray]:
    """Double-exponential nodes and weights on [0, 1]: the integrand has square-root singularities just beyond t = 1."""
    x = np.arange(-3.4, 3.41, 0.1)
    u = np.pi / 2 * np.sinh(x)
    return 1 / (1 + np.exp(-2 * u)), 0.1 * np.pi / 4 * np.cosh(x) / np.cosh(u) ** 2


def _arcsine(a: Array, c: Array, b: Array) -> Array:
    """asin of the correlation; 0 if a variance vanishes."""
    return math.pi / 2 - angle(a, c, b)


def _given(x_y: Array, x_q: Array, y_q: Array, q_q: Array) -> Array:
    """C_xy given lambda_q = 0."""
    return x_y - x_q * y_q / q_q


def _over(x: Array, s: Array) -> Array:
    """x / s, and 0 where s = 0: the limit, for two fields that become the same."""
    return jnp.where(s > 0, x / jnp.where(s > 0, s, 1.0), 0.0)


def _rest_given(c: list[list[Array]], q: int, o: int) -> Array:
    """asin of the correlation of the two other fields of four, given that fields q and o vanish."""
    x, y = (i for i in range(4) if i not in (q, o))

    def both(first: int, second: int) -> Array:
        determinant = c[q][q] * c[o][o] - c[q][o] ** 2
        inverse = (
            c[o][o] * c[first][q] * c[second][q]
            + c[q][q] * c[first][o] * c[second][o]
            - c[q][o] * (c[first][q] * c[second][o] + c[first][o] * c[second][q])
        )
        return c[first][second] - _over(inverse, jnp.maximum(determinant, 0.0))

    return _arcsine(jnp.maximum(both(x, x), 0.0), both(x, y), jnp.maximum(both(y, y), 0.0))


def four_signs(correlation: list[list[Array]]) -> Array:
    """E[s_w s_x s_y s_z] from the entries of the correlation matrix of four fields, elementwise."""

    def at(total: Array, node: tuple[Array, Array]) -> tuple[Array, None]:
        t, weight = node
        scaled = [[correlation[i][k] * (1.0 if i == k else t) for k in range(4)] for i in range(4)]
        terms = [
            _over(correlation[q][o] * _rest_given(scaled, q, o), sine(jnp.ones(()), scaled[q][o], jnp.ones(())))
            for q, o in _PAIRS
        ]
        return total + weight * sum(terms), None

    t, w = _path_rule()
    return (2 / math.pi) ** 2 * jax.lax.scan(at, jnp.zeros_like(correlation[0][1]), (jnp.asarray(t), jnp.asarray(w)))[0]


def _two(c: Array, x: Array, y: Array, a: Array, b: Array) -> Array:
    """E[lambda_a lambda_b s_x s_y] for arrays of field numbers."""
    own = _arcsine(c[x, x], c[x, y], c[y, y]) * c[a, b]
    other = c[a, x] * _given(c[b, y], c[b, x], c[y, x], c[x, x]) + c[a, y] * _given(c[b, x], c[b, y], c[x, y], c[y, y])
    return 2 / math.pi * (own + _over(other, sine(c[x, x], c[x, y], c[y, y])))


def _four(c: Array, index: tuple[Array, Array, Array, Array]) -> Array:
    """E[lambda_a lambda_b s_j s_l s_a s_b] for arrays of four different field numbers (j, l, a, b)."""
    a, b = index[2], index[3]
    entries = [[c[x, y] for y in index] for x in index]
    deviation = [jnp.sqrt(entries[i][i]) for i in range(4)]
    correlation = [[entries[i][k] / (deviation[i] * deviation[k]) for k in range(4)] for i in range(4)]
    total = c[a, b] * four_signs(correlation)
    for q, o in itertools.permutations(range(4), 2):
        pull = entries[2][q] * _given(entries[3][o], entries[3][q], entries[o][q], entries[q][q])
        share = _over(pull, sine(entries[q][q], entries[q][o], entries[o][o]))
        total += (2 / math.pi) ** 2 * share * _rest_given(entries, q, o)
    return total


def four_points(
    slopes: tuple[float, float], fields: Float[Array, "field field"], units: int
) -> Float[Array, "unit unit field field"]:
    """E[sigma'(j) sigma'(l) sigma(a) sigma(b)] for j, l < units; `slopes` left and right of the origin.

    Accurate to about 1e-9; to 1e-5 where three different fields are the same. Fields without variance (units that are switched
    off) count as of unit variance and uncorrelated: multiply them by a vanishing readout.
    """
    size = fields.shape[0]
    variance = jnp.diagonal(fields)
    apart = fields * (1 - _APART * (1 - jnp.eye(size)))
    c = apart + jnp.diag(jnp.where(variance > 0, 0.0, 1.0))
    mean, half = (slopes[1] + slopes[0]) / 2, (slopes[1] - slopes[0]) / 2
    j, l, a, b = (jnp.asarray(x) for x in np.indices((units, units, size, size)))
    index = (j, l, a, b)
    two = {(x, y): _two(c, index[x], index[y], a, b) for x, y in _PAIRS}
    distinct = np.array([len(set(x)) == 4 for x in np.ndindex(units, units, size, size)]).reshape(j.shape)
    # A sign twice is no sign: what is left is the average with the two others.
    four = jnp.zeros(j.shape)
    for (x, y), rest in zip(reversed(_PAIRS), _PAIRS):  # combinations of two of four: the complement of the n-th from the end
        four = jnp.where(index[x] == index[y], two[rest], four)
    where = np.nonzero(distinct)
    if where[0].size:
        first, second, third, fourth = (jnp.asarray(x) for x in where)
        four = four.at[where].set(_four(c, (first, second, third, fourth)))
    return mean**4 * c[a, b] + mean**2 * half**2 * sum(two.values()) + half**4 * four
