"""Power-law read-outs in the limit of infinite dimension: scaling constants, limiting profile, the order of the transition.

v_i ~ i^-beta, d -> infinity with gamma = k/d and alpha = n/d^2 fixed. The overlaps of the learned features follow one profile,

    q_(x k_c) -> phi(x) = m(lambda_sigma x^(-2 beta)),    0 < x <= 1.                  (Nguyen and Barbier 2026, eq. 39)
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import zeta
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.root import decreasing_root
from orderparam.systems.extensive_width.model import HierarchicalTeacher
from orderparam.systems.extensive_width.theory.channel import channel
from orderparam.systems.extensive_width.theory.continuum import Continuum, mean_unexplained


class Scaling(Result):
    """The two laws of a steep hierarchy, beta > 1/2, of which the data resolve k_c << k features.

    effective_width:  prefactor of k_c = (...) d^(1/(2 beta)),        (alpha / (lambda_sigma zeta(2 beta) Delta))^(1/(2 beta)).
    error:            prefactor of error = (...) d^(1/(2 beta) - 1).
    profile_integral: I = int_0^1 x^(-2 beta) (g(1) - g(phi(x))) dx, from the learned features.
    collapse:         lim error * n / (k_c d) = lambda_sigma Delta (I + g(1)/(2 beta - 1)); it does not depend on alpha.
    """

    effective_width: Float[Array, ""]
    error: Float[Array, ""]
    profile_integral: Float[Array, ""]
    collapse: Float[Array, ""]


def _steep(teacher: HierarchicalTeacher) -> None:
    if not np.all(np.asarray(teacher.decay) > 0.5):
        raise ValueError(f"HierarchicalTeacher.decay = {teacher.decay}: must be > 0.5 for a steep hierarchy")


@theory(check=_steep)
def steep_hierarchy(teacher: HierarchicalTeacher) -> Scaling:
    """Closed limits for decay > 1/2 (Nguyen and Barbier 2026, eqs. 40-42; the collapse constant is derived for this package).

    The input dimension enters through alpha = n/d^2 only; the width must be large compared to k_c. Corrections fall as
    (k/k_c)^(1 - 2 beta), very slowly near beta = 1/2. Raises `ValueError` for decay <= 1/2.
    """
    tables = channel(teacher.activation)
    beta, noise = teacher.decay, teacher.noise
    alpha = teacher.n_train / teacher.input_dim**2
    threshold = jnp.exp(tables.bayes.threshold)
    norm = zeta(2 * beta, 1.0)
    width = (alpha / (threshold * norm * noise)) ** (1 / (2 * beta))
    integral = mean_unexplained(tables, tables.bayes.threshold, beta) / threshold
    constant = integral + tables.total / (2 * beta - 1)
    return Scaling(width, width ** (1 - 2 * beta) / norm * constant, integral, threshold * noise * constant)


def limiting_profile(teacher: HierarchicalTeacher, position: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """phi(x) = m(lambda_sigma x^(-2 beta)): the overlap of feature number x k_c, 0 < x <= 1."""
    tables = channel(teacher.activation)
    return tables.overlap(tables.bayes.threshold - 2 * teacher.decay * jnp.log(position), tables.bayes)


class FlatHierarchy(Result):
    """Infinite dimension with beta < 1/2, where the learned features are a finite fraction of all.

    error:               as in `BayesOptimal`.
    learned_fraction:    k_c / k.
    sample_ratio_all:    alpha = n/d^2 above which the state with every feature learned exists (eq. 46).
    first_order_ratio:   A / (2 beta (Delta + g(1))), A = g(1) - error at alpha_*: when it exceeds 1, a finite fraction of
                         the features is learned at once; infinite at decay 0, where all are. (Derived for this package, not
                         in the cited paper.)
    """

    error: Float[Array, ""]
    learned_fraction: Float[Array, ""]
    sample_ratio_all: Float[Array, ""]
    first_order_ratio: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def check_flat(teacher: HierarchicalTeacher) -> None:
    if not teacher.decay < 0.5:
        raise ValueError(f"HierarchicalTeacher.decay = {teacher.decay}: must be < 0.5 for a flat hierarchy")


@theory(check=check_flat)
def flat_hierarchy(teacher: HierarchicalTeacher) -> FlatHierarchy:
    """Closed limits for decay < 1/2 (Nguyen and Barbier 2026, eqs. 43-46), on the branch of largest free entropy.

    With T = lambda / lambda_sigma of the weakest feature, alpha = lambda_sigma gamma T (Delta + error(T)) / (1 - 2 beta) is
    explicit. Raises `ValueError` for decay >= 1/2.
    """
    tables = channel(teacher.activation)
    continuum = Continuum(tables, teacher.decay, teacher.noise)
    alpha = teacher.n_train / teacher.input_dim**2
    gamma = teacher.width / teacher.input_dim
    wanted = alpha / gamma
    # Where nothing is learned: s of lambda = (alpha/gamma)(1 - 2 beta)/(Delta + g(1)) at x = 1, below every state that exists.
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
    gained = tables.total - continuum.error(threshold)
    slope = 2 * continuum.beta * (continuum.noise + tables.total)
    return FlatHierarchy(
        continuum.error(root.value),
        continuum.learned(root.value),
        complete,
        gained / slope,
        root.residual,
        root.converged,
    )
