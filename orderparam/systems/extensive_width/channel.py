"""The effective channel of one hidden unit: the information of its output about its weights, and
the resulting overlap.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from orderparam.core.late import brentq
from orderparam.gaussian import Activation, hermite_coefficients
from orderparam.gaussian.rules import unit_rule

# ------------------------------------------------------------------------------------------------
# The information of one hidden unit about its weights: the signal function g of an activation.
#
# g(q) = sum_{l >= 3} c_l^2 q^l is the part of E sigma(z_1) sigma(z_2) at correlation q that is not
# learned from O(d) samples (c_0, c_1) or collectively from the quadratic component (c_2). It is
# tabulated along u = -ln(1 - q), so that q close to 1 keeps its digits. Nguyen and Barbier 2026,
# appendix A (g_sigma).

# tanh(2z) has poles at ±i pi/4, so that c_l^2 falls as exp(-const sqrt(l)): the terms beyond the
# 400th contribute 1e-8 to g'(1) and are left out.
SERIES = 400

_X, _W = unit_rule(24)


class Signal:
    """The signal function g of one activation: g(1) - g(q), g'(q) and g''(q) at q = 1 - exp(-u).

    For a smooth activation g is the sum of its Hermite series. For an activation with kinks or
    jumps g is computed from the two-point function in closed form, since the terms of the series
    fall only as a power.

    coefficients: c_0, c_1, c_2.   total: g(1).
    reach: largest u at which the functions below are accurate.
    """

    def __init__(self, activation: Activation) -> None:
        self.activation = activation
        found = np.asarray(
            hermite_coefficients(
                activation, 3 if activation.kinks else SERIES, 1.0, activation.kinks
            )
        )
        self.coefficients = found[:3]
        self.closed = bool(activation.kinks)
        self.reach = 20.0 if self.closed else 45.0
        degrees = np.arange(3, max(len(found), 4))
        self._degrees = degrees
        self._squares = np.zeros(1) if self.closed else found[3:] ** 2
        if not self.closed:  # coefficients below rounding are not signal
            kept = self._squares > 1e-28 * np.sum(found**2)
            self._degrees, self._squares = degrees[kept], self._squares[kept]
        self.total = float(
            self.deficit(np.array([30.0 if self.closed else 700.0]), from_zero=True)[0]
        )

    def deficit(self, u: np.ndarray, from_zero: bool = False) -> np.ndarray:
        """The difference g(1) - g(q); with `from_zero` g(q) itself."""
        if not self.closed:
            if from_zero:
                return (
                    np.exp(np.multiply.outer(np.log1p(-np.exp(-u)), self._degrees)) @ self._squares
                )
            return (
                -np.expm1(np.multiply.outer(np.log1p(-np.exp(-u)), self._degrees)) @ self._squares
            )
        # int g' over [q, 1] with 1 - q' = (1 - q) x^2, or over [0, q] with 1 - q' = 1 - q x: no
        # difference of close numbers.
        x, w = _X, _W
        if from_zero:
            gap = np.multiply.outer(np.expm1(-u), 1 - (1 - x**2) ** 2) + 1
            return np.sum(self._closed_slope(gap) * 4 * x * (1 - x**2) * w, axis=-1) * -np.expm1(-u)
        gap = np.multiply.outer(np.exp(-u), x**2)
        return np.sum(self._closed_slope(gap) * 2 * x * w, axis=-1) * np.exp(-u)

    def slope(self, u: np.ndarray) -> np.ndarray:
        """g'(q)."""
        if self.closed:
            return self._closed_slope(np.exp(-u))
        return np.exp(np.multiply.outer(np.log1p(-np.exp(-u)), self._degrees - 1)) @ (
            self._degrees * self._squares
        )

    def curvature(self, u: np.ndarray) -> np.ndarray:
        """g''(q)."""
        if self.closed:
            correlation = jnp.asarray(-np.expm1(-u))
            one = jnp.ones_like(correlation)

            def slope(q: Any) -> Any:
                return self.activation.two_point_derivative(one, q, one)

            return (
                np.asarray(jax.jvp(slope, (correlation,), (one,))[1])
                - 2 * self.coefficients[2] ** 2
            )
        weights = self._degrees * (self._degrees - 1) * self._squares
        return np.exp(np.multiply.outer(np.log1p(-np.exp(-u)), self._degrees - 2)) @ weights

    def at(self, q: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """g(q) and g'(q), traceable; absolute accuracy 1e-14."""
        if not self.closed:
            powers = jnp.asarray(self._squares) * q ** jnp.asarray(self._degrees)
            slopes = jnp.asarray(self._squares * self._degrees) * q ** jnp.asarray(
                self._degrees - 1
            )
            return jnp.sum(powers), jnp.sum(slopes)
        a, b, c = self.coefficients**2
        one = jnp.ones_like(q)
        value = self.activation.two_point(one, q, one) - a - b * q - c * q**2
        return value, self.activation.two_point_derivative(one, q, one) - b - 2 * c * q

    def _closed_slope(self, gap: np.ndarray) -> np.ndarray:
        """The derivative g'(1 - gap), from the two-point function."""
        q = 1 - np.asarray(gap)
        one = np.ones_like(q)
        full = np.asarray(self.activation.two_point_derivative(one, q, one))
        return full - self.coefficients[1] ** 2 - 2 * self.coefficients[2] ** 2 * q


@lru_cache(maxsize=64)
def signal(activation: Activation) -> Signal:
    """The signal function of an activation, computed once and cached."""
    with jax.ensure_compile_time_eval():
        return Signal(activation)


# ------------------------------------------------------------------------------------------------
# One feature in its effective channel: which overlap q maximises
# F(lambda, q) = lambda g(q) + q + ln(1 - q).
#
# lambda is the feature's signal-to-noise ratio (n/d) v^2 / (Delta + error). F is stationary where
# lambda g'(q) = q / (1 - q), so that lambda is an explicit function of q, and a table of its
# inverse is computed once. A state is a local maximum of F exactly where lambda(q) increases: each
# part of lambda(q) that increases is a branch, which begins at a spinodal. The Bayes-optimal
# overlap m(lambda) is that of the branch with the largest F, and zero below the threshold
# lambda_sigma: the jump of m is the transition at which the feature is learned. Nguyen and Barbier
# 2026, eqs. 33-35 and appendix A; the branches and their table are derived for this package, not in
# the cited paper.

_CELLS = 4096


class Segments(eqx.Module):
    """A choice of branches: branch number branch[j] applies from ln(lambda) = start[j] on."""

    start: Float[Array, "segment"]
    branch: Int[Array, "segment"]

    @property
    def threshold(self) -> Float[Array, ""]:
        """The value of ln(lambda) above which the feature is learned."""
        return self.start[0]


class ChannelState(NamedTuple):
    """A learned state of a feature: u = -ln(1 - q), W = lambda (g(1) - g(q)) and M = -W + q + ln(1
    - q)."""

    u: Float[Array, "*batch"]
    unexplained: Float[Array, "*batch"]
    potential: Float[Array, "*batch"]


class ActivationChannel(eqx.Module):
    """Tables of an activation's channel over s = ln(lambda), cubic in t = sqrt(s - spinodal), in
    which every branch is analytic.

    bayes:    the states of largest F. Segments start where two branches have equal F; the first
              starts at ln lambda_sigma, where its F is that of q = 0.
    informed: the states that are reached from q = 1, which are the local maxima of largest q.
              Segments start at the spinodals.
    total:    g(1).
    """

    bayes: Segments
    informed: Segments
    total: Float[Array, ""]
    birth: Float[Array, "branch"]
    width: Float[Array, "branch"]
    end: Float[Array, "branch"]
    end_slope: Float[Array, "branch"]
    # one array per coefficient: gathers of single numbers fuse with the arithmetic
    cells: Float[Array, "12 cell"]

    @property
    def learning_threshold(self) -> Float[Array, ""]:
        """The threshold lambda_sigma of the signal n v^2 / (d (Delta + error)) above which a
        feature is learned Bayes-optimally."""
        return jnp.exp(self.bayes.threshold)

    @property
    def spinodal(self) -> Float[Array, ""]:
        """The signal below which a learned feature is lost again (the end of the hysteresis)."""
        return jnp.exp(self.informed.threshold)

    def state(self, s: Float[Array, "*batch"], segments: Segments) -> ChannelState:
        """The learned state at s = ln(lambda), to 1e-10 or better.

        Below the threshold the branch is followed down to its spinodal. Above the end of the table,
        at q = 1 - 1e-19, the state is that of the limit q -> 1: u and M are linear in s, and W is
        constant.
        """
        if len(segments.start) == 1:
            branch: Array = segments.branch[0]
        else:
            branch = segments.branch[
                jnp.maximum(jnp.searchsorted(segments.start, s, side="right") - 1, 0)
            ]
        birth, width, end = self.birth[branch], self.width[branch], self.end[branch]
        inside = s > birth
        t = (
            jnp.where(inside, jnp.sqrt(jnp.where(inside, jnp.minimum(s, end) - birth, 1.0)), 0.0)
            / width
        )
        cell = jnp.clip(jax.lax.stop_gradient(t).astype(jnp.int32), 0, _CELLS - 1)
        x = t - cell
        place = branch * _CELLS + cell

        def cubic(first: int) -> Array:
            a, b, c, d = (
                self.cells[first + i].at[place].get(mode="promise_in_bounds") for i in range(4)
            )
            return a + x * (b + x * (c + x * d))

        beyond = self.end_slope[branch] * jnp.maximum(s - end, 0.0)
        return ChannelState(cubic(0) + beyond, cubic(4), cubic(8) - beyond)

    def overlap(self, s: Float[Array, "*batch"], segments: Segments) -> Float[Array, "*batch"]:
        """The overlap m(lambda): q of the learned state above the threshold, 0 below."""
        return jnp.where(s >= segments.threshold, -jnp.expm1(-self.state(s, segments).u), 0.0)

    def unexplained(self, s: Float[Array, "*batch"], segments: Segments) -> Float[Array, "*batch"]:
        """The function W = lambda (g(1) - g(m(lambda))), which is lambda g(1) below the
        threshold."""
        learned = s >= segments.threshold
        return jnp.where(
            learned,
            self.state(s, segments).unexplained,
            jnp.exp(jnp.where(learned, 0.0, s)) * self.total,
        )


def _log_signal(g: Signal, u: np.ndarray) -> np.ndarray:
    """ln(lambda) of the stationary point at u: lambda = q / ((1 - q) g'(q))."""
    return np.log(-np.expm1(-u)) + u - np.log(g.slope(u))


def _log_signal_slope(g: Signal, u: np.ndarray) -> np.ndarray:
    """d ln(lambda) / du = (1 - q)/q + 1 - g''(q) (1 - q) / g'(q)."""
    return np.exp(-u) / -np.expm1(-u) + 1 - g.curvature(u) * np.exp(-u) / g.slope(u)


def _root(f: Callable[[np.ndarray], np.ndarray], a: float, b: float) -> float:
    return brentq(lambda x: float(f(np.array([x]))[0]), a, b, xtol=1e-15, rtol=8.9e-16)


class _Branch:
    """One increasing stretch of ln(lambda) as a function of u, tabulated uniformly in t =
    sqrt(ln(lambda) - spinodal)."""

    def __init__(self, g: Signal, low: float, high: float) -> None:
        self.birth, self.end = (float(_log_signal(g, np.array([u]))[0]) for u in (low, high))
        t = np.linspace(0.0, np.sqrt(self.end - self.birth), _CELLS + 1)
        target = self.birth + t**2
        coarse = np.linspace(low, high, 4 * _CELLS)
        heights = np.maximum.accumulate(_log_signal(g, coarse))
        u = np.interp(target, heights, coarse)
        below, above = np.full_like(u, low), np.full_like(u, high)
        # Newton's method, with bisection where a step would leave the bracket: the spinodal is a
        # double root
        for _ in range(60):
            miss = _log_signal(g, u) - target
            below, above = np.where(miss < 0, u, below), np.where(miss < 0, above, u)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = u - miss / _log_signal_slope(g, u)
            new = np.where((step >= below) & (step <= above), step, (below + above) / 2)
            if np.max(np.abs(new - u)) < 4e-14 * high:
                break
            u = new
        u[0], u[-1] = low, high
        slope = _log_signal_slope(g, u)
        du = np.empty_like(u)
        du[1:] = 2 * t[1:] / slope[1:]
        du[0] = 2 * du[1] - du[2]  # 0/0 at the spinodal, where u is analytic in t
        q = -np.expm1(-u)
        self.unexplained = np.exp(target) * g.deficit(u)
        dw = 2 * t * self.unexplained - q * du  # dW/ds = W - q du/ds
        self.width = float(t[1])
        self.end_slope = 1 / float(slope[-1])
        potential, dm = q - u - self.unexplained, -2 * t * self.unexplained  # dM/ds = -W
        values = ((u, du), (self.unexplained, dw), (potential, dm))
        self.cells = np.concatenate([_cubic(value, slope * self.width) for value, slope in values])
        self.s = target
        self.gain = g.total * np.exp(target) + potential  # F(lambda, q)

    def free_energy(self, s: np.ndarray) -> np.ndarray:
        """The free energy F on the branch, -inf where the branch does not exist; dF/ds = lambda
        g(q)."""
        inside = (s >= self.birth) & (s <= self.end)
        return np.where(inside, np.interp(s, self.s, self.gain), -np.inf)


def _cubic(value: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Coefficients of the Hermite cubic of each unit cell, (4, cell)."""
    a, b, da, db = value[:-1], value[1:], slope[:-1], slope[1:]
    return np.stack([a, da, 3 * (b - a) - 2 * da - db, 2 * (a - b) + da + db])


def _free_energy(g: Signal, branch: _Branch, s: float) -> float:
    """F(lambda, q) = lambda g(1) + M of a branch at one point, by its cubic (1e-12)."""
    t = np.sqrt(max(s - branch.birth, 0.0)) / branch.width
    cell = min(int(t), _CELLS - 1)
    (a, b, c, d), x = branch.cells[8:, cell], t - cell
    return float(np.exp(s) * g.total + a + x * (b + x * (c + x * d)))


def _global_segments(g: Signal, branches: list[_Branch]) -> Segments:
    """The segments in which each branch has the largest F among all branches and the unlearned
    state, F = 0."""
    low, high = min(b.birth for b in branches), branches[-1].end
    grid = np.union1d(np.linspace(low, high, 20000), np.linspace(low, low + 3, 20000))
    heights = np.stack([np.zeros_like(grid), *(branch.free_energy(grid) for branch in branches)])
    best = np.argmax(heights, axis=0)
    starts, order = [], []
    for i in np.flatnonzero(np.diff(best)):
        old, new = best[i], best[i + 1]

        def difference(s: float, old: int = old, new: int = new) -> float:
            below = 0.0 if old == 0 else _free_energy(g, branches[old - 1], s)
            return _free_energy(g, branches[new - 1], s) - below

        starts.append(
            brentq(difference, grid[i] - 1e-6, grid[i + 1] + 1e-6, xtol=1e-15, rtol=8.9e-16)
        )
        order.append(new - 1)
    return Segments(jnp.asarray(starts), jnp.asarray(order))


def _informed_segments(branches: list[_Branch]) -> Segments:
    """The segments in which each branch is the existing branch of largest overlap."""
    starts: list[float] = []
    order: list[int] = []
    for number in reversed(range(len(branches))):
        if not starts or branches[number].birth < starts[0]:
            starts.insert(0, branches[number].birth)
            order.insert(0, number)
    return Segments(jnp.asarray(starts), jnp.asarray(order))


@lru_cache(maxsize=32)
def channel(activation: Activation) -> ActivationChannel:
    """The channel of an activation whose information exponent is at least 3 when its He_1
    component, which is learned first, is left out.

    Raises `ValueError` if the quadratic component c_2 does not vanish (see `quadratic.py`), or if
    the activation has no components beyond it.
    """
    g = signal(activation)
    power = g.total + float(np.sum(g.coefficients**2))
    if g.coefficients[2] ** 2 > 1e-20 * power:
        raise ValueError(
            f"activation = {activation.name}: its quadratic component c_2 = "
            f"{g.coefficients[2]:.3g} does not vanish, so features are learned collectively; use "
            "QuadraticTeacher"
        )
    if g.total <= 1e-12 * power:
        raise ValueError(
            f"activation = {activation.name}: has no Hermite component of degree >= 3, so no "
            "feature can be told"
        )
    with jax.ensure_compile_time_eval():
        u = np.unique(
            np.concatenate([np.geomspace(1e-3, 1.0, 4000), np.linspace(1.0, g.reach, 12000)])
        )
        slope = _log_signal_slope(g, u)
        turns = [
            _root(lambda x: _log_signal_slope(g, x), u[i], u[i + 1])
            for i in np.flatnonzero(np.diff(np.sign(slope)))
        ]
        branches = [_Branch(g, low, high) for low, high in zip(turns[::2], [*turns[1::2], g.reach])]
        return ActivationChannel(
            bayes=_global_segments(g, branches),
            informed=_informed_segments(branches),
            total=jnp.asarray(g.total),
            birth=jnp.asarray([branch.birth for branch in branches]),
            width=jnp.asarray([branch.width for branch in branches]),
            end=jnp.asarray([branch.end for branch in branches]),
            end_slope=jnp.asarray([branch.end_slope for branch in branches]),
            cells=jnp.asarray(np.concatenate([branch.cells for branch in branches], axis=1)),
        )
