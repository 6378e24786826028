"""Activations with a quadratic component: features learned collectively through a matrix, and one by one beyond it.

With c_2 != 0 the data first determine S = sum_a v_a w_a w_a^T / sqrt(k d), of overlap q_2, without resolving any single feature
(universal branch, Q = 0: Maillard, Troiani, Martin, Krzakala and Zdeborova 2024 when nothing else is there). With more data
features specialise, those of large v first, with overlaps Q(v). Barbier, Camilli, Nguyen, Pastore and Skerk 2025, "Statistical
mechanics of extensive-width Bayesian neural networks near interpolation". With read-outs v / sqrt(k), E v^2 = 1, Gaussian
weights, mu_2 = E sigma He_2, alpha = n/d^2 and gamma = k/d:

    m_S(tau) = E v^2 Q(v)^2,   r_2 = alpha mu_2^2 / (Delta + error),   q_2 = m_S(tau + r_2),   Q(v) = R(v) / (1 + R(v)),
    error = (mu_2^2/2)(1 - q_2) + g(1) - E v^2 g(Q(v)),
    R(v) = (v^2/gamma) [ Q(v) (q_2 - E v^2 Q^2) / m_S'(tau) + alpha g'(Q(v)) / (Delta + error) ].

These are the stationarity of the free entropy per sample

    f = -(1/2) ln(2 pi e (Delta + error))
        + (1/2 alpha) [ (1 - q_2) r_2/2 - gamma E_v( Q R - R + ln(1 + R) ) - 2 (iota(tau + r_2) - iota(tau)) ],

so that d(alpha f)/d(alpha) = -(1/2) ln(2 pi e (Delta + error)) along every solution.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.root import decreasing_root
from orderparam.systems.extensive_width.model import QuadraticTeacher
from orderparam.systems.extensive_width.theory.matrix_channel import MatrixChannel, matrix_channel
from orderparam.systems.extensive_width.theory.signal import Signal, signal

_STARTS = 24  # at most so many partially specialised starts
_ITERATIONS = 800
_NEWTON = 16
_RESIDUAL = 1e-8
_SPECIALISED = 1e-6  # below, an overlap is that of the universal branch


class CollectiveOptimal(Result):
    """The Bayes-optimal state, and beside it the universal and the most specialised solution.

    overlap:           Q(v_i) of every single feature, w_i . w_i^0 / d, in decreasing order of |v_i|.
    quadratic_overlap: q_2, of the matrix S.
    error:             of the posterior mean; no factor 1/2, label noise not included.
    free_entropy:      f, per sample: of several solutions the one with the largest f is Bayes-optimal.
    universal_*:       without specialisation: what algorithms reach that do not find the specialised state.
    specialised_*:     reached from the teacher, perhaps metastable. NaN where nothing is left of it (Q < 1e-6).
    solutions:         number of different solutions met, the universal one included.
    """

    overlap: Float[Array, "feature"]
    quadratic_overlap: Float[Array, ""]
    error: Float[Array, ""]
    free_entropy: Float[Array, ""]
    specialised_overlap: Float[Array, "feature"]
    specialised_quadratic_overlap: Float[Array, ""]
    specialised_error: Float[Array, ""]
    specialised_free_entropy: Float[Array, ""]
    universal_quadratic_overlap: Float[Array, ""]
    universal_error: Float[Array, ""]
    universal_free_entropy: Float[Array, ""]
    solutions: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class _State(eqx.Module):
    """Q of every read-out value, and the observables."""

    overlap: Float[Array, "value"]
    quadratic_overlap: Float[Array, ""]
    error: Float[Array, ""]
    free_entropy: Float[Array, ""]


class _Equations(eqx.Module):
    matrix: MatrixChannel
    g: Signal = eqx.field(static=True)
    gamma: float = eqx.field(static=True)
    alpha: Float[Array, ""] | float
    noise: Float[Array, ""] | float
    square: Float[Array, "value"]  # v^2
    share: Float[Array, "value"]  # its probability

    @property
    def power(self) -> float:
        """mu_2^2 = 2 c_2^2."""
        return 2 * float(self.g.coefficients[2]) ** 2

    def mean(self, values: Float[Array, "value"]) -> Float[Array, ""]:
        """E v^2 (...)."""
        return jnp.sum(self.share * self.square * values)

    def fields(self, q: Array, tau: Array, log_r: Array) -> tuple[Array, Array, Array]:
        """q_2, the error and R(v)."""
        quadratic = self.matrix.overlap(tau + jnp.exp(log_r))
        g, slope = jax.vmap(self.g.at)(q)
        error = self.power / 2 * (1 - quadratic) + self.g.total - self.mean(g)
        matrix = q * (quadratic - self.mean(q**2)) / self.matrix.slope(tau)
        field = self.square / self.gamma * (matrix + self.alpha * slope / (self.noise + error))
        return quadratic, error, field

    def signal(self, error: Array | float) -> Array:
        """ln r_2."""
        return jnp.log(self.alpha * self.power / (self.noise + error))

    def misses(self, x: Float[Array, "unknown"]) -> Float[Array, "unknown"]:
        """What vanishes at a solution x = (ln r_2, tau, Q(v))."""
        log_r, tau, q = x[0], x[1], x[2:]
        _, error, field = self.fields(q, tau, log_r)
        first = jnp.stack([log_r - self.signal(error), self.matrix.overlap(tau) - self.mean(q**2)])
        return jnp.concatenate([first, q - field / (1 + field)])

    def solve(self, start: Float[Array, "value"]) -> tuple[_State, Array]:
        """The solution that damped iteration reaches from given overlaps, and how well it solves the equations."""

        def iterate(_: int, x: Array) -> Array:
            log_r, q = x[0], x[2:]
            tau = self.matrix.signal(self.mean(q**2))
            error, field = self.fields(q, tau, log_r)[1:]
            return (x + jnp.concatenate([jnp.stack([self.signal(error), tau]), field / (1 + field)])) / 2

        def newton(_: int, x: Array) -> Array:
            step = jnp.linalg.solve(jax.jacfwd(self.misses)(x), self.misses(x))
            new = x - step
            return jnp.where(jnp.all(jnp.isfinite(new)), new.at[1].set(jnp.maximum(new[1], x[1] / 8)), x)

        worst = self.signal(self.power / 2 + self.g.total)
        x = jnp.concatenate([jnp.stack([worst, self.matrix.signal(self.mean(start**2))]), start])
        x = jax.lax.fori_loop(0, _ITERATIONS, iterate, x)
        near = x
        x = jax.lax.fori_loop(0, _NEWTON, newton, x)
        # Newton's method may leave the solution that iteration was heading for.
        x = jnp.where(jnp.max(jnp.abs(x[2:] - near[2:])) < 0.02, x, near)
        return self.state(x[2:], x[1], x[0]), jnp.max(jnp.abs(self.misses(x)))

    def universal(self) -> tuple[_State, Array]:
        """The solution with Q = 0, where r_2 (Delta + error) grows with r_2."""
        nothing = jnp.zeros_like(self.square)

        def short(log_r: Array, _: None) -> Array:
            return self.signal(self.fields(nothing, jnp.zeros(()), log_r)[1]) - log_r

        log_r = decreasing_root(short, self.signal(self.power / 2 + self.g.total), self.signal(self.g.total)).value
        state = self.state(nothing, jnp.zeros(()), log_r)
        return state, jnp.abs(log_r - self.signal(state.error))

    def state(self, q: Array, tau: Array, log_r: Array) -> _State:
        quadratic, error, field = self.fields(q, tau, log_r)
        r = jnp.exp(log_r)
        free = (
            (1 - quadratic) * r / 2
            - self.gamma * jnp.sum(self.share * (q * field - field + jnp.log1p(field)))
            - 2 * (self.matrix.entropy(tau + r) - self.matrix.entropy(tau))
        ) / (2 * self.alpha)
        free = free - (jnp.log(2 * jnp.pi) + 1 + jnp.log(self.noise + error)) / 2
        return _State(q, quadratic, error, free)


def _starts(values: int) -> np.ndarray:
    """Overlaps to start from: everything known, only the first m values known, and a trace of everything."""
    known = np.unique(np.linspace(values, 1, min(values, _STARTS)).round().astype(int))[::-1]
    partial = 0.95 * (np.arange(values) < known[:, None])
    return np.concatenate([partial, np.full((1, values), 0.02)])


@theory
def quadratic_bayes_optimal(teacher: QuadraticTeacher) -> CollectiveOptimal:
    """All branches at any width ratio and for any read-outs, to about 1e-8. Grids over noise and samples are vmapped.

    Solutions are sought from the teacher, from a weak trace of it, and from states in which only the features of largest |v|
    are known; each is iterated to a stable solution and polished by Newton steps. `residual`: of the equations at the chosen
    one; `converged`: below 1e-8.
    """
    gamma = teacher.width / teacher.input_dim
    modulus, count = np.unique(np.round(np.abs(teacher.values), 12), return_counts=True)
    modulus, share = modulus[::-1], count[::-1] / len(teacher.values)
    equations = _Equations(
        matrix_channel(gamma, teacher.values),
        signal(teacher.activation),
        gamma,
        teacher.n_train / teacher.input_dim**2,
        teacher.noise,
        jnp.asarray(modulus**2),
        jnp.asarray(share),
    )
    universal, universal_residual = equations.universal()
    states, residuals = jax.lax.map(equations.solve, jnp.asarray(_starts(len(modulus))))
    specialised = jnp.max(states.overlap, axis=1) > _SPECIALISED
    exists = specialised & (residuals < _RESIDUAL)
    values = jnp.where(exists, states.free_entropy, -jnp.inf)
    best = jnp.argmax(values)
    wins = values[best] > universal.free_entropy
    chosen = jax.tree.map(lambda a, b: jnp.where(wins, a[best], b), states, universal)
    special = jax.tree.map(lambda part: jnp.where(exists[0], part[0], jnp.nan), states)
    same = jnp.max(jnp.abs(states.overlap[:, None] - states.overlap), axis=2) < 1e-6
    new = exists & ~jnp.any(jnp.tril(same, -1) & exists, axis=1)
    # A start that ended nowhere might have been the best one.
    better = states.free_entropy > jnp.maximum(values[best], universal.free_entropy)
    stray = jnp.max(jnp.where(specialised & ~exists & better, residuals, 0.0))
    residual = jnp.maximum(jnp.where(wins, residuals[best], universal_residual), stray)
    each = np.searchsorted(-modulus, -np.round(np.abs(teacher.values), 12))
    features = np.repeat(each, teacher.width // len(teacher.values))
    return CollectiveOptimal(
        overlap=chosen.overlap[features],
        quadratic_overlap=chosen.quadratic_overlap,
        error=chosen.error,
        free_entropy=chosen.free_entropy,
        specialised_overlap=special.overlap[features],
        specialised_quadratic_overlap=special.quadratic_overlap,
        specialised_error=special.error,
        specialised_free_entropy=special.free_entropy,
        universal_quadratic_overlap=universal.quadratic_overlap,
        universal_error=universal.error,
        universal_free_entropy=universal.free_entropy,
        solutions=1.0 + jnp.sum(new),
        residual=residual,
        converged=residual < _RESIDUAL,
    )
