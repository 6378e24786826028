"""Hermite powers and message passing on samples, a neuron under SGD, and a drawn parity with a
hint."""

import ast
import itertools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.channels.passing import FIRST, Messages, Passed, passing
from orderparam.core.fields import check_iteration
from orderparam.core.verb import experiment
from orderparam.gaussian.tail import log_cdf
from orderparam.sampling.recording import record
from orderparam.systems.multi_index.model import (
    ORDERS,
    STAIRS,
    Climb,
    ExitTime,
    HermitePower,
    HintedOverlaps,
    HintedParity,
    HintedSpectrum,
    LearnedTarget,
    OverlapPath,
    SphericalSGD,
    WeakLearnability,
    correlation,
)
from orderparam.systems.multi_index.passing import first_pair, matched, pair_of_eigenvectors
from orderparam.systems.multi_index.targets import hermite_values, read

# ------------------------------------------------------------------------------------------------
# Hermite powers of a target, measured on random samples, and message passing on its stairs.

_LEAST = 1e-12  # smallest variance of a field; below it the field counts as known
# variance added to that of z1: while examples may still change their preimages, and in the last run
_SOFT, _HARD = 1e-3, 1e-6
_ROUNDING = 1e-12
_SIGNS = np.array(list(itertools.product((1.0, -1.0), repeat=3)))  # signs of the three fields


@experiment
def measured_hermite_power(system: WeakLearnability, key: PRNGKeyArray) -> HermitePower:
    r"""Unbiased estimates of the Hermite powers of a target from random inputs.

    $$ \sum_{|a| = k} \overline{y\, h_a(z)}^{(1)}\; \overline{y\, h_a(z)}^{(2)} $$

    is a product of averages over the two halves of the samples; its mean is $\sum c_a^2$.

    Source: Abbe, Boix-Adsera, Misiakiewicz (2023) for the coefficients; the estimate is derived
    here.

    >>> run = measured_hermite_power(WeakLearnability("z1*z2", samples=20000), jax.random.key(0))
    >>> run.hermite_power.shape, bool(abs(run.hermite_power[1] - 1) < 0.1)
    ((4,), True)
    """
    g = read(system.target)
    z = np.asarray(jax.random.normal(key, (2, system.samples // 2, g.dimension)))
    features = np.ones((2, 1, z.shape[1]))
    degrees = np.zeros(1, int)
    for i in range(g.dimension):
        h = np.moveaxis(hermite_values(ORDERS + 1, z[..., i]), 0, 1)
        features = (features[:, :, None] * h[:, None]).reshape(2, -1, z.shape[1])
        degrees = np.add.outer(degrees, np.arange(ORDERS + 1)).ravel()
        features, degrees = features[:, degrees <= ORDERS], degrees[degrees <= ORDERS]
    means = np.mean(features * g(z)[:, None], axis=-1)
    return HermitePower(
        jnp.asarray([np.sum((means[0] * means[1])[degrees == k]) for k in range(1, ORDERS + 1)])
    )


def _two_stairs(system: LearnedTarget, **options: Any) -> None:
    check_iteration(system, **options)
    if not isinstance(system.target, str) or ast.dump(ast.parse(system.target)) != ast.dump(
        ast.parse(STAIRS)
    ):
        raise ValueError(f"LearnedTarget.target = {system.target!r}: must be {STAIRS!r} here")


@experiment(check=_two_stairs)
def climbed_staircase(
    system: LearnedTarget,
    key: PRNGKeyArray,
    *,
    damping: float = 0.3,
    max_steps: int = 600,
    tolerance: float = 1e-4,
) -> Climb:
    r"""Overlaps that message passing reaches, stair by stair, on random examples of $z_1^2 +
    \mathrm{sign}(z_1 z_2 z_3)$.

    Message passing runs first for the first direction, from a random estimate. It then runs for all
    three directions, from the estimate of the first and from small estimates of the others along
    eigenvectors,

    $$ \omega = X a - v g' , \qquad g = \partial_\omega \ln P(y | \omega, v) , \qquad
       a \leftarrow \frac{A a + X^T g}{1 + A} , \qquad v = \frac{1}{1 + A} . $$

    The algorithm commutes with rotations, so that the directions are the first three axes. Each
    label has four preimages in $z_1$. Labels without noise determine $z_1$ so well that an example
    with the wrong preimage would never leave it. Therefore the variance of $z_1$ is kept above
    1e-3, and above 1e-6 in a last run.

    Args:
        damping: fraction of the previous state that is kept in each step, from 0 to below 1; 0.3 by
            default.
        max_steps: largest number of iterations of each run; 600 by default.
        tolerance: root mean square change at which a run ends; 1e-4 by default.

    Raises:
        ValueError: for any other target, for less than one sample, and for a damping outside of [0,
        1).

    Accuracy: overlaps of single runs scatter by 0.1 at d = 500. `converged` is False if d is too
    small (see `passing.Passed`).

    Source: Aubin et al. (2018) for the equations; Troiani et al. (2024) for the target.

    >>> run = climbed_staircase(LearnedTarget(0.5, input_dim=50), jax.random.key(0), max_steps=20)
    >>> run.overlap.shape
    (3,)
    """
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(
            f"LearnedTarget.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at input_dim = {d}"
        )
    draw_key, start_key = jax.random.split(key)
    x = jax.random.normal(draw_key, (n, d))
    labels, matrix = x[:, 0] ** 2 + jnp.sign(jnp.prod(x[:, :3], axis=1)), x / jnp.sqrt(d)

    def passed(start: Messages, added: float) -> Passed:
        data = (labels, jnp.asarray(added))
        return passing(
            _square_and_sign,
            data,
            matrix,
            start,
            jnp.asarray(damping),
            jnp.asarray(tolerance),
            max_steps,
        )

    start = FIRST * jax.random.normal(start_key, (d, 3)).at[:, 1:].set(0.0)
    first = passed(Messages.first(start, n), _SOFT)
    share = _preimages(first.fields, first.messages.variance, (labels, _SOFT)).share
    others = first_pair(matrix, 2 / np.pi * share @ (_SIGNS[:, 1] * _SIGNS[:, 2]))
    start = jnp.concatenate([first.messages.estimate[:, :1], others], axis=1)
    found = passed(passed(Messages.first(start, n), _SOFT).messages, _HARD)
    overlaps = np.asarray(found.messages.estimate[:3]) / np.sqrt(d)
    # Estimates that have decayed to zero contain only rounding errors.
    overlaps = np.where(np.abs(overlaps) > _ROUNDING, overlaps, 0.0)
    return Climb(
        overlap=jnp.asarray([abs(overlaps[0, 0]), *matched(overlaps[1:, 1:])]),
        next_threshold=jnp.asarray(jnp.nan),
        converged=found.converged,
        residual=found.residual,
    )


class _Preimages(NamedTuple):
    """The eight choices of signs, each with one z1, given y = z1^2 + sign(z1 z2 z3) and omega.

    Fields:
        share: probabilities of the choices.
        pull: (z1 - omega1) / v1.
        slope: d ln P(signs of z2 and z3 | omega) / d omega.
        variance: v, including the variance that is added to v1.
    """

    share: Float[Array, "sample choice"]
    pull: Float[Array, "sample choice"]
    slope: Float[Array, "sample choice 2"]
    variance: Float[Array, "3"]


def _preimages(
    omega: Float[Array, "sample 3"], v: Float[Array, "3"], data: tuple[Array, Array | float]
) -> _Preimages:
    """The preimages of data = (labels, variance that is added to v1)."""
    labels, added = data
    square = labels[:, None] - np.prod(_SIGNS, axis=1)
    root = jnp.sqrt(jnp.where(square > 0, square, 1.0))
    v = jnp.maximum(v.at[0].add(added), _LEAST)
    pull = jnp.asarray(_SIGNS[:, 0] * root - omega[:, :1]) / v[0]
    margin = (omega / jnp.sqrt(v))[:, None, 1:]
    chances = log_cdf(_SIGNS[:, 1:] * margin)
    height = -v[0] * pull**2 / 2 - jnp.log(root) + jnp.sum(chances, axis=-1)
    share = jax.nn.softmax(jnp.where(square > 0, height, -jnp.inf), axis=-1)
    slope = jnp.exp(-(margin**2) / 2 - chances) / jnp.sqrt(2 * np.pi * v[1:])
    return _Preimages(share, pull, slope * _SIGNS[:, 1:], v)


def _square_and_sign(
    omega: Float[Array, "sample 3"], v: Float[Array, "3"], data: tuple[Array, Array]
) -> tuple[Float[Array, "sample 3"], Float[Array, "sample 3"]]:
    """The function g = d ln P(y | omega, v) / d omega and its derivatives dg_k / d omega_k."""
    share, pull, slope, variance = _preimages(omega, v, data)
    first, others = jnp.sum(share * pull, axis=1), jnp.sum(share[..., None] * slope, axis=1)
    of_first = jnp.sum(share * (pull - first[:, None]) ** 2, axis=1) - 1 / variance[0]
    of_others = -others * (others + omega[:, 1:] / variance[1:])
    return jnp.concatenate([first[:, None], others], axis=1), jnp.concatenate(
        [of_first[:, None], of_others], axis=1
    )


# ------------------------------------------------------------------------------------------------
# Runs of SGD: the overlaps as an exact Markov chain at any d, and a neuron with all its weights.
#
# For Gaussian inputs the overlaps m = W* w of a unit vector are themselves Markov. With z* the
# hidden fields, xi the field along the part of w outside the hidden subspace (s = sqrt(1 - |m|^2),
# lambda = m.z* + s xi) and chi2 the squared length of everything else, d - r - 1 normal variables,
# the mean gradient over a batch has
#
#     T = sum_i e_i (z*_i - lambda_i m) / b,    U = sum_i e_i (xi_i - lambda_i s) / b,
#     V^2 = sum_i e_i^2 chi2 / b^2,
#
# and with a = learning_rate / d the step is m <- (m + a T) / sqrt(|m + a T|^2 + (s + a U)^2 + a^2
# V^2) (derived here).

_BLOCK = 64  # number of samples whose random numbers are drawn together, but at least _STEPS steps
_STEPS = 4


def _first(system: SphericalSGD, key: Array) -> Float[Array, "index"]:
    """Overlaps of a uniformly random unit vector: r entries of a normalised Gaussian vector."""
    count = system.teacher.dimension
    normal_key, rest_key = jax.random.split(key)
    z = jax.random.normal(normal_key, (count,))
    rest = 2 * jax.random.gamma(rest_key, (system.input_dim - count) / 2)
    m = z / jnp.sqrt(jnp.sum(z**2) + rest)
    m = jnp.abs(m) if system.start == "positive" else m
    return jnp.where(system.first_overlap > 0, system.first_overlap, m)


def _draw(system: SphericalSGD, key: Array, batch: int) -> tuple[Array, Array, Array, Array]:
    """Random numbers for a block of steps: z*, xi, label noise, and the squared length of the other
    components of the input."""
    count = system.teacher.dimension
    keys, steps = jax.random.split(key, 4), _block(batch)
    return (
        jax.random.normal(keys[0], (steps, batch, count)),
        jax.random.normal(keys[1], (steps, batch)),
        jax.random.normal(keys[2], (steps, batch)),
        2 * jax.random.gamma(keys[3], (system.input_dim - count - 1) / 2, (steps,)),
    )


def _block(batch: int) -> int:
    """Number of steps of a block."""
    return max(_BLOCK // batch, _STEPS)


def _step(system: SphericalSGD, m: Float[Array, "index"], drawn: tuple) -> Float[Array, "index"]:
    stars, xi, noise, rest = drawn
    outside = jnp.sqrt(jnp.maximum(1 - jnp.sum(m**2), 0.0))
    field = stars @ m + outside * xi
    label = system.teacher(stars) + jnp.sqrt(system.noise) * noise
    # The length of the input is used only if a batch is a single sample.
    length = (jnp.sum(stars**2, axis=-1) + xi**2 + rest) / system.input_dim
    error = system.error_signal(field, label, length)
    size = system.rate / system.input_dim
    moved = m + size * error @ (stars - field[:, None] * m)
    along = outside + size * error @ (xi - field * outside)
    return moved / jnp.sqrt(jnp.sum(moved**2) + along**2 + size**2 * jnp.sum(error**2) * rest)


@experiment
def exit_chain(system: SphericalSGD, key: PRNGKeyArray) -> ExitTime:
    r"""Number of samples until |m| reaches `exit_overlap`, in one run of the exact chain of
    overlaps.

    For Gaussian inputs the overlaps are a Markov chain. With $\lambda = w \cdot x$, $\xi$ the field
    along the part of $w$ outside of the hidden subspace, $s = \sqrt{1 - |m|^2}$, $a = \gamma/d$ and
    batch means $T = \overline{e (z_* - \lambda m)}$, $U = \overline{e (\xi - \lambda s)}$, $V^2 =
    \sum e^2 \chi^2_{d-r-1} / b^2$,

    $$ m \leftarrow \frac{m + a T}{\sqrt{|m + a T|^2 + (s + a U)^2 + a^2 V^2}} . $$

    The run ends at n = `horizon` d at the latest. The function can be traced with respect to the
    key.

    Accuracy: the law is exactly that of spherical SGD.

    Cost: independent of d for each step.

    Source: derived here; the algorithm is that of Ben Arous, Gheissari, Jagannath (2021).

    >>> run = exit_chain(SphericalSGD(input_dim=64, first_overlap=0.3), jax.random.key(0))
    >>> bool(run.converged)
    True
    """
    limit = jnp.floor(system.horizon * system.input_dim / system.batch_size).astype(int)
    steps, found = _run_until(system, limit, key, system.size("batch_size"))
    return ExitTime(steps * system.batch_size, steps, found)


@eqx.filter_jit
def _run_until(system: SphericalSGD, limit: Array, key: Array, batch: int) -> tuple[Array, Array]:
    first_key, data_key = jax.random.split(key)

    def unfinished(state: tuple) -> Array:
        _, steps, found, _ = state
        return (steps < limit) & ~found

    def block(state: tuple) -> tuple:
        m, steps, found, blocks = state

        def one(carry: tuple, drawn: tuple) -> tuple:
            m, steps, found = carry
            active = ~found & (steps < limit)
            m = jnp.where(active, _step(system, m, drawn), m)
            return (m, steps + active, found | (jnp.linalg.norm(m) >= system.exit_overlap)), None

        drawn = _draw(system, jax.random.fold_in(data_key, blocks), batch)
        (m, steps, found), _ = jax.lax.scan(one, (m, steps, found), drawn)
        return m, steps, found, blocks + 1

    m = _first(system, first_key)
    state = (m, jnp.asarray(0), jnp.linalg.norm(m) >= system.exit_overlap, jnp.asarray(0))
    _, steps, found, _ = jax.lax.while_loop(unfinished, block, state)
    return steps.astype(jnp.float64), found


@experiment
def overlap_chain(system: SphericalSGD, key: PRNGKeyArray) -> OverlapPath:
    r"""Overlaps at the recorded times of one run of the exact chain of overlaps.

    $$ m \leftarrow \frac{m + a T}{\sqrt{|m + a T|^2 + (s + a U)^2 + a^2 V^2}} $$

    with the symbols of `exit_chain`. The function can be traced with respect to the key.

    Accuracy: the law is exactly that of spherical SGD.

    Cost: independent of d for each step.

    Source: derived here; the algorithm is that of Ben Arous, Gheissari, Jagannath (2021).

    >>> system = SphericalSGD(input_dim=64, horizon=2.0, records=3)
    >>> overlap_chain(system, jax.random.key(0)).overlap.shape
    (3, 1)
    """
    return _as_path(
        system, _path(system, system.steps().astype(int), key, system.size("batch_size"))
    )


@eqx.filter_jit
def _path(system: SphericalSGD, steps: Array, key: Array, batch: int) -> Array:
    first_key, data_key = jax.random.split(key)

    def advance(m: Array, key: Array, count: Array) -> Array:
        def one(m: Array, now: tuple) -> tuple:
            number, drawn = now
            return jnp.where(number < count, _step(system, m, drawn), m), None

        return jax.lax.scan(one, m, (jnp.arange(_block(batch)), _draw(system, key, batch)))[0]

    return record(advance, lambda m: m, _first(system, first_key), data_key, steps, _block(batch))


@experiment
def trained_neuron(system: SphericalSGD, key: PRNGKeyArray) -> OverlapPath:
    r"""Overlaps at the recorded times of one run of SGD for a neuron with all its `input_dim`
    weights.

    $$ w \leftarrow \frac{w + \frac\gamma d\, e\, (x - (w \cdot x) w)}{|\cdot|} $$

    on full random inputs. The hidden directions are the first coordinates; all choices are
    equivalent by rotation. The function can be traced with respect to the key.

    Cost: O(d) for each sample.

    Source: Ben Arous, Gheissari, Jagannath (2021).

    >>> system = SphericalSGD(input_dim=64, horizon=2.0, records=3)
    >>> trained_neuron(system, jax.random.key(0)).overlap.shape
    (3, 1)
    """
    steps, dim, batch = (
        system.steps().astype(int),
        system.size("input_dim"),
        system.size("batch_size"),
    )
    return _as_path(system, _train(system, steps, key, dim, batch))


@eqx.filter_jit
def _train(system: SphericalSGD, steps: Array, key: Array, dim: int, batch: int) -> Array:
    count = system.teacher.dimension
    first_key, rest_key, data_key = jax.random.split(key, 3)
    m = _first(system, first_key)
    rest = jax.random.normal(rest_key, (dim - count,))
    weights = jnp.concatenate([m, jnp.sqrt(1 - jnp.sum(m**2)) * rest / jnp.linalg.norm(rest)])

    def step(weights: Array, key: Array, _: Array) -> Array:
        input_key, noise_key = jax.random.split(key)
        # Drawing random numbers dominates the cost: inputs are drawn in single precision.
        x = jax.random.normal(input_key, (batch, dim), jnp.float32).astype(jnp.float64)
        field = x @ weights
        label = system.teacher(x[:, :count]) + jnp.sqrt(system.noise) * jax.random.normal(
            noise_key, (batch,)
        )
        error = system.error_signal(field, label, jnp.sum(x**2, axis=-1) / dim)
        moved = weights + system.rate / dim * error @ (x - field[:, None] * weights)
        return moved / jnp.linalg.norm(moved)

    return record(step, lambda weights: weights[:count], weights, data_key, steps, 1)


def _as_path(system: SphericalSGD, overlap: Float[Array, "record index"]) -> OverlapPath:
    times = system.steps() * system.batch_size / system.input_dim
    return OverlapPath(
        times, overlap, jnp.linalg.norm(overlap, axis=-1), jnp.all(jnp.isfinite(overlap))
    )


# ------------------------------------------------------------------------------------------------
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
        known: the known part omega of the first field.
        labels: labels y.
    """

    matrix: Float[Array, "sample input"]
    known: Float[Array, "sample"]
    labels: Float[Array, "sample"]


def _draw_parity(system: HintedParity, key: PRNGKeyArray) -> _Drawn:
    d, n = system.size("input_dim"), round(float(system.sample_ratio * system.input_dim))
    if n < 1:
        raise ValueError(
            f"HintedParity.sample_ratio = {float(system.sample_ratio):g}: leaves no sample at input_dim = {d}"
        )
    x = jax.random.normal(key, (n, d))
    known = jnp.sqrt(system.hint) * x[:, 0]
    labels = jnp.sign((known + jnp.sqrt(1 - system.hint) * x[:, 1]) * x[:, 2] * x[:, 3])
    return _Drawn(x[:, 1:] / jnp.sqrt(d - 1), known, labels)


@experiment(check=check_iteration)
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
    data = (system.hint, drawn.known, drawn.labels)
    numbers = (jnp.asarray(damping), jnp.asarray(tolerance))
    found = passing(
        _parity, data, drawn.matrix, Messages.first(start, len(drawn.labels)), *numbers, max_steps
    )
    overlaps = np.asarray(found.messages.estimate[:3]) / np.sqrt(drawn.matrix.shape[1])
    hinted = system.hint + (1 - system.hint) * overlaps[0, 0]
    return HintedOverlaps(
        jnp.asarray(np.mean(matched(overlaps[1:, 1:]))), hinted, found.converged, found.residual
    )


def _parity(
    omega: Float[Array, "sample 3"], v: Float[Array, "3"], data: tuple[Array, Array, Array]
) -> tuple[Float[Array, "sample 3"], Float[Array, "sample 3"]]:
    """The function g = d ln P(y | omega, v) / d omega and its derivatives, for z1 = known + sqrt(1
    - Q) (omega1 + sqrt(v1) t) and z_k = omega_k + sqrt(v_k) t.
    """
    hint, known, labels = data
    scale = jnp.stack([jnp.sqrt(1 - hint), 1.0, 1.0])
    deviation = jnp.sqrt(jnp.maximum(scale**2 * v, _LEAST))
    margin = (scale * omega).at[:, 0].add(known) / deviation
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
        jnp.asarray(overlap),
        jnp.asarray(np.mean(values)),
        jnp.asarray(bool(np.all(np.isfinite(values)))),
    )


def _correlation(system: HintedParity, drawn: _Drawn) -> Float[Array, "sample"]:
    return correlation(drawn.labels * drawn.known / jnp.sqrt(jnp.maximum(1 - system.hint, _LEAST)))
