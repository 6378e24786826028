"""The self-consistent equations as one equation for one number: the common signal level of all features.

    q_i = m( (n/d) v_i^2 / (Delta + error) ),    error = sum_i v_i^2 (g(1) - g(q_i))        (Nguyen and Barbier 2026, eq. 35)

With Lambda = n / (d (Delta + error)) and W(lambda) = lambda (g(1) - g(m(lambda))) they read

    n/d = Lambda Delta + sum_i W(Lambda v_i^2),    error = sum_i W(Lambda v_i^2) / Lambda,

and they are the stationarity of the free entropy (per d/2; -F is its derivative in ln Lambda, F = Lambda Delta + sum W - n/d)

    Psi(Lambda) = (n/d)(ln(Lambda d/n) + 1) - Lambda Delta + sum_i M(Lambda v_i^2),
    M(lambda) = max_q [ -lambda (g(1) - g(q)) + q + ln(1 - q) ] = -W + q + ln(1 - q).

F rises continuously, and drops by lambda_sigma g(q_sigma) at each level where one more feature is learned: every rising zero is a
solution and a local maximum of Psi, and the Bayes-optimal solution is the highest one.
The one-parameter form and the selection are derived for this package, not in the cited paper.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from orderparam.core.result import Result
from orderparam.solve.root import decreasing_root
from orderparam.systems.extensive_width.model import Teacher
from orderparam.systems.extensive_width.theory.channel import ActivationChannel, Segments, channel
from orderparam.systems.extensive_width.theory.features import ROUGH, SortedReadouts

RESIDUAL = 1e-8


class BayesOptimal(Result):
    """What the data determine of the teacher.

    overlap:            q_i = w_i . w_i^0 / d between a posterior sample and the teacher, in the order of the given read-outs.
    error:              E (<f> - f^0)^2 of the posterior mean at a new input, no factor 1/2, label noise not included. A single
                        posterior sample has twice that error.
    effective_width:    k_c, number of features that are learned (q_i > 0).
    mutual_information: I(teacher; data) / (number of weights k d), in nats.
    free_entropy:       Psi, in units of d/2: of two solutions the one with the larger Psi is Bayes-optimal.
    level:              ln Lambda = ln( n / (d (Delta + error)) ), the common signal level.
    residual:           |F| / (n/d), by summing over all features one by one. converged: whether it is below 1e-8.
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
    """Everything the equation for the level needs."""

    features: SortedReadouts
    channel: ActivationChannel
    segments: Segments
    samples: Float[Array, ""]
    noise: Float[Array, ""]

    @classmethod
    @eqx.filter_jit  # for theories that are not traced
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
        """The same with cheaper, less accurate sums over features."""
        return eqx.tree_at(lambda problem: problem.features, self, self.features.at(ROUGH))

    @property
    def kinks(self) -> Float[Array, "feature"]:
        """Levels at which the features are learned, one after the other."""
        return self.segments.threshold - self.features.log_power

    def learned(self, level: Float[Array, ""]) -> Int[Array, ""]:
        return self.features.learned(level, self.segments.threshold)

    def totals(self, level: Float[Array, ""], learned: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """sum_i W and sum_i M with the first `learned` features on their learned branch."""

        def learned_terms(s: Array) -> tuple[Array, Array]:
            state = self.channel.state(s, self.segments)
            return state.unexplained, state.potential

        w, m = self.features.sum(learned_terms, level, learned)
        unlearned = jnp.exp(level) * self.channel.total * self.features.tail[learned]
        return w + unlearned, m - unlearned

    def excess(self, level: Float[Array, ""], learned: Int[Array, ""]) -> Float[Array, ""]:
        """F = Lambda Delta + sum_i W - n/d at a fixed number of learned features."""
        return jnp.exp(level) * self.noise + self.totals(level, learned)[0] - self.samples

    def free_entropy(self, level: Float[Array, ""], m: Float[Array, ""]) -> Float[Array, ""]:
        """Psi from sum_i M."""
        return self.samples * (level - jnp.log(self.samples) + 1) - jnp.exp(level) * self.noise + m

    def psi(self, level: Float[Array, ""]) -> Float[Array, ""]:
        return self.free_entropy(level, self.totals(level, self.learned(level))[1])

    @property
    def bounds(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Levels of the errors sum v^2 g(1) and 0, between which every solution lies."""
        worst = self.channel.total * self.features.tail[0]
        return jnp.log(self.samples / (self.noise + worst)), jnp.log(self.samples / self.noise)

    def between(self, learned: Int[Array, "*batch"]) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
        """The interval of levels with so many features learned: between two kinks, and within the bounds."""
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
    """The rising (or falling) zero of F in [low, high] at fixed `learned`. Implicit derivatives of every order."""
    sign = jnp.where(rising, -1.0, 1.0)

    def falling(level: Array, problem: LevelEquation) -> Array:
        return sign * problem.excess(level, learned) / problem.samples

    root = decreasing_root(falling, low, high, problem)
    return Solution(root.value, learned, root.converged)


def describe(problem: LevelEquation, solution: Solution) -> BayesOptimal:
    """All observables of a solution; overlaps in the order of the given read-outs."""
    level, learned = solution.level, solution.learned
    total, m = problem.totals(level, learned)
    error = total / jnp.exp(level)
    s = level + problem.features.log_power
    u, w, _ = problem.channel.state(s, problem.segments)
    is_learned = jnp.arange(problem.features.count) < learned
    one_by_one = jnp.sum(jnp.where(is_learned, w, 0.0)) + jnp.exp(level) * problem.channel.total * problem.features.tail[learned]
    residual = jnp.abs(jnp.exp(level) * problem.noise + one_by_one - problem.samples) / problem.samples
    # I = (n/2) ln((Delta + error)/Delta) - (d/2) sum_i (q_i + ln(1 - q_i))
    entropy = jnp.sum(jnp.where(is_learned, -jnp.expm1(-u) - u, 0.0))
    information = (problem.samples * jnp.log1p(error / problem.noise) - entropy) / (2 * problem.features.count)
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
    """The problem without derivatives: for searches, whose outcome is a bracket."""
    return jax.lax.stop_gradient(problem)
