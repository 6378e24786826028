"""Least squares on many classes: one output for each class, the largest of which is the prediction.

The errors on n examples follow from a fit to the whole pool of N examples at another ridge, chosen
such that both have the same effective ridge kappa and so the same mean output at every input. The
leave-one-out fit to the pool has this mean output. The variance of its output over training sets is
smaller than for n examples by a known factor, and the missing variance is added. Nothing is assumed
about the classes; only the scatter of the output over training sets is assumed to be Gaussian.
"""

from functools import lru_cache
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Num, PRNGKeyArray

from orderparam.core.late import ndtri
from orderparam.core.result import Result
from orderparam.core.system import parameter
from orderparam.core.verb import experiment, theory
from orderparam.data import load
from orderparam.losses import RealLabels, Square
from orderparam.solve.root import decreasing_root
from orderparam.systems.random_features.model import (
    ExplicitSpectrum,
    GaussianFeatures,
    without_chance,
)
from orderparam.systems.random_features.pool import random_features

MOST = 50  # classes
NODES = 64  # points of the integral over training sets, for each example


class ClassPool(GaussianFeatures):
    r"""Features of real data in K classes. Training sets are drawn from the pool, which is a sample
    of N from the population. Build it with `ClassPool.from_data`.

    The target of class k is $y_k = (\delta_{ck} - \pi_k)/\sigma$ for an example of class c, with
    the share $\pi_k$ of the class and $\sigma^2 = \sum_k \pi_k (1 - \pi_k)$, so that predicting the
    shares has test error 1. As a system of `GaussianFeatures`, the pool has a spectrum and a
    teacher's variance that are summed over the outputs, so that `asymptotics` and `optimal_ridge`
    return the sum of the errors of all outputs.

    modes: (pool, feature), the centred features along the eigenvectors of their covariance, in the
    order of the spectrum; classes: (pool,), 0 to K - 1; shares: (class,).
    """

    modes: Float[Array, "pool feature"] = parameter("features along their modes", kw_only=True)
    classes: Float[Array, "pool"] = parameter("class of each example, from 0", kw_only=True)
    shares: Float[Array, "class"] = parameter("share of each class", above=0, kw_only=True)

    def __check_init__(self) -> None:
        if not isinstance(self.labels, RealLabels):
            raise ValueError("ClassPool.labels: must be RealLabels, for the square loss")
        if not isinstance(self.loss, Square):
            raise ValueError(
                f"ClassPool.loss = {self.loss.name}: many classes take the square loss"
            )

    @property
    def scale(self) -> Float[Array, ""]:
        """The scale sigma of the targets."""
        return jnp.sqrt(jnp.sum(self.shares * (1 - self.shares)))

    @property
    def examples_in_pool(self) -> int:
        """Number N of examples in the pool."""
        return self.classes.shape[-1]

    @property
    def fields(self) -> Float[Array, "pool class"]:
        """Targets of every example."""
        indicators = jnp.arange(self.shares.shape[-1]) == self.classes[:, None]
        return (indicators - self.shares) / self.scale

    @classmethod
    def from_data(
        cls,
        features: Num[ArrayLike, "pool feature"],
        classes: Num[ArrayLike, "pool"],
        n_train: Any,
        ridge: Any,
    ) -> Self:
        """The pool with its modes, and the correlation of each mode with the targets, summed over
        the outputs and corrected for bias.

        Raises:
            ValueError: for arrays that do not fit each other or are not finite, and for classes
                that are not the whole numbers 0 to K - 1, each at least once, with 2 <= K <= 50.
        """
        matrix, labels = np.asarray(features, np.float64), np.asarray(classes)
        if matrix.ndim != 2 or labels.shape != matrix.shape[:1] or matrix.size == 0:
            raise ValueError(
                f"features has shape {matrix.shape} and classes {labels.shape}: must be (pool, "
                "feature) and (pool,)"
            )
        if not np.isfinite(matrix).all():
            raise ValueError("features must be finite numbers")
        present, counts = np.unique(labels, return_counts=True)
        if not 2 <= len(present) <= MOST or not np.array_equal(present, np.arange(len(present))):
            raise ValueError(
                f"classes: must be whole numbers 0 to K - 1, each at least once, with 2 to {MOST} "
                f"classes; there are {len(present)} different values"
            )
        shares = counts / len(labels)
        targets = np.eye(len(present))[labels.astype(int)] - shares
        targets = targets / np.sqrt(np.sum(shares * (1 - shares)))
        matrix = matrix - matrix.mean(axis=0)
        values, vectors = np.linalg.eigh(matrix.T @ matrix / len(matrix))
        kept = values > len(values) * np.finfo(float).eps * values[-1]
        modes = matrix @ (vectors * kept)
        squares = np.sum((modes.T @ targets / len(matrix)) ** 2, axis=1)
        spectrum = ExplicitSpectrum(np.where(kept, values, 0.0), squares)
        return cls(
            without_chance(spectrum, 1.0, len(matrix)),
            1.0,
            n_train=n_train,
            ridge=ridge,
            modes=modes,
            classes=labels.astype(int),
            shares=shares,
        )


class ClassErrors(Result):
    """Errors of least squares on many classes.

    Fields:
        test_error: mean of |y - f|^2 summed over the outputs; 1 for predicting the shares.
        classification_error: fraction of new examples whose largest output f_k + pi_k/sigma belongs
            to a wrong class.
        effective_dimension: effective number of parameters of each output.
    """

    test_error: Float[Array, ""]
    classification_error: Float[Array, ""]
    effective_dimension: Float[Array, ""]


class PredictedClasses(ClassErrors):
    """Errors predicted by the theory.

    Fields:
        residual: residual of the equation for the ridge of the fit to the pool.
        converged: whether it was solved.
    """

    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def _within_the_pool(system: ClassPool, **options: object) -> None:
    if np.any(np.asarray(system.n_train) > system.examples_in_pool):
        raise ValueError(
            f"n_train = {np.max(system.n_train):g}: must be at most the {system.examples_in_pool} "
            "examples of the pool"
        )


@theory(check=_within_the_pool)
def class_asymptotics(system: ClassPool) -> PredictedClasses:
    r"""Errors of least squares with one output for each class on n examples, from a fit to the
    whole pool of N.

    With the eigenvalues $\omega_i$ of the pool's covariance and modes $x_{\mu i}$, a fit to the
    pool with ridge $\lambda'$ has the effective number of parameters D and the effective ridge
    $\kappa$,

    $$ D = \sum_i \frac{\omega_i}{\omega_i + p \lambda'/N} , \qquad
       \kappa = \frac{p \lambda'}{N - D} , $$

    and $\lambda'$ is such that n examples with $\lambda$ = `ridge` have the same $\kappa$:
    $p \lambda = \kappa (n - D)$. The prediction of the fit to the pool without the example itself
    is

    $$ f^\mu = \frac{f(x_\mu) - h_\mu y_\mu}{1 - h_\mu} , \qquad
       h_\mu = \sum_i \frac{x_{\mu i}^2}{N \omega_i + p \lambda'} , $$

    with the covariance of errors $C = \langle (y - f^\mu)(y - f^\mu)^T \rangle_\mu$. With
    $D_2 = D + \kappa\, dD/d\kappa$ the test error of n examples is
    $\mathrm{tr}\, C\, (1 - D_2/N)/(1 - D_2/n)$, and their outputs at $x_\mu$ are Gaussian with mean
    $f^\mu$ and covariance

    $$ C_\mu \propto \sum_{\nu \neq \mu} a_{\mu\nu}^2\, (y_\nu - f^\nu)(y_\nu - f^\nu)^T , \qquad
       a_{\mu\nu} = \sum_i \frac{x_{\mu i} x_{\nu i}}{N \omega_i + p \lambda'} , \qquad
       \langle \mathrm{tr}\, C_\mu \rangle_\mu
           = \frac{D_2}{N} \frac{N - n}{n - D_2}\, \mathrm{tr}\, C . $$

    An example of class c is classified correctly if $f_c + \pi_c/\sigma$ is the largest of all
    outputs.

    Raises:
        ValueError: for more training examples than the pool has.

    Accuracy: the relation holds between deterministic equivalents, with corrections of order 1/n;
    at n = N it is exactly leave-one-out. The predicted classification error is too low where the
    scatter has heavier tails than a Gaussian, by 11 to 16 % on 200 random features of digits with n
    = 60 to 365. The integral over training sets has 64 quasi-random points for each example.

    Source: derived here, from the deterministic equivalents of ridge regression as in Wei, Hu,
    Steinhardt (2022), who predict the errors of larger sets from smaller ones.

    >>> rng = np.random.default_rng(0)
    >>> classes = rng.integers(0, 3, 600)
    >>> features = rng.standard_normal((600, 20)) + np.eye(3, 20)[classes] * 3
    >>> found = class_asymptotics(ClassPool.from_data(features, classes, n_train=100, ridge=1.0))
    >>> bool(0.02 < found.classification_error < 0.15)
    True
    """
    omega, x, y = system.spectrum.eigenvalues, system.modes, system.fields
    size, n, count = system.examples_in_pool, system.n_train, system.feature_count

    def used(log_load: Float[Array, ""], omega: Float[Array, "feature"]) -> Float[Array, ""]:
        """D as a function of log(p lambda'/N)."""
        return jnp.sum(omega / (omega + jnp.exp(log_load)))

    def excess(log_load: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        """Logarithm of the ratio of the wanted p lambda to that of the given pool's ridge."""
        wanted, omega, n = args
        dimension = used(log_load, omega)
        left = jnp.maximum(n - dimension, 1e-300)
        return jnp.log(wanted * (size - dimension)) - log_load - jnp.log(left * size)

    wanted = count * jnp.asarray(system.summed_ridge, jnp.float64)
    # A bracket of p lambda'/N. Its lower end is the solution for n = N, and at its upper end D < n.
    lower, upper = jnp.log(wanted / size), jnp.log((wanted + jnp.sum(omega)) / n)
    root = decreasing_root(excess, lower, upper, (wanted, omega, n))
    dimension, slope = jax.value_and_grad(used)(root.value, omega)
    load = jnp.exp(root.value)
    # d log kappa / d log lambda' = 1 + D'/(N - D)
    second = dimension + slope / (1 + slope / (size - dimension))
    resolvent = 1 / (size * (omega + load))
    fitted = x @ (resolvent[:, None] * (x.T @ y))
    leverage = (x**2) @ resolvent
    alone = (fitted - leverage[:, None] * y) / (1 - leverage)[:, None]
    left = y - alone
    covariance = left.T @ left / size
    influence = (x * resolvent) @ x.T * (1 - jnp.eye(size))
    outer = (left[:, :, None] * left[:, None, :]).reshape(size, -1)
    scatter = (influence**2 @ outer).reshape(size, *covariance.shape)
    wanted = second / size * (size - n) / (n - second) * jnp.trace(covariance)
    scatter = scatter * wanted / jnp.mean(jnp.trace(scatter, axis1=1, axis2=2))
    right = _largest(alone + system.shares / system.scale, scatter, system.classes)
    return PredictedClasses(
        test_error=jnp.trace(covariance) * (1 - second / size) / (1 - second / n),
        classification_error=1 - jnp.mean(right),
        effective_dimension=dimension,
        residual=root.residual,
        converged=root.converged,
    )


def _largest(
    means: Float[Array, "pool class"],
    covariances: Float[Array, "pool class class"],
    classes: Float[Array, "pool"],
) -> Float[Array, "pool"]:
    """P(f_c > f_k for all k) of each example with class c, for f ~ N(means, covariances)."""
    from scipy.stats import qmc  # slow to import, and used only here

    nodes = ndtri(qmc.Sobol(means.shape[1], scramble=True, seed=0).random(NODES))
    values, vectors = jnp.linalg.eigh(covariances)
    roots = vectors * jnp.sqrt(jnp.maximum(values, 0.0))[:, None, :]

    def hits(node: Float[Array, "class"]) -> Bool[Array, "pool"]:
        return jnp.argmax(means + roots @ node, axis=-1) == classes

    return jnp.mean(jax.lax.map(hits, jnp.asarray(nodes)), axis=0, dtype=float)


@experiment
def learn_classes(system: ClassPool, key: PRNGKeyArray) -> ClassErrors:
    r"""Errors of least squares on n_train examples of a pool with many classes, measured on the
    other examples.

    $$ \min_A \sum_{\mu=1}^n |y_\mu - f(x_\mu)|^2 + \lambda |A|^2 , \qquad
       f(x) = \frac{A \phi(x)}{\sqrt p} $$

    with $\lambda$ = `ridge`. Every example is drawn at most once.

    Raises:
        ValueError: for an `n_train` that is not whole or leaves no example for testing.

    Source: Loureiro, Gerbelot et al. (2021).

    >>> rng = np.random.default_rng(0)
    >>> classes = rng.integers(0, 3, 600)
    >>> features = rng.standard_normal((600, 20)) + np.eye(3, 20)[classes] * 3
    >>> pool = ClassPool.from_data(features, classes, n_train=100, ridge=1.0)
    >>> bool(learn_classes(pool, jax.random.key(0)).classification_error < 0.2)
    True
    """
    count, size = system.size("n_train"), system.examples_in_pool
    if count >= size:
        raise ValueError(
            f"n_train = {count}: must be at most {size - 1}; the pool has {size} examples"
        )
    order = jax.random.permutation(key, size)
    return _measured(system, order[:count], order[count:])


@eqx.filter_jit
def _measured(system: ClassPool, chosen: Int[Array, "n"], rest: Int[Array, "t"]) -> ClassErrors:
    matrix = system.modes / jnp.sqrt(system.feature_count)
    targets = system.fields
    x = matrix[chosen]
    if x.shape[0] < x.shape[1]:  # more features than examples: solve in the space of the examples
        gram = x @ x.T
        loaded = gram + system.summed_ridge * jnp.eye(len(gram))
        solved = jnp.linalg.solve(loaded, jnp.hstack([targets[chosen], gram]))
        weights, used = x.T @ solved[:, : targets.shape[1]], solved[:, targets.shape[1] :]
    else:
        gram = x.T @ x
        loaded = gram + system.summed_ridge * jnp.eye(len(gram))
        solved = jnp.linalg.solve(loaded, jnp.hstack([x.T @ targets[chosen], gram]))
        weights, used = solved[:, : targets.shape[1]], solved[:, targets.shape[1] :]
    found = matrix[rest] @ weights
    first = jnp.argmax(found + system.shares / system.scale, axis=-1)
    return ClassErrors(
        test_error=jnp.mean(jnp.sum((targets[rest] - found) ** 2, axis=-1)),
        classification_error=jnp.mean(first != system.classes[rest], dtype=float),
        effective_dimension=jnp.trace(used),
    )


# ------------------------------------------------------------------------------------------------
# Random features of real images with all their classes.


@lru_cache(maxsize=4)
def image_classes(
    dataset: str = "digits",
    activation: Any = "erf",
    width: int = 300,
    n_train: float = 300,
    ridge: float = 0.1,
    split: str | None = None,
    seed: int = 0,
) -> ClassPool:
    """Features activation(W x) of the images of a standard data set with all its classes, see
    `orderparam.systems.random_features.model.random_features`.
    """
    images = load(dataset, split)
    features = random_features(images, activation, width, seed)
    classes = np.unique(images.labels, return_inverse=True)[1]
    return ClassPool.from_data(features, classes, n_train, ridge)
