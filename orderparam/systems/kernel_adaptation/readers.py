r"""What a reader learns from given features: kernel regression on the directions of a layer that
are kept, and its theory.

With features z of one input (all kept directions at all pixels) the reader has the kernel K(x, x')
= z . z' and the ridge T. Averaged over training sets of n examples it learns the share

    L = sum_k y_k^2 lambda_k / (lambda_k + kappa) / E y^2,
    n = T / kappa + sum_k lambda_k / (lambda_k + kappa),

of the targets y, with lambda_k the eigenvalues of E z z^T and y_k = E (u_k . z) y / sqrt(lambda_k)
the target's component on each eigenvector u_k (Canatar, Bordelon, Pehlevan 2021). Both are
estimated from a set of images. From m images y_k^2 exceeds its true value by s^2/m on average, with
s^2 the variance of the targets at given features, which is taken away as in least squares.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.kernels import Spectrum, effective_ridge

_ROUNDING = 1e-12  # eigenvalues below this share of the largest are zero

Kept = Float[Array, "kept"]
Reader = Float[Array, "example feature"]
Targets = Float[Array, "example class"]


def regressed(
    train: Reader, y: Targets, test: Reader, y_test: Targets, temperature: float | Array
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Accuracy and learnability (mean . y / y . y) on a test set of the kernel regression on a
    training set."""
    kernel = train @ train.T + temperature * jnp.eye(train.shape[0])
    mean = test @ (train.T @ jnp.linalg.solve(kernel, y))
    right = jnp.argmax(mean, axis=1) == jnp.argmax(y_test, axis=1)
    return jnp.mean(right), jnp.sum(mean * y_test) / jnp.sum(y_test**2)


def predicted(
    z: Reader, y: Targets, n_train: float | Array, temperature: float | Array
) -> Float[Array, ""]:
    """Learnability in theory, averaged over training sets of `n_train` examples that have the law
    of the given ones."""
    values, vectors = jnp.linalg.eigh(z.T @ z / z.shape[0])
    values = jnp.where(values > _ROUNDING * values[-1], values, 0.0)
    spectrum = Spectrum(values, jnp.zeros(values.size))
    kappa = effective_ridge(spectrum, n_train, temperature).threshold
    own = (z @ vectors).T @ y / z.shape[0]  # E (u_k . z) y
    used = values > 0
    power = jnp.where(used, jnp.sum(own**2, axis=1) / jnp.where(used, values, 1.0), 0.0)
    total = jnp.mean(jnp.sum(y**2, axis=1))
    rank = jnp.sum(used)
    # what no direction explains, the degrees of freedom of least squares taken away
    noise = (total - jnp.sum(power)) / jnp.maximum(z.shape[0] - rank, 1)
    learned = jnp.where(used, values / (values + kappa), 0.0)
    return learned @ jnp.where(used, power - noise, 0.0) / total


def fresh(
    z: Reader, y: Targets, n_train: int, temperature: float | Array
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Learnability of the regression on images that have not trained the features, measured and in
    theory.

    The regression is trained on the first `n_train` images of one half of the given ones and tested
    on the other half, and the reverse.
    """
    half = z.shape[0] // 2
    halves = [(z[:half], y[:half]), (z[half:], y[half:])]
    measured = [
        regressed(one[:n_train], targets[:n_train], *other, temperature)[1]
        for (one, targets), other in (halves, halves[::-1])
    ]
    return (measured[0] + measured[1]) / 2, predicted(z, y, n_train, temperature)


def fresh_examples(n_train: int, given: int) -> int:
    """The number of examples for `fresh`: as many as there were, or half of the given images."""
    return min(n_train, given // 2)


def scaled(
    features: Float[Array, "example *place"], mask: Float[Array, "channel"], scale: float | Array
) -> Reader:
    """The features of a reader, one row for each image: directions that are not kept are zero."""
    return (features * mask).reshape(features.shape[0], -1).astype(float) * scale


def each_rank(
    train: tuple[Float[Array, "example *place"], Targets],
    test: tuple[Float[Array, "example *place"], Targets],
    masks: Float[Array, "kept channel"],
    scale: float | Array,
    temperature: float | Array,
) -> tuple[Kept, Kept, Kept, Kept]:
    """For every set of kept directions: accuracy and learnability on the test set of the regression
    on the training set, and learnability of the regression on images of the test set, measured and
    in theory. `train` and `test` are (features, targets)."""
    n = fresh_examples(train[0].shape[0], test[0].shape[0])

    def at(mask: Array) -> tuple[Array, Array, Array, Array]:
        own, other = (scaled(features, mask, scale) for features, _ in (train, test))
        reached = regressed(own, train[1], other, test[1], temperature)
        return *reached, *fresh(other, test[1], n, temperature)

    return jax.lax.map(at, masks)
