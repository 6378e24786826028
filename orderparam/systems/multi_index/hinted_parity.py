"""A parity of three directions with a hint about the first: theory, message passing and
eigenvectors."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, erfc
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.channels.outlier import best_weight, outlier
from orderparam.channels.passing import Messages, passing
from orderparam.core.needs import iteration
from orderparam.core.verb import experiment, theory
from orderparam.gaussian.quadrature import DEEP, Panels, standard_normal_rule
from orderparam.gaussian.tail import log_cdf
from orderparam.solve.fixed_point import fixed_point
from orderparam.systems.multi_index.experiment import (
    LEAST,
    first_pair,
    matched,
    pair_of_eigenvectors,
)
from orderparam.systems.multi_index.model import (
    HintedOverlaps,
    HintedParity,
    HintedSpectrum,
    correlation,
)

# Theory of a parity with a hint: the overlaps that message passing and eigenvectors reach.
#
# With m_k = E[sign z_k | omega_k] = erf(omega_k / sqrt(2 V_k)) a label has the probability (1 + y
# m1 m2 m3)/2. The optimal estimates determine the part omega_k ~ N(0, q_k) of z_k = omega_k +
# sqrt(V_k) t. With q_1 = Q + (1 - Q) s and q_2 = q_3 = q,
#
#     qh_k = (n/d) E (m_1 m_2 m_3)^2 (d ln m_k / d omega_k)^2 / (1 - (m_1 m_2 m_3)^2),
#
#     s = (1 - Q) qh_1 / (1 + (1 - Q) qh_1),    q = qh_2 / (1 + qh_2)
#
# (Aubin et al. 2018; Troiani et al. 2024). At q = 0 the hint is the only information about z1. A
# small q grows if n/d is above
#
#     n/d = (pi^2/4) / ((2/pi) arcsin Q)
#
# (derived for this package), because the average of E[z2 z3 | y, omega]^2 = (2/pi)^2 E[sign z1 |
# omega]^2 is (2/pi)^2 (2/pi) arcsin Q.

_HALF_LINE = Panels((1.0, 2.2, 3.8, 6.0), gradings=4, nodes=6)  # rule for each of three fields
_LEAST = 1e-12  # smallest variance of a field; below it the field counts as known
_NEVER = 1e-300  # labels of smaller probability are left out of the average
_LARGEST = 1e7  # precision up to which the nodes resolve a field's sign
_SMALL = 1e-3  # initial overlap, in units of that at which other solutions begin


def first_seen(hint: float) -> float:
    """Sample ratio n/d = (pi^2/4) / ((2/pi) arcsin Q) above which the two other directions of a
    `HintedParity` are found; infinite without a hint (Q = 0).

    This threshold follows from the second moments of the fields given the label.

    Args:
        hint: squared cosine Q of the known vector with the first direction, from 0 to 1.

    Raises:
        ValueError: for Q outside of [0, 1].

    Source: derived here, from the threshold of Troiani et al. (2024).

    >>> round(first_seen(0.5), 3)
    7.402
    """
    if not 0 <= hint <= 1:
        raise ValueError(f"hint = {hint}: must be from 0 to 1 (a squared cosine)")
    return float(_threshold(hint))


def _threshold(hint: Float[Array, ""] | float) -> Float[Array, ""]:
    return np.pi**2 / 4 / (2 / np.pi * jnp.arcsin(hint))


@theory(differentiable=False)
def state_evolution(
    system: HintedParity, *, tolerance: float = 1e-9, max_steps: int = 2000
) -> HintedOverlaps:
    r"""Overlaps with the directions of a parity with a hint that message passing reaches.

    The optimal estimates determine the part $\omega_k \sim N(0, q_k)$ of $z_k$, with $q_1 = Q + (1
    - Q) s$ and $q_2 = q_3 = q$. With $m_k = \mathrm{erf}(\omega_k / \sqrt{2 (1 - q_k)})$ a label
    has the probability $(1 + y m_1 m_2 m_3)/2$, and

    $$ \hat q_k = \alpha\, E \frac{(m_1 m_2 m_3)^2 (\partial_{\omega_k} \ln m_k)^2}
       {1 - (m_1 m_2 m_3)^2} , \qquad s = \frac{(1 - Q) \hat q_1}{1 + (1 - Q) \hat q_1} , \qquad
       q = \frac{\hat q_2}{1 + \hat q_2} $$

    with $Q$ = `hint`, $\alpha$ = `sample_ratio`, $q$ = `overlap` and $q_1$ = `hinted_overlap`. The
    iteration starts from a small $q$; below `first_seen` it ends at $q = 0$.

    Args:
        tolerance: change of ln(1 + qh / Q^2) at which the iteration ends; 1e-9 by default.
        max_steps: largest number of iterations; 2000 by default.

    Accuracy: 2e-6. The nodes do not resolve overlaps above 1 - 1e-7 (n/d > 4000), and `converged`
    is False there.

    Source: derived here, from the equations of Aubin et al. (2018) and Troiani et al. (2024).

    >>> found = state_evolution(HintedParity(6.0, 0.8))
    >>> round(float(found.overlap), 4), round(float(found.hinted_overlap), 4)
    (0.5299, 0.8324)
    """
    unknown = 1 - system.hint
    # Above the threshold the iteration leaves q = 0 and reaches solutions whose overlaps are of
    # order Q^2 or larger.
    scale = jnp.maximum(system.hint**2, _NEVER)

    def precisions(logs: Float[Array, "2"]) -> Float[Array, "2"]:
        """The precisions qh_1 and qh_2, from ln(1 + qh / scale)."""
        return jnp.minimum(scale * jnp.expm1(logs), _LARGEST)

    def overlaps(precision: Float[Array, "2"]) -> Float[Array, "2"]:
        """The overlaps s and q."""
        of_first = unknown * precision[0]
        return jnp.stack([of_first / (1 + of_first), precision[1] / (1 + precision[1])])

    def update(logs: Float[Array, "2"], system: HintedParity) -> Float[Array, "2"]:
        more, other = overlaps(precisions(logs))
        first, second = _sign(system.hint + unknown * more), _sign(other)
        both = second.left[:, None] + second.right[:, None] * second.left
        chance = 1 / jnp.maximum(
            first.left[:, None, None] + first.right[:, None, None] * both, _NEVER
        )
        of_first = jnp.einsum("i,j,k,ijk->", first.slope, second.power, second.power, chance)
        of_second = jnp.einsum("i,j,k,ijk->", first.power, second.slope, second.power, chance)
        return jnp.log1p(
            jnp.minimum(system.sample_ratio * jnp.stack([of_first, of_second]), _LARGEST) / scale
        )

    start = jnp.log1p(jnp.array([0.0, _SMALL]))
    found = fixed_point(update, start, system, tolerance=tolerance, max_steps=max_steps)
    seen = system.sample_ratio > _threshold(system.hint)
    precision = jnp.where(seen, precisions(found.value), 0.0)
    more, other = overlaps(precision)
    resolved = found.converged & jnp.all(precision < 0.99 * _LARGEST)
    return HintedOverlaps(
        overlap=other,
        hinted_overlap=system.hint + unknown * more,
        converged=~seen | resolved,
        residual=jnp.where(seen, found.residual, 0.0),
    )


class _Sign(NamedTuple):
    """A field at nodes of omega > 0.

    Fields:
        right: values of m^2.
        left: values of 1 - m^2.
        power: terms of the average of m^2.
        slope: terms of the average of (dm/domega)^2.
    """

    right: Float[Array, "node"]
    left: Float[Array, "node"]
    power: Float[Array, "node"]
    slope: Float[Array, "node"]


def _sign(overlap: Float[Array, ""]) -> _Sign:
    z, weight = (part[part.size // 2 :] for part in standard_normal_rule([0.0], _HALF_LINE))
    rest = jnp.maximum(1 - overlap, _LEAST)
    margin = jnp.sqrt(overlap / rest) * z
    miss = erfc(margin / np.sqrt(2))
    right = erf(margin / np.sqrt(2)) ** 2
    return _Sign(
        right,
        miss * (2 - miss),
        2 * weight * right,
        2 * weight * (2 / np.pi) * jnp.exp(-(margin**2)) / rest,
    )


@theory(differentiable=False)
def spectral(system: HintedParity) -> HintedSpectrum:
    r"""Overlap of leading eigenvectors with the two other directions of a parity with a hint.

    The matrices are $\sum_\mu T(y_\mu, \omega_\mu)\, x_\mu x_\mu^T$ orthogonal to the hint, with
    the best weights $T$ for $(w_2 \pm w_3)/\sqrt2$. Along these directions the fields have the
    power

    $$ 1 \pm E[z_2 z_3 | y, \omega] = 1 \pm \frac2\pi\, y\, \mathrm{erf}\Big(
       \frac{\omega}{\sqrt{2 (1 - Q)}} \Big) . $$

    Both matrices have the same law, and both have an outlier if n/d is above `first_seen`. The
    eigenvectors do not improve the estimate of the first direction.

    Accuracy: exact in the limit of large d.

    Source: Mondelli, Montanari (2018) for the overlap; the application is derived here.

    >>> round(float(spectral(HintedParity(6.0, 0.8)).overlap), 4)
    0.3283
    """
    z, share = standard_normal_rule([0.0], DEEP)
    margin = jnp.sqrt(system.hint / jnp.maximum(1 - system.hint, _LEAST)) * z
    bound = best_weight(1 + correlation(jnp.asarray(jnp.inf)))  # of margins that tend to infinity
    found = outlier(
        1 + correlation(margin), share / jnp.sum(share), system.sample_ratio, bound=bound
    )
    return HintedSpectrum(
        overlap=found.cosine**2, eigenvalue=found.eigenvalue, converged=found.converged
    )


# ------------------------------------------------------------------------------------------------
# Message passing and eigenvectors on a random parity with a hint.
#
# Both algorithms commute with rotations, so that the directions can be chosen along the axes: u
# along the first axis, w1 in the plane of the first two, w2 along the third and w3 along the
# fourth. The unknown part of w1 is orthogonal to the first axis.

# signs of the fields of a label y, times y
_STATES = np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)])


class _Drawn(NamedTuple):
    """A drawn parity with a hint.

    Fields:
        matrix: x / sqrt(d) without the direction of the hint; its columns 0, 1, 2 belong to the
            unknown part of w1, to w2 and to w3.
        hinted: the known part omega of the first field.
        labels: labels y.
    """

    matrix: Float[Array, "sample input"]
    hinted: Float[Array, "sample"]
    labels: Float[Array, "sample"]


def _draw_parity(system: HintedParity, key: PRNGKeyArray) -> _Drawn:
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(
            f"HintedParity.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at "
            f"input_dim = {d}"
        )
    x = jax.random.normal(key, (n, d))
    hinted = jnp.sqrt(system.hint) * x[:, 0]
    labels = jnp.sign((hinted + jnp.sqrt(1 - system.hint) * x[:, 1]) * x[:, 2] * x[:, 3])
    return _Drawn(x[:, 1:] / jnp.sqrt(d - 1), hinted, labels)


@experiment(needs=iteration("damping", "max_steps", "tolerance"))
def message_passing(
    system: HintedParity,
    key: PRNGKeyArray,
    *,
    damping: float = 0.2,
    max_steps: int = 500,
    tolerance: float = 1e-6,
) -> HintedOverlaps:
    r"""Overlaps that message passing reaches on one random parity with a hint.

    The unknown directions, and the part of the first that is orthogonal to the hint, start from
    small estimates along eigenvectors.

    $$ \omega = X a - v g' , \qquad g = \partial_\omega \ln P(y | \omega, v) , \qquad
       a \leftarrow \frac{A a + X^T g}{1 + A} , \qquad v = \frac{1}{1 + A} . $$

    Args:
        damping: share of the state that is kept in each step, from 0 to below 1; 0.2 by default.
        max_steps: largest number of iterations; 500 by default.
        tolerance: root mean square change at which the iteration ends; 1e-6 by default. At
            1e-4 it ends up to 0.005 too early where overlaps are near 1.

    Raises:
        ValueError: for less than one sample, and for a damping outside of [0, 1).

    Accuracy: `converged` is False if the overlap is so close to 1 that d is too small for message
    passing (see `passing.Passed`).

    Source: Aubin et al. (2018).

    >>> system = HintedParity(8.0, 0.9, input_dim=50)
    >>> run = message_passing(system, jax.random.key(0), max_steps=50)
    >>> bool(0 <= run.overlap < 1.2)
    True
    """
    drawn = _draw_parity(system, key)
    start = jnp.pad(first_pair(drawn.matrix, _correlation(system, drawn)), ((0, 0), (1, 0)))
    data = (system.hint, drawn.hinted, drawn.labels)
    numbers = (jnp.asarray(damping), jnp.asarray(tolerance))
    found = passing(
        _parity, data, drawn.matrix, Messages.first(start, len(drawn.labels)), *numbers, max_steps
    )
    overlaps = np.asarray(found.messages.estimate[:3]) / np.sqrt(drawn.matrix.shape[1])
    hinted = system.hint + (1 - system.hint) * overlaps[0, 0]
    return HintedOverlaps(
        overlap=jnp.asarray(np.mean(matched(overlaps[1:, 1:]))),
        hinted_overlap=hinted,
        converged=found.converged,
        residual=found.residual,
    )


def _parity(
    omega: Float[Array, "sample 3"], v: Float[Array, "3"], data: tuple[Array, Array, Array]
) -> tuple[Float[Array, "sample 3"], Float[Array, "sample 3"]]:
    """Function g = d ln P(y | omega, v) / d omega for labels sign(z1 z2 z3), and its derivatives.
    Here z1 = hinted + sqrt(1 - Q) (omega1 + sqrt(v1) t), and z_k = omega_k + sqrt(v_k) t for k = 2,
    3.
    """
    hint, hinted, labels = data
    scale = jnp.stack([jnp.sqrt(1 - hint), 1.0, 1.0])
    deviation = jnp.sqrt(jnp.maximum(scale**2 * v, LEAST))
    margin = (scale * omega).at[:, 0].add(hinted) / deviation
    signs = labels[:, None, None] * _STATES
    chances = log_cdf(signs * margin[:, None])
    share = jax.nn.softmax(jnp.sum(chances, axis=-1), axis=-1)[..., None]
    rates = jnp.sum(
        share * signs * jnp.exp(-(margin[:, None] ** 2) / 2 - chances), axis=1
    ) / np.sqrt(2 * np.pi)
    return scale / deviation * rates, -((scale / deviation) ** 2) * rates * (rates + margin)


@experiment
def leading_eigenvectors(system: HintedParity, key: PRNGKeyArray) -> HintedSpectrum:
    r"""Overlap of leading eigenvectors with the unknown directions of one random parity with a
    hint.

    The matrices are $\sum_\mu T(y_\mu, \omega_\mu)\, x_\mu x_\mu^T$ of `spectral`; their leading
    eigenvectors are found by Lanczos iteration.

    Raises:
        ValueError: for less than one sample.

    Source: Mondelli, Montanari (2018).

    >>> run = leading_eigenvectors(HintedParity(20.0, 0.9, input_dim=50), jax.random.key(0))
    >>> bool(run.overlap > 0.3)
    True
    """
    drawn = _draw_parity(system, key)
    values, (total, difference) = pair_of_eigenvectors(drawn.matrix, _correlation(system, drawn))
    overlap = ((total[1] + total[2]) ** 2 + (difference[1] - difference[2]) ** 2) / 4
    return HintedSpectrum(
        overlap=jnp.asarray(overlap),
        eigenvalue=jnp.asarray(np.mean(values)),
        converged=jnp.asarray(bool(np.all(np.isfinite(values)))),
    )


def _correlation(system: HintedParity, drawn: _Drawn) -> Float[Array, "sample"]:
    return correlation(drawn.labels * drawn.hinted / jnp.sqrt(jnp.maximum(1 - system.hint, LEAST)))
