"""Experiments on diffusion models: noisy examples, and backward trajectories that start at them."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.diffusion.model import StoredData, StoredGaussians, TwoClasses, decay


class ClonedClasses(Result):
    """Classes of cloned trajectories.

    Fields:
        same_class: share of pairs of backward trajectories that end in the same class.
        speciation_time: speciation time of the system, for comparison with its time.
    """

    same_class: Float[Array, ""]
    speciation_time: Float[Array, ""]


class ReturnedWeights(Result):
    """Weights of the stored examples at noisy examples, or the end points of trajectories from
    there.

    Fields:
        own_weight: weight of the original example; for trajectories, the share that ends at it.
        same_class: probability that two examples drawn with these weights are of the same class;
            for trajectories, the share of pairs that end in the same class.
    """

    own_weight: Float[Array, ""]
    same_class: Float[Array, ""]


class HalfTime(Result):
    """Time of the collapse.

    Fields:
        collapse_time: time at which the weight of the original example, averaged over noisy
            examples, is 1/2.
    """

    collapse_time: Float[Array, ""]


Denoiser = Callable[[Array, Any], Array]
_LOWEST, _HIGHEST = 1e-4, 10.0  # times between which the collapse is sought


@experiment
def cloned_classes(system: TwoClasses, key: PRNGKeyArray, *, pairs: int = 1000) -> ClonedClasses:
    r"""Share of pairs of backward trajectories from one noisy example that end in the same class.

    A noisy example is drawn at the time t. Two trajectories with the exact score and independent
    noises start from it and reach time 0 in K = `steps` steps, at the times $t (1 - k/K)^2$. The
    class of an end point is drawn from its posterior.

    Args:
        pairs: number of pairs of trajectories.

    Source: the cloning experiment of Biroli, Bonnaire, de Bortoli, Mezard (2024).

    >>> import jax
    >>> system = TwoClasses.isotropic(16, 1.0, steps=20)
    >>> cloned_classes(system, jax.random.key(0), pairs=10).same_class.shape
    ()
    """
    return ClonedClasses(
        same_class=_clone(system, key, pairs), speciation_time=system.speciation_time
    )


@experiment
def drawn_weights(system: StoredGaussians | StoredData, key: PRNGKeyArray) -> ReturnedWeights:
    r"""Weights of the empirical score at noisy examples of one set of stored examples.

    For a `StoredData` the n examples are drawn from its pool without replacement. `starts` examples
    are drawn from these with replacement, and the noise of the time t is added.

    Returns:
        Means over the noisy examples. Stored Gaussians are all of one class.

    Raises:
        ValueError: for numbers of examples or dimensions that are no whole numbers.

    Source: the empirical score of Biroli, Bonnaire, de Bortoli, Mezard (2024).

    >>> import jax
    >>> drawn_weights(StoredGaussians(20, 50, 0.3), jax.random.key(0)).own_weight.shape
    ()
    """
    examples, labels, noise_key = _stored(system, key)
    return _weights(system, examples, labels, noise_key)


@experiment
def returned_trajectories(
    system: StoredGaussians | StoredData, key: PRNGKeyArray
) -> ReturnedWeights:
    r"""Share of backward trajectories under the empirical score that end at the original example,
    and share of pairs of trajectories that end in the same class.

    Examples are drawn as in `drawn_weights`. From every noisy example two trajectories with the
    score of the n stored examples go back to the time 0 in `steps` steps; each ends at one of the
    stored examples.

    Raises:
        ValueError: for numbers of examples or dimensions that are no whole numbers.

    Source: the experiment of Biroli, Bonnaire, de Bortoli, Mezard (2024).

    >>> import jax
    >>> system = StoredGaussians(20, 50, 0.3, steps=20, starts=8)
    >>> returned_trajectories(system, jax.random.key(0)).own_weight.shape
    ()
    """
    examples, labels, noise_key = _stored(system, key)
    return _return(system, examples, labels, noise_key)


@experiment
def half_weight_time(system: StoredGaussians | StoredData, key: PRNGKeyArray) -> HalfTime:
    r"""Time at which the mean weight of the original example is 1/2, for one set of stored
    examples.

    The time is found by bisection with the same `starts` noises at all times; the `time` of the
    system is not used. A result of 1e-4 or 10 means that there is no such time between these two
    values.

    Raises:
        ValueError: for numbers of examples or dimensions that are no whole numbers.

    Source: the empirical score of Biroli, Bonnaire, de Bortoli, Mezard (2024).

    >>> import jax
    >>> found = half_weight_time(StoredGaussians(20, 50, 0.3), jax.random.key(0))
    >>> bool(0.2 < found.collapse_time < 1.2)
    True
    """
    examples, labels, noise_key = _stored(system, key)
    return HalfTime(collapse_time=_half_time(system, examples, labels, noise_key))


def _stored(
    system: StoredGaussians | StoredData, key: PRNGKeyArray
) -> tuple[Array, Array, PRNGKeyArray]:
    """The stored examples, their labels, and a key for the noise."""
    data_key, noise_key = jax.random.split(key)
    stored = system.size("n_train")
    if isinstance(system, StoredGaussians):
        shape = (stored, system.size("input_dim"))
        examples = jnp.sqrt(system.variance) * jax.random.normal(data_key, shape)
        return examples, jnp.zeros(stored), noise_key
    pool = system.examples.shape[0]
    if stored > pool:
        raise ValueError(f"n_train = {stored}: the pool has {pool} examples")
    chosen = jax.random.choice(data_key, pool, (stored,), replace=False)
    return system.examples[chosen], system.labels[chosen], noise_key


def _noises(system: Any, examples: Array, key: PRNGKeyArray) -> tuple[Array, Array, PRNGKeyArray]:
    """Original examples, noises, and an unused key."""
    own_key, noise_key, left = jax.random.split(key, 3)
    own = jax.random.randint(own_key, (system.starts,), 0, len(examples))
    return own, jax.random.normal(noise_key, (system.starts, examples.shape[1])), left


def _posterior(x: Array, examples: Array, time: Any) -> Array:
    """Weights of the stored examples at the rows of x."""
    a, noise = decay(time)
    half_norms = a**2 * jnp.sum(examples**2, axis=1) / 2
    return jax.nn.softmax((a * x @ examples.T - half_norms) / noise, axis=1)


def _own(weights: Array, own: Array) -> Array:
    return jnp.mean(jnp.take_along_axis(weights, own[:, None], axis=1))


@eqx.filter_jit
def _weights(system: Any, examples: Array, labels: Array, key: PRNGKeyArray) -> ReturnedWeights:
    own, z, _ = _noises(system, examples, key)
    a, noise = decay(system.time)
    weights = _posterior(a * examples[own] + jnp.sqrt(noise) * z, examples, system.time)
    alike = labels[:, None] == labels
    return ReturnedWeights(
        own_weight=_own(weights, own),
        same_class=jnp.mean(jnp.sum(weights @ alike * weights, axis=1)),
    )


@eqx.filter_jit
def _half_time(system: Any, examples: Array, labels: Array, key: PRNGKeyArray) -> Array:
    own, z, _ = _noises(system, examples, key)

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = jnp.sqrt(low * high)
        a, noise = decay(middle)
        weights = _posterior(a * examples[own] + jnp.sqrt(noise) * z, examples, middle)
        later = _own(weights, own) > 0.5
        return jnp.where(later, middle, low), jnp.where(later, high, middle)

    ends = jax.lax.fori_loop(0, 24, halve, (jnp.asarray(_LOWEST), jnp.asarray(_HIGHEST)))
    return jnp.sqrt(ends[0] * ends[1])


@eqx.filter_jit
def _return(system: Any, examples: Array, labels: Array, key: PRNGKeyArray) -> ReturnedWeights:
    own, z, path_key = _noises(system, examples, key)
    a, noise = decay(system.time)
    start = a * examples[own] + jnp.sqrt(noise) * z

    def denoise(x: Array, time: Any) -> Array:
        return _posterior(x, examples, time) @ examples

    def end(key: PRNGKeyArray) -> Array:
        x = _go_back(denoise, start, system.time, system.steps, key)
        return jnp.argmax(x @ examples.T - jnp.sum(examples**2, axis=1) / 2, axis=1)

    one, two = (end(key) for key in jax.random.split(path_key))
    returned = (jnp.mean(one == own) + jnp.mean(two == own)) / 2
    return ReturnedWeights(own_weight=returned, same_class=jnp.mean(labels[one] == labels[two]))


@eqx.filter_jit
def _clone(system: TwoClasses, key: PRNGKeyArray, pairs: int) -> Array:
    class_key, data_key, noise_key, first, second = jax.random.split(key, 5)
    mean, variances = system.mean, system.variances
    prior = jnp.log(system.class_share) - jnp.log1p(-system.class_share)
    a, noise = decay(system.time)
    shape = (pairs, len(mean))
    sign = jnp.where(jax.random.uniform(class_key, (pairs, 1)) < system.class_share, 1.0, -1.0)
    data = sign * mean + jnp.sqrt(variances) * jax.random.normal(data_key, shape)
    start = a * data + jnp.sqrt(noise) * jax.random.normal(noise_key, shape)

    def denoise(x: Array, time: Any) -> Array:
        a, noise = decay(time)
        total = a**2 * variances + noise
        odds = 2 * a * x @ (mean / total) + prior
        centre = jnp.tanh(odds / 2)[:, None] * mean
        return centre + a * variances / total * (x - a * centre)

    def end(key: PRNGKeyArray) -> Array:
        path_key, class_key = jax.random.split(key)
        x = _go_back(denoise, start, system.time, system.steps, path_key)
        odds = 2 * x @ (mean / variances) + prior
        return jax.random.uniform(class_key, (pairs,)) < jax.nn.sigmoid(odds)

    return jnp.mean(end(first) == end(second))


def _go_back(denoise: Denoiser, x: Array, time: Any, steps: int, key: PRNGKeyArray) -> Array:
    """Ends of backward trajectories from x.

    A step from t to s draws x_s given x_t and x_0. As in Heun's method, x_0 is replaced by the
    average of its estimates at x_t and at a first x_s with the same noise, so that the error of the
    law is of second order in the step. The last step goes to the mean of x_0 itself.
    """
    times = time * (1 - jnp.arange(steps) / steps) ** 2

    def step(x: Array, at: tuple[Any, Any, PRNGKeyArray]) -> tuple[Array, None]:
        t, s, key = at
        between, lost = decay(t - s)
        a, noise_s = decay(s)
        noise_t = decay(t)[1]
        spread = jnp.sqrt(noise_s * lost / noise_t) * jax.random.normal(key, x.shape)
        base = between * noise_s / noise_t * x + spread
        pull = a * lost / noise_t
        now = denoise(x, t)
        then = denoise(base + pull * now, s)
        return base + pull * (now + then) / 2, None

    path = (times[:-1], times[1:], jax.random.split(key, steps - 1))
    return denoise(jax.lax.scan(step, x, path)[0], times[-1])
