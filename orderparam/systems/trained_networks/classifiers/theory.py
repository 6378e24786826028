"""Theory of classifiers of images: the predictions of the kernels of infinite width."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.root import decreasing_root
from orderparam.systems.trained_networks.classifiers.model import ImageArchitecture

_LONG = 60.0  # logarithm of the longest time and of the largest ridge, in units of an eigenvalue


class ClassifierErrors(Result):
    """Errors of a classifier when its training error has fallen to the level.

    Fields:
        test_error: mean of |f - y|^2 over the test images, summed over the classes.
        accuracy: share of the test images for which the largest output is the output of their
            class.
        train_error: mean of |f - y|^2 over the training images, summed over the classes.
        converged: whether the level was reached.
    """

    test_error: Float[Array, ""]
    accuracy: Float[Array, ""]
    train_error: Float[Array, ""]
    converged: Bool[Array, ""]


def classifier_errors(
    system: ImageArchitecture,
    test: Float[Array, "test label"],
    train_error: Float[Array, ""],
    converged: Bool[Array, ""],
) -> ClassifierErrors:
    """The result from outputs at the test images and the training error."""
    right = jnp.argmax(test, axis=1) == jnp.argmax(system.test_targets, axis=1)
    return ClassifierErrors(
        test_error=jnp.mean(jnp.sum((test - system.test_targets) ** 2, axis=1)),
        accuracy=jnp.mean(right.astype(float)),
        train_error=train_error,
        converged=converged,
    )


@theory
def wide_classifier(
    system: ImageArchitecture, *, kernel: Literal["ntk", "nngp"] = "ntk"
) -> ClassifierErrors:
    r"""Errors of the infinitely wide classifier, trained or averaged over its posterior.

    With $K = V\, \mathrm{diag}(\lambda)\, V^T$ the kernel of the training images,

    $$ f(x) = k(x)^T V\, \mathrm{diag}\Big(\frac{1 - r(\lambda)}{\lambda}\Big) V^T y, \qquad
       r = e^{-\lambda t} \ \text{(ntk)}, \qquad r = \frac{T}{\lambda + T} \ \text{(nngp)} $$

    The tangent kernel gives the outputs of gradient flow after the time t, and the NNGP kernel the
    posterior mean at the temperature T. The time or the temperature is such that the training error
    is at the `level`. `channels` is not used.

    Args:
        kernel: "ntk" (default) or "nngp".

    Accuracy: 1e-8 for the given kernel. The theory describes gradient flow, while networks take
    steps of finite size.

    Cost: the kernel of all pairs of images; for "pooled", of all pairs of their pixels.

    Source: Jacot et al. (2018); Lee et al. (2019); Novak et al. (2019).

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(6, 4, 4, 1))
    >>> y = np.eye(2)[np.arange(6) % 2] - 0.5
    >>> found = wide_classifier(ImageArchitecture(x[:4], y[:4], x[4:], y[4:]))
    >>> round(float(found.train_error), 6)
    0.005
    """
    network = system.architecture
    if kernel == "ntk":
        train = network.kernel(system.inputs).ntk
        cross = network.kernel(system.test_inputs, system.inputs).ntk
    else:
        train = network.nngp(system.inputs)
        cross = network.nngp(system.test_inputs, system.inputs)
    values, vectors = jnp.linalg.eigh(train)
    values = jnp.maximum(values, 1e-14 * values[-1])
    relative = values / values[-1]
    projected = vectors.T @ system.targets
    share = jnp.sum(projected**2, axis=1) / jnp.sum(projected**2)

    def left(log_strength: Array) -> Array:
        """The part of each mode that is not learned; the strength is the time t, or 1/T."""
        strength = jnp.exp(log_strength)
        if kernel == "ntk":
            return jnp.exp(-strength * relative)
        return 1 / (1 + strength * relative)

    def excess(log_strength: Array, level: Array) -> Array:
        return jnp.sum(share * left(log_strength) ** 2) - level

    found = decreasing_root(
        excess, jnp.asarray(-_LONG), jnp.asarray(_LONG), jnp.asarray(system.level)
    )
    kept = left(found.value)
    test = cross @ (vectors @ (((1 - kept) / values)[:, None] * projected))
    train_error = jnp.sum((kept[:, None] * projected) ** 2) / system.inputs.shape[0]
    return classifier_errors(system, test, train_error, found.converged)
