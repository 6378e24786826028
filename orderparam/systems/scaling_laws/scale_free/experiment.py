"""Kernel regression on the pool itself, and on Gaussian data with the same spectrum and target."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.scaling_laws.scale_free.model import ScaleFreeData


class LearnedPool(Result):
    """Of one training set, mean squares without 1/2: over what was not learned, and over the whole
    pool.
    """

    test_error: Float[Array, ""]
    population_error: Float[Array, ""]


class LearnedClone(Result):
    """Of one training set, exact over the population, without 1/2."""

    population_error: Float[Array, ""]


@experiment
def learned_pool(system: ScaleFreeData, key: PRNGKeyArray) -> LearnedPool:
    """P examples of the pool without replacement are learned, all others are for testing."""
    return _on_pool(system.gram, system.targets, system.ridge, key, system.size("n_train"))


@experiment
def gaussian_clone(system: ScaleFreeData, key: PRNGKeyArray) -> LearnedClone:
    """The same regression with x replaced by independent normal features of the pool's eigenvalues,
    and the target by the linear one of the same power on each. What differs from `learned_pool` is
    what the spectrum does not know.

    Normal features look the same in every basis. In that of the pool the kernel of z and z' is z.K
    z'/M and the target is z.y/sqrt(M): no eigenvalue is needed.
    """
    return LearnedClone(
        _on_clone(system.gram, system.targets, system.ridge, key, system.size("n_train"))
    )


def _fit(gram: Array, labels: Array, ridge: Array) -> Array:
    return jnp.linalg.solve(gram + ridge * jnp.eye(len(gram)), labels)


@partial(jax.jit, static_argnames="n_train")
def _on_pool(
    gram: Array, targets: Array, ridge: Array, key: PRNGKeyArray, n_train: int
) -> LearnedPool:
    known = jax.random.permutation(key, len(gram))[:n_train]
    squares = (
        gram[:, known] @ _fit(gram[jnp.ix_(known, known)], targets[known], ridge) - targets
    ) ** 2
    total = jnp.sum(squares)
    return LearnedPool((total - jnp.sum(squares[known])) / (len(gram) - n_train), total / len(gram))


@partial(jax.jit, static_argnames="n_train")
def _on_clone(
    gram: Array, targets: Array, ridge: Array, key: PRNGKeyArray, n_train: int
) -> Float[Array, ""]:
    features = jax.random.normal(key, (n_train, len(gram)))
    target = targets / jnp.sqrt(len(gram))
    scaled = features @ gram / len(gram)
    learned = scaled.T @ _fit(scaled @ features.T, features @ target, ridge)
    return jnp.sum((learned - target) ** 2)
