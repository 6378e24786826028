"""Quadrature rules on an interval and on the line: nodes and weights as NumPy arrays.

The theories of all topics take their rules from here. `orderparam.gaussian.quadrature` has those
whose nodes move with traced numbers: averages over a Gaussian of functions with kinks or sharp
changes.
"""

from functools import cache
from typing import TypeVar

import numpy as np
from jaxtyping import Array, Float

Nodes = Float[np.ndarray, "node"]
Values = TypeVar("Values", np.ndarray, Array)


def legendre_rule(count: int) -> tuple[Nodes, Nodes]:
    """Gauss-Legendre nodes and weights on [-1, 1]: exact for polynomials up to degree 2 count - 1.

    >>> x, w = legendre_rule(3)
    >>> round(float(w @ x**4), 12)
    0.4
    """
    return np.polynomial.legendre.leggauss(count)


def unit_rule(count: int) -> tuple[Nodes, Nodes]:
    """Gauss-Legendre nodes and weights on [0, 1].

    >>> x, w = unit_rule(3)
    >>> round(float(w @ x**4), 12)
    0.2
    """
    x, w = legendre_rule(count)
    return (1 + x) / 2, w / 2


def panel_rule(edges: Values, count: int) -> tuple[Values, Values]:
    """Gauss-Legendre nodes and weights on consecutive panels between the edges, `count` nodes in
    each.

    `edges` may also be a JAX array, traced or not; the nodes then are one as well.

    >>> x, w = panel_rule(np.array([0.0, 1.0, 3.0]), 4)
    >>> round(float(w @ x**2), 12)
    9.0
    """
    x, w = legendre_rule(count)
    half = (edges[1:] - edges[:-1])[:, None] / 2
    return (edges[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()


def hermite_rule(count: int) -> tuple[Nodes, Nodes]:
    """Gauss-Hermite nodes and weights of the standard normal law: the weights add up to one.

    >>> z, w = hermite_rule(3)
    >>> round(float(w @ z**4), 12)
    3.0
    """
    z, w = np.polynomial.hermite_e.hermegauss(count)
    return z, w / w.sum()


def hermite_product(
    count: int, variables: int
) -> tuple[Float[np.ndarray, "node variable"], Float[np.ndarray, "node"]]:
    """Product of Gauss-Hermite rules for independent standard normal variables, `count` nodes for
    each; one empty node of weight one for no variable. The last variable changes fastest.

    >>> z, w = hermite_product(3, 2)
    >>> round(float(w @ (z[:, 0] ** 2 * z[:, 1] ** 4)), 12)
    3.0
    """
    z, w = hermite_rule(count)
    nodes, weights = np.zeros((1, 0)), np.ones(1)
    for _ in range(variables):
        nodes = np.hstack([np.repeat(nodes, count, axis=0), np.tile(z, len(nodes))[:, None]])
        weights = np.outer(weights, w).ravel()
    return nodes, weights


def normal_steps(step: float, count: int) -> tuple[Nodes, Nodes]:
    """Equal steps from -count * step to count * step, weighted by the standard normal density.

    For a function that is analytic in a strip of half width b around the real line the error falls
    as exp(-2 pi b / step), faster than that of Gauss-Hermite rules.

    >>> z, w = normal_steps(0.5, 18)
    >>> round(float(w @ z**4), 12)
    3.0
    """
    z = step * np.arange(-count, count + 1)
    return z, step * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


def double_exponential(t: Nodes, step: float) -> tuple[Nodes, Nodes]:
    """Nodes and weights on [0, 1] of the double-exponential (tanh-sinh) rule, for integrands with
    singularities at the ends: x = 1/(1 + exp(-pi sinh t)) at equal steps of t.

    At negative t the nodes are distances from the nearer end without cancellation.

    Source: Takahasi, Mori (1974).

    >>> x, w = double_exponential(np.arange(-35, 36) / 10, 0.1)
    >>> round(float(w @ x**-0.5), 7)
    2.0
    """
    u = np.pi / 2 * np.sinh(t)
    return 1 / (1 + np.exp(-2 * u)), step * np.pi / 4 * np.cosh(t) / np.cosh(u) ** 2


@cache
def half_line_rule(nodes: int) -> tuple[Nodes, Nodes]:
    """Gauss rule of the standard normal density on z > 0, mirrored to z < 0: exact for functions
    that are a polynomial on either side, signs and absolute values of coordinates included.
    Recursion coefficients by the Stieltjes procedure on a fine rule.

    >>> z, w = half_line_rule(4)
    >>> round(float(w @ abs(z)) ** 2 * np.pi / 2, 12)
    1.0
    """
    x, w = legendre_rule(600)
    x, w = 7.5 * (x + 1), 7.5 * w
    w = w * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    alpha, beta = np.zeros(nodes), np.zeros(nodes)
    previous, current = np.zeros_like(x), np.ones_like(x) / np.sqrt(w.sum())
    for n in range(nodes):
        alpha[n] = np.sum(w * x * current**2)
        following = (x - alpha[n]) * current - (beta[n - 1] if n else 0.0) * previous
        beta[n] = np.sqrt(np.sum(w * following**2))
        previous, current = current, following / beta[n]
    values, vectors = np.linalg.eigh(
        np.diag(alpha) + np.diag(beta[:-1], 1) + np.diag(beta[:-1], -1)
    )
    weights = w.sum() * vectors[0] ** 2
    return np.concatenate([-values[::-1], values]), np.concatenate([weights[::-1], weights])
