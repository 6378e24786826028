"""The self-consistent equations as one equation for the common signal level, at a cost that does
not grow with the number of features.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from orderparam.core.result import Result
from orderparam.solve.root import decreasing_root
from orderparam.systems.extensive_width.channel import ActivationChannel, Segments, channel
from orderparam.systems.extensive_width.model import Teacher

# ------------------------------------------------------------------------------------------------
# Sums over all features at a common signal level, at a cost that does not grow with the number of
# features.
#
# In the theory of Nguyen and Barbier every feature enters through ln(lambda_i) = level + ln v_i^2,
# with one common level. Sums over the learned features, those above a threshold, are exact for the
# strongest ones. The others are grouped in narrow blocks of ln v^2, and each block is replaced by
# six Chebyshev nodes whose weights integrate polynomials exactly. Prefix sums give the weights of
# the part of a block that is learned, so that the sharp threshold stays sharp. Derived for this
# package, not in the cited paper.


class Resolution(NamedTuple):
    """The resolution of sums over features: up to `direct` features are summed one by one; of more
    features the `strongest` ones are summed one by one and the others in `blocks` blocks.
    """

    direct: int
    strongest: int
    blocks: int


FINE = Resolution(4096, 1024, 768)  # accurate to 1e-9 or better
ROUGH = Resolution(1024, 32, 32)  # accurate to 1e-3 of one block's features: for scans of levels
_NODES = 6
# A feature whose v^2 is below this share of the largest is treated as never learned.
_FAINTEST = float(np.exp(-80.0))
_ABSENT = -1e4

_CHEBYSHEV = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
_POLYNOMIALS = (
    np.cos(np.pi * np.outer(np.arange(_NODES), np.arange(_NODES) + 0.5) / _NODES) * 2 / _NODES
)
_POLYNOMIALS[0] /= 2  # values at the nodes -> coefficients of T_0 .. T_5

Pair = tuple[Array, Array]


class SortedReadouts(eqx.Module):
    """Read-outs in decreasing order of v^2, prepared for sums over features.

    `order` is the position of each among the given read-outs (None when these are in decreasing
    order already), `log_power` is ln v_i^2, and `tail` the sum of v^2 over all but the first m
    features, m = 0 .. k.
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
        return cls(
            order, log_power, tail, jnp.zeros(0), jnp.zeros((1, _NODES)), jnp.zeros(1, int), count
        ).at(FINE)

    def at(self, resolution: Resolution) -> "SortedReadouts":
        """The features, summed at another resolution."""
        count, log_power = self.count, self.log_power
        if count <= resolution.direct:
            return self  # few features are summed one by one at any resolution
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
        return SortedReadouts(
            self.order, log_power, self.tail, node, prefix, edge, resolution.strongest
        )

    @property
    def count(self) -> int:
        return self.log_power.shape[0]

    @property
    def present(self) -> Bool[Array, "feature"]:
        """True for the features that are strong enough, compared with the strongest, to be learned
        at all."""
        return self.log_power > _ABSENT

    def as_given(self, values: Float[Array, "feature"]) -> Float[Array, "feature"]:
        """The values of the sorted features in the order of the given read-outs."""
        return values if self.order is None else jnp.zeros_like(values).at[self.order].set(values)

    def learned(self, level: Float[Array, ""], threshold: Float[Array, ""]) -> Int[Array, ""]:
        """The number of features with ln(lambda) >= threshold."""
        return jnp.searchsorted(-self.log_power, level - threshold, side="right")

    def sum(
        self, f: Callable[[Array], Pair], level: Float[Array, ""], learned: Int[Array, ""]
    ) -> Pair:
        """Sums of both components of f(ln lambda_i) over the first `learned` features, to 1e-9 for
        smooth f at the fine resolution.
        """
        strong = _sum(
            f, level + self.log_power[: self.strongest], jnp.arange(self.strongest) < learned
        )
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
    return jnp.sum(jnp.where(present, weights * first, 0.0)), jnp.sum(
        jnp.where(present, weights * second, 0.0)
    )


# ------------------------------------------------------------------------------------------------
# The self-consistent equations as one equation for one number: the common signal level of all
# features.
#
#     q_i = m( (n/d) v_i^2 / (Delta + error) ),    error = sum_i v_i^2 (g(1) - g(q_i))
#     (Nguyen and Barbier 2026, eq. 35)
#
# With Lambda = n / (d (Delta + error)) and W(lambda) = lambda (g(1) - g(m(lambda))) they read
#
#     n/d = Lambda Delta + sum_i W(Lambda v_i^2),    error = sum_i W(Lambda v_i^2) / Lambda,
#
# and they are the conditions that the free entropy Psi, in units of d/2, is stationary. Its
# derivative in ln Lambda is -F with F = Lambda Delta + sum W - n/d, and
#
#     Psi(Lambda) = (n/d)(ln(Lambda d/n) + 1) - Lambda Delta + sum_i M(Lambda v_i^2),
#     M(lambda) = max_q [ -lambda (g(1) - g(q)) + q + ln(1 - q) ] = -W + q + ln(1 - q).
#
# F rises continuously, and drops by lambda_sigma g(q_sigma) at each level where one more feature is
# learned: every rising zero is a solution and a local maximum of Psi, and the Bayes-optimal
# solution is the highest one. The one-parameter form and the selection are derived for this
# package, not in the cited paper.

RESIDUAL = 1e-8


class BayesOptimal(Result):
    """The Bayes-optimal state: which features are learned, and the error.

    Fields:
        overlap: q_i = w_i . w_i^0 / d between a posterior sample and the teacher, in the order of
            the given read-outs.
        error: E (<f> - f^0)^2 of the posterior mean at a new input, no factor 1/2, label noise not
            included. A single posterior sample has twice that error.
        effective_width: k_c, the number of features that are learned (q_i > 0).
        mutual_information: I(teacher; data) / (number of weights k d), in nats.
        free_entropy: Psi, in units of d/2; of several solutions the one with the largest Psi is
            Bayes-optimal.
        level: ln Lambda = ln( n / (d (Delta + error)) ), the common signal level.
        residual: |F| / (n/d), with the sum taken over all features one by one.
        converged: whether the residual is below 1e-8.
    """

    overlap: Float[Array, "feature"]
    error: Float[Array, ""]
    effective_width: Float[Array, ""]
    mutual_information: Float[Array, ""]
    free_entropy: Float[Array, ""]
    level: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class LevelEquation(eqx.Module):
    """The equation for the common signal level, F(level) = 0."""

    features: SortedReadouts
    channel: ActivationChannel
    segments: Segments
    samples: Float[Array, ""]
    noise: Float[Array, ""]

    @classmethod
    @eqx.filter_jit  # compiled here for theories that are not traced
    def of(cls, teacher: Teacher, informed: bool = False) -> "LevelEquation":
        tables = channel(teacher.activation)
        return cls(
            SortedReadouts.of(teacher.readout, teacher.decreasing),
            tables,
            tables.informed if informed else tables.bayes,
            jnp.asarray(teacher.n_train, jnp.float64) / teacher.input_dim,
            jnp.asarray(teacher.noise, jnp.float64),
        )

    @property
    def rough(self) -> "LevelEquation":
        """The equation with cheaper, less accurate sums over features."""
        return eqx.tree_at(lambda problem: problem.features, self, self.features.at(ROUGH))

    @property
    def kinks(self) -> Float[Array, "feature"]:
        """The levels at which the features are learned, in increasing order."""
        return self.segments.threshold - self.features.log_power

    def learned(self, level: Float[Array, ""]) -> Int[Array, ""]:
        return self.features.learned(level, self.segments.threshold)

    def totals(
        self, level: Float[Array, ""], learned: Int[Array, ""]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """sum_i W and sum_i M, with the first `learned` features on their learned branch."""

        def learned_terms(s: Array) -> tuple[Array, Array]:
            state = self.channel.state(s, self.segments)
            return state.unexplained, state.potential

        w, m = self.features.sum(learned_terms, level, learned)
        unlearned = jnp.exp(level) * self.channel.total * self.features.tail[learned]
        return w + unlearned, m - unlearned

    def excess(self, level: Float[Array, ""], learned: Int[Array, ""]) -> Float[Array, ""]:
        """The function F = Lambda Delta + sum_i W - n/d at a fixed number of learned features."""
        return jnp.exp(level) * self.noise + self.totals(level, learned)[0] - self.samples

    def free_entropy(self, level: Float[Array, ""], m: Float[Array, ""]) -> Float[Array, ""]:
        """The free entropy Psi, from sum_i M."""
        return self.samples * (level - jnp.log(self.samples) + 1) - jnp.exp(level) * self.noise + m

    def psi(self, level: Float[Array, ""]) -> Float[Array, ""]:
        return self.free_entropy(level, self.totals(level, self.learned(level))[1])

    @property
    def bounds(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The levels that belong to the errors sum v^2 g(1) and 0; every solution lies between
        them."""
        worst = self.channel.total * self.features.tail[0]
        return jnp.log(self.samples / (self.noise + worst)), jnp.log(self.samples / self.noise)

    def between(
        self, learned: Int[Array, "*batch"]
    ) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
        """The interval of levels at which the given number of features is learned: between two
        kinks, and within the bounds.
        """
        kinks = jnp.concatenate([jnp.array([-jnp.inf]), self.kinks, jnp.array([jnp.inf])])
        low, high = self.bounds
        return jnp.maximum(low - 1e-3, kinks[learned]), jnp.minimum(high + 1e-3, kinks[learned + 1])


class Solution(NamedTuple):
    """A zero of F between two kinks."""

    level: Float[Array, ""]
    learned: Int[Array, ""]
    converged: Bool[Array, ""]


def solve_between(
    problem: LevelEquation,
    low: Float[Array, ""],
    high: Float[Array, ""],
    learned: Int[Array, ""],
    rising: Bool[Array, ""] | bool = True,
) -> Solution:
    """The rising (or falling) zero of F in [low, high] at a fixed number of learned features, with
    implicit derivatives of every order.
    """
    sign = jnp.where(rising, -1.0, 1.0)

    def falling(level: Array, problem: LevelEquation) -> Array:
        return sign * problem.excess(level, learned) / problem.samples

    root = decreasing_root(falling, low, high, problem)
    return Solution(root.value, learned, root.converged)


def describe(problem: LevelEquation, solution: Solution) -> BayesOptimal:
    """All observables of a solution, with overlaps in the order of the given read-outs."""
    level, learned = solution.level, solution.learned
    total, m = problem.totals(level, learned)
    error = total / jnp.exp(level)
    s = level + problem.features.log_power
    u, w, _ = problem.channel.state(s, problem.segments)
    is_learned = jnp.arange(problem.features.count) < learned
    one_by_one = (
        jnp.sum(jnp.where(is_learned, w, 0.0))
        + jnp.exp(level) * problem.channel.total * problem.features.tail[learned]
    )
    residual = (
        jnp.abs(jnp.exp(level) * problem.noise + one_by_one - problem.samples) / problem.samples
    )
    # I = (n/2) ln((Delta + error)/Delta) - (d/2) sum_i (q_i + ln(1 - q_i))
    entropy = jnp.sum(jnp.where(is_learned, -jnp.expm1(-u) - u, 0.0))
    information = (problem.samples * jnp.log1p(error / problem.noise) - entropy) / (
        2 * problem.features.count
    )
    return BayesOptimal(
        overlap=problem.features.as_given(jnp.where(is_learned, -jnp.expm1(-u), 0.0)),
        error=error,
        effective_width=learned.astype(jnp.float64),
        mutual_information=information,
        free_entropy=problem.free_entropy(level, m),
        level=level,
        residual=residual,
        converged=solution.converged & (residual < RESIDUAL),
    )


def stop(problem: LevelEquation) -> LevelEquation:
    """The problem without derivatives, for searches that find a bracket only."""
    return jax.lax.stop_gradient(problem)
