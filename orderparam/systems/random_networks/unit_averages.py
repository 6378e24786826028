"""Averages over the weights of one hidden unit."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.gaussian.quadrature import scaled_cuts, standard_normal_rule
from orderparam.gaussian.rules import unit_rule
from orderparam.systems.random_networks.model import RandomNetwork

# Averages over the weights w of one hidden unit are sums over nodes u = w . x with probabilities.
#
# Hidden units are independent, so that every property of a network with one hidden layer of any
# width follows from averages over one unit.

_TENSOR = {1: 192, 2: 96, 3: 56}  # Gauss-Legendre nodes in every direction
_RADII, _PIECE = 56, 48  # nodes along a ray, and on a piece between two rays
_REACH = 9.0  # standard deviations

Rule = tuple[Float[Array, "node point"], Float[Array, "node"]]


def unit_average(system: RandomNetwork) -> Rule:
    r"""Quadrature rule for the fields u = w . x of one hidden unit at all inputs together.

    $$ E f(u) = \sum_n p_n f(u_n) $$

    For a Gaussian law the integral has as many dimensions as the inputs span, min(points, dim); for
    a uniform law it always has `dim` dimensions. In two dimensions the plane is divided along the
    lines w . x = 0, so that an activation with a kink or a jump at the origin is integrated as
    accurately as a smooth one.

    Returns:
        The nodes u_n, shape (node, point), and the weights p_n, which sum to 1.

    Raises:
        ValueError: in more than three dimensions; for an activation with kinks away from the
            origin; in three dimensions for an activation with any kink.

    Accuracy: 1e-10 in one and two dimensions for |x| sqrt(weight_variance) up to about 10, in three
    dimensions up to about 1.
    """
    x = system.inputs
    points, dim = x.shape
    gaussian = system.prior == "gaussian"
    if gaussian and points < dim:
        x = jnp.linalg.qr(x.T, mode="r").T
    rank = x.shape[1]
    if rank > 3:
        what = (
            f"{points} inputs of dimension {dim}"
            if gaussian
            else f"inputs of dimension {dim} and a uniform prior"
        )
        raise ValueError(
            f"RandomNetwork.inputs: {what} need an integral over {rank} dimensions; there is one "
            "for up to 3"
        )
    kinks = system.activation.kinks
    if (kinks and rank == 3) or any(kinks):
        raise ValueError(
            f"RandomNetwork.activation = {system.activation.name}: kinks away from the origin, or "
            "inputs in three dimensions with any kink, need a rule that there is not; use a "
            "smooth activation"
        )
    deviation = jnp.sqrt(system.weight_variance / dim)
    # a uniform law on [-1, 1] has variance 1/3
    scale = deviation if gaussian else np.sqrt(3.0) * deviation
    if rank == 2 and (gaussian or kinks):
        nodes, weights = _polar(x) if gaussian else _square(x)
    else:
        nodes, weights = _tensor(rank, gaussian, bool(kinks))
    return scale * nodes @ x.T, weights


def one_point_average(
    system: RandomNetwork,
) -> tuple[Float[Array, "point node"], Float[Array, "point node"]]:
    """Quadrature rule for the field u = w . x at every input separately.

    For a Gaussian law of the weights the integral has one dimension, whatever the input dimension
    is.

    Returns:
        The nodes and their weights, both of shape (point, node); the weights of a point sum to 1.

    Raises:
        ValueError: for a uniform law, in the cases in which `unit_average` raises it.
    """
    x = system.inputs
    if system.prior == "uniform":
        u, weights = unit_average(system)
        return u.T, jnp.broadcast_to(weights, u.T.shape)
    deviation = jnp.sqrt(system.weight_variance * jnp.mean(x**2, axis=1))
    z, weights = standard_normal_rule(scaled_cuts(system.activation.kinks, deviation))
    return deviation[:, None] * z, jnp.broadcast_to(weights, z.shape)


def _clustered(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1] that are dense at both ends, by the map s -> 3 s^2 - 2 s^3, for
    integrands that change rapidly near the ends.
    """
    s, w = unit_rule(count)
    return 3 * s**2 - 2 * s**3, 6 * s * (1 - s) * w


def _tensor(rank: int, gaussian: bool, kinked: bool) -> tuple[Array, Array]:
    """Product rule for uniform components on [-1, 1] or for standard normal components, divided at
    the origin.
    """
    z, w = (
        standard_normal_rule()
        if gaussian and rank == 1
        else _component(_TENSOR[rank], gaussian, kinked)
    )
    nodes = jnp.stack([part.ravel() for part in jnp.meshgrid(*([z] * rank), indexing="ij")], axis=1)
    weights = w
    for _ in range(rank - 1):
        weights = jnp.outer(weights, w).ravel()
    return nodes, weights


def _component(count: int, gaussian: bool, kinked: bool) -> tuple[Array, Array]:
    """Rule for one uniform component on [-1, 1], or for a standard normal one up to `_REACH`."""
    s, w = unit_rule(count)
    z = 2 * s - 1
    if kinked or gaussian:  # two halves
        s, w = unit_rule(count // 2)
        z, w = np.concatenate([-s[::-1], s]), np.concatenate([w[::-1], w]) / 2
    if gaussian:
        z = _REACH * z
        w = 2 * _REACH * w * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return jnp.asarray(z), jnp.asarray(w)


def _pieces(cuts: Float[Array, "cut"], low: float, high: float) -> tuple[Array, Array]:
    """Nodes and weights on [low, high] for an integrand that is smooth between the cuts."""
    ends = jnp.sort(jnp.concatenate([jnp.array([low, high]), jnp.clip(cuts, low, high)]))
    s, w = _clustered(_PIECE)
    length = jnp.diff(ends)[:, None]
    return (ends[:-1, None] + length * s).ravel(), (length * w).ravel()


def _polar(x: Float[Array, "point 2"]) -> tuple[Array, Array]:
    """Rule for two standard normal components z in polar coordinates, divided at the lines z . x =
    0."""
    normal = jnp.mod(jnp.arctan2(x[:, 0], -x[:, 1]), np.pi)  # the direction at right angles to x
    angle, share = _pieces(jnp.concatenate([normal, normal + np.pi]), 0.0, 2 * np.pi)
    s, w = unit_rule(_RADII)
    radius = _REACH * s
    density = _REACH * w * radius * np.exp(-(radius**2) / 2) / (2 * np.pi)
    nodes = jnp.asarray(radius)[:, None, None] * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
    return nodes.reshape(-1, 2), (jnp.asarray(density)[:, None] * share).ravel()


def _square(x: Float[Array, "point 2"]) -> tuple[Array, Array]:
    """Rule for the square [-1, 1]^2, made of four triangles that meet at the origin, w = r (1, t)
    and its rotations. Each triangle is divided at the lines w . x = 0.
    """
    s, w = unit_rule(_RADII)
    radius, radial = s[:, None], (s * w)[:, None]  # r dr
    parts, weights = [], []
    for first, second in ((0, 1), (1, 0)):
        other = jnp.where(x[:, second] == 0, 1.0, x[:, second])
        cuts = jnp.where(x[:, second] == 0, 2.0, -x[:, first] / other)
        t, share = _pieces(cuts, -1.0, 1.0)
        along, across = jnp.broadcast_arrays(radius, radius * t)
        triangle = jnp.stack([along, across] if first == 0 else [across, along], axis=-1).reshape(
            -1, 2
        )
        parts += [triangle, -triangle]
        weights += [(radial * share).ravel() / 4] * 2
    return jnp.concatenate(parts), jnp.concatenate(weights)
