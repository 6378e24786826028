"""The average E f(u) g(v) over two correlated Gaussian variables for any f and g, with all
derivatives by Price's theorem.

Price (1958): d/dc E f(u) g(v) = E f'(u) g'(v) and d/da E f(u) g(v) = E f''(u) g(v) / 2, so that a
derivative is another average of the same kind. Where f has a jump, f' has a delta function, which
is treated exactly.

A few entries are integrated one by one; many entries (kernel matrices) are interpolated in one
table.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, ArrayLike, Float

from orderparam.gaussian.covariance import as_covariance, determinant, sine
from orderparam.gaussian.generalised import Generalised
from orderparam.gaussian.interpolation import ANGLES, VARIANCES, interpolated
from orderparam.gaussian.quadrature import expectation_2d, safe_sqrt, standard_normal_rule

_CHUNK = 4096  # number of entries integrated at a time


def pair_expectation(
    f: Generalised,
    g: Generalised,
    a: Float[ArrayLike, "*#batch"],
    c: Float[ArrayLike, "*#batch"],
    b: Float[ArrayLike, "*#batch"],
) -> Float[Array, "*batch"]:
    """E f(u) g(v), (u, v) ~ N(0, [[a, c], [c, b]]), elementwise with broadcasting.

    Accurate to 1e-10 (of the root mean squares of f and g) for variances up to 100 and functions
    with a scale of order one, such as tanh; sharper functions count as larger variances. For kernel
    matrices of functions that jump away from the origin the accuracy is 1e-7 at small theta. Memory
    is that of a few arrays of the shape of the answer: give the variances of a kernel matrix as a
    column and a row. Time is that of a few thousand entries for any kernel matrix, unless f or g
    has kinks away from the origin and the variances differ: then every entry is integrated, in tens
    of milliseconds.

    Where c = ±sqrt(ab), the average of two delta functions at the same point, which is infinite, is
    returned as 0.
    """
    return _pair(f, g, *as_covariance(a, c, b))


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _pair(f: Generalised, g: Generalised, a: Array, c: Array, b: Array) -> Array:
    return _evaluate(f, g, a, c, b)


@partial(_pair.defjvp, symbolic_zeros=True)
def _(f, g, primals, tangents):
    a, c, b = primals
    da, dc, db = tangents
    value = _pair(f, g, a, c, b)
    change = jnp.zeros_like(value)
    if not isinstance(dc, SymbolicZero):
        change += _pair(f.derivative(), g.derivative(), a, c, b) * dc
    if not isinstance(da, SymbolicZero):
        change += _variance_derivative(f, g, a, c, b) * da
    if not isinstance(db, SymbolicZero):
        change += _variance_derivative(g, f, b, c, a) * db
    return value, change


def _variance_derivative(f: Generalised, g: Generalised, a: Array, c: Array, b: Array) -> Array:
    """d/da E f(u) g(v); with kinks in the form 2a d/da = E u f'(u) g(v) - c d/dc (Euler), which
    needs no f'', and 0 at a = 0."""
    slope = f.derivative()
    if not f.kinks:
        return _pair(slope.derivative(), g, a, c, b) / 2
    euler = _pair(slope.times_argument(), g, a, c, b) - c * _pair(slope, g.derivative(), a, c, b)
    return jnp.where(a > 0, euler / (2 * jnp.where(a > 0, a, 1.0)), 0.0)


@partial(jax.jit, static_argnums=(0, 1))
def _evaluate(f: Generalised, g: Generalised, a: Array, c: Array, b: Array) -> Array:
    single = a.size == 1 and b.size == 1
    similar = not any((*f.kinks, *g.kinks))  # the nodes are the same for all variances
    table_cost = ANGLES * (1 if single else VARIANCES)
    if c.size > table_cost and (single or similar):
        total = interpolated(f, g, a, c, b)
    else:
        total = _one_by_one(partial(_integrated, f, g), a, c, b)
    for place, weight in f.deltas:
        total += weight * _one_by_one(partial(_conditional, g, place), a, c, b)
    for place, weight in g.deltas:
        total += weight * _one_by_one(partial(_conditional, f, place), b, c, a)
    for place, weight in f.deltas:
        for other, factor in g.deltas:
            total += weight * factor * _density(place, other, a, c, b)
    return total


def _one_by_one(
    average: Callable[[Array, Array, Array], Array], a: Array, c: Array, b: Array
) -> Array:
    """`average(a, c, b)` elementwise, a bounded number of entries at a time."""
    a, c, b = jnp.broadcast_arrays(a, c, b)
    if c.size <= _CHUNK:
        return average(a, c, b)
    flat = jax.lax.map(
        lambda entry: average(*entry), (a.ravel(), c.ravel(), b.ravel()), batch_size=_CHUNK
    )
    return flat.reshape(c.shape)


def _integrated(f: Generalised, g: Generalised, a: Array, c: Array, b: Array) -> Array:
    """E f(u) g(v) for the regular parts, by quadrature for every entry."""
    return expectation_2d(lambda u, v: f.regular(u) * g.regular(v), a, c, b, (f.kinks, g.kinks))


def _conditional(g: Generalised, place: float, a: Array, c: Array, b: Array) -> Array:
    """E delta(u - place) g(v) for the regular part of g: the density of u times E g(v | u =
    place)."""
    safe = jnp.where(a > 0, a, 1.0)
    mean, deviation = c * place / safe, safe_sqrt(determinant(a, c, b) / safe)
    scale = jnp.where(deviation > 0, deviation, 1.0)
    x, w = standard_normal_rule(
        [(cut - mean) / scale for cut in (0.0, *(k for k in g.kinks if k != 0))]
    )
    average = jnp.sum(w * g.regular(mean[..., None] + deviation[..., None] * x), axis=-1)
    return jnp.where(
        a > 0, jnp.exp(-(place**2) / (2 * safe)) / jnp.sqrt(2 * np.pi * safe) * average, 0.0
    )


def _density(place: float, other: float, a: Array, c: Array, b: Array) -> Array:
    """The joint density of u = place and v = other; 0 where the covariance is singular."""
    s = sine(a, c, b)
    safe = jnp.where(s > 0, s, 1.0)
    exponent = (b * place**2 - 2 * c * place * other + a * other**2) / (2 * safe**2)
    return jnp.where(s > 0, jnp.exp(-exponent) / (2 * np.pi * safe), 0.0)


def coincidences(f: Generalised, g: Generalised, a: Array, c: Array, b: Array) -> Array:
    """The terms that `pair_expectation` leaves out: ±inf where c = ±sqrt(ab) puts two delta
    functions at the same point, 0 elsewhere."""
    singular = (sine(a, c, b) == 0) & (a * b > 0)
    u, v = jnp.sqrt(a), jnp.sign(c) * jnp.sqrt(b)  # u / sqrt(a) = v / (sign(c) sqrt(b))
    total = jnp.zeros_like(c)
    for place, weight in f.deltas:
        for other, factor in g.deltas:
            meet = jnp.abs(place * v - other * u) <= 1e-12 * (
                abs(place) * jnp.abs(v) + abs(other) * u
            )
            total += jnp.where(singular & meet, weight * factor * np.inf, 0.0)
    return total
