"""Runs of SGD on targets of a few hidden directions."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.sampling.recording import record
from orderparam.systems.multi_index.model import (
    ExitTime,
    OverlapPath,
    SphericalSGD,
)

# Runs of SGD: the overlaps as an exact Markov chain at any d, and a neuron with all its weights.
#
# For Gaussian inputs the overlaps m = W* w of a unit vector w are a Markov chain. With z* the
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
    return ExitTime(exit_samples=steps * system.batch_size, exit_steps=steps, converged=found)


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
        sample_ratio=times,
        overlap=overlap,
        norm=jnp.linalg.norm(overlap, axis=-1),
        converged=jnp.all(jnp.isfinite(overlap)),
    )
