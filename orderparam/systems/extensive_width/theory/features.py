"""Sums over all features at a common signal level, at a cost that does not grow with the number of features.

In the theory of Nguyen and Barbier every feature enters through ln(lambda_i) = level + ln v_i^2, with one common level.
Sums over the learned ones, those above a threshold, are exact for the strongest features; the others are gathered in narrow
blocks of ln v^2, each replaced by six Chebyshev nodes whose weights integrate polynomials exactly. Prefix sums give the
weights of the part of a block that is learned, so that the sharp threshold stays sharp. Derived for this package, not in
the cited paper.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int


class Resolution(NamedTuple):
    """Up to `direct` features are summed one by one; of more, the `strongest` ones, and the others in so many blocks."""

    direct: int
    strongest: int
    blocks: int


FINE = Resolution(4096, 1024, 768)  # 1e-9 or better
ROUGH = Resolution(1024, 32, 32)  # 1e-3 of the features of one block or better: to scan many levels
_NODES = 6
# A feature weaker than the strongest by more than this factor of v^2 is never learned here.
_FAINTEST = float(np.exp(-80.0))
_ABSENT = -1e4

_CHEBYSHEV = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
_POLYNOMIALS = np.cos(np.pi * np.outer(np.arange(_NODES), np.arange(_NODES) + 0.5) / _NODES) * 2 / _NODES
_POLYNOMIALS[0] /= 2  # values at the nodes -> coefficients of T_0 .. T_5

Pair = tuple[Array, Array]


class SortedReadouts(eqx.Module):
    """Read-outs in decreasing order of v^2, ready for sums.

    order: position of each of them among the read-outs as given; None when these are in decreasing order already.
    log_power: ln v_i^2.  tail: sum of v^2 over all but the first m features, m = 0 .. k.
    """

    order: Int[Array, "feature"] | None
    log_power: Float[Array, "feature"]
    tail: Float[Array, "{feature}+1"]
    node: Float[Array, "node"]
    prefix: Float[Array, "count node"]
    edge: Int[Array, "block"]
    strongest: int = eqx.field(static=True)

    @classmethod
    def of(cls, readout: Float[Array, "feature"], decreasing: bool = False) -> "SortedReadouts":
        power = jnp.asarray(readout, jnp.float64) ** 2
        order = None if decreasing else jnp.argsort(-power)
        power = power if order is None else power[order]
        count = power.shape[0]
        present = power > _FAINTEST * power[0]
        log_power = jnp.where(present, jnp.log(jnp.where(present, power, 1.0)), _ABSENT)
        tail = jnp.concatenate([jnp.cumsum(power[::-1])[::-1], jnp.zeros(1)])
        return cls(order, log_power, tail, jnp.zeros(0), jnp.zeros((1, _NODES)), jnp.zeros(1, int), count).at(FINE)

    def at(self, resolution: Resolution) -> "SortedReadouts":
        """The same features, summed at another resolution."""
        count, log_power = self.count, self.log_power
        if count <= resolution.direct:
            return self  # so few have no blocks at any resolution
        rest = log_power[resolution.strongest :]
        top, faintest = rest[0], jnp.min(jnp.where(rest > _ABSENT, rest, jnp.inf))
        height = jnp.maximum((top - faintest) / resolution.blocks, 1e-12) * (1 + 1e-12)
        position = (top - rest) / height
        block = jnp.clip(jnp.floor(position), 0, resolution.blocks - 1)
        x = 1 - 2 * (position - block)  # 1 at the top of the block, -1 at its bottom
        weights = _chebyshev(x) @ jnp.asarray(_POLYNOMIALS)
        weights = jnp.where(rest[:, None] > _ABSENT, weights, 0.0)
        prefix = jnp.concatenate([jnp.zeros((1, _NODES)), jnp.cumsum(weights, axis=0)])
        edge = jnp.searchsorted(block, jnp.arange(resolution.blocks + 1))
        centres = top - height * (jnp.arange(resolution.blocks) + 0.5)
        node = (centres[:, None] + height / 2 * _CHEBYSHEV).ravel()
        return SortedReadouts(self.order, log_power, self.tail, node, prefix, edge, resolution.strongest)

    @property
    def count(self) -> int:
        return self.log_power.shape[0]

    @property
    def present(self) -> Bool[Array, "feature"]:
        """Whether a feature is strong enough, against the strongest, to be learned at all."""
        return self.log_power > _ABSENT

    def as_given(self, values: Float[Array, "feature"]) -> Float[Array, "feature"]:
        """Values of the sorted features in the order of the given read-outs."""
        return values if self.order is None else jnp.zeros_like(values).at[self.order].set(values)

    def learned(self, level: Float[Array, ""], threshold: Float[Array, ""]) -> Int[Array, ""]:
        """How many features have ln(lambda) >= threshold."""
        return jnp.searchsorted(-self.log_power, level - threshold, side="right")

    def sum(self, f: Callable[[Array], Pair], level: Float[Array, ""], learned: Int[Array, ""]) -> Pair:
        """Sums of both components of f(ln lambda_i) over the first `learned` features; 1e-9 or better for smooth f, if fine."""
        strong = _sum(f, level + self.log_power[: self.strongest], jnp.arange(self.strongest) < learned)
        if self.strongest == self.count:
            return strong
        ends = jnp.clip(learned - self.strongest, self.edge[:-1], self.edge[1:])
        weights = (self.prefix[ends] - self.prefix[self.edge[:-1]]).ravel()
        weak = _sum(f, level + self.node, weights)
        return strong[0] + weak[0], strong[1] + weak[1]


def _chebyshev(x: Array) -> Array:
    """T_0(x) .. T_5(x) along a last axis, by the recursion T_(n+1) = 2 x T_n - T_(n-1)."""
    columns = [jnp.ones_like(x), x]
    while len(columns) < _NODES:
        columns.append(2 * x * columns[-1] - columns[-2])
    return jnp.stack(columns, axis=-1)


def _sum(f: Callable[[Array], Pair], s: Array, weights: Array) -> Pair:
    present = weights != 0
    first, second = f(jnp.where(present, s, 0.0))
    return jnp.sum(jnp.where(present, weights * first, 0.0)), jnp.sum(jnp.where(present, weights * second, 0.0))
