"""Activations with a quadratic component: features learned collectively through a matrix, and one by one beyond it.

With c_2 != 0 the data first determine S = sum_a w_a w_a^T / sqrt(k d), of overlap q_2, without resolving any single feature
(universal branch, Q = 0: Maillard, Troiani, Martin, Krzakala and Zdeborova 2024 when nothing else is there). With more data
the features specialise, with overlap Q. Barbier, Camilli, Nguyen, Pastore and Skerk 2025, "Statistical mechanics of
extensive-width Bayesian neural networks near interpolation". Homogeneous read-outs v_i = 1/sqrt(k), Gaussian weights:

    tau = m_S^-1(Q^2),   r_2 = alpha mu_2^2 / (Delta + error),   q_2 = m_S(tau + r_2),   Q = R / (1 + R),
    error = (mu_2^2/2)(1 - q_2) + g(1) - g(Q),
    R = (1/gamma) [ Q (q_2 - Q^2) / m_S'(tau) + alpha g'(Q) / (Delta + error) ],     mu_2 = E sigma He_2, alpha = n/d^2.

Every solution is found, by following the equations along tau; the equilibrium is the one of largest free entropy.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.systems.extensive_width.model import QuadraticTeacher
from orderparam.systems.extensive_width.theory.matrix_channel import MatrixChannel, matrix_channel
from orderparam.systems.extensive_width.theory.signal import Signal, signal
from orderparam.systems.extensive_width.theory.state import with_arrays

_LEVELS = 768
_BRANCHES = 4
_HALVINGS = 80


class Branch(Result):
    """One solution. free_entropy: per sample, -(1/2) ln(2 pi) - 1/2 - ... (larger is better); others: see `CollectiveOptimal`."""

    overlap: Float[Array, ""]
    quadratic_overlap: Float[Array, ""]
    error: Float[Array, ""]
    free_entropy: Float[Array, ""]


class CollectiveOptimal(Result):
    """The Bayes-optimal state, and the best specialised and the universal solution beside it.

    overlap:           Q, of every single feature: w_i . w_i^0 / d.   quadratic_overlap: q_2, of the matrix S.
    error:             of the posterior mean; no factor 1/2, label noise not included. Universal: what is reached without
                       specialisation, also by algorithms that do not find the specialised state.
    free_entropy:      per sample. specialised_*: NaN where no solution with Q > 0 exists.
    """

    overlap: Float[Array, ""]
    quadratic_overlap: Float[Array, ""]
    error: Float[Array, ""]
    free_entropy: Float[Array, ""]
    specialised_overlap: Float[Array, ""]
    specialised_error: Float[Array, ""]
    specialised_free_entropy: Float[Array, ""]
    universal_overlap: Float[Array, ""]
    universal_error: Float[Array, ""]
    universal_free_entropy: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def quadratic_bayes_optimal(teacher: QuadraticTeacher) -> CollectiveOptimal:
    """Both branches at any width ratio; accurate to about 1e-8. Grids over noise and samples are vmapped.

    `converged`: the residual |Q - R/(1+R)| of the chosen state is below 1e-8.
    """
    return _quadratic(with_arrays(teacher))


class _Equations(eqx.Module):
    matrix: MatrixChannel
    g: Signal = eqx.field(static=True)
    gamma: float = eqx.field(static=True)
    alpha: Float[Array, ""]
    noise: Float[Array, ""]

    @property
    def power(self) -> float:
        """mu_2^2 = 2 c_2^2."""
        return 2 * float(self.g.coefficients[2]) ** 2

    def branch(self, tau: Float[Array, ""]) -> tuple[Branch, Float[Array, ""]]:
        """The state at a given tau, and Q - R/(1+R), which vanishes at a solution."""
        q = jnp.sqrt(self.matrix.overlap(tau))
        g, slope = self.g.at(q)

        def error_at(r: Array) -> Array:
            return self.power / 2 * (1 - self.matrix.overlap(tau + r)) + self.g.total - g

        # r (Delta + error(r)) grows with r: ln r by halving.
        def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            middle = (ends[0] + ends[1]) / 2
            short = jnp.exp(middle) * (self.noise + error_at(jnp.exp(middle))) < self.alpha * self.power
            return jnp.where(short, middle, ends[0]), jnp.where(short, ends[1], middle)

        wanted = jnp.log(self.alpha * self.power)
        largest = wanted - jnp.log(self.noise + self.g.total - g)
        smallest = wanted - jnp.log(self.noise + self.g.total - g + self.power / 2)
        low, high = jax.lax.fori_loop(0, _HALVINGS, halve, (smallest, largest))
        r = jnp.exp((low + high) / 2)
        overlap = self.matrix.overlap(tau + r)
        error = error_at(r)
        field = (q * (overlap - q**2) / self.matrix.slope(tau) + self.alpha * slope / (self.noise + error)) / self.gamma
        free = (
            (1 - overlap) * r / 2
            - self.gamma * q * field
            + self.gamma * (field - jnp.log1p(field))
            - 2 * (self.matrix.entropy(tau + r) - self.matrix.entropy(tau))
        ) / (2 * self.alpha)
        free = free - (jnp.log(2 * jnp.pi) + 1 + jnp.log(self.noise + error)) / 2
        return Branch(q, overlap, error, free), q - field / (1 + field)


@eqx.filter_jit
def _quadratic(teacher: QuadraticTeacher) -> CollectiveOptimal:
    gamma = teacher.width / teacher.input_dim
    equations = _Equations(
        matrix_channel(gamma),
        signal(teacher.activation),
        gamma,
        jnp.asarray(teacher.n_train) / teacher.input_dim**2,
        jnp.asarray(teacher.noise),
    )
    universal, _ = equations.branch(jnp.zeros(()))
    tau = jnp.expm1(jnp.geomspace(1e-4, 12.0, _LEVELS))
    miss = jax.lax.map(lambda tau: equations.branch(tau)[1], tau, batch_size=64)
    # Stable solutions: iterating Q -> R/(1+R) raises Q below them and lowers it above.
    stable = (miss[:-1] < 0) & (miss[1:] >= 0)
    _, where = jax.lax.top_k(jnp.where(stable, jnp.arange(_LEVELS - 1) + 1, 0), _BRANCHES)
    exists = stable[where]

    def solve(low: Array, high: Array) -> tuple[Branch, Array]:
        def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            middle = (ends[0] + ends[1]) / 2
            below = equations.branch(middle)[1] < 0
            return jnp.where(below, middle, ends[0]), jnp.where(below, ends[1], middle)

        low, high = jax.lax.fori_loop(0, _HALVINGS, halve, (low, high))
        return equations.branch((low + high) / 2)

    branches, misses = jax.lax.map(lambda ends: solve(*ends), (tau[where], tau[where + 1]))
    best = jnp.argmax(jnp.where(exists, branches.free_entropy, -jnp.inf))
    special = jax.tree.map(lambda part: jnp.where(exists[best], part[best], jnp.nan), branches)
    wins = exists[best] & (special.free_entropy > universal.free_entropy)
    chosen = jax.tree.map(lambda a, b: jnp.where(wins, a, b), special, universal)
    residual = jnp.where(wins, jnp.abs(misses[best]), 0.0)
    return CollectiveOptimal(
        overlap=chosen.overlap,
        quadratic_overlap=chosen.quadratic_overlap,
        error=chosen.error,
        free_entropy=chosen.free_entropy,
        specialised_overlap=special.overlap,
        specialised_error=special.error,
        specialised_free_entropy=special.free_entropy,
        universal_overlap=universal.quadratic_overlap,
        universal_error=universal.error,
        universal_free_entropy=universal.free_entropy,
        residual=residual,
        converged=residual < 1e-8,
    )
