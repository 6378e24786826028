"""Experiments on learning from models: chains of ridge regressions on drawn inputs."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.learning_from_models.model import ModelChain, PoolChain, ShiftedPool
from orderparam.systems.learning_from_models.theory import best_labels

SMALL = 1e-8  # a Cholesky factor is safe if ridge / trace of the Gram matrix is above this value


class DrawnGenerations(Result):
    """Errors of every generation of one chain.

    Fields:
        test_error: exact error of every generation against the truth without noise, under the law
            of tests.
        final_error: exact error of the last generation.
    """

    test_error: Float[Array, "generation"]
    final_error: Float[Array, ""]


class DrawnLabels(Result):
    """Errors of ridge regressions on one set of inputs and noises, with different labels.

    Fields:
        truth_error: error with the labels of the truth.
        optimal_error: error with the labels that are optimal according to the theory.
        mask_error: error with labels that contain the truth on the modes that the theory keeps.
        error_by_kept: error when labels contain the truth on the first 0, 1, ... levels only.
    """

    truth_error: Float[Array, ""]
    optimal_error: Float[Array, ""]
    mask_error: Float[Array, ""]
    error_by_kept: Float[Array, "shown"]


class DrawnShift(Result):
    """Errors of one regression under several test laws.

    Fields:
        test_error: error against the targets of the new inputs, under every law.
    """

    test_error: Float[Array, "law"]


@experiment
def drawn_generations(system: ModelChain, key: PRNGKeyArray) -> DrawnGenerations:
    r"""Errors of one chain of ridge regressions, each on new inputs.

    Inputs of a `ModelChain` are Gaussian; those of a `PoolChain` are drawn from its pool with
    replacement. A level of multiplicity m stands for m features, among which the truth points in a
    random direction.

    Returns:
        Errors that are exact averages over test inputs (over the whole pool for a `PoolChain`).

    Raises:
        ValueError: if a number of examples or a multiplicity is not a whole number.

    Cost: one n x n factorisation for each generation.

    Source: derived here; such chains are those of Dohmatob, Feng, Kempe (2024).

    >>> import jax
    >>> import numpy as np
    >>> from orderparam.kernels.spectrum import Spectrum
    >>> k = np.arange(1, 41)
    >>> chain = ModelChain(Spectrum(k**-2.0, k**-1.5), n_train=20, ridge=0.1, generations=3)
    >>> drawn_generations(chain, jax.random.key(0)).test_error.shape
    (3,)
    """
    first, later = system.counts()
    counts = _multiplicities(system)
    regular = (
        _regular(system, system.teacher[1], first),
        _regular(system, system.ridge, later),
    )
    errors = _chain(system, key, first, later, counts, regular)
    return DrawnGenerations(test_error=errors, final_error=errors[-1])


@experiment
def drawn_labels(system: ModelChain, key: PRNGKeyArray) -> DrawnLabels:
    r"""Errors of ridge regressions with true, best and masked labels on one set of Gaussian inputs.

    The weights are linear in the labels, $b = X^T (X X^T + T)^{-1} (X b_\mathrm{labels} +
    \sqrt{s}\, \xi)$; the surrogates $b_\mathrm{labels}$ are those of `best_labels`. All
    multiplicities must be 1.

    Raises:
        ValueError: if the number of examples is not a whole number, or if a multiplicity differs
        from 1.

    Source: the experiment of Ildiz et al. (2025).

    >>> import jax
    >>> import numpy as np
    >>> from orderparam.kernels.spectrum import Spectrum
    >>> k = np.arange(1, 41)
    >>> chain = ModelChain(Spectrum(k**-2.0, k**-1.5), n_train=20, ridge=0.0, noise=0.01)
    >>> drawn_labels(chain, jax.random.key(0)).error_by_kept.shape
    (41,)
    """
    if any(count != 1 for count in _multiplicities(system)):
        raise ValueError("spectrum.multiplicities: must be 1, to hide modes one by one")
    best = best_labels(system)
    rank = jnp.argsort(jnp.argsort(-system.spectrum.eigenvalues))
    kept = (rank < best.kept).astype(float)
    examples = system.counts()[1]
    regular = _regular(system, system.ridge, examples)
    return _labels(system, key, examples, best.gain, kept, regular)


@experiment
def drawn_shift(system: ShiftedPool, key: PRNGKeyArray, *, gaussian: bool = False) -> DrawnShift:
    r"""Errors of kernel regression on inputs drawn from the pool, under every test law.

    Args:
        gaussian: replace the inputs of the pool by Gaussian features of the same covariance and
            truth, as a control of the theory. Default False.

    Raises:
        ValueError: if the number of examples is not a whole number.

    Cost: one n x n factorisation.

    Source: derived here.

    >>> import jax
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((40, 5))
    >>> shifted = ShiftedPool.from_kernels(
    ...     x[:30] @ x[:30].T, x[30:] @ x[:30].T, x[:30, 0], x[30:, 0], np.full((1, 10), 0.1),
    ...     n_train=8, ridge=1.0,
    ... )
    >>> drawn_shift(shifted, jax.random.key(0)).test_error.shape
    (1,)
    """
    count = system.counts()[0]
    regular = _regular(system, system.teacher[1], count)
    return DrawnShift(test_error=_shifted(system, key, count, gaussian, regular))


def _multiplicities(system: ModelChain) -> tuple[int, ...]:
    counts = [float(count) for count in np.asarray(system.spectrum.multiplicities)]
    if any(count != round(count) for count in counts):
        raise ValueError("spectrum.multiplicities: must be whole numbers, to draw features")
    return tuple(round(count) for count in counts)


def _ridge_map(x: Float[Array, "train mode"], ridge: Any, labels: Array, regular: bool) -> Array:
    """Weights X^T (X X^T + T)^-1 y; at T = 0 the least-squares solution of smallest norm.

    regular: whether T is large enough for a Cholesky factor.
    """
    if regular:
        factor = jax.scipy.linalg.cho_factor(x @ x.T + ridge * jnp.eye(len(x)))
        return x.T @ jax.scipy.linalg.cho_solve(factor, labels)
    left, sizes, right = jnp.linalg.svd(x, full_matrices=False)
    sound = sizes > 1e-12 * sizes[0]
    inverse = jnp.where(sound, sizes / jnp.where(sound, sizes**2 + ridge, 1.0), 0.0)
    return right.T @ ((inverse * (left.T @ labels).T).T)


def _regular(system: ModelChain, ridge: Any, examples: int) -> bool:
    """True if a ridge is known to exceed a small share of the mean trace of the Gram matrix; False
    for traced values, whose numbers are unknown."""
    if isinstance(ridge, jax.core.Tracer) or isinstance(
        system.spectrum.eigenvalues, jax.core.Tracer
    ):
        return False
    trace = examples * np.sum(
        np.asarray(system.spectrum.multiplicities * system.spectrum.eigenvalues)
    )
    return bool(ridge > SMALL * trace)


@eqx.filter_jit
def _chain(
    system: ModelChain,
    key: PRNGKeyArray,
    first: int,
    later: int,
    counts: tuple[int, ...],
    regular: tuple[bool, bool],
) -> Float[Array, "generation"]:
    truth_key, key = jax.random.split(key)
    spectrum, total, each = system.spectrum, sum(counts), jnp.asarray(counts)
    sigma = jnp.repeat(spectrum.eigenvalues, each, total_repeat_length=total)
    shift = jnp.repeat(
        system.test_ratio * jnp.ones_like(spectrum.eigenvalues), each, total_repeat_length=total
    )
    level = jnp.repeat(jnp.arange(len(counts)), each, total_repeat_length=total)
    if isinstance(system, PoolChain):
        truth = system.coefficients
    else:
        direction = jax.random.normal(truth_key, (total,))
        norm = jax.ops.segment_sum(direction**2, level, len(counts))
        truth = direction * jnp.sqrt((spectrum.target_power / norm / spectrum.eigenvalues)[level])
    weights, errors = truth, []
    for generation in range(system.generations):
        draw, own, other = jax.random.split(jax.random.fold_in(key, generation), 3)
        n = later if generation else first
        if isinstance(system, PoolChain):
            x = system.features[jax.random.randint(draw, (n,), 0, len(system.features))]
        else:
            x = jnp.sqrt(sigma) * jax.random.normal(draw, (n, total))
        _, teacher_ridge, teacher_noise = system.teacher
        true = x @ truth + jnp.sqrt(teacher_noise) * jax.random.normal(own, (n,))
        made = x @ weights + jnp.sqrt(system.noise) * jax.random.normal(other, (n,))
        share = system.truth_share if generation else 1.0
        ridge = system.ridge if generation else teacher_ridge
        solvable = regular[1] if generation else regular[0]
        weights = _ridge_map(x, ridge, share * true + (1 - share) * made, solvable)
        errors.append(jnp.sum(shift * sigma * (weights - truth) ** 2))
    return jnp.stack(errors)


@eqx.filter_jit
def _shifted(
    system: ShiftedPool, key: PRNGKeyArray, n: int, gaussian: bool, regular: bool
) -> Float[Array, "law"]:
    draw, own = jax.random.split(key)
    _, ridge, noise = system.teacher
    levels = system.spectrum.eigenvalues
    if gaussian:
        x = jnp.sqrt(levels) * jax.random.normal(draw, (n, len(levels)))
    else:
        x = system.features[jax.random.randint(draw, (n,), 0, len(system.features))]
    labels = x @ system.coefficients + jnp.sqrt(noise) * jax.random.normal(own, (n,))
    weights = _ridge_map(x, ridge, labels, regular)
    return system.laws @ (system.new_targets - system.new_features @ weights) ** 2


@eqx.filter_jit
def _labels(
    system: ModelChain, key: PRNGKeyArray, n: int, gain: Array, kept: Array, regular: bool
) -> DrawnLabels:
    sigma, power = system.spectrum.eigenvalues, system.spectrum.target_power
    input_key, noise_key, sign_key = jax.random.split(key, 3)
    truth = jnp.sqrt(power / sigma) * jax.random.rademacher(sign_key, sigma.shape)
    x = jnp.sqrt(sigma) * jax.random.normal(input_key, (n, len(sigma)))
    noise = jnp.sqrt(system.noise) * jax.random.normal(noise_key, (n,))
    labels = jnp.concatenate([x * truth, noise[:, None]], axis=1)
    answers = _ridge_map(x, system.ridge, labels, regular)
    by_mode, from_noise = answers[:, :-1], answers[:, -1]

    def error(weights: Array) -> Array:
        return jnp.sum(sigma * (weights + from_noise - truth) ** 2)

    growing = jnp.concatenate([jnp.zeros((len(sigma), 1)), jnp.cumsum(by_mode, axis=1)], axis=1)
    by_kept = jnp.sum(sigma[:, None] * (growing + (from_noise - truth)[:, None]) ** 2, axis=0)
    return DrawnLabels(
        truth_error=by_kept[-1],
        optimal_error=error(by_mode @ gain),
        mask_error=error(by_mode @ kept),
        error_by_kept=by_kept,
    )
