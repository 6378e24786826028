"""The leading eigenvector of D = (1/n) sum_mu T(y_mu) x_mu x_mu^T, x ~ N(0, 1), with the best T = 1
- 1 / E[z^2 | y].

With delta = n/d, tau = max T and averages over z ~ N(0, 1) and its label,

    phi(l) = l E[z^2 T / (l - T)],    psi(l) = l (1/delta + E[T / (l - T)]),
    l_edge = argmin over l > tau of psi:

the bulk ends at psi(l_edge). If phi and zeta(l) = psi(max(l, l_edge)) cross at l* > l_edge, an
eigenvalue psi(l*) stands out, and its vector has the squared cosine psi'(l*) / (psi'(l*) -
phi'(l*)) with the direction of z: Mondelli, Montanari 2018 (arXiv:1708.05932); Lu, Li 2020; Luo,
Alghamdi, Lu 2019.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from orderparam.core.result import Result
from orderparam.solve.root import decreasing_root

Scalar = Float[Array, ""]

_NEAR = -12.0  # smallest ln(l / tau - 1): below it single nodes of the quadrature would dominate
_AT = -40.0  # the same where no node of the quadrature comes close to tau
_FLAT = 1e-8  # slope of psi, relative to 1 / delta, that counts as zero
_EQUAL = 1e-10  # distance of phi and psi at the edge, relative, that counts as none
_ROUNDING = 1e-14  # smallest squared cosine that counts
# lower cut of T, which tends to minus infinity for labels that exclude almost all fields
LEAST = -1e8
# lower cut of T for eigenvectors found by Lanczos steps, whose number grows with the range of T
LEAST_MEASURED = -30.0


class SpectralEstimate(Result):
    """overlap: E w <w> of the best estimate along the eigenvector, which is cosine^2 E w^2. cosine:
    that of the angle between the eigenvector and the weights, up to its sign; both are 0 where no
    eigenvalue leaves the bulk.

    eigenvalue: the largest one. edge: that of the bulk, NaN in a measurement.
    """

    overlap: Scalar
    cosine: Scalar
    eigenvalue: Scalar
    edge: Scalar
    converged: Bool[Array, ""]


def best_weight(
    power: Float[Array, "*label"], least: float = LEAST_MEASURED
) -> Float[Array, "*label"]:
    """The weight T = max(1 - 1 / E[z^2 | y], least) of labels with power = E[z^2 | y].

    The default is for measured eigenvectors. For magnitudes |z| it moves the cosine by 5e-5 at n =
    0.8 d and 5e-4 at 2 d, and the threshold by 2e-5.
    """
    return jnp.maximum(1 - 1 / jnp.maximum(power, 1e-300), least)


def outlier(
    power: Float[Array, "label"],
    share: Float[Array, "label"],
    sample_ratio: Scalar | float,
    least: float = LEAST,
    weight_power: Scalar | float = 1.0,
    bound: Scalar | float = jnp.nan,
) -> SpectralEstimate:
    """The leading eigenvector for labels of probability `share` (summing to one), power = E[z^2 |
    y], at n = sample_ratio * d.

    least: the value below which T is cut. weight_power: E w^2, for the overlap. bound: the
    supremum of T where labels come close to it with a probability that vanishes, so that no label
    of the quadrature does; NaN where the largest weight of the given labels is the supremum.
    """
    weight = best_weight(power, least)
    attained = jnp.isnan(bound)
    top = jnp.where(attained, jnp.max(jnp.where(share > 0, weight, -jnp.inf)), bound)

    def phi(level: Scalar) -> Scalar:
        return level * jnp.sum(share * power * weight / (level - weight))

    def psi(level: Scalar) -> Scalar:
        return level * (1 / sample_ratio + jnp.sum(share * weight / (level - weight)))

    def at(u: Scalar) -> Scalar:
        return top * (1 + jnp.exp(u))

    low, high = jnp.where(attained, _NEAR, _AT), jnp.asarray(28.0)
    edge = decreasing_root(lambda u, _: -jax.grad(psi)(at(u)), low, high)
    # No minimum, up to rounding: with few samples psi grows from tau on.
    at_top = sample_ratio * jax.grad(psi)(at(low)) > -_FLAT
    level = decreasing_root(lambda u, _: phi(at(u)) - psi(at(u)), edge.value, high)
    start = at(edge.value)
    out = phi(start) - psi(start) > _EQUAL * jnp.abs(psi(start))
    rise, fall = (jax.grad(part)(at(level.value)) for part in (psi, phi))
    square = jnp.where(out, rise / jnp.where(out, rise - fall, 1.0), 0.0)
    # Where the two curves meet at the edge itself the squared cosine is zero up to rounding, whose
    # square root would be 1e-8.
    square = jnp.where(square < _ROUNDING, 0.0, square)
    return SpectralEstimate(
        overlap=weight_power * jnp.clip(square, 0.0, 1.0),
        cosine=jnp.sqrt(jnp.clip(square, 0.0, 1.0)),
        eigenvalue=jnp.where(out, psi(at(level.value)), psi(start)),
        edge=psi(start),
        converged=(edge.converged | at_top) & (level.converged | ~out),
    )


def leading_vector(
    matrix: Float[Array, "sample input"], weight: Float[Array, "sample"], tolerance: float = 1e-8
) -> tuple[float, Float[np.ndarray, "input"]]:
    """The largest eigenvalue of (1/n) sum weight x x^T and its unit vector, for rows x / sqrt(d);
    NaN and zeros where the Lanczos iteration does not converge. tolerance: relative error of the
    eigenvalue.
    """
    x, t = np.asarray(matrix, float), np.asarray(weight, float)
    n, d = x.shape
    product = LinearOperator(
        (d, d), matvec=lambda v: x.T @ (t * (x @ np.ravel(v))) * (d / n), dtype=float
    )
    try:
        values, vectors = eigsh(
            product, k=1, which="LA", tol=tolerance, v0=np.ones(d), maxiter=200 * d
        )
    except ArpackNoConvergence:
        return np.nan, np.zeros(d)
    return float(values[0]), vectors[:, 0]
