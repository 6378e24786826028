"""Message passing and eigenvectors on a random parity with a hint."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.channels.passing import Messages, passing
from orderparam.core.needs import iteration
from orderparam.core.verb import experiment
from orderparam.gaussian.tail import log_cdf
from orderparam.systems.multi_index.experiment import LEAST
from orderparam.systems.multi_index.model import (
    HintedOverlaps,
    HintedParity,
    HintedSpectrum,
    correlation,
)
from orderparam.systems.multi_index.passing import first_pair, matched, pair_of_eigenvectors

# Message passing and eigenvectors on a random parity with a hint.
#
# Both algorithms commute with rotations, so that the directions may be axes: u the first, w1 in the
# plane of the first two, w2 the third and w3 the fourth. The unknown part is orthogonal to the
# first axis.

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
    tolerance: float = 1e-4,
) -> HintedOverlaps:
    r"""Overlaps that message passing reaches on one random parity with a hint.

    The unknown directions, and the part of the first that is orthogonal to the hint, start from
    small estimates along eigenvectors.

    $$ \omega = X a - v g' , \qquad g = \partial_\omega \ln P(y | \omega, v) , \qquad
       a \leftarrow \frac{A a + X^T g}{1 + A} , \qquad v = \frac{1}{1 + A} . $$

    Args:
        damping: share of the state that is kept in each step, from 0 to below 1; 0.2 by default.
        max_steps: largest number of iterations; 500 by default.
        tolerance: root mean square change at which the iteration ends; 1e-4 by default.

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
    """The function g = d ln P(y | omega, v) / d omega and its derivatives, for z1 = hinted + sqrt(1
    - Q) (omega1 + sqrt(v1) t) and z_k = omega_k + sqrt(v_k) t.
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
