"""A test of whether pre-activations, or weights along a direction, are Gaussian. The samples of
many neurons may be correlated; the p-value takes this into account.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from orderparam.core.late import special
from orderparam.core.result import Result
from orderparam.sampling import estimate

# levels of the distribution function at which the correlation of the samples is measured
_LEVELS = np.linspace(0.05, 0.95, 19)
_TRIALS, _NODES = 8000, 401


class Gaussianity(Result):
    """Distance of samples x from a Gaussian.

    Fields:
        mean: <x>.
        variance: <x^2> - <x>^2.
        excess_kurtosis: fourth central moment / variance^2 - 3: 0 for a Gaussian, negative for two
            wells, positive for heavy tails such as those of a few specialised neurons among many.
        kurtosis_error: standard error of `excess_kurtosis`, with correlations of the samples taken
            into account.
        distance: largest difference of the distribution functions of x and of the Gaussian
            (Kolmogorov-Smirnov).
        effective_samples: number of independent values with the same mean square error of the
            distribution function, at most the number of values.
        p_value: probability of at least this distance for `effective_samples` independent Gaussian
            values, not below 1e-4. It is somewhat too large if successive draws are correlated,
            because the error of their distribution function is smoother.
    """

    mean: Float[Array, ""]
    variance: Float[Array, ""]
    excess_kurtosis: Float[Array, ""]
    kurtosis_error: Float[Array, ""]
    distance: Float[Array, ""]
    effective_samples: Float[Array, ""]
    p_value: Float[Array, ""]


def gaussianity(
    values: Float[ArrayLike, "chain draw unit"], variance: float | None = None
) -> Gaussianity:
    """Distance and p-value of the values of all units and draws together, tested against a
    Gaussian.

    Args:
        values: x of one direction, for instance w_c . w_*, or v . h_c with the pre-activations h_c
            of neuron c on the training inputs and a fixed unit vector v; shape (chain, draw, unit).
        variance: variance of the Gaussian of mean 0 that a theory predicts. None takes the mean and
            the variance of the values themselves, which tests the shape alone; the distance is then
            smaller than Kolmogorov's (its limiting law is that of Durbin 1973, simulated here with
            a fixed seed).

    Raises:
        ValueError: for values that are not finite, or not of shape (chain, draw, unit) with at
            least 4 draws; for a variance that is not positive.

    Accuracy: corrections for finite numbers of samples are those of Stephens 1970. Not traceable.

    Source: Lilliefors 1967, Durbin 1973 and Stephens 1970 for the test.

    >>> values = np.random.default_rng(0).normal(size=(2, 50, 4))
    >>> bool(gaussianity(values, variance=1.0).p_value > 0.001)
    True
    """
    x = np.asarray(values, float)
    if x.ndim != 3 or x.shape[1] < 4 or x.size == 0 or not np.all(np.isfinite(x)):
        raise ValueError(
            f"values has shape {x.shape}: must be (chain, draw, unit), at least 4 draws, all finite"
        )
    if variance is not None and not (variance > 0 and math.isfinite(variance)):
        raise ValueError(f"variance = {variance}: must be > 0")
    mean = float(np.mean(x))
    third, fourth = (float(np.mean((x - mean) ** power)) for power in (3, 4))
    second = float(np.var(x))
    if second == 0:
        raise ValueError(f"values are all {mean}: must have a variance")

    ordered = np.sort(x, axis=None)
    scores = (
        (ordered - mean) / math.sqrt(second) if variance is None else ordered / math.sqrt(variance)
    )
    below = special.ndtr(scores)
    rank = np.arange(ordered.size + 1) / ordered.size
    distance = float(max(np.max(rank[1:] - below), np.max(below - rank[:-1])))

    thresholds = np.quantile(ordered, _LEVELS)
    # To first order the error of the kurtosis equals the error of the mean of its influence
    # function.
    central = x - mean
    influence = (central**4 - 4 * third * central) / second**2 - 2 * fourth / second**3 * central**2
    recorded = [np.mean(one, axis=-1) for one in (*(x <= t for t in thresholds), influence)]
    *errors, kurtosis_error = np.asarray(
        estimate(jnp.asarray(np.stack(recorded, axis=-1))).standard_error
    )
    variances = np.sum(_LEVELS * (1 - _LEVELS)), max(float(np.sum(np.square(errors))), 1e-300)
    effective = max(1.0, min(float(variances[0] / variances[1]), float(x.size)))
    root = math.sqrt(effective)
    scaled = distance * (root + 0.12 + 0.11 / root)
    p_value = (
        special.kolmogorov(scaled)
        if variance is not None
        else np.mean(_null_of_nearest() >= scaled)
    )
    return Gaussianity(
        mean=jnp.asarray(mean),
        variance=jnp.asarray(second),
        excess_kurtosis=jnp.asarray(fourth / second**2 - 3),
        kurtosis_error=jnp.asarray(kurtosis_error),
        distance=jnp.asarray(distance),
        effective_samples=jnp.asarray(effective),
        p_value=jnp.asarray(max(float(p_value), 1e-4)),
    )


def along_directions(
    directions: Sequence[Any], variances: Sequence[float] | None = None
) -> Gaussianity:
    """Result of `gaussianity` for several directions; its fields have a leading axis for the
    directions."""
    each = [
        gaussianity(x, None if variances is None else variances[i])
        for i, x in enumerate(directions)
    ]
    return jax.tree.map(lambda *parts: jnp.stack(parts), *each)


@functools.cache
def _null_of_nearest() -> np.ndarray:
    """Random draws from the limiting law, for n -> infinity, of sqrt(n) times the distance of n
    Gaussian samples from the Gaussian of their fitted mean and variance.

    The limit is the largest modulus of a Gaussian process of covariance min(s, t) - s t - p(s) p(t)
    - g(s) g(t) / 2, p = phi(z) and g = z phi(z) at the quantile z of s (Durbin 1973).
    """
    level = np.arange(1, _NODES) / _NODES
    z = special.ndtri(level)
    p = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    fitted = np.outer(p, p) + np.outer(z * p, z * p) / 2
    values, vectors = np.linalg.eigh(
        np.minimum.outer(level, level) - np.outer(level, level) - fitted
    )
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = np.random.default_rng(0).standard_normal((_TRIALS, len(level)))
    return np.max(np.abs(draws @ root.T), axis=1)
