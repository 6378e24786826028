"""Message passing and eigenvectors on a drawn parity with a hint.

Both commute with rotations, so that the directions may be axes: u the first, w1 in the plane of the first two, w2 the third and
w3 the fourth. What is unknown lies off the first axis.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.fields import check_iteration
from orderparam.core.verb import experiment
from orderparam.gaussian.tail import log_cdf
from orderparam.systems.multi_index.hint.model import HintedOverlaps, HintedParity, HintedSpectrum, correlation
from orderparam.systems.multi_index.passing import Messages, first_pair, matched, pair_of_eigenvectors, passing

_LEAST = 1e-12  # variance of a field that is known
_STATES = np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)])  # signs of the fields of a label y, times y


class _Drawn(NamedTuple):
    """matrix: x / sqrt(d) off the hint; its columns 0, 1, 2 are the unknown part of w1, w2 and w3. known: omega."""

    matrix: Float[Array, "sample input"]
    known: Float[Array, "sample"]
    labels: Float[Array, "sample"]


def _draw(system: HintedParity, key: PRNGKeyArray) -> _Drawn:
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(f"HintedParity.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at input_dim = {d}")
    x = jax.random.normal(key, (n, d))
    known = jnp.sqrt(system.hint) * x[:, 0]
    labels = jnp.sign((known + jnp.sqrt(1 - system.hint) * x[:, 1]) * x[:, 2] * x[:, 3])
    return _Drawn(x[:, 1:] / jnp.sqrt(d - 1), known, labels)


@experiment(check=check_iteration)
def message_passing(
    system: HintedParity, key: PRNGKeyArray, *, damping: float = 0.2, max_steps: int = 500, tolerance: float = 1e-4
) -> HintedOverlaps:
    """Of the two unknown directions and of what the hint leaves of the first, from small estimates along the eigenvectors.

    `converged`, residual: see `passing.Passed`. It is False where the overlap is so near to 1 that d is too small for message
    passing. Raises `ValueError` where no sample is left, and for damping outside of [0, 1).
    """
    drawn = _draw(system, key)
    start = jnp.pad(first_pair(drawn.matrix, _correlation(system, drawn)), ((0, 0), (1, 0)))
    data = (system.hint, drawn.known, drawn.labels)
    numbers = (jnp.asarray(damping), jnp.asarray(tolerance))
    found = passing(_parity, data, drawn.matrix, Messages.first(start, len(drawn.labels)), *numbers, max_steps)
    overlaps = np.asarray(found.messages.estimate[:3]) / np.sqrt(drawn.matrix.shape[1])
    hinted = system.hint + (1 - system.hint) * overlaps[0, 0]
    return HintedOverlaps(jnp.asarray(np.mean(matched(overlaps[1:, 1:]))), hinted, found.converged, found.residual)


def _parity(
    omega: Float[Array, "sample 3"], v: Float[Array, "3"], data: tuple[Array, Array, Array]
) -> tuple[Float[Array, "sample 3"], Float[Array, "sample 3"]]:
    """g = d ln P(y | omega, v) / d omega and its slopes, of z1 = known + sqrt(1 - Q) (omega1 + sqrt(v1) t) and
    z_k = omega_k + sqrt(v_k) t."""
    hint, known, labels = data
    scale = jnp.stack([jnp.sqrt(1 - hint), 1.0, 1.0])
    deviation = jnp.sqrt(jnp.maximum(scale**2 * v, _LEAST))
    margin = (scale * omega).at[:, 0].add(known) / deviation
    signs = labels[:, None, None] * _STATES
    chances = log_cdf(signs * margin[:, None])
    share = jax.nn.softmax(jnp.sum(chances, axis=-1), axis=-1)[..., None]
    rates = jnp.sum(share * signs * jnp.exp(-(margin[:, None] ** 2) / 2 - chances), axis=1) / np.sqrt(2 * np.pi)
    return scale / deviation * rates, -((scale / deviation) ** 2) * rates * (rates + margin)


@experiment
def leading_eigenvectors(system: HintedParity, key: PRNGKeyArray) -> HintedSpectrum:
    """By Lanczos iteration. Raises `ValueError` where no sample is left."""
    drawn = _draw(system, key)
    values, (total, difference) = pair_of_eigenvectors(drawn.matrix, _correlation(system, drawn))
    overlap = ((total[1] + total[2]) ** 2 + (difference[1] - difference[2]) ** 2) / 4
    return HintedSpectrum(jnp.asarray(overlap), jnp.asarray(np.mean(values)), jnp.asarray(bool(np.all(np.isfinite(values)))))


def _correlation(system: HintedParity, drawn: _Drawn) -> Float[Array, "sample"]:
    return correlation(drawn.labels * drawn.known / jnp.sqrt(jnp.maximum(1 - system.hint, _LEAST)))
