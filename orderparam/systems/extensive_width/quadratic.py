"""Activations with a quadratic component, for which features are first learned collectively through
a matrix."""

import math
from collections.abc import Callable
from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.interpolate import BSpline, make_interp_spline

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.rules import double_exponential
from orderparam.solve.root import decreasing_root
from orderparam.systems.extensive_width.channel import Signal, signal
from orderparam.systems.extensive_width.model import QuadraticTeacher

# ------------------------------------------------------------------------------------------------
# The matrix S = sum_a v_a w_a w_a^T / sqrt(k d) observed in symmetric Gaussian noise: its overlap
# with a posterior sample.
#
# Y = sqrt(l) S + Z with Z from the Gaussian orthogonal ensemble, spectrum on [-2, 2], k/d = gamma
# and E v^2 = 1. The overlap of the fluctuating part is
#
#     m_S(l) = 1 - (1/l)(1 - (4 pi^2 / 3) int rho_l(x)^3 dx),
#
# rho_l the spectral density of Y (Maillard, Krzakala, Mezard and Zdeborova 2022; Barbier, Camilli,
# Nguyen, Pastore and Skerk 2025). Its Stieltjes transform h solves  E_v[c v gamma / (gamma - c v
# h)] + h + 1/h = x,  c = sqrt(gamma l): Y is the free sum of a Wishart matrix with weights v and a
# semicircle.
#
# In the variable p = 1/h this is x = p + sum_j nu_j / (p - s_j) up to a constant, with positive
# masses: 1 at s = 0 and E c^2 v^2 / gamma at s = c v / gamma. The spectrum is therefore a curve p =
# a + i b(a) over those real a for which sum_j nu_j / (a - s_j)^2 > 1, where b > 0 is the only root
# of sum_j nu_j / ((a - s_j)^2 + b^2) = 1. This is one monotone equation for any number of read-out
# values. This parametrisation is derived for this package.

_CELLS = 2048
_BEND = 0.1  # the tables are uniform in ln(1 + l/_BEND)
_LARGEST = 18.0  # l = 6.6e6
_DEGREE = 5
_HALVINGS = 60
_CHUNK = 60_000  # numbers in a temporary array: what fits into the cache

# Double-exponential rule on (-1, 1): distance of each node from the nearer end, the sign of that
# end, and the weights.
_T = np.linspace(-3.1, 3.1, 63)
_GAP, _WEIGHT = (2 * part for part in double_exponential(-np.abs(_T), _T[1] - _T[0]))


class MatrixChannel(eqx.Module):
    """The functions m_S and iota(l) = (1/4) int_0^l (1 - m_S) as quintic splines in ln(1 + 10 l),
    up to l = 6.6e6.

    Absolute errors are below 1e-9, and mostly 1e-11: m_S has a weak singularity where a gap opens
    in the spectrum.
    """

    overlap_cells: Float[Array, "cell 6"]
    entropy_cells: Float[Array, "cell 6"]

    def overlap(self, signal: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """m_S(l)."""
        return _spline(self.overlap_cells, _position(signal))

    def slope(self, signal: Float[Array, ""]) -> Float[Array, ""]:
        """m_S'(l)."""
        return jax.grad(self.overlap)(signal)

    def entropy(self, signal: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """iota(l)."""
        return _spline(self.entropy_cells, _position(signal))

    def signal(self, overlap: Float[Array, ""]) -> Float[Array, ""]:
        """The signal l at which m_S(l) equals `overlap`, by linear interpolation; a search starts
        there."""
        step = _LARGEST / _CELLS
        return _BEND * jnp.expm1(
            jnp.interp(overlap, self.overlap_cells[:, 0], step * jnp.arange(_CELLS))
        )


def _position(signal: Array) -> Array:
    return jnp.log1p(signal / _BEND)


def _spline(cells: Array, x: Array) -> Array:
    step = _LARGEST / _CELLS
    cell = jnp.clip((jax.lax.stop_gradient(x) / step).astype(int), 0, _CELLS - 1)
    offset = x - cell * step
    c = cells[cell]
    value = c[..., _DEGREE]
    for power in reversed(range(_DEGREE)):
        value = value * offset + c[..., power]
    return value


@lru_cache(maxsize=16)
def matrix_channel(width_ratio: float, values: tuple[float, ...] = (1.0,)) -> MatrixChannel:
    """The tables of m_S and iota for one ratio gamma = k/d and one law of the read-outs.

    Args:
        width_ratio: ratio gamma = k/d.
        values: equally frequent values v of the read-outs, of mean square 1. Default (1,).
    """
    x = np.linspace(0.0, _LARGEST, _CELLS + 1)
    signals = _BEND * np.expm1(x)
    overlap = np.concatenate([[0.0], quadrature(width_ratio, np.asarray(values), signals[1:])])
    spline = make_interp_spline(x, overlap, _DEGREE)
    # int (1 - m) dl = int (1 - m) (l + bend) dx
    entropy = make_interp_spline(x, (1 - overlap) * (signals + _BEND) / 4, _DEGREE).antiderivative()
    entropy = make_interp_spline(x, entropy(x), _DEGREE)
    with jax.ensure_compile_time_eval():
        return MatrixChannel(
            jnp.asarray(_taylor(spline, x[:-1])), jnp.asarray(_taylor(entropy, x[:-1]))
        )


def _taylor(spline: BSpline, x: np.ndarray) -> np.ndarray:
    """The coefficients of the polynomial of each cell, in powers of the distance from its left
    end."""
    return np.stack(
        [
            spline.derivative(m)(x) / math.factorial(m) if m else spline(x)
            for m in range(_DEGREE + 1)
        ],
        axis=1,
    )


def quadrature(width_ratio: float, values: np.ndarray, signals: np.ndarray) -> np.ndarray:
    """m_S at each signal l > 0 by quadrature over the spectrum, to 1e-13 / l.

    Every mass has its own section of the curve. It extends to the point where the sum of nu / (a -
    s)^2 is smallest, or to the edge of the spectrum if that comes first. Near these ends b is
    (nearly) a square root, and the nodes are dense there.
    """
    v, count = np.unique(np.append(values, 0.0), return_counts=True)
    share = (count - (v == 0)) / len(values)
    step = max(1, _CHUNK // (len(v) ** 2 * len(_T)))
    parts = [
        _quadrature(width_ratio, v, share, signals[i : i + step])
        for i in range(0, len(signals), step)
    ]
    return np.concatenate(parts)


def _quadrature(gamma: float, v: np.ndarray, share: np.ndarray, signals: np.ndarray) -> np.ndarray:
    c = np.sqrt(gamma * signals)[:, None]
    s = c * v / gamma
    nu = (c * v) ** 2 / gamma * share + (v == 0)
    low, high = _stretches(s, nu)
    half = ((high - low) / 2)[..., None]
    a = np.where(_T < 0, low[..., None] + half * _GAP, high[..., None] - half * _GAP)
    gap = a[..., None] - s[:, None, None, :]
    t = _height(gap**2, nu)
    inverse = 1 / (gap**2 + t[..., None])
    second = _total(inverse**2, nu)
    # dx/da = |x'(p)|^2 / Re x'(p)
    stretch = 2 * t * second + 2 * _total(gap * inverse**2, nu) ** 2 / second
    density = np.sqrt(t) / (a**2 + t) / np.pi
    cubes = np.sum(half * _WEIGHT * density**3 * stretch, axis=(1, 2))
    return 1 - (1 - 4 * np.pi**2 / 3 * cubes) / signals


def _height(squares: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """The value of b^2 at each a, by Newton steps for 1/sum = 1, which is concave and increasing in
    b^2."""
    t = np.broadcast_to(nu.sum(axis=-1)[:, None, None], squares.shape[:-1])
    for _ in range(60):
        inverse = 1 / (squares + t[..., None])
        total = _total(inverse, nu)
        step = (1 - 1 / total) * total**2 / _total(inverse**2, nu)
        new = np.maximum(t + step, 0.25 * t)
        if np.all(np.abs(new - t) <= 1e-15 * t):
            break
        t = new
    return t


def _total(values: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """Sum over the masses, (signal, stretch, node, mass) and (signal, mass)."""
    return (values @ nu[:, None, :, None])[..., 0]


def _stretches(s: np.ndarray, nu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper end of the part of the curve that belongs to each mass."""

    def powers(a: np.ndarray, power: int) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.sum(nu[:, None, :] / (a[..., None] - s[:, None, :]) ** power, axis=-1)

    def halved(
        low: np.ndarray, high: np.ndarray, above: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """The point between `low` and `high` above which the condition `above` holds."""
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            yes = above(middle)
            low, high = np.where(yes, low, middle), np.where(yes, middle, high)
        return (low + high) / 2

    # the sum is convex between two masses
    lowest = halved(s[:, :-1], s[:, 1:], lambda a: powers(a, 3) < 0)
    radius = np.sqrt(nu.sum(axis=-1, keepdims=True)) * (1 + 1e-9)
    left = np.concatenate([s[:, :1] - radius, lowest], axis=1)
    right = np.concatenate([lowest, s[:, -1:] + radius], axis=1)
    return halved(left, s, lambda a: powers(a, 2) > 1), halved(right, s, lambda a: powers(a, 2) > 1)


# ------------------------------------------------------------------------------------------------
# Activations with a quadratic component: features are learned collectively through a matrix, and
# then one by one.
#
# With c_2 != 0 the data first determine S = sum_a v_a w_a w_a^T / sqrt(k d), of overlap q_2,
# without resolving any single feature (universal branch, Q = 0; Maillard, Troiani, Martin, Krzakala
# and Zdeborova 2024 treat purely quadratic activations). With more data features specialise, those
# of large v first, with overlaps Q(v). Barbier, Camilli, Nguyen, Pastore and Skerk 2025,
# "Statistical mechanics of extensive-width Bayesian neural networks near interpolation". With
# read-outs v / sqrt(k), E v^2 = 1, Gaussian weights, mu_2 = E sigma He_2, alpha = n/d^2 and gamma =
# k/d:
#
#     m_S(tau) = E v^2 Q(v)^2,   r_2 = alpha mu_2^2 / (Delta + error),   q_2 = m_S(tau + r_2),
#     Q(v) = R(v) / (1 + R(v)),
#     error = (mu_2^2/2)(1 - q_2) + g(1) - E v^2 g(Q(v)),
#     R(v) = (v^2/gamma) [ Q(v) (q_2 - E v^2 Q^2) / m_S'(tau) + alpha g'(Q(v)) / (Delta + error) ].
#
# These are the conditions that the free entropy per sample is stationary,
#
#     f = -(1/2) ln(2 pi e (Delta + error))
#         + (1/2 alpha) [ (1 - q_2) r_2/2 - gamma E_v( Q R - R + ln(1 + R) )
#                         - 2 (iota(tau + r_2) - iota(tau)) ],
#
# so that d(alpha f)/d(alpha) = -(1/2) ln(2 pi e (Delta + error)) along every solution.

_STARTS = 24  # largest number of partially specialised starts
_ITERATIONS = 800
_NEWTON = 16
_RESIDUAL = 1e-8
_SPECIALISED = 1e-6  # smaller overlaps count as those of the universal branch


class CollectiveOptimal(Result):
    """The Bayes-optimal state of a teacher with a quadratic component, and its universal and
    specialised solutions.

    The universal solution has no specialisation, Q = 0; algorithms that do not find the specialised
    state reach it. The specialised solution is the one reached from the teacher. It may be
    metastable, and its fields are NaN where it does not exist (Q < 1e-6).

    Fields:
        overlap: Q(v_i) = w_i . w_i^0 / d of every single feature, in decreasing order of |v_i|.
        quadratic_overlap: q_2, the overlap of the matrix S.
        error: error of the posterior mean; no factor 1/2, label noise not included.
        free_entropy: free entropy f per sample; of several solutions the one with the largest f is
            Bayes-optimal.
        specialised_overlap: Q(v_i) in the specialised solution.
        specialised_quadratic_overlap: q_2 in the specialised solution.
        specialised_error: error in the specialised solution.
        specialised_free_entropy: f in the specialised solution.
        universal_quadratic_overlap: q_2 in the universal solution.
        universal_error: error in the universal solution.
        universal_free_entropy: f in the universal solution.
        solutions: number of different solutions found, the universal one included.
        residual: residual of the equations at the chosen solution.
        converged: whether the residual is below 1e-8.
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
    """The overlap Q of every read-out value, and the observables of a solution."""

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
        """The average E v^2 (...) over the read-out values."""
        return jnp.sum(self.share * self.square * values)

    def fields(self, q: Array, tau: Array, log_r: Array) -> tuple[Array, Array, Array]:
        """q_2, the error and the fields R(v)."""
        quadratic = self.matrix.overlap(tau + jnp.exp(log_r))
        g, slope = jax.vmap(self.g.at)(q)
        error = self.power / 2 * (1 - quadratic) + self.g.total - self.mean(g)
        matrix = q * (quadratic - self.mean(q**2)) / self.matrix.slope(tau)
        field = self.square / self.gamma * (matrix + self.alpha * slope / (self.noise + error))
        return quadratic, error, field

    def signal(self, error: Array | float) -> Array:
        """ln r_2 at a given error."""
        return jnp.log(self.alpha * self.power / (self.noise + error))

    def misses(self, x: Float[Array, "unknown"]) -> Float[Array, "unknown"]:
        """The equations, which vanish at a solution x = (ln r_2, tau, Q(v))."""
        log_r, tau, q = x[0], x[1], x[2:]
        _, error, field = self.fields(q, tau, log_r)
        first = jnp.stack([log_r - self.signal(error), self.matrix.overlap(tau) - self.mean(q**2)])
        return jnp.concatenate([first, q - field / (1 + field)])

    def solve(self, start: Float[Array, "value"]) -> tuple[_State, Array]:
        """The solution that damped iteration reaches from given overlaps, and the residual of the
        equations.
        """

        def iterate(_: int, x: Array) -> Array:
            log_r, q = x[0], x[2:]
            tau = self.matrix.signal(self.mean(q**2))
            error, field = self.fields(q, tau, log_r)[1:]
            return (
                x + jnp.concatenate([jnp.stack([self.signal(error), tau]), field / (1 + field)])
            ) / 2

        def newton(_: int, x: Array) -> Array:
            step = jnp.linalg.solve(jax.jacfwd(self.misses)(x), self.misses(x))
            new = x - step
            return jnp.where(
                jnp.all(jnp.isfinite(new)), new.at[1].set(jnp.maximum(new[1], x[1] / 8)), x
            )

        worst = self.signal(self.power / 2 + self.g.total)
        x = jnp.concatenate([jnp.stack([worst, self.matrix.signal(self.mean(start**2))]), start])
        x = jax.lax.fori_loop(0, _ITERATIONS, iterate, x)
        near = x
        x = jax.lax.fori_loop(0, _NEWTON, newton, x)
        # Newton's method may converge to another solution than the iteration: discard such a
        # result.
        x = jnp.where(jnp.max(jnp.abs(x[2:] - near[2:])) < 0.02, x, near)
        return self.state(x[2:], x[1], x[0]), jnp.max(jnp.abs(self.misses(x)))

    def universal(self) -> tuple[_State, Array]:
        """The solution with Q = 0, where r_2 (Delta + error) grows with r_2."""
        nothing = jnp.zeros_like(self.square)

        def short(log_r: Array, _: None) -> Array:
            return self.signal(self.fields(nothing, jnp.zeros(()), log_r)[1]) - log_r

        log_r = decreasing_root(
            short, self.signal(self.power / 2 + self.g.total), self.signal(self.g.total)
        ).value
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
    """Initial overlaps: all features known, only the first m values known, and a weak overlap with
    all.
    """
    learned = np.unique(np.linspace(values, 1, min(values, _STARTS)).round().astype(int))[::-1]
    partial = 0.95 * (np.arange(values) < learned[:, None])
    return np.concatenate([partial, np.full((1, values), 0.02)])


@theory
def quadratic_bayes_optimal(teacher: QuadraticTeacher) -> CollectiveOptimal:
    r"""Bayes-optimal state of a teacher whose activation has a quadratic component, with its
    universal and specialised branches.

    The data determine the matrix $S = \sum_a v_a w_a w_a^T / \sqrt{kd}$ with overlap $q_2$; more
    data also determine single features, with overlaps $Q(v)$. With $\alpha = n/d^2$, $\gamma =
    k/d$, $\Delta$ the `noise` and $\mu_2 = E \sigma He_2$,

    $$ m_S(\tau) = E v^2 Q(v)^2, \qquad r_2 = \frac{\alpha \mu_2^2}{\Delta + \mathrm{error}}, \qquad
       q_2 = m_S(\tau + r_2), \qquad Q(v) = \frac{R(v)}{1 + R(v)} $$

    $$ \mathrm{error} = \frac{\mu_2^2}{2} (1 - q_2) + g(1) - E v^2 g(Q(v)) $$

    $$ R(v) = \frac{v^2}{\gamma} \Big[ \frac{Q(v) (q_2 - E v^2 Q^2)}{m_S'(\tau)}
       + \frac{\alpha g'(Q(v))}{\Delta + \mathrm{error}} \Big] $$

    where $m_S(l)$ is the overlap of S observed with the signal l in Gaussian noise. `overlap` is Q
    and `quadratic_overlap` is $q_2$. Solutions are sought from starts at the teacher, at a weak
    overlap with it, and at states in which only the features of largest |v| are known; the one of
    largest free entropy is returned.

    Accuracy: 1e-8.

    Source: Barbier et al. (2025); Maillard et al. (2024) for the universal branch.

    >>> state = quadratic_bayes_optimal(QuadraticTeacher(100, 50, noise=0.5, n_train=20_000))
    >>> round(float(state.error), 6), round(float(state.quadratic_overlap), 6)
    (0.054157, 0.461037)
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
    # The Bayes-optimal state is the solution of largest free entropy.
    wins = values[best] > universal.free_entropy
    chosen = jax.tree.map(lambda a, b: jnp.where(wins, a[best], b), states, universal)
    special = jax.tree.map(lambda part: jnp.where(exists[0], part[0], jnp.nan), states)
    same = jnp.max(jnp.abs(states.overlap[:, None] - states.overlap), axis=2) < 1e-6
    new = exists & ~jnp.any(jnp.tril(same, -1) & exists, axis=1)
    # A start that did not converge might have led to the best solution.
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
