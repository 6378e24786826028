r"""Multi-head attention with infinitely many heads, acting on covariances.

A head mixes the T tokens of a sequence X by a matrix A that depends on the sequence itself. With
values $V x_b$, $V_{ij} \sim N(0, v/d)$, and the sum over H independent heads divided by $\sqrt H$,
the output is a Gaussian process for H to infinity (Hron, Bahri, Sohl-Dickstein, Novak 2020):

    K_ac(X, X') <- v E sum_bd A_ab K_bd(X, X') A'_cd

The logits of free queries and keys, scale * q_a.k_b/sqrt(m), become Gaussian for key width m to
infinity, with E G_ab G'_cd = K_ac K_bd. Queries equal to keys, with 1/m in place of 1/sqrt(m), give
logits scale * K_ab that no longer fluctuate.
"""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from orderparam.gaussian.points import normal_points
from orderparam.gaussian.rules import hermite_product
from orderparam.kernels.covariance import Covariance, Moments, equal_pixels

Normaliser = Literal["softmax", "identity"]
Tokens = Float[Array, "token token"]
Scalar = Float[Array, ""]

_NODES = 48  # of one variable, for sequences of two tokens
_BYTES = 2**25  # of the points of the pairs that are averaged at once


def attention(
    covariance: Covariance,
    normaliser: Normaliser,
    tied: bool,
    scale: Num[Array, ""] | float,
    value_variance: Num[Array, ""] | float,
    channels: int | None,
    pixel_pairs: bool,
    log2_points: int,
) -> Covariance:
    """A layer of attention with infinitely many heads and infinitely wide queries and keys.

    The tangent kernel holds the squared derivatives with respect to values, queries and keys, all
    of unit variance, and what comes from the layers below:

        Theta_ac <- K_ac(new) + v E sum A_ab Theta_bd A'_cd
                    + v E sum K_bd J_be J'_df [(2 K_ac + Theta_ac) K_ef + K_ac Theta_ef],
        J = dA_a/dG_a

    Tied queries lose the last line: their derivatives vanish with the key width.

    Args:
        covariance: of the tokens, a grid with one dimension, with all pairs of tokens.
        normaliser: "softmax" by rows, or "identity" for linear attention.
        tied: whether queries equal keys.
        scale: what the logits are multiplied by.
        value_variance: v.
        channels: number of output channels.
        pixel_pairs: whether all pairs of tokens of the output are needed.
        log2_points: of the average over the logits of three and more tokens, see `normal_points`.

    Raises:
        ValueError: for a grid that has not one dimension, and in "standard" scaling, where the
            tangent kernel has no limit.
    """
    if len(covariance.grid) != 1:
        raise ValueError(
            f"Attention acts on tokens, a grid with one dimension, not on a grid {covariance.grid}"
        )
    if covariance.parametrization == "standard":
        raise ValueError(
            "the tangent kernel of Attention in 'standard' scaling grows with the widths: use "
            "scaling='ntk'"
        )
    (tokens,) = covariance.grid
    first, second = covariance.first.nngp, covariance.second.nngp

    def rule(own: Array, moments: Moments, other: Array) -> Moments:
        """own, other: covariances of the tokens of either sequence of each pair with themselves."""
        if tied or (tokens == 1 and normaliser == "softmax"):
            found = _fixed_logits(own, moments, other, normaliser, scale)
        elif normaliser == "identity":
            found = _linear(moments, scale)
        else:
            found = _softmax(own, moments, other, scale, log2_points, pixel_pairs)
            return jax.tree.map(lambda values: value_variance * values, found)
        found = jax.tree.map(lambda values: value_variance * values, found)
        if pixel_pairs:
            return found
        return jax.tree.map(lambda values: equal_pixels(values, covariance.grid), found)

    return Covariance(
        rule(first[:, None], covariance.cross, second[None]),
        rule(first, covariance.first, first),
        rule(second, covariance.second, second),
        channels,
        covariance.grid,
        pixel_pairs,
        True,
        covariance.parametrization,
    )


def _fixed_logits(
    own: Array, moments: Moments, other: Array, normaliser: Normaliser, scale: Array | float
) -> Moments:
    """A = softmax(scale K) or scale K of each sequence."""

    def mixing(self_covariance: Array) -> Array:
        logits = scale * self_covariance
        return jax.nn.softmax(logits, axis=-1) if normaliser == "softmax" else logits

    left, right = mixing(own), jnp.swapaxes(mixing(other), -1, -2)
    nngp = left @ moments.nngp @ right
    return Moments(nngp, nngp + left @ moments.ntk @ right)


def _linear(moments: Moments, scale: Array | float) -> Moments:
    """A = scale G: K_ac |K|^2, and the derivative of that cubic along Theta."""
    k, theta = moments.nngp, moments.ntk
    squares = jnp.sum(k**2, axis=(-1, -2), keepdims=True)
    products = jnp.sum(k * theta, axis=(-1, -2), keepdims=True)
    # values, queries and keys have one share each in 3 K
    ntk = 3 * k * squares + theta * squares + 2 * k * products
    return Moments(scale**2 * k * squares, scale**2 * ntk)


def _softmax(
    own: Array,
    moments: Moments,
    other: Array,
    scale: Array | float,
    log2_points: int,
    pixel_pairs: bool,
) -> Moments:
    """Averages over the Gaussian logits of row a of one and row c of the other sequence."""
    tokens = own.shape[-1]
    points, weights = logit_rule(2 * (tokens - 1), log2_points)
    pairs = moments.nngp.shape[:-2]
    flat = [
        jnp.broadcast_to(values, (*pairs, tokens, tokens)).reshape(-1, tokens, tokens)
        for values in (own, moments.nngp, moments.ntk, other)
    ]
    index = jnp.arange(tokens)
    rows = (
        jnp.stack(jnp.meshgrid(index, index, indexing="ij"), axis=-1).reshape(-1, 2)
        if pixel_pairs
        else jnp.stack([index, index], axis=-1)
    )

    def one(job: Array) -> tuple[Scalar, Scalar]:
        pair, a, c = job
        s, k, theta, t = (values[pair] for values in flat)
        root = covariance_root(_logit_covariance(s, k, t, a, c))
        first, second = jnp.split(points @ root, 2, axis=1)
        return row_averages(k, theta, a, c, first, second, weights, scale)

    jobs = jnp.concatenate(
        [
            jnp.repeat(jnp.arange(len(flat[0])), len(rows))[:, None],
            jnp.tile(rows, (len(flat[0]), 1)),
        ],
        axis=1,
    )
    batch = max(1, _BYTES // (16 * tokens * len(points)))
    nngp, ntk = jax.lax.map(one, jobs, batch_size=min(batch, len(jobs)))
    shape = (*pairs, tokens, tokens) if pixel_pairs else (*pairs, tokens)
    return Moments(nngp.reshape(shape), ntk.reshape(shape))


def logit_rule(variables: int, log2_points: int) -> tuple[Array, Array]:
    """Points and weights of an average over standard normal variables: a product rule for up to two
    of them, fixed points for more."""
    if variables > 2:
        points = jnp.asarray(normal_points(variables, log2_points))
        return points, jnp.full(len(points), 1 / len(points))
    nodes, weights = hermite_product(_NODES, variables)
    return jnp.asarray(nodes), jnp.asarray(weights)


def differences(covariance: Array) -> Array:
    """Covariance of tokens 1 .. T - 1 minus the last one: what a softmax sees of its logits."""
    rows = covariance[..., :-1, :] - covariance[..., -1:, :]
    return rows[..., :-1] - rows[..., -1:]


def _logit_covariance(own: Tokens, cross: Tokens, other: Tokens, a: Array, c: Array) -> Array:
    between = cross[a, c] * differences(cross)
    return jnp.block(
        [
            [own[a, a] * differences(own), between],
            [between.T, other[c, c] * differences(other)],
        ]
    )


def covariance_root(covariance: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The symmetric square root of a covariance that may be singular."""
    values, vectors = jnp.linalg.eigh(covariance)
    return (vectors * jnp.sqrt(jnp.maximum(values, 0.0))) @ vectors.T


def softmax_of(
    differences: Float[Array, "*batch rest"], scale: Array | float
) -> Float[Array, "*batch token"]:
    """The softmax of logits of which the last one is zero."""
    last = jnp.zeros((*differences.shape[:-1], 1))
    return jax.nn.softmax(scale * jnp.concatenate([differences, last], axis=-1), axis=-1)


def row_averages(
    k: Tokens,
    theta: Tokens,
    a: Array,
    c: Array,
    first: Float[Array, "point rest"],
    second: Float[Array, "point rest"],
    weights: Float[Array, "point"],
    scale: Array | float,
) -> tuple[Scalar, Scalar]:
    """K_ac and Theta_ac of the output for v = 1, from points of the logits of both rows."""
    p, other = softmax_of(first, scale), softmax_of(second, scale)
    weighted = weights[:, None] * p
    together = weighted.T @ other  # E p_b p'_d
    nngp = jnp.sum(together * k)
    # J^T K J' = scale^2 p_b p'_d (K_bd - (K p')_b - (p K)_d + p K p')
    right, left = other @ k.T, p @ k
    both = jnp.sum(p * right, axis=1, keepdims=True)
    centred = (
        together * k
        - (weighted * right).T @ other
        - weighted.T @ (other * left)
        + (weighted * both).T @ other
    )
    moved = (2 * k[a, c] + theta[a, c]) * k + k[a, c] * theta
    ntk = nngp + jnp.sum(together * theta) + scale**2 * jnp.sum(centred * moved)
    return nngp, ntk
