"""Experiments on learned scores: drawn features and data, with gradient flow solved exactly or with
training step by step."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.gaussian.draws import normal, unit
from orderparam.gaussian.rules import hermite_rule
from orderparam.systems.diffusion.score_model import FeatureScore
from orderparam.systems.diffusion.score_spectrum import ScoreSpectrum, points

# orders of Hermite polynomials between different features; higher ones are below d^{-5/2}
_ORDERS = 5


class DrawnLosses(Result):
    """Losses of one score on drawn features.

    Fields:
        train_loss: loss at noisy training examples, averaged over the noise, without the ridge.
        test_loss: loss at noisy new examples, averaged over them and the noise.
    """

    train_loss: Float[Array, ""]
    test_loss: Float[Array, ""]


class DrawnTimes(Result):
    """The two times of the training of one score on drawn features.

    Fields:
        best_time: training time of the smallest test loss.
        memorisation_time: training time at which the gap between the losses is half of that at the
            end.
        waiting: memorisation_time / best_time.
        best_loss: test loss at the best time.
        end_loss: test loss at the end.
        end_train_loss: training loss at the end.
    """

    best_time: Float[Array, ""]
    memorisation_time: Float[Array, ""]
    waiting: Float[Array, ""]
    best_loss: Float[Array, ""]
    end_loss: Float[Array, ""]
    end_train_loss: Float[Array, ""]


@experiment
def drawn_score(system: FeatureScore, key: PRNGKeyArray) -> DrawnLosses:
    r"""Losses of a score on drawn features and data, whose gradient flow is solved exactly.

    The features' second moments are averaged over the noise exactly, by Hermite expansions in $W_i
    \cdot W_j$ up to the fourth order between different features; real features are not replaced by
    Gaussian ones. The second moments for new examples are functions of $W_i \cdot W_j$ in closed
    form.

    Raises:
        ValueError: for an activation that is not smooth.

    Cost: one eigendecomposition of a p x p matrix.

    Source: the model of Bonnaire, Urfin, Biroli, Mezard (2025).

    >>> import jax
    >>> system = FeatureScore(2.0, 3.0, 0.1, training_time=3.0, input_dim=10)
    >>> drawn_score(system, jax.random.key(0)).test_loss.shape
    ()
    """
    modes = _modes(system, _smooth(system), key)
    return _losses_at(modes, system.ridge, system.training_time)


@experiment
def drawn_score_times(system: FeatureScore, key: PRNGKeyArray) -> DrawnTimes:
    r"""Training times at which a score on drawn features and data generalises and memorises.

    The losses are those of `drawn_score`. The best time is the minimum of a parabola through the
    lowest of 200 points in $\ln \tau$ and its neighbours; the time of half the gap is interpolated
    between points.

    Raises:
        ValueError: for an activation that is not smooth.

    Source: the experiment of Bonnaire, Urfin, Biroli, Mezard (2025).

    >>> import jax
    >>> found = drawn_score_times(FeatureScore(2.0, 3.0, 0.1, input_dim=10), jax.random.key(0))
    >>> bool(found.memorisation_time > found.best_time)
    True
    """
    return _times(_modes(system, _smooth(system), key), system.ridge)


@experiment
def drawn_score_spectrum(system: FeatureScore, key: PRNGKeyArray) -> ScoreSpectrum:
    r"""Eigenvalues of the second moments of drawn features, averaged over the noise.

    The edges are the smallest and largest of the min(p, n + d) largest eigenvalues, and the gap is
    the largest ratio of neighbouring ones among these. The density is smoothed as in the theory.

    Raises:
        ValueError: for an activation that is not smooth.

    Source: the experiment of Bonnaire, Urfin, Biroli, Mezard (2025).

    >>> import jax
    >>> found = drawn_score_spectrum(FeatureScore(2.0, 3.0, 0.1, input_dim=10), jax.random.key(0))
    >>> bool(found.smallest < found.largest)
    True
    """
    levels = _modes(system, _smooth(system), key).levels
    dimension, examples, features = system.sizes
    frozen = max(0, features - examples - dimension)
    moving = levels[frozen:]
    widest = jnp.argmax(moving[1:] / moving[:-1])
    x = points(system.powers)
    turned = x * jnp.exp(1j * system.smoothing)
    weights = jnp.imag(turned[:, None] / (levels - turned[:, None]))
    return ScoreSpectrum(
        smallest=moving[0],
        gap_start=moving[widest],
        gap_end=moving[widest + 1],
        largest=levels[-1],
        frozen_share=jnp.asarray(frozen / features),
        eigenvalue=x,
        density=jnp.mean(weights, axis=1) / (jnp.pi - system.smoothing),
        converged=jnp.asarray(True),
    )


@experiment
def trained_score(
    system: FeatureScore, key: PRNGKeyArray, *, learning_rate: float = 0.02, noises: int = 2
) -> DrawnLosses:
    r"""Losses of a score on drawn features that is trained step by step with freshly drawn noise.

    Every step uses all examples, each with `noises` new noises, and advances the training time by
    $\eta$ = `learning_rate`: $A \leftarrow A - \eta \frac{d}{2D} \nabla L$, where L is the loss of
    these noisy examples. The losses of the final A are averaged over the noise as in `drawn_score`.

    Args:
        learning_rate: length eta of a step; stable below 2 over the largest eigenvalue.
        noises: number of noises for every example in a step.

    Raises:
        ValueError: for an infinite training time, and for an activation that is not smooth.

    Source: the experiment of Bonnaire, Urfin, Biroli, Mezard (2025).

    >>> import jax
    >>> system = FeatureScore(2.0, 3.0, 0.1, training_time=1.0, input_dim=10)
    >>> trained_score(system, jax.random.key(0)).test_loss.shape
    ()
    """
    time = float(system.training_time)
    if not np.isfinite(time):
        raise ValueError("FeatureScore.training_time = inf: steps take a finite time")
    sizes = _smooth(system)
    steps = max(1, round(time / learning_rate))
    return _train(system, sizes, key, learning_rate, noises, steps)


class _Moments(NamedTuple):
    """Second moments of features and their correlations with the noise, for training examples (old)
    and new examples."""

    weights: Array  # (feature, direction), rows of length one
    examples: Array  # (example, direction)
    old: Array  # (feature, feature)
    old_noise: Array  # (feature, direction)
    new: Array
    new_noise: Array


class _Modes(NamedTuple):
    """Quantities in the eigenbasis of the second moments of the training examples."""

    levels: Float[Array, "feature"]
    crossed: Float[Array, "feature"]  # (1/d) sum over directions of B^2 along each mode
    mixed: Float[Array, "feature"]  # (1/d) sum over directions of B B' along each mode
    coupling: Float[Array, "feature feature"]  # (1/d) (B B^T) * U' between modes
    noise: Float[Array, ""]


def _smooth(system: FeatureScore) -> tuple[int, int, int]:
    if system.activation.kinks:
        raise ValueError(
            f"FeatureScore.activation = {system.activation.name!r}: an experiment takes a smooth "
            "one"
        )
    return system.sizes


def _draw(system: FeatureScore, sizes: tuple[int, int, int], key: PRNGKeyArray) -> _Moments:
    dimension, examples, features = sizes
    weight_key, data_key = jax.random.split(key)
    weights = unit(normal(weight_key, features, dimension))
    x = normal(data_key, examples, dimension)
    powers, phi = system.powers, system.activation
    a, spread = jnp.sqrt(powers.kept), jnp.sqrt(powers.noise)
    nodes, masses = hermite_rule(48)
    basis = np.polynomial.hermite_e.hermevander(nodes, _ORDERS - 1).T
    basis /= np.sqrt(np.cumprod(np.maximum(np.arange(_ORDERS), 1.0)))[:, None]

    def add(sums: tuple[Array, Array], at: tuple[Array, Array, Array]) -> tuple[Any, None]:
        node, mass, polynomials = at
        values = phi(a * (x @ weights.T) + spread * node)
        coefficients = sums[0] + mass * polynomials[:, None, None] * values
        return (coefficients, sums[1] + mass * jnp.mean(values**2, axis=0)), None

    zero = jnp.zeros((_ORDERS, examples, features)), jnp.zeros(features)
    each = jnp.asarray(nodes), jnp.asarray(masses), jnp.asarray(basis.T)
    (coefficients, squares), _ = jax.lax.scan(add, zero, each)
    overlap = weights @ weights.T
    old = sum(overlap**k * (c.T @ c) / examples for k, c in enumerate(coefficients))
    old = old.at[jnp.diag_indices(features)].set(squares)
    old_noise = jnp.mean(coefficients[1], axis=0)[:, None] * weights
    new = phi.two_point(1.0, jnp.clip(overlap, -1.0, 1.0), 1.0)
    new_noise = jnp.sqrt(powers.noise * powers.linear) * weights
    return _Moments(weights, x, old, old_noise, new, new_noise)


@eqx.filter_jit
def _modes(system: FeatureScore, sizes: tuple[int, int, int], key: PRNGKeyArray) -> _Modes:
    moments = _draw(system, sizes, key)
    levels, basis = jnp.linalg.eigh(moments.old)
    old, new = basis.T @ moments.old_noise, basis.T @ moments.new_noise
    coupling = (old @ old.T) * (basis.T @ moments.new @ basis)
    dimension = sizes[0]
    crossed, mixed = jnp.sum(old**2, 1) / dimension, jnp.sum(old * new, 1) / dimension
    return _Modes(levels, crossed, mixed, coupling / dimension, system.powers.noise)


@jax.jit
def _losses_at(modes: _Modes, ridge: Any, training_time: Any) -> DrawnLosses:
    """Training and test loss with A^T = -f(U) B/sqrt(D)."""
    rate = modes.levels + ridge
    f = -jnp.expm1(-rate * training_time) / rate
    train = 1 - 2 * f @ modes.crossed + f**2 @ (modes.levels * modes.crossed)
    return DrawnLosses(
        train_loss=train, test_loss=1 - 2 * f @ modes.mixed + f @ (modes.coupling @ f)
    )


@jax.jit
def _times(modes: _Modes, ridge: Any) -> DrawnTimes:
    rate = modes.levels + ridge
    grid = jnp.linspace(jnp.log(1e-3 / rate[-1]), jnp.log(1e2 / rate[0]), 200)
    along = jax.lax.map(lambda u: _losses_at(modes, ridge, jnp.exp(u)), grid)
    end, test = _losses_at(modes, ridge, jnp.inf), along.test_loss
    low = jnp.clip(jnp.argmin(test), 1, len(grid) - 2)
    before, here, after = test[low - 1], test[low], test[low + 1]
    bend = before - 2 * here + after
    shift = (before - after) / (2 * bend)
    best = grid[low] + shift * (grid[1] - grid[0])
    gap = (test - along.train_loss) / (end.test_loss - end.train_loss)
    late = jnp.argmax(gap > 0.5)
    between = (0.5 - gap[late - 1]) / (gap[late] - gap[late - 1])
    half = grid[late - 1] + between * (grid[1] - grid[0])
    least = here - bend * shift**2 / 2
    return DrawnTimes(
        best_time=jnp.exp(best),
        memorisation_time=jnp.exp(half),
        waiting=jnp.exp(half - best),
        best_loss=least,
        end_loss=end.test_loss,
        end_train_loss=end.train_loss,
    )


@eqx.filter_jit
def _train(
    system: FeatureScore,
    sizes: tuple[int, int, int],
    key: PRNGKeyArray,
    learning_rate: Any,
    noises: int,
    steps: int,
) -> DrawnLosses:
    draw_key, step_key = jax.random.split(key)
    moments = _draw(system, sizes, draw_key)
    powers, phi = system.powers, system.activation
    spread = jnp.sqrt(powers.noise)
    clean = jnp.sqrt(powers.kept) * jnp.tile(moments.examples, (noises, 1))
    length = system.training_time / steps

    def step(read: Array, key: PRNGKeyArray) -> tuple[Array, None]:
        z = jax.random.normal(key, clean.shape)
        features = phi((clean + spread * z) @ moments.weights.T)
        missing = features @ read + z / spread
        slope = features.T @ missing / len(clean) + system.ridge * read
        return read - length * slope, None

    start = jnp.zeros_like(moments.weights)
    read, _ = jax.lax.scan(step, start, jax.random.split(step_key, steps))

    def loss(second: Array, noise: Array) -> Array:
        own = powers.noise * jnp.sum((second @ read) * read)
        return 1 + (own + 2 * spread * jnp.sum(read * noise)) / sizes[0]

    return DrawnLosses(
        train_loss=loss(moments.old, moments.old_noise),
        test_loss=loss(moments.new, moments.new_noise),
    )
