"""Kernel regression on training sets from the pool itself, and on Gaussian data with the spectrum
and target of the pool."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.systems.scaling_laws.scale_free.model import ScaleFreeData


class LearnedPool(Result):
    """Errors of one training set drawn from the pool (mean squares, no factor 1/2).

    Fields:
        test_error: error over the examples outside of the training set.
        population_error: error over the whole pool.
    """

    test_error: Float[Array, ""]
    population_error: Float[Array, ""]


class LearnedClone(Result):
    """Error of one training set of Gaussian data.

    Fields:
        population_error: mean square, exact over the population (no factor 1/2).
    """

    population_error: Float[Array, ""]


@experiment
def learned_pool(system: ScaleFreeData, key: PRNGKeyArray) -> LearnedPool:
    r"""Errors of kernel regression on P examples of the pool, drawn without replacement and tested
    on all others.

    $$ f(x) = k_x^T (K + \text{ridge})^{-1} y $$

    with the kernel matrix $K$ of the $P$ = `n_train` examples.

    Source: Spigler, Geiger, Wyart (2020); Bahri, Dyer, Kaplan, Lee, Sharma (2024).

    >>> x = jnp.linspace(-1.0, 1.0, 100)
    >>> gram = jnp.exp(-((x[:, None] - x) ** 2))
    >>> run = learned_pool(ScaleFreeData(gram, jnp.sin(3 * x), n_train=10), jax.random.key(0))
    >>> bool(run.test_error < 0.1)
    True
    """
    return _on_pool(system.gram, system.targets, system.ridge, key, system.size("n_train"))


@experiment
def gaussian_clone(system: ScaleFreeData, key: PRNGKeyArray) -> LearnedClone:
    r"""Error of kernel regression on Gaussian data with the spectrum and the target powers of the
    pool.

    Each example has independent normal features $z_k$, whose variances are the eigenvalues of the
    pool. The target is linear in the features, with the target power of the pool on each. Gaussian
    features have the same law in every basis, and in the basis of the pool's examples no
    eigendecomposition is needed:

    $$ k(z, z') = \frac{z \cdot K z'}{M} , \qquad y(z) = \frac{z \cdot y}{\sqrt M} . $$

    The difference from `learned_pool` is the effect of everything that the spectrum does not
    determine.

    Source: Goldt, Loureiro et al. (2020) for the idea of a Gaussian equivalent; derived here in
    this basis.

    >>> x = jnp.linspace(-1.0, 1.0, 100)
    >>> gram = jnp.exp(-((x[:, None] - x) ** 2))
    >>> run = gaussian_clone(ScaleFreeData(gram, jnp.sin(3 * x), n_train=10), jax.random.key(0))
    >>> bool(run.population_error > 0)
    True
    """
    return LearnedClone(
        population_error=_on_clone(
            system.gram, system.targets, system.ridge, key, system.size("n_train")
        )
    )


def _fit(gram: Array, labels: Array, ridge: Array) -> Array:
    return jnp.linalg.solve(gram + ridge * jnp.eye(len(gram)), labels)


@partial(jax.jit, static_argnames="n_train")
def _on_pool(
    gram: Array, targets: Array, ridge: Array, key: PRNGKeyArray, n_train: int
) -> LearnedPool:
    training = jax.random.permutation(key, len(gram))[:n_train]
    squares = (
        gram[:, training] @ _fit(gram[jnp.ix_(training, training)], targets[training], ridge)
        - targets
    ) ** 2
    total = jnp.sum(squares)
    return LearnedPool(
        test_error=(total - jnp.sum(squares[training])) / (len(gram) - n_train),
        population_error=total / len(gram),
    )


@partial(jax.jit, static_argnames="n_train")
def _on_clone(
    gram: Array, targets: Array, ridge: Array, key: PRNGKeyArray, n_train: int
) -> Float[Array, ""]:
    features = jax.random.normal(key, (n_train, len(gram)))
    target = targets / jnp.sqrt(len(gram))
    scaled = features @ gram / len(gram)
    learned = scaled.T @ _fit(scaled @ features.T, features @ target, ridge)
    return jnp.sum((learned - target) ** 2)
