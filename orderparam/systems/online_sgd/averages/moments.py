"""The Gaussian averages that drive online learning: risk, drift and noise of one gradient step, for any activation.

All fields (lambda, lambda*) of student and teacher are jointly Gaussian with covariance C = [[Q, M], [M^T, 1]]. Signed
readouts c = (-v, v*) make one sum of both networks: y - f = sum_a c_a sigma(lambda_a) + label noise.
"""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import ndtri

from orderparam.gaussian import Activation
from orderparam.gaussian.arccosine import Abs, LeakyRelu, Relu
from orderparam.gaussian.arcsine import Erf
from orderparam.systems.online_sgd.averages.kinked import four_points
from orderparam.systems.online_sgd.averages.pairs import over_pairs
from orderparam.systems.online_sgd.averages.smooth import signal_power

_LOG2_POINTS = 15  # Sobol points of the field quadrature; the mirror image of each is used too
_PAIRS_AT_ONCE = 64  # of units: four times as fast at 50 units as all of them, and as fast at 4


def covariance(
    self_overlap: Float[Array, "unit unit"], teacher_overlap: Float[Array, "unit teacher_unit"]
) -> Float[Array, "field field"]:
    """C = [[Q, M], [M^T, 1]]."""
    teacher = jnp.eye(teacher_overlap.shape[1])
    return jnp.block([[self_overlap, teacher_overlap], [teacher_overlap.T, teacher]])


def two_points(sigma: Activation, fields: Float[Array, "field field"]) -> Float[Array, "field field"]:
    """I2(a, b) = E[sigma(lambda_a) sigma(lambda_b)]."""
    variance = jnp.diagonal(fields)
    return sigma.two_point(variance[:, None], fields, variance[None, :])


def half_square(sigma: Activation, fields: Float[Array, "field field"], signed: Float[Array, "field"]) -> Float[Array, ""]:
    """R = (1/2) sum_ab c_a c_b I2(a, b)  (Saad and Solla 1995, eq. 5)."""
    return 0.5 * signed @ two_points(sigma, fields) @ signed


def learning_term(
    sigma: Activation, fields: Float[Array, "field field"], signed: Float[Array, "field"], units: int
) -> Float[Array, "unit field"]:
    """A_jb = sum_a c_a E[sigma'(lambda_j) lambda_b sigma(lambda_a)], j < units, without the student's own readout.

    Gaussian integration by parts turns the three-point function into derivatives of the two-point function F(C_jj,
    C_ja, C_aa): E[sigma'(j) lambda_b sigma(a)] = 2 C_jb dF/dC_jj + C_ba dF/dC_ja, for every activation whose F is
    known. For erf(x/sqrt 2) this is I3 of Saad and Solla 1995, (2/pi) [C_ba s_j - C_jb C_ja] / (s_j sqrt(s_j s_a -
    C_ja^2)), s = 1 + variance.
    """
    variance = jnp.diagonal(fields)
    first = jnp.broadcast_to(variance[:units, None], (units, variance.size))
    mixed = fields[:units]

    def two_point(first: Array, mixed: Array) -> Array:
        return sigma.two_point(first, mixed, variance[None, :])

    own = jax.jvp(lambda first: two_point(first, mixed), (first,), (jnp.ones_like(first),))[1]
    cross = sigma.two_point_derivative(first, mixed, variance[None, :])
    return 2 * fields[:units] * (own @ signed)[:, None] + (cross * signed) @ fields


def noise_term(
    sigma: Activation,
    fields: Float[Array, "field field"],
    signed: Float[Array, "field"],
    units: int,
    noise: Float[Array, ""],
) -> Float[Array, "unit unit"]:
    """N_jl = E[sigma'(j) sigma'(l) (y - f)^2], j and l < units, without the student's own readouts.

    = sum_ab c_a c_b I4(j, l, a, b) + noise E[sigma'(j) sigma'(l)]. I4 in closed form for erf (Saad and Solla 1995), from
    orthant integrals for piecewise linear activations (`kinked`, 1e-9), by quadrature over two fields for smooth ones
    (`smooth`, 1e-6 at variances up to 2), and with fixed quasi-random fields for activations with other kinks (a few 1e-3).
    """
    if isinstance(sigma, Erf):
        scale = 2 * sigma.gain**2  # erf(gain x) = erf(sqrt(scale) x / sqrt2): fields grow by sqrt(scale), each sigma' too
        return scale * _erf_noise(scale * fields, signed, units, noise)
    variance = jnp.diagonal(fields)[:units]
    label = noise * sigma.two_point_derivative(variance[:, None], fields[:units, :units], variance[None, :])
    if isinstance(sigma, Relu | LeakyRelu | Abs):
        return jnp.einsum("jlab,a,b->jl", four_points(sigma.slopes, fields, units), signed, signed) + label
    if not sigma.kinks:
        return signal_power(sigma, fields, signed, units) + label
    points = field_points(fields.shape[0])
    values = points @ symmetric_root(fields)
    error = sigma(values) @ signed
    slopes = sigma.derivative(values[:, :units])
    return (slopes * error[:, None] ** 2).T @ slopes / len(points) + label


def _erf_noise(
    fields: Float[Array, "field field"], signed: Float[Array, "field"], units: int, noise: Float[Array, ""]
) -> Float[Array, "unit unit"]:
    """`noise_term` for erf(x / sqrt2):

    I4 = 4 / (pi^2 sqrt L4) asin(L0 / sqrt(L1 L2)),  L4 = s_j s_l - C_jl^2,
    L0 = L4 C_ab - C_la C_lb s_j - C_ja C_jb s_l + C_jl (C_ja C_lb + C_jb C_la),
    L1 = L4 s_a - C_la^2 s_j - C_ja^2 s_l + 2 C_jl C_ja C_la, and L2 with b for a; s = 1 + variance.

    |L0| < sqrt(L1 L2) strictly for every covariance, a singular one too: each field carries one unit of variance more.
    """
    widened = 1 + jnp.diagonal(fields)

    def pair(j: Array, l: Array) -> Array:
        own, mutual = (widened[j], widened[l]), fields[j, l]
        determinant = own[0] * own[1] - mutual**2
        # Given lambda_j and lambda_l, the fields a and b have covariance L0 / L4; L1 / L4 is its diagonal plus the widening.
        cross = jnp.outer(fields[j], fields[l])
        numerator = determinant * fields + mutual * (cross + cross.T)
        numerator -= own[0] * jnp.outer(fields[l], fields[l]) + own[1] * jnp.outer(fields[j], fields[j])
        scale = 1 / jnp.sqrt(jnp.diagonal(numerator) + determinant)
        angles = jnp.arcsin(numerator * scale[:, None] * scale)
        return (4 / math.pi**2 * signed @ angles @ signed + 2 / math.pi * noise) / jnp.sqrt(determinant)

    return over_pairs(pair, units, _PAIRS_AT_ONCE)


@cache
def field_points(count: int) -> Float[np.ndarray, "point {count}"]:
    """Fixed points standing for N(0, 1_count): scrambled Sobol points and their mirror images, with exact mean and
    covariance.

    Fixed, so that the right-hand side of a flow is a smooth function; averages of smooth functions of a few variables
    are good to a few parts in a thousand, those of polynomials up to degree 3 exact.
    """
    from scipy.stats import qmc  # slow to import, and here alone

    uniform = qmc.Sobol(count, scramble=True, seed=0).random_base2(_LOG2_POINTS)
    points = ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
    points = np.concatenate([points, -points])
    whiten = np.linalg.cholesky(np.linalg.inv(points.T @ points / len(points)))
    return points @ whiten


def symmetric_root(fields: Float[Array, "field field"]) -> Float[Array, "field field"]:
    """The symmetric square root of a covariance, singular or not: unlike a Cholesky factor a continuous function of
    it."""
    values, vectors = jnp.linalg.eigh(fields)
    return (vectors * jnp.sqrt(jnp.maximum(values, 0.0))) @ vectors.T
