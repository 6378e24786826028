"""Power-law read-outs in the limit of infinite dimension: scaling constants, profiles, and
collective transitions."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import zeta
from jaxtyping import Array, Bool, Float

from orderparam.core.late import brentq, minimize_scalar
from orderparam.core.needs import above, below
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.rules import panel_rule
from orderparam.solve.root import decreasing_root
from orderparam.systems.extensive_width.channel import ActivationChannel, channel
from orderparam.systems.extensive_width.model import HierarchicalTeacher

# ------------------------------------------------------------------------------------------------
# A continuum of features with power-law read-outs: sums over features as integrals, in the limit of
# infinite dimension.
#
# Sums become J(s) = int_0^1 W(e^s x^(-2 beta)) dx = int_0^inf W(e^(s + 2 beta tau)) e^-tau dtau, an
# integral that stays smooth for every beta, homogeneous read-outs (beta = 0) included. This form is
# derived for this package, not in Nguyen and Barbier 2026.


def _panels() -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre panels on [0, 45], narrow at 0, where the spinodal is near."""
    nodes, w = panel_rule(np.concatenate([[0.0], np.geomspace(0.01, 45.0, 22)]), 20)
    return nodes, w * np.exp(-nodes)


_TAU, _WEIGHT = _panels()


def mean_unexplained(
    tables: ActivationChannel, s: Float[Array, ""], beta: Float[Array, ""] | float
) -> Float[Array, ""]:
    """The integral of W(e^s x^(-2 beta)) over x from 0 to 1, for s at or above the threshold."""
    return jnp.sum(_WEIGHT * tables.state(s + 2 * beta * _TAU, tables.bayes).unexplained)


class Continuum(eqx.Module):
    """A continuum of features x in (0, 1] with lambda = e^s x^(-2 beta).

    The logarithm s of the weakest feature's signal plays the role of the level.
    """

    tables: ActivationChannel
    beta: Float[Array, ""] | float
    noise: Float[Array, ""] | float

    def learned(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """The fraction k_c / k of learned features."""
        gap = jnp.minimum(s - self.tables.bayes.threshold, 0.0)
        return jnp.where(
            gap < 0, jnp.exp(gap / jnp.where(self.beta > 0, 2 * self.beta, 1e-300)), 1.0
        )

    def means(self, s: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The averages of W and M over the features."""
        fraction = self.learned(s)
        strongest = jnp.maximum(s, self.tables.bayes.threshold)
        state = self.tables.state(strongest + 2 * self.beta * _TAU, self.tables.bayes)
        unlearned = (
            jnp.exp(s)
            * self.tables.total
            * (1 - fraction ** (1 - 2 * self.beta))
            / (1 - 2 * self.beta)
        )
        w_mean = fraction * jnp.sum(_WEIGHT * state.unexplained) + unlearned
        m_mean = fraction * jnp.sum(_WEIGHT * state.potential) - unlearned
        return w_mean, m_mean

    def samples(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """The ratio alpha / gamma of the state at level s."""
        return jnp.exp(s) * self.noise / (1 - 2 * self.beta) + self.means(s)[0]

    def error(self, s: Float[Array, ""]) -> Float[Array, ""]:
        return self.means(s)[0] * (1 - 2 * self.beta) * jnp.exp(-s)

    def concave(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """The function c(s), whose concave envelope consists of the Bayes-optimal states (see
        `transitions`)."""
        return self.means(s)[1] - jnp.exp(s) * self.noise / (1 - 2 * self.beta)

    def levels(self, count: int) -> Float[Array, "level"]:
        """Levels from well below the first learned feature to well above the last."""
        threshold = self.tables.bayes.threshold
        below = threshold - 8.0 * jnp.linspace(1.0, 0.0, count // 2) ** 2
        above = threshold + 30.0 * jnp.linspace(0.0, 1.0, count - count // 2 + 1)[1:] ** 2
        return jnp.concatenate([below, above])


# ------------------------------------------------------------------------------------------------
# Power-law read-outs in the limit of infinite dimension: scaling constants, limiting profile, the
# order of the transition.
#
# v_i ~ i^-beta, d -> infinity with gamma = k/d and alpha = n/d^2 fixed. The overlaps of the learned
# features follow one profile,
#
#     q_(x k_c) -> phi(x) = m(lambda_sigma x^(-2 beta)),    0 < x <= 1.
#     (Nguyen and Barbier 2026, eq. 39)


class Scaling(Result):
    """Scaling laws of a steep hierarchy, beta > 1/2, in which the data resolve k_c << k features.

    Fields:
        effective_width: prefactor of k_c = (...) d^(1/(2 beta)), (alpha / (lambda_sigma zeta(2
            beta) Delta))^(1/(2 beta)).
        error: prefactor of error = (...) d^(1/(2 beta) - 1).
        profile_integral: I = int_0^1 x^(-2 beta) (g(1) - g(phi(x))) dx, from the learned features.
        collapse: limit of error * n / (k_c d), lambda_sigma Delta (I + g(1)/(2 beta - 1)); it does
            not depend on alpha.
    """

    effective_width: Float[Array, ""]
    error: Float[Array, ""]
    profile_integral: Float[Array, ""]
    collapse: Float[Array, ""]


@theory(needs={"decay": above(0.5, why="the hierarchy is steep")})
def steep_hierarchy(teacher: HierarchicalTeacher) -> Scaling:
    r"""Scaling laws of the effective width and the error for read-outs that decay fast, beta > 1/2,
    in the limit of infinite dimension.

    $$ k_c = \Big( \frac{\alpha}{\lambda_\sigma\, \zeta(2\beta)\, \Delta} \Big)^{1/(2\beta)}
       d^{1/(2\beta)}, \qquad \frac{\mathrm{error}\; n}{k_c\, d} \to
       \lambda_\sigma \Delta \Big( I + \frac{g(1)}{2\beta - 1} \Big) $$

    with $\alpha = n/d^2$ (`n_train`, `input_dim`), $\beta$ = `decay`, $\Delta$ = `noise`,
    $\lambda_\sigma$ the signal at which a feature is learned, and I = `profile_integral`, the
    integral of $x^{-2\beta} (g(1) - g(\phi(x)))$ over the profile of `limiting_profile`.

    Raises:
        ValueError: for decay <= 1/2, or an activation with a quadratic component.

    Accuracy: corrections fall as (k/k_c)^(1 - 2 beta), very slowly near beta = 1/2; the width must
    be large compared with k_c.

    Source: Nguyen, Barbier (2026), eqs. 40-42; the constant `collapse` is derived here.

    >>> laws = steep_hierarchy(HierarchicalTeacher(200, 100, decay=1.0, noise=0.1, n_train=40_000))
    >>> round(float(laws.effective_width), 6), round(float(laws.collapse), 6)
    (0.561615, 0.307789)
    """
    tables = channel(teacher.activation)
    beta, noise = teacher.decay, teacher.noise
    alpha = teacher.n_train / teacher.input_dim**2
    threshold = jnp.exp(tables.bayes.threshold)
    norm = zeta(2 * beta, 1.0)
    width = (alpha / (threshold * norm * noise)) ** (1 / (2 * beta))
    integral = mean_unexplained(tables, tables.bayes.threshold, beta) / threshold
    # The learned features and the tail of unlearned ones, which are many at every width.
    constant = integral + tables.total / (2 * beta - 1)
    return Scaling(
        effective_width=width,
        error=width ** (1 - 2 * beta) / norm * constant,
        profile_integral=integral,
        collapse=threshold * noise * constant,
    )


def limiting_profile(
    teacher: HierarchicalTeacher, position: Float[Array, "*batch"]
) -> Float[Array, "*batch"]:
    """Overlap of feature number x k_c, phi(x) = m(lambda_sigma x^(-2 beta)).

    Args:
        position: x, 0 < x <= 1.

    Source: Nguyen, Barbier (2026), eq. 39.
    """
    tables = channel(teacher.activation)
    return tables.overlap(
        tables.bayes.threshold - 2 * teacher.decay * jnp.log(position), tables.bayes
    )


class FlatHierarchy(Result):
    """Bayes-optimal state at beta < 1/2 in infinite dimension, where a finite fraction of all
    features is learned.

    Fields:
        error: as in `BayesOptimal`.
        learned_fraction: k_c / k.
        sample_ratio_all: alpha = n/d^2 above which the state with every feature learned exists (eq.
            46).
        first_order_ratio: A / (2 beta (Delta + g(1))), with A = g(1) - error at `sample_ratio_all`.
            Where this ratio exceeds 1, a finite fraction of the features is learned at once. The
            ratio is infinite at decay 0, where all features are learned at once. (Derived for this
            package, not in the cited paper.)
        residual: residual of the equation for alpha.
        converged: whether that equation was solved.
    """

    error: Float[Array, ""]
    learned_fraction: Float[Array, ""]
    sample_ratio_all: Float[Array, ""]
    first_order_ratio: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


_FLAT = {"decay": below(0.5, why="the hierarchy is flat")}


@theory(needs=_FLAT)
def flat_hierarchy(teacher: HierarchicalTeacher) -> FlatHierarchy:
    r"""Error and fraction of learned features for slowly decaying read-outs, beta < 1/2, in the
    limit of infinite dimension.

    $$ \alpha = \frac{\gamma\, \lambda\, (\Delta + \mathrm{error}(\lambda))}{1 - 2\beta} $$

    with $\lambda$ the signal of the weakest feature, $\alpha = n/d^2$, $\gamma$ =
    `width`/`input_dim`, $\beta$ = `decay` and $\Delta$ = `noise`. If several $\lambda$ solve the
    equation, the one of largest free entropy is taken.

    Raises:
        ValueError: for decay >= 1/2, or an activation with a quadratic component.

    Accuracy: finite sizes approach the limit as k^(2 beta - 1), slowly.

    Source: Nguyen, Barbier (2026), eqs. 43-46; `first_order_ratio` is derived here.

    >>> state = flat_hierarchy(HierarchicalTeacher(200, 100, decay=0.3, noise=0.01, n_train=40_000))
    >>> round(float(state.error), 6), round(float(state.first_order_ratio), 4)
    (0.011735, 1.159)
    """
    tables = channel(teacher.activation)
    continuum = Continuum(tables, teacher.decay, teacher.noise)
    alpha = teacher.n_train / teacher.input_dim**2
    gamma = teacher.width / teacher.input_dim
    wanted = alpha / gamma
    # If nothing is learned, s belongs to lambda = (alpha/gamma)(1 - 2 beta)/(Delta + g(1)) at x =
    # 1, which lies below every state that exists.
    lowest = jnp.log(wanted * (1 - 2 * continuum.beta) / (continuum.noise + tables.total))
    frozen, target = jax.lax.stop_gradient((continuum, wanted))
    level = jnp.sort(jnp.maximum(frozen.levels(1536), jax.lax.stop_gradient(lowest) - 1e-2))
    highest = jnp.maximum(level[-1], jnp.log(target * (1 - 2 * frozen.beta) / frozen.noise)) + 1.0
    level = jnp.concatenate([level, highest[None]])
    psi = target * level + jax.lax.map(frozen.concave, level, batch_size=128)
    best = jnp.clip(jnp.argmax(psi), 1, level.shape[0] - 2)

    def falling(s: Array, at: tuple[Continuum, Array]) -> Array:
        return at[1] - at[0].samples(s)

    root = decreasing_root(falling, level[best - 1], level[best + 1], (continuum, wanted))
    threshold = tables.bayes.threshold
    complete = continuum.samples(threshold) * gamma
    # The sign of d alpha/d level at the point where the last feature is learned decides the order
    # of the transition.
    gained = tables.total - continuum.error(threshold)
    slope = 2 * continuum.beta * (continuum.noise + tables.total)
    return FlatHierarchy(
        error=continuum.error(root.value),
        learned_fraction=continuum.learned(root.value),
        sample_ratio_all=complete,
        first_order_ratio=gained / slope,
        residual=root.residual,
        converged=root.converged,
    )


# ------------------------------------------------------------------------------------------------
# Collective first-order transitions: a finite fraction of all features learned at once, in the
# limit of infinite dimension.
#
# They exist for slowly decaying read-outs (decay < 1/2) if alpha(s) = gamma (Lambda Delta + sum
# W)/k falls along a part of the branch. Homogeneous read-outs (decay 0) are learned all together.
# Derived for this package, not in Nguyen and Barbier 2026.

_LEVELS = 4096


class CollectiveTransition(Result):
    """The transition at which a finite fraction of the features is learned at once.

    All fields but `first_order` are NaN when the features are learned one after the other.

    Fields:
        sample_ratio: alpha = n/d^2 at which both states have the same free entropy.
        coexistence: lowest and highest alpha at which both states exist.
        fraction_before: k_c / k before the transition.
        fraction_after: k_c / k after the transition.
        error_before: error before the transition.
        error_after: error after the transition.
        overlap: overlap of the weakest learned feature after the transition.
        first_order: whether there is such a transition.
    """

    sample_ratio: Float[Array, ""]
    coexistence: Float[Array, "end"]
    fraction_before: Float[Array, ""]
    fraction_after: Float[Array, ""]
    error_before: Float[Array, ""]
    error_after: Float[Array, ""]
    overlap: Float[Array, ""]
    first_order: Bool[Array, ""]


@theory(traced=False, needs=_FLAT)
def collective_transition(teacher: HierarchicalTeacher) -> CollectiveTransition:
    """Collective first-order transition for slowly decaying read-outs, in the limit of infinite
    dimension.

    The transition is the common tangent of the function c(s) of `transitions`, which is equivalent
    to equal areas under alpha(s) - alpha_c along s = ln(signal of the weakest feature). It exists
    where alpha(s) falls along a part of the branch. For decay 0 all features are learned together
    and the coexistence begins at the spinodal of the informed state. `n_train` is not used.

    Raises:
        ValueError: for decay >= 1/2, where features are learned one by one, or an activation with a
            quadratic component.

    Accuracy: 1e-9. This theory cannot be traced by JAX; `flat_hierarchy(...).first_order_ratio > 1`
    gives the same region for whole grids.

    Source: derived here, from the free entropy of Nguyen, Barbier (2026).

    >>> found = collective_transition(HierarchicalTeacher(200, 100, decay=0.0, noise=0.01))
    >>> bool(found.first_order), round(float(found.sample_ratio), 6)
    (True, 0.796693)
    """
    tables = channel(teacher.activation)
    homogeneous = float(teacher.decay) == 0
    continuum = Continuum(tables, teacher.decay, teacher.noise)
    gamma = float(teacher.width / teacher.input_dim)

    def samples(s: float) -> float:
        return float(_samples(continuum, jnp.asarray(s)))

    threshold = float(tables.bayes.threshold)
    level, on_grid = (np.asarray(part) for part in _on_grid(continuum))
    if homogeneous:
        top, middle = threshold, int(np.searchsorted(level, threshold))
        highest = np.exp(threshold) * float(continuum.noise + tables.total)
        bottom, lowest = _minimum(
            lambda s: _informed_samples(continuum, s),
            float(tables.informed.threshold),
            threshold + 20,
        )
        start = max(bottom, threshold)
    else:
        falling = np.flatnonzero(np.diff(on_grid) < -1e-12 * on_grid[1:])
        if falling.size == 0:
            none = jnp.asarray(jnp.nan)
            return CollectiveTransition(
                sample_ratio=none,
                coexistence=jnp.full(2, jnp.nan),
                fraction_before=none,
                fraction_after=none,
                error_before=none,
                error_after=none,
                overlap=none,
                first_order=jnp.asarray(False),
            )
        first, middle = falling[0], falling[-1] + 1
        top, highest = _minimum(lambda s: -samples(s), level[max(first - 1, 0)], level[first + 1])
        highest = -highest
        bottom, lowest = _minimum(samples, level[middle - 1], level[middle + 1])
        start = bottom
    lower, upper = level[0] - 40.0, level[-1] + 40.0

    def before(alpha: float) -> float:
        if homogeneous:
            return float(np.log(alpha / float(continuum.noise + tables.total)))
        return brentq(lambda s: samples(s) - alpha, lower, top, xtol=1e-14)

    def after(alpha: float) -> float:
        return brentq(lambda s: samples(s) - alpha, start, upper, xtol=1e-14)

    def advantage(alpha: float) -> float:
        states = [
            float(_concave(continuum, jnp.asarray(s))) + alpha * s
            for s in (before(alpha), after(alpha))
        ]
        return states[1] - states[0]

    margin = 1e-9 * highest
    alpha = brentq(advantage, samples(start) + margin, highest - margin, xtol=1e-14)
    low, high = before(alpha), after(alpha)
    states = [jnp.asarray(s) for s in (low, high)]
    fractions = [
        jnp.zeros(()) if homogeneous else continuum.learned(states[0]),
        continuum.learned(states[1]),
    ]
    errors = [alpha * (1 - 2 * continuum.beta) * jnp.exp(-s) - continuum.noise for s in states]
    weakest = tables.overlap(jnp.maximum(states[1], threshold), tables.bayes)
    return CollectiveTransition(
        sample_ratio=jnp.asarray(alpha * gamma),
        coexistence=jnp.asarray([lowest * gamma, highest * gamma]),
        fraction_before=fractions[0],
        fraction_after=fractions[1],
        error_before=errors[0],
        error_after=errors[1],
        overlap=weakest,
        first_order=jnp.asarray(True),
    )


_samples = eqx.filter_jit(Continuum.samples)
_concave = eqx.filter_jit(Continuum.concave)


@eqx.filter_jit
def _on_grid(continuum: Continuum) -> tuple[Array, Array]:
    level = continuum.levels(_LEVELS)
    return level, jax.lax.map(continuum.samples, level, batch_size=256)


def _informed_samples(continuum: Continuum, s: float) -> float:
    """The ratio alpha / gamma of the metastable state of homogeneous read-outs, lambda Delta +
    W(lambda)."""
    w = continuum.tables.state(jnp.asarray(s), continuum.tables.informed).unexplained
    return float(jnp.exp(s) * continuum.noise + w)


def _minimum(f: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    found = minimize_scalar(
        f, bounds=(float(low), float(high)), method="bounded", options={"xatol": 1e-10}
    )
    return float(found.x), float(found.fun)
