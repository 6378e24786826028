"""The Gaussian averages of one-pass SGD: risk, learning term and noise term of one gradient step,
for any activation.

The fields lambda_a of all units of student and teacher are jointly Gaussian with covariance C =
[[Q, M], [M^T, 1]]; the student's units come first. With the signed readouts c = (-v, v*), y - f =
sum_a c_a sigma(lambda_a) + label noise.
"""

import itertools
import math
from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from orderparam.gaussian import Activation
from orderparam.gaussian.arccosine import Abs, LeakyRelu, Relu
from orderparam.gaussian.arcsine import Erf
from orderparam.gaussian.covariance import angle, sine
from orderparam.gaussian.points import normal_points
from orderparam.gaussian.polynomials import Hermite, Linear, Monomial, Polynomial
from orderparam.gaussian.rules import double_exponential, hermite_rule, normal_steps

# ------------------------------------------------------------------------------------------------
# Symmetric matrices over pairs of student units. Only a few pairs are computed at a time, so that
# their intermediate arrays fit into the processor's cache.


def over_pairs(
    average: Callable[[Int[Array, ""], Int[Array, ""]], Float[Array, ""]],
    units: int,
    at_once: int = 1,
) -> Float[Array, "unit unit"]:
    """Symmetric matrix with the entries average(j, l) for j, l < units. `average` is evaluated only
    for j <= l."""
    j, l = (jnp.asarray(x) for x in np.triu_indices(units))
    upper = jax.lax.map(lambda index: average(*index), (j, l), batch_size=at_once)
    square = jnp.zeros((units, units)).at[j, l].set(upper)
    return square + jnp.triu(square, 1).T


# ------------------------------------------------------------------------------------------------
# The noise term of a gradient step for any smooth activation: two fields are averaged by
# quadrature, and the others by their conditional law given these two.
#
# Given lambda_j and lambda_l, the fields a and b are Gaussian with means mu, deviations s and
# correlation rho. With the Hermite coefficients c_n(a) = E h_n(x) sigma(mu_a + s_a x), Mehler's
# formula gives
#
#     E[sigma(a) sigma(b) | j, l] = sum_n rho_ab^n c_n(a) c_n(b).
#
# All averages are sums over evenly spaced points (Gauss-Hermite for polynomials): for a function
# that is analytic in a strip of half width w around the real line their error falls as exp(-2 pi w
# / step), faster than that of Gauss-Hermite rules.

_STEP = 0.3
_REACH = 24 * _STEP  # the normal density beyond is 2e-12
_GAUSS = 22  # nodes of the rule for polynomials
_ORDERS = 36  # terms of Mehler's series


def _line(polynomial: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes and weights of the standard normal law, and h_n at the nodes times the weights."""
    x: np.ndarray
    if polynomial:
        x, w = hermite_rule(_GAUSS)
    else:
        x, w = normal_steps(_STEP, round(_REACH / _STEP))
    rows = [np.ones_like(x), x]
    for n in range(1, _ORDERS - 1):
        rows.append((x * rows[-1] - np.sqrt(n) * rows[-2]) / np.sqrt(n + 1))
    return x, w, np.stack(rows) * w


def _plane(
    x: np.ndarray, w: np.ndarray, symmetric: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quadrature nodes (first, second) and weights for two independent standard normal variables.
    Nodes of negligible weight are left out, and so is half of the nodes if the integrand is
    symmetric under z -> -z.
    """
    first, second, weight = (
        part.ravel() for part in (*np.meshgrid(x, x, indexing="ij"), np.outer(w, w))
    )
    kept = weight > 1e-13 if len(x) > _GAUSS else np.ones(weight.shape, bool)
    if symmetric:
        tiny = 1e-9
        kept &= (first > tiny) | ((np.abs(first) < tiny) & (second > -tiny))
        weight = np.where((np.abs(first) < tiny) & (np.abs(second) < tiny), weight, 2 * weight)
    return first[kept], second[kept], weight[kept]


def _inverse(variance: Array) -> Array:
    """Inverse standard deviation, and 0 where a variance is zero up to rounding."""
    real = variance > 1e-13
    return jnp.where(real, 1 / jnp.sqrt(jnp.where(real, variance, 1.0)), 0.0)


def signal_power(
    sigma: Activation,
    fields: Float[Array, "field field"],
    signed: Float[Array, "field"],
    units: int,
) -> Float[Array, "unit unit"]:
    """Averages E[sigma'(lambda_j) sigma'(lambda_l) (sum_a c_a sigma(lambda_a))^2] for student units
    j and l, by quadrature over the two fields lambda_j and lambda_l.

    They are exact for polynomials up to degree 11. The relative accuracy for erf, tanh and gelu is
    1e-6 at variances up to 2, and 2e-3 at a variance of 6.
    """
    line = _line(isinstance(sigma, Linear | Monomial | Polynomial | Hermite))
    x, w, basis = (jnp.asarray(part) for part in line)
    first, second, weight = (
        jnp.asarray(part) for part in _plane(*line[:2], sigma.parity is not None)
    )

    def pair(j: Array, l: Array) -> Array:
        # Three covariances: of all fields with lambda_j, of all fields with the part of lambda_l
        # that is independent of lambda_j, and of all fields with one another given lambda_j and
        # lambda_l.
        along = fields[j] * _inverse(fields[j, j])
        rest = fields - jnp.outer(along, along)
        across = rest[l] * _inverse(rest[l, l])
        left = rest - jnp.outer(across, across)
        deviation = jnp.sqrt(jnp.maximum(jnp.diagonal(left), 0.0))
        scale = _inverse(jnp.diagonal(left))
        correlation = jnp.clip(left * scale[:, None] * scale, -1.0, 1.0) * (
            1 - jnp.eye(left.shape[0])
        )
        mean = jnp.outer(first, along) + jnp.outer(second, across)  # (node, field)
        values = sigma(mean[..., None] + deviation[:, None] * x) * signed[:, None]
        coefficients = jnp.einsum("pax,nx->npa", values, basis)
        own = jnp.sum(values**2 @ w, axis=1)  # terms a = b, which need no series

        def term(carry: tuple[Array, Array], row: Array) -> tuple[tuple[Array, Array], None]:
            total, power = carry
            return (total + jnp.sum((row @ power) * row, axis=1), power * correlation), None

        start = (own, 1 - jnp.eye(left.shape[0]))
        (total, _), _ = jax.lax.scan(term, start, coefficients)
        return jnp.sum(weight * sigma.derivative(mean[:, j]) * sigma.derivative(mean[:, l]) * total)

    return over_pairs(pair, units)


# ------------------------------------------------------------------------------------------------
# The four-point average of piecewise linear activations (relu, leaky relu, absolute value), from
# orthant integrals.
#
# sigma(z) = (m + h s) z and sigma'(z) = m + h s with s = sign(z), m and h half the sum and the
# difference of the slopes, so that
#
#     E[sigma'(j) sigma'(l) sigma(a) sigma(b)]
#         = sum_S m^(4 - |S|) h^|S| E[lambda_a lambda_b prod_S s],   S a subset of {j, l, a, b}.
#
# Subsets with an odd number of signs vanish. Gaussian integration by parts turns the others into
# averages of fewer signs, given that some fields are zero (rho are correlations, C_xy|q is the
# covariance given lambda_q = 0, and D_qo = C_qq C_oo - C_qo^2):
#
#     E[lambda_a lambda_b s_x s_y]
#         = (2/pi) (C_ab asin rho_xy + [C_ax C_by|x + C_ay C_bx|y] / sqrt D_xy),
#     E[lambda_a lambda_b s_w s_x s_y s_z]
#         = C_ab E[s_w s_x s_y s_z] + (2/pi)^2 sum_{q, o} C_aq C_bo|q asin(rho_rest|qo) / sqrt D_qo,
#
# and the last average, the only one without a closed form, is an integral along the scaling rho ->
# t rho (Plackett 1954),
#
#     E[s_w s_x s_y s_z]
#         = (2/pi)^2 int_0^1 dt sum_{q < o} rho_qo asin(rho_rest|qo(t)) / sqrt(1 - t^2 rho_qo^2).
#
# Derived for this package.

# If two fields are equal up to rounding their correlations are reduced by this fraction, because
# the formulas divide by the variance of their difference.
_SEPARATION = 1e-11
_PAIRS = tuple(itertools.combinations(range(4), 2))


@cache
def _path_rule() -> tuple[np.ndarray, np.ndarray]:
    """Double-exponential nodes and weights on [0, 1]: the integrand has square-root singularities
    just beyond t = 1."""
    return double_exponential(np.arange(-3.4, 3.41, 0.1), 0.1)


def _arcsine(a: Array, c: Array, b: Array) -> Array:
    """Arcsine of the correlation of two fields; 0 if one of their variances vanishes."""
    return math.pi / 2 - angle(a, c, b)


def _given(x_y: Array, x_q: Array, y_q: Array, q_q: Array) -> Array:
    """Conditional covariance C_xy given lambda_q = 0."""
    return x_y - x_q * y_q / q_q


def _over(x: Array, s: Array) -> Array:
    """Ratio x / s, and 0 where s = 0, which is the limit as two fields become equal."""
    return jnp.where(s > 0, x / jnp.where(s > 0, s, 1.0), 0.0)


def _rest_given(c: list[list[Array]], q: int, o: int) -> Array:
    """Arcsine of the correlation of two of four fields, given that the two others, q and o,
    vanish."""
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
            _over(
                correlation[q][o] * _rest_given(scaled, q, o),
                sine(jnp.ones(()), scaled[q][o], jnp.ones(())),
            )
            for q, o in _PAIRS
        ]
        return total + weight * sum(terms), None

    t, w = _path_rule()
    return (2 / math.pi) ** 2 * jax.lax.scan(
        at, jnp.zeros_like(correlation[0][1]), (jnp.asarray(t), jnp.asarray(w))
    )[0]


def _two(c: Array, x: Array, y: Array, a: Array, b: Array) -> Array:
    """E[lambda_a lambda_b s_x s_y] for arrays of field numbers."""
    own = _arcsine(c[x, x], c[x, y], c[y, y]) * c[a, b]
    other = c[a, x] * _given(c[b, y], c[b, x], c[y, x], c[x, x]) + c[a, y] * _given(
        c[b, x], c[b, y], c[x, y], c[y, y]
    )
    return 2 / math.pi * (own + _over(other, sine(c[x, x], c[x, y], c[y, y])))


def _four(c: Array, index: tuple[Array, Array, Array, Array]) -> Array:
    """E[lambda_a lambda_b s_j s_l s_a s_b] for arrays of four different field numbers (j, l, a,
    b)."""
    a, b = index[2], index[3]
    entries = [[c[x, y] for y in index] for x in index]
    deviation = [jnp.sqrt(entries[i][i]) for i in range(4)]
    correlation = [
        [entries[i][k] / (deviation[i] * deviation[k]) for k in range(4)] for i in range(4)
    ]
    total = c[a, b] * four_signs(correlation)
    for q, o in itertools.permutations(range(4), 2):
        pull = entries[2][q] * _given(entries[3][o], entries[3][q], entries[o][q], entries[q][q])
        share = _over(pull, sine(entries[q][q], entries[q][o], entries[o][o]))
        total += (2 / math.pi) ** 2 * share * _rest_given(entries, q, o)
    return total


def four_points(
    slopes: tuple[float, float], fields: Float[Array, "field field"], units: int
) -> Float[Array, "unit unit field field"]:
    """Averages E[sigma'(lambda_j) sigma'(lambda_l) sigma(lambda_a) sigma(lambda_b)] of a piecewise
    linear activation, for student units j, l and all units a, b.

    `slopes` are the slopes of the activation left and right of the origin. The averages are
    accurate to about 1e-9, and to 1e-5 if three different units have the same field. A unit whose
    field has no variance (a unit that is switched off) is treated as one of unit variance and
    without correlations; its readout must be zero.
    """
    size = fields.shape[0]
    variance = jnp.diagonal(fields)
    separated = fields * (1 - _SEPARATION * (1 - jnp.eye(size)))
    c = separated + jnp.diag(jnp.where(variance > 0, 0.0, 1.0))
    mean, half = (slopes[1] + slopes[0]) / 2, (slopes[1] - slopes[0]) / 2
    j, l, a, b = (jnp.asarray(x) for x in np.indices((units, units, size, size)))
    index = (j, l, a, b)
    two = {(x, y): _two(c, index[x], index[y], a, b) for x, y in _PAIRS}
    distinct = np.array([len(set(x)) == 4 for x in np.ndindex(units, units, size, size)]).reshape(
        j.shape
    )
    # If two of the four units are equal their signs cancel, because s^2 = 1. The average then
    # contains the signs of the two other units only.
    four = jnp.zeros(j.shape)
    # In the list of all pairs of {0, 1, 2, 3} the complement of the n-th pair is the n-th from the
    # end.
    for (x, y), rest in zip(reversed(_PAIRS), _PAIRS):
        four = jnp.where(index[x] == index[y], two[rest], four)
    where = np.nonzero(distinct)
    if where[0].size:
        first, second, third, fourth = (jnp.asarray(x) for x in where)
        four = four.at[where].set(_four(c, (first, second, third, fourth)))
    return mean**4 * c[a, b] + mean**2 * half**2 * sum(two.values()) + half**4 * four


LOG2_POINTS = 15  # Sobol points of the field quadrature; the mirror image of each is used too
# pairs of units: four times as fast as all pairs at once for 50 units, and as fast for 4
_PAIRS_AT_ONCE = 64


def covariance(
    self_overlap: Float[Array, "unit unit"], teacher_overlap: Float[Array, "unit teacher_unit"]
) -> Float[Array, "field field"]:
    """Covariance C = [[Q, M], [M^T, 1]] of the fields of all units, the student's units first."""
    teacher = jnp.eye(teacher_overlap.shape[1])
    return jnp.block([[self_overlap, teacher_overlap], [teacher_overlap.T, teacher]])


def two_points(
    sigma: Activation, fields: Float[Array, "field field"]
) -> Float[Array, "field field"]:
    """Averages I2(a, b) = E[sigma(lambda_a) sigma(lambda_b)] of all pairs of units."""
    variance = jnp.diagonal(fields)
    return sigma.two_point(variance[:, None], fields, variance[None, :])


def half_square(
    sigma: Activation, fields: Float[Array, "field field"], signed: Float[Array, "field"]
) -> Float[Array, ""]:
    """Risk R = (1/2) sum_ab c_a c_b I2(a, b) (Saad and Solla 1995, eq. 5)."""
    return 0.5 * signed @ two_points(sigma, fields) @ signed


def learning_term(
    sigma: Activation,
    fields: Float[Array, "field field"],
    signed: Float[Array, "field"],
    units: int,
) -> Float[Array, "unit field"]:
    """Learning term A_jb = sum_a c_a E[sigma'(lambda_j) lambda_b sigma(lambda_a)] of student units
    j and all units b, without the student's readout v_j.

    Gaussian integration by parts turns the three-point function into derivatives of the two-point
    function F(C_jj, C_ja, C_aa): E[sigma'(j) lambda_b sigma(a)] = 2 C_jb dF/dC_jj + C_ba dF/dC_ja,
    for every activation whose F is known. For erf(x/sqrt 2) this is I3 of Saad and Solla 1995,
    (2/pi) [C_ba s_j - C_jb C_ja] / (s_j sqrt(s_j s_a - C_ja^2)), s = 1 + variance.
    """
    variance = jnp.diagonal(fields)
    first = jnp.broadcast_to(variance[:units, None], (units, variance.size))
    mixed = fields[:units]

    def two_point(first: Array, mixed: Array) -> Array:
        return sigma.two_point(first, mixed, variance[None, :])

    own = jax.jvp(lambda first: two_point(first, mixed), (first,), (jnp.ones_like(first),))[1]
    cross = sigma.two_point_derivative(first, mixed, variance[None, :])
    return 2 * fields[:units] * (own @ signed)[:, None] + (cross * signed) @ fields


def has_exact_noise(sigma: Activation) -> bool:
    """True if `noise_term` is accurate to 1e-9, without quadrature over fields."""
    return isinstance(sigma, Erf | Relu | LeakyRelu | Abs)


def noise_term(
    sigma: Activation,
    fields: Float[Array, "field field"],
    signed: Float[Array, "field"],
    units: int,
    noise: Float[Array, ""],
) -> Float[Array, "unit unit"]:
    """Noise term N_jl = E[sigma'(lambda_j) sigma'(lambda_l) (y - f)^2] of student units j and l,
    without the student's readouts v_j v_l.

    N_jl = sum_ab c_a c_b I4(j, l, a, b) + noise E[sigma'(lambda_j) sigma'(lambda_l)], with I4(j, l,
    a, b) = E[sigma'(lambda_j) sigma'(lambda_l) sigma(lambda_a) sigma(lambda_b)]. I4 is in closed
    form for erf (Saad and Solla 1995). It comes from orthant integrals for piecewise linear
    activations (`four_points`, accurate to 1e-9), from quadrature over two fields for smooth
    activations (`signal_power`, 1e-6 at variances up to 2), and from fixed quasi-random fields for
    activations with other kinks (a few 1e-3).
    """
    if isinstance(sigma, Erf):
        # erf(gain x) = erf(sqrt(scale) x / sqrt2): fields grow by sqrt(scale), each sigma' too
        scale = 2 * sigma.gain**2
        return scale * _erf_noise(scale * fields, signed, units, noise)
    variance = jnp.diagonal(fields)[:units]
    label = noise * sigma.two_point_derivative(
        variance[:, None], fields[:units, :units], variance[None, :]
    )
    if isinstance(sigma, Relu | LeakyRelu | Abs):
        return (
            jnp.einsum("jlab,a,b->jl", four_points(sigma.slopes, fields, units), signed, signed)
            + label
        )
    if not sigma.kinks:
        return signal_power(sigma, fields, signed, units) + label
    points = normal_points(fields.shape[0], LOG2_POINTS)
    values = points @ symmetric_root(fields)
    error = sigma(values) @ signed
    slopes = sigma.derivative(values[:, :units])
    return (slopes * error[:, None] ** 2).T @ slopes / len(points) + label


def _erf_noise(
    fields: Float[Array, "field field"],
    signed: Float[Array, "field"],
    units: int,
    noise: Float[Array, ""],
) -> Float[Array, "unit unit"]:
    """`noise_term` for erf(x / sqrt2):

    I4 = 4 / (pi^2 sqrt L4) asin(L0 / sqrt(L1 L2)),  L4 = s_j s_l - C_jl^2,
    L0 = L4 C_ab - C_la C_lb s_j - C_ja C_jb s_l + C_jl (C_ja C_lb + C_jb C_la),
    L1 = L4 s_a - C_la^2 s_j - C_ja^2 s_l + 2 C_jl C_ja C_la, and L2 with b for a; s = 1 + variance.

    |L0| is below sqrt(L1 L2) for every covariance, also a singular one, because each s is larger
    than the variance of the field by 1.
    """
    widened = 1 + jnp.diagonal(fields)

    def pair(j: Array, l: Array) -> Array:
        own, mutual = (widened[j], widened[l]), fields[j, l]
        determinant = own[0] * own[1] - mutual**2
        # Given lambda_j and lambda_l, the fields a and b have covariance L0 / L4; L1 / L4 is its
        # diagonal plus the widening.
        cross = jnp.outer(fields[j], fields[l])
        numerator = determinant * fields + mutual * (cross + cross.T)
        numerator -= own[0] * jnp.outer(fields[l], fields[l]) + own[1] * jnp.outer(
            fields[j], fields[j]
        )
        scale = 1 / jnp.sqrt(jnp.diagonal(numerator) + determinant)
        angles = jnp.arcsin(numerator * scale[:, None] * scale)
        return (4 / math.pi**2 * signed @ angles @ signed + 2 / math.pi * noise) / jnp.sqrt(
            determinant
        )

    return over_pairs(pair, units, _PAIRS_AT_ONCE)


def symmetric_root(fields: Float[Array, "field field"]) -> Float[Array, "field field"]:
    """Symmetric square root of a covariance, which may be singular.

    Unlike a Cholesky factor it is a continuous function of the covariance.
    """
    values, vectors = jnp.linalg.eigh(fields)
    return (vectors * jnp.sqrt(jnp.maximum(values, 0.0))) @ vectors.T
