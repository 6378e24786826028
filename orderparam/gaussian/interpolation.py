"""The average E f(u) g(v) for kernel matrices: one table over the angle and the two variances,
interpolated by Chebyshev polynomials.

The average is a smooth function of the angle theta between u and v and of the two variances. The
polynomials are in

    x(theta) = (2/pi) arcsin(2 theta/pi - 1)
        (nodes crowd at theta = 0 and pi, where a saturating f varies fastest),
    y(a) = arcsinh(sqrt(a))
        (the same resolution for every decade above 1, and regular at 0).

In theta, unlike in rho, the kernels of kinked activations are smooth up to the ends.
"""

import string
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from orderparam.gaussian.covariance import angle
from orderparam.gaussian.generalised import Generalised
from orderparam.gaussian.quadrature import DEEP, LEAN, standard_normal_rule

ANGLES, VARIANCES = 96, 40  # Chebyshev nodes: 1e-11 for tanh with variances from 0 to 100


def chebyshev_nodes(count: int) -> np.ndarray:
    """The zeros of the Chebyshev polynomial of degree `count`, in decreasing order."""
    return np.cos(np.pi * (np.arange(count) + 0.5) / count)


def chebyshev_transform(values: Array, axis: int) -> Array:
    """Values at the Chebyshev nodes -> coefficients of the Chebyshev polynomials, along one
    axis."""
    count = values.shape[axis]
    k, n = np.meshgrid(np.arange(count), np.arange(count), indexing="ij")
    matrix = np.cos(np.pi * k * (n + 0.5) / count) * np.where(k == 0, 1, 2) / count
    return jnp.moveaxis(jnp.tensordot(matrix, values, axes=(1, axis)), 0, axis)


def clenshaw(x: Array, rows: Array, term: Callable[[Array], Array]) -> Array:
    """sum_k term(rows[k]) T_k(x) by Clenshaw's recursion."""

    def step(carry: tuple[Array, Array], row: Array) -> tuple[tuple[Array, Array], None]:
        current, previous = carry
        return (2 * x * current - previous + term(row), current), None

    first = term(rows[0])
    zero = jnp.zeros(jnp.broadcast_shapes(x.shape, first.shape))
    (current, previous), _ = jax.lax.scan(step, (zero, zero), rows[:0:-1], unroll=4)
    return x * current - previous + first


def _variance_grid(variance: Array) -> tuple[Array, Array]:
    """Nodes in the range of the variances, and the Chebyshev polynomials T_p(y) at every one:
    shapes (p,), (*batch, p)."""
    if variance.size == 1:
        return variance.reshape(1), jnp.ones((*variance.shape, 1))
    y = jnp.arcsinh(jnp.sqrt(variance))
    low = jnp.min(y)
    width = jnp.maximum(jnp.max(y) - low, 1e-3)
    nodes = jnp.sinh(low + width * (1 + chebyshev_nodes(VARIANCES)) / 2) ** 2
    phase = jnp.arccos(jnp.clip(2 * (y - low) / width - 1, -1.0, 1.0))
    return nodes, jnp.cos(jnp.arange(VARIANCES) * phase[..., None])


def _table(f: Generalised, g: Generalised, a: Array, b: Array, rho: np.ndarray) -> Array:
    """E f(u) g(v) at all combinations, shape (angle, a, b). Kinks away from the origin are allowed
    only for a single a and b."""
    outer = [k / jnp.sqrt(a[0]) for k in f.kinks if k != 0]
    cuts = [k / jnp.sqrt(b[0]) for k in (0.0, *g.kinks)]
    deviation_a, deviation_b = jnp.sqrt(a), jnp.sqrt(b)

    def at(rho: Array) -> Array:
        residual = jnp.sqrt(1 - rho**2)
        steep = jnp.where(jnp.abs(rho) < 0.1, 0.1, rho)
        z, w = standard_normal_rule(
            [0.0, *outer, *(cut / steep for cut in cuts[1:])], DEEP if f.kinks or g.kinks else LEAN
        )

        def line(z: Array) -> Array:
            x, density = standard_normal_rule([(cut - rho * z) / residual for cut in cuts], LEAN)
            return g.regular(deviation_b[:, None] * (rho * z + residual * x)) @ density

        return (w * f.regular(deviation_a[:, None] * z)) @ jax.lax.map(line, z)

    return jax.lax.map(at, jnp.asarray(rho))


def interpolated(f: Generalised, g: Generalised, a: Array, c: Array, b: Array) -> Array:
    """E f(u) g(v) for the regular parts, sum_kpq C_kpq T_k(x) T_p(y_a) T_q(y_b), the sum over k by
    Clenshaw's recursion.

    Kinks of f and g away from the origin are allowed only for a single a and a single b.
    """
    nodes_a, basis_a = _variance_grid(a)
    nodes_b, basis_b = _variance_grid(b)
    rho = np.cos(np.pi / 2 * (1 + np.sin(np.pi / 2 * chebyshev_nodes(ANGLES))))
    coefficients = _table(f, g, nodes_a, nodes_b, rho)
    for axis in range(3):
        coefficients = (
            coefficients
            if coefficients.shape[axis] == 1
            else chebyshev_transform(coefficients, axis)
        )
    x = 2 / np.pi * jnp.arcsin(jnp.clip(2 / np.pi * angle(a, c, b) - 1, -1.0, 1.0))
    return clenshaw(x, coefficients, lambda layer: contract(basis_a @ layer, basis_b))


def contract(left: Array, right: Array) -> Array:
    """sum_p left[..., p] right[..., p] with broadcasting, as one matrix product over the axes that
    only one of them has."""
    rank = max(left.ndim, right.ndim) - 1
    shapes = [(1,) * (rank + 1 - side.ndim) + side.shape[:-1] for side in (left, right)]
    axes = [[i for i in range(rank) if shape[i] > 1] for shape in shapes]
    joint = sorted({*axes[0], *axes[1]})
    letters = string.ascii_lowercase
    terms = ["".join(letters[i] for i in side) + "z" for side in axes]
    operands = [
        side.reshape(*(shape[i] for i in own), side.shape[-1])
        for side, shape, own in zip((left, right), shapes, axes)
    ]
    product = jnp.einsum(f"{terms[0]},{terms[1]}->{''.join(letters[i] for i in joint)}", *operands)
    return product.reshape(jnp.broadcast_shapes(*shapes))
