"""Averages over Gaussian variables by quadrature that is accurate also at kinks, jumps and sharp
transitions.

Gauss-Hermite quadrature assumes a polynomial: a kink spoils it at the third digit, and tanh(10 z)
at the fifth. Here the line is cut at the places where the integrand is not smooth, every piece is
covered by Gauss-Legendre panels, and the panels shrink geometrically towards the cuts, so that a
transition of any width around a cut is resolved. The origin is always a cut: a nonlinearity that
saturates does so around it.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from orderparam.gaussian.rules import panel_rule


class Panels(NamedTuple):
    """Panels on a half line that starts at a cut, in standard deviations.

    edges: upper edges of the panels; the first panel is subdivided `gradings` times towards the
    cut. nodes: number of nodes in a panel.
    """

    edges: tuple[float, ...]
    gradings: int
    nodes: int

    @property
    def reach(self) -> float:
        return self.edges[-1]


_GRADING = 4.0  # ratio of the widths of neighbouring panels next to a cut
# The normal density at 12 is 2e-32, at 9 it is 1e-18: the integrand may grow like |z|^30 and |z|^8
# before the error exceeds 1e-12.
FINE = Panels(tuple(range(1, 13)), gradings=7, nodes=16)
LEAN = Panels((1.0, 2.2, 3.8, 6.0, 9.0), gradings=4, nodes=14)
# The mean of a step over v given u is a transition of width sqrt(1 - rho^2) in u.
DEEP = LEAN._replace(gradings=10)


@cache
def _unit_rule(
    panels: Panels, left: bool, right: bool, refine: int
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1] for an interval that is at most a few `reach` long, with cuts at
    its left and right ends."""
    near = panels.edges[0] * _GRADING ** -np.arange(panels.gradings, 0.0, -1.0)
    half = np.array([0.0, *near, *panels.edges]) / panels.reach
    coarse = np.union1d(half, 1 - half) if left and right else half if left else 1 - half[::-1]
    edges = np.interp(
        np.arange(refine * (len(coarse) - 1) + 1) / refine, np.arange(len(coarse)), coarse
    )
    return panel_rule(edges, panels.nodes)


def standard_normal_rule(
    cuts: Sequence[Float[ArrayLike, "*#batch"]] = (0.0,), panels: Panels = FINE, refine: int = 1
) -> tuple[Float[Array, "*batch node"], Float[Array, "*batch node"]]:
    """Nodes z and weights w with sum_n w_n f(z_n) = E f(z), z ~ N(0, 1), for f that is smooth
    between the cuts.

    cuts: where f is not smooth or varies quickly: at least one, in any order, broadcast against one
    another. They may be traced: the rule moves with them, so that differentiating through it gives
    the derivative of the integral. refine: number of parts into which every panel is split, for f
    that oscillates with a wave number above 15.
    """
    inner = jnp.stack(
        jnp.broadcast_arrays(*(jnp.asarray(cut, jnp.float64) for cut in cuts)), axis=-1
    )
    if len(cuts) > 1:
        inner = jnp.sort(inner, axis=-1)
    inner = jnp.clip(inner, -panels.reach, panels.reach)
    end = jnp.full((*inner.shape[:-1], 1), panels.reach)
    edges = jnp.concatenate([-end, inner, end], axis=-1)
    nodes, weights = [], []
    for i in range(len(cuts) + 1):
        x, w = _unit_rule(panels, i > 0, i < len(cuts), refine)
        length = edges[..., i + 1, None] - edges[..., i, None]
        nodes.append(edges[..., i, None] + length * x)
        weights.append(length * w)
    z = jnp.concatenate(nodes, axis=-1)
    return z, jnp.concatenate(weights, axis=-1) * jnp.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


_CENTRED_REACH = 9.0


def centred_rule(
    scale: Float[Array, "*batch"], nodes: int
) -> tuple[Float[Array, "*batch node"], Float[Array, "*batch node"]]:
    """Nodes z and weights w with sum_n w_n f(z_n) = E f(z), z ~ N(0, 1), for analytic f that varies
    rapidly only around the origin, on the length `scale` or more slowly.

    Equal steps h of t in z = scale sinh(t), up to z = 9. A pole of f at the complex place p, or a
    growth that begins there, gives the error exp(-2 pi |Im arcsinh(p / scale)| / h): see
    `centred_loss`.
    """
    end = jnp.arcsinh(_CENTRED_REACH / scale)[..., None]
    t = end * np.linspace(-1.0, 1.0, nodes)
    z = scale[..., None] * jnp.sinh(t)
    step = 2 * end / (nodes - 1) * scale[..., None]
    return z, step * jnp.cosh(t) * jnp.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


def centred_loss(
    scale: Float[Array, ""], nodes: int, places: Float[Array, "place"]
) -> Float[Array, ""]:
    """The smallest -ln of the error of `centred_rule` due to poles at these complex places."""
    step = 2 * jnp.arcsinh(_CENTRED_REACH / scale) / (nodes - 1)
    damped = jnp.maximum(jnp.real(places**2), 0.0) / 2
    return jnp.min(2 * np.pi / step * jnp.abs(jnp.imag(jnp.arcsinh(places / scale))) + damped)


def panelled_rule(
    scale: Float[Array, ""], cuts: Sequence[Float[ArrayLike, ""]], top: Float[Array, ""]
) -> tuple[Float[Array, "node"], Float[Array, "node"]]:
    """Nodes and weights on (-9, top) for f that changes around the origin within `scale`, between
    0.07 and 1.6, and is smooth between the cuts: in consecutive panels, divided at the cuts."""
    edges = scale * (_CENTRED_REACH / scale) ** np.linspace(0.0, 1.0, _SIDE)
    edge = jnp.concatenate([-edges, jnp.zeros(1), edges, jnp.stack([jnp.asarray(c) for c in cuts])])
    edge = jnp.sort(jnp.clip(edge, -_CENTRED_REACH, jnp.minimum(top, _CENTRED_REACH)))
    z, w = panel_rule(edge, 14)
    return z, w * jnp.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


_SIDE = 4  # edges on either side of the origin


def safe_sqrt(x: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """sqrt(x), with derivative 0 instead of infinity at x = 0."""
    return jnp.where(x == 0, 0.0, jnp.sqrt(jnp.where(x == 0, 1.0, x)))


def scaled_cuts(
    kinks: Sequence[float], deviation: Float[Array, "*batch"]
) -> list[Float[Array, "*batch"]]:
    """The values of z at which `deviation * z` passes the origin and the kinks; far away where the
    deviation is zero."""
    scale = jnp.where(deviation == 0, 1.0, deviation)
    away = [
        jnp.where(deviation == 0, np.sign(kink) * FINE.reach, kink / scale)
        for kink in kinks
        if kink != 0
    ]
    return [jnp.zeros_like(deviation), *away]


def expectation(
    f: Callable[[Array], Array],
    variance: Float[ArrayLike, "*batch"] = 1.0,
    kinks: Sequence[float] = (),
) -> Float[Array, "*own_and_batch"]:
    """E f(u), u ~ N(0, variance), elementwise in the variance.

    f: acts on every element of an array of shape (*batch, node); it may add axes in front. kinks:
    places in u where f or one of its first derivatives jumps, or where it varies quickly away from
    the origin. Accurate to 1e-13 of E |f| for f that is analytic between the kinks and grows more
    slowly than |z|^30, z = u / deviation. Differentiable in the variance and in all arrays that f
    closes over; the derivative at variance 0 is returned as 0.
    """
    deviation = safe_sqrt(jnp.asarray(variance, jnp.float64))
    z, w = standard_normal_rule(scaled_cuts(kinks, deviation))
    return jnp.sum(w * f(deviation[..., None] * z), axis=-1)


def expectation_2d(
    f: Callable[[Array, Array], Array],
    a: Float[ArrayLike, "*#batch"],
    c: Float[ArrayLike, "*#batch"],
    b: Float[ArrayLike, "*#batch"],
    kinks: tuple[Sequence[float], Sequence[float]] = ((), ()),
) -> Float[Array, "*own_and_batch"]:
    """E f(u, v), (u, v) ~ N(0, [[a, c], [c, b]]), elementwise in (a, c, b), with the memory of one
    line of nodes for each element.

    f: called with u of shape (*batch, 1) and v of shape (*batch, node); it may add axes in front.
    kinks: those of f in u and in v, see `expectation`. Accurate to 1e-12 of E |f| for variances up
    to 1e3 and f that grows more slowly than |z|^8. Differentiable in (a, c, b): at c = ±sqrt(ab) to
    six digits if f has no kinks; the derivative with respect to a variance that vanishes is
    returned as 0.
    """
    a, c, b = jnp.broadcast_arrays(*(jnp.asarray(x, jnp.float64) for x in (a, c, b)))
    deviation_u, deviation_v = safe_sqrt(a), safe_sqrt(b)
    product = safe_sqrt(a * b)  # for a = b exactly a: rho is then exactly 1 on the diagonal
    rho = _within_one(jnp.where(product == 0, 0.0, c / jnp.where(product == 0, 1.0, product)))
    # Smooth f: at rho = ±1 the derivatives are taken just inside. With kinks they may be infinite,
    # and only the value is kept accurate.
    kinked = any(map(len, kinks))
    residual = jnp.sqrt(_floored(1 - rho**2, 1e-24 if kinked else 1e-12))
    # u = deviation_u z,  v = deviation_v (rho z + residual x);  at rho = ±1 the kinks in v are
    # kinks in z
    steep = jnp.where(jnp.abs(rho) < 0.1, jnp.where(rho < 0, -0.1, 0.1), rho)
    cuts_v = scaled_cuts(kinks[1], deviation_v)
    outer = [*scaled_cuts(kinks[0], deviation_u), *(cut / steep for cut in cuts_v[1:])]
    z, w = standard_normal_rule(outer, DEEP if kinked else LEAN)

    def line(total: Array, node: tuple[Array, Array]) -> tuple[Array, None]:
        z, w = node
        x, density = standard_normal_rule([(cut - rho * z) / residual for cut in cuts_v], LEAN)
        v = deviation_v[..., None] * (rho[..., None] * z[..., None] + residual[..., None] * x)
        return total + w * jnp.sum(density * f((deviation_u * z)[..., None], v), axis=-1), None

    nodes = (jnp.moveaxis(z, -1, 0), jnp.moveaxis(w, -1, 0))
    start = jax.eval_shape(line, 0.0, jax.tree.map(lambda leaf: leaf[0], nodes))[0]
    return jax.lax.scan(line, jnp.zeros(start.shape), nodes)[0]


@jax.custom_jvp
def _within_one(rho: Array) -> Array:
    """rho, clipped to [-1, 1] against rounding; its derivative is 1 everywhere."""
    return jnp.clip(rho, -1.0, 1.0)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _floored(x: Array, floor: float) -> Array:
    """max(x, floor), with derivative 1 everywhere."""
    return jnp.maximum(x, floor)


_within_one.defjvp(lambda primals, tangents: (_within_one(*primals), *tangents))
_floored.defjvp(lambda floor, primals, tangents: (_floored(*primals, floor), *tangents))
