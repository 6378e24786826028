"""Spectra known in closed form: power laws, finite rank, and kernels on the sphere, the torus, the
hypercube and Gaussian inputs."""

import math
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from orderparam.core.fields import check_integer
from orderparam.core.late import comb, gammaln, roots_legendre, zeta
from orderparam.kernels.spectrum import Spectrum

Values = TypeVar("Values", np.ndarray, Array)

# A power law is resolved mode by mode up to this number, and by _NODES levels per factor of two
# above.
_RESOLVED = 128
_NODES = 12
_MOST_OCTAVES = 32


def finite_rank(
    rank: float, eigenvalue: float, target_power: float = 1.0, tail: float = 0.0
) -> Spectrum:
    """`rank` modes with the same eigenvalue, which share the target power; all other modes have
    eigenvalue 0.

    `tail` is the sum of the eigenvalues of many more modes, which are too small to be learned. The
    inputs x ~ N(0, I_d) of a linear kernel x.x'/d have rank d and eigenvalue 1/d.
    """
    check_above("rank", rank, 0)
    return Spectrum(np.array([eigenvalue]), np.array([target_power]), np.array([rank]), tail)


def power_law(
    capacity: float, source: float, modes: float = 1e12, *, infinite: bool = True
) -> Spectrum:
    """lambda_k = k^-alpha and y_k^2 = k^(-1 - 2 r alpha): capacity exponent alpha > 1 and source
    exponent r > 0.

    (Caponnetto and De Vito 2007; Spigler, Geiger and Wyart 2020; Cui et al. 2021.) Each of the
    first 128 modes is a level. Above, each octave of k is represented by a dozen weighted levels:
    the Gauss quadrature of a sum over integers, whose nodes and weights follow from the discrete
    Chebyshev polynomials, so that sums of smooth functions of k are exact to about 1e-14 at a cost
    that grows as log(modes).

    modes:    number of resolved modes.
    infinite: True if the modes beyond are kept as the tail, sum_{k > modes} k^-alpha (Hurwitz
    zeta), or left out.
    """
    check_above("capacity", capacity, 1)
    check_above("source", source, 0)
    if not (1 <= modes <= 1e15 and modes == math.floor(modes)):
        raise ValueError(f"modes = {modes!r}: must be an integer from 1 to 1e15")
    decay = 1 + 2 * source * capacity
    nodes, weights = _octaves(modes, max(math.ceil(math.log2(modes / _RESOLVED)), 0))
    nodes, weights = nodes[weights > 0], weights[weights > 0]
    return Spectrum(
        nodes**-capacity,
        weights * nodes**-decay,
        weights,
        tail=zeta(capacity, modes + 1) if infinite else 0.0,
        tail_power=zeta(decay, modes + 1) if infinite else 0.0,
    )


def power_law_levels(decay: Any, power_decay: Any, modes: Any) -> Spectrum:
    """lambda_k = k^-decay and y_k^2 = k^-power_decay, k = 1 ... modes, where the numbers may be
    traced. modes may be infinite, or not a whole number, in which case sums over the modes are
    interpolated.

    It has the levels of `power_law`, 512 for any `modes` up to 5e11. With infinitely many modes the
    sums over the rest are integrals from k - 1/2 to infinity, exact to 1e-24. decay > 1 where modes
    is infinite.
    """
    last = 2.0**_MOST_OCTAVES * _RESOLVED
    resolved = jnp.minimum(modes, last)
    nodes, weights = _octaves(resolved, _MOST_OCTAVES, jnp)
    nodes = jnp.maximum(nodes, 1.0)

    def tail(exponent: Any) -> Float[Array, ""]:
        safe = jnp.where(jnp.isinf(modes), exponent, 2.0)
        return jnp.where(jnp.isinf(modes), (last + 0.5) ** (1 - safe) / (safe - 1), 0.0)

    return Spectrum(
        nodes**-decay, weights * nodes**-power_decay, weights, tail(decay), tail(power_decay)
    )


def _octaves(modes: Any, octaves: int, xp: ModuleType = np) -> tuple[Any, Any]:
    """Nodes and weights: sum_k f(k) = sum_i w_i f(x_i) over k = 1 ... modes <= 128 * 2^octaves;
    nodes beyond have weight 0."""
    heads = np.arange(1.0, _RESOLVED + 1)
    first = _RESOLVED * 2.0 ** np.arange(octaves) + 1
    count = xp.clip(modes - first + 1, 0.0, first - 1)
    # Recurrence of the polynomials orthogonal on 0 ... N-1: b_n = n^2 (N^2 - n^2) / (4 (4 n^2 - 1))
    # (Szego 1975, 2.8). It ends at n = N; higher nodes have no weight.
    n = np.arange(1.0, _NODES)
    off = xp.sqrt(xp.maximum(n**2 * (count[:, None] ** 2 - n**2) / (4 * (4 * n**2 - 1)), 0.0))
    above = off[:, :, None] * np.eye(_NODES, k=1)[:-1]
    matrix = xp.pad(above, ((0, 0), (0, 1), (0, 0)))
    offsets, vectors = xp.linalg.eigh(matrix + xp.swapaxes(matrix, 1, 2))
    nodes = (first + (count - 1) / 2)[:, None] + offsets
    weights = count[:, None] * vectors[:, 0] ** 2
    return xp.concatenate([heads, nodes.ravel()]), xp.concatenate(
        [xp.clip(modes - heads + 1, 0.0, 1.0), weights.ravel()]
    )


def sphere(
    input_dim: int,
    kernel_function: Callable[[Float[Array, "node"]], Float[Array, "node"]],
    target_power: ArrayLike,
    max_degree: int = 20,
) -> Spectrum:
    """Kernel K(x, x') = kernel_function(t), t = cos(angle between x and x'), for x uniform on the
    sphere in d = input_dim >= 2.

        lambda_l = c_d int kernel_function(t) P_l(t) (1 - t^2)^((d-3)/2) dt,
        P_l(1) = 1,   c_d int (1 - t^2)^((d-3)/2) dt = 1

    with multiplicity (2l + d - 2)/l binom(l + d - 3, l - 1): the Funk-Hecke formula. The integral
    is taken over the angle, in which arc-cosine and arcsine kernels are smooth. Degrees above
    max_degree, and eigenvalues too small to be distinguished from rounding (about 1e-15 of the
    kernel; for large d only a few degrees are larger), go into the tail, kernel_function(1) - sum
    of the resolved eigenvalues.

    kernel_function: of an array of cosines. target_power: power of the target on each degree 0, 1,
    ..., at most max_degree.
    """
    check_integer("input_dim", input_dim, 2)
    check_integer("max_degree", max_degree, 0)
    d = input_dim
    # The weight sin^(d-2) is as narrow as d^-1/2.
    points, weights = roots_legendre(256 + 16 * math.isqrt(d) + 4 * max_degree)
    theta = np.pi / 2 * (1 + points)
    t = np.cos(theta)
    weights = weights * np.sin(theta) ** (d - 2)
    weights /= weights.sum()
    polynomials = np.array(list(zonal_polynomials(t, d, max_degree)))
    return _zonal(
        d,
        kernel_function,
        t,
        weights,
        polynomials,
        zonal_multiplicities(d, max_degree),
        target_power,
    )


def zonal_multiplicities(input_dim: int, max_degree: int) -> Float[np.ndarray, "degree"]:
    """N_l, the number of spherical harmonics of degree l = 0 .. max_degree in input_dim >= 2."""
    l = np.arange(1, max_degree + 1)
    return np.append(1.0, (2 * l + input_dim - 2) / l * comb(l + input_dim - 3, l - 1))


def zonal_polynomials(cosines: Values, input_dim: int, max_degree: int) -> Iterator[Values]:
    """P_0, ..., P_max_degree of the cosines, P_l(1) = 1: Legendre's polynomials in input_dim = 3,
    Gegenbauer's in general.

    N_l P_l(x.x') is the sum of phi(x) phi(x') over the N_l spherical harmonics of degree l, and E
    P_l(x.x')^2 = 1/N_l.
    """
    previous, current = 1.0 + 0.0 * cosines, cosines
    yield previous
    for degree in range(1, max_degree + 1):
        yield current
        factor = (2 * degree + input_dim - 2) * cosines
        previous, current = (
            current,
            (factor * current - degree * previous) / (degree + input_dim - 2),
        )


def hypercube(
    input_dim: int,
    kernel_function: Callable[[Float[Array, "node"]], Float[Array, "node"]],
    target_power: ArrayLike,
    max_degree: int | None = None,
) -> Spectrum:
    """Kernel K(x, x') = kernel_function(x.x'/d) for x uniform on {-1, +1}^d: the modes are the
    parities of k bits.

        lambda_k = 2^-d sum_j K_j(k; d) kernel_function(1 - 2j/d),   multiplicity binom(d, k)

    with K_j(k; d) the Krawtchouk polynomials. Degrees above max_degree (default: none), and
    eigenvalues too small to be distinguished from rounding, go into the tail.

    kernel_function: of an array of overlaps. target_power: power of the target on each degree 0, 1,
    ..., at most max_degree.
    """
    check_integer("input_dim", input_dim, 1)
    d = input_dim
    top = d if max_degree is None else max_degree
    check_integer("max_degree", top, 0)
    if top > d:
        raise ValueError(f"max_degree = {top}: must be at most input_dim = {d}")
    flips = np.arange(d + 1.0)
    weights = np.exp(gammaln(d + 1) - gammaln(flips + 1) - gammaln(d - flips + 1) - d * math.log(2))
    # Polynomials normalised to 1 at j = 0; those of degree above d/2 are those below with
    # alternating sign.
    polynomials = [np.ones(d + 1), 1 - 2 * flips / d]
    for k in range(1, d // 2):
        polynomials.append(((d - 2 * flips) * polynomials[k] - k * polynomials[k - 1]) / (d - k))
    degrees = np.arange(top + 1)
    table = np.array(
        [polynomials[k] if k <= d // 2 else (-1) ** flips * polynomials[d - k] for k in degrees]
    )
    return _zonal(
        d,
        kernel_function,
        1 - 2 * flips / d,
        weights / weights.sum(),
        table,
        comb(d, degrees),
        target_power,
    )


def gaussian_rbf(
    input_dim: int,
    target_power: ArrayLike,
    length_scale: float = 1.0,
    input_scale: float = 1.0,
    max_degree: int = 40,
) -> Spectrum:
    """K(x, x') = exp(-|x - x'|^2 / (2 length_scale^2)) for x ~ N(0, input_scale^2 I) in d =
    input_dim dimensions.

        lambda_k = (2a/A)^(d/2) B^k,   a = 1/(4 s^2),   b = 1/(2 l^2),
        A = a + b + sqrt(a^2 + 2ab),   B = b/A

    with multiplicity binom(k + d - 1, k) (Zhu, Williams, Rohwer and Morciniec 1998). Degrees above
    max_degree go into the tail. target_power: power of the target on each degree 0, 1, ..., at most
    max_degree.
    """
    check_integer("input_dim", input_dim, 1)
    check_integer("max_degree", max_degree, 0)
    check_above("length_scale", length_scale, 0)
    check_above("input_scale", input_scale, 0)
    a, b = 1 / (4 * input_scale**2), 1 / (2 * length_scale**2)
    total = a + b + math.sqrt(a**2 + 2 * a * b)
    degrees = np.arange(max_degree + 1)
    eigenvalues = (2 * a / total) ** (input_dim / 2) * (b / total) ** degrees
    multiplicities = comb(degrees + input_dim - 1, degrees)
    tail = max(1 - float(eigenvalues @ multiplicities), 0.0)
    return Spectrum(eigenvalues, _padded(target_power, max_degree), multiplicities, tail)


def torus(
    input_dim: int,
    smoothness: float,
    target_smoothness: float,
    cut: float,
    target_dim: int | None = None,
) -> Spectrum:
    """A translation-invariant kernel on the torus [0, 2 pi)^d, x uniform, and a random target: both
    are power laws in the wave vector k, |k| <= cut.

        lambda_k ~ (1 + |k|^2)^-(s + d/2),   E y_k^2 ~ (1 + |k|^2)^-(a + r/2)

    with s = smoothness, a = target_smoothness, d = input_dim and r = target_dim. The target depends
    on the first r coordinates only (default: all), so that its k are those of an r-dimensional
    lattice. Eigenvalues and target power each sum to 1. A level holds all k of one |k|^2; a field
    with these variances has square-integrable derivatives of every order below a.
    """
    check_above("smoothness", smoothness, 0)
    check_above("target_smoothness", target_smoothness, 0)
    check_integer("input_dim", input_dim, 1)
    relevant = input_dim if target_dim is None else target_dim
    check_integer("target_dim", relevant, 1)
    if relevant > input_dim:
        raise ValueError(f"target_dim = {relevant}: must be at most input_dim = {input_dim}")
    check_above("cut", cut, 0)
    vectors, on_target = lattice_shells(input_dim, cut), lattice_shells(relevant, cut)
    there = vectors > 0
    one = 1.0 + np.flatnonzero(there)
    eigenvalues = one ** -(smoothness + input_dim / 2)
    power = on_target[there] * one ** -(target_smoothness + relevant / 2)
    return Spectrum(
        eigenvalues / (vectors[there] @ eigenvalues), power / power.sum(), vectors[there]
    )


def lattice_shells(input_dim: int, cut: float) -> Float[np.ndarray, "square"]:
    """The number of vectors of integers with |k|^2 = 0, 1, ..., floor(cut^2).

    It is the product of input_dim series 1 + 2 q + 2 q^4 + 2 q^9 + ..., and is exact up to 2^53.
    """
    top = math.floor(cut**2 + 1e-9)
    line = np.zeros(top + 1)
    line[np.arange(1, math.isqrt(top) + 1) ** 2] = 2.0
    line[0] = 1.0
    shells = line
    for _ in range(input_dim - 1):
        total = np.zeros(top + 1)
        for square in np.flatnonzero(line):  # few terms: one shifted copy for each
            total[square:] += line[square] * shells[: top + 1 - square]
        shells = total
    return shells


def _zonal(
    input_dim: int,
    kernel_function: Callable,
    overlaps: np.ndarray,
    weights: np.ndarray,
    polynomials: np.ndarray,
    multiplicities: np.ndarray,
    target_power: ArrayLike,
) -> Spectrum:
    """Spectrum of a kernel of the overlap alone: lambda_k = E[kernel_function(t) P_k(t)] with
    P_k(1) = 1."""
    values = np.asarray(kernel_function(overlaps), np.float64)
    peak = float(np.asarray(kernel_function(np.ones(1)), np.float64)[0])
    if values.shape != overlaps.shape or not np.all(np.isfinite(values)):
        raise ValueError(
            f"kernel_function returned {values!r}: must be one finite number for each of "
            f"{overlaps.size} overlaps"
        )
    eigenvalues = polynomials @ (weights * values)
    # Rounding of the kernel and, through the power d of the sine or the binomials, of the weights.
    rounding = np.finfo(np.float64).eps * (np.abs(polynomials) @ (weights * np.abs(values)))
    noise = (64 + input_dim) * rounding
    if np.any(eigenvalues < -1e3 * noise):
        degree = int(np.argmax(eigenvalues < -1e3 * noise))
        raise ValueError(
            f"kernel_function has the eigenvalue {eigenvalues[degree]:g} at degree {degree}: must "
            "be >= 0"
        )
    eigenvalues = np.where(eigenvalues > noise, eigenvalues, 0.0)
    tail = max(peak - float(eigenvalues @ multiplicities), 0.0)
    return Spectrum(eigenvalues, _padded(target_power, eigenvalues.size - 1), multiplicities, tail)


def _padded(target_power: ArrayLike, max_degree: int) -> np.ndarray:
    power = np.asarray(target_power, np.float64)
    if power.ndim != 1 or power.size > max_degree + 1:
        raise ValueError(
            f"target_power has shape {power.shape}: must be (degree,) with at most "
            f"{max_degree + 1} entries"
        )
    return np.pad(power, (0, max_degree + 1 - power.size))


def check_above(name: str, value: float, least: float) -> None:
    """Raises `ValueError` naming an argument that is not finite and > `least`."""
    if not (math.isfinite(value) and value > least):
        raise ValueError(f"{name} = {value!r}: must be finite and > {least}")
