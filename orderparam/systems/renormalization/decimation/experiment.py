"""Kernel regression on random training sets, with all modes or with the modes that remain after a
decimation.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.kernels.gp import condition
from orderparam.systems.renormalization.decimation.model import DecimatedPool, DecimatedRegression
from orderparam.systems.renormalization.spectra import kept_levels, single_modes


class MeasuredRegression(Result):
    """Observables of kernel regression on one training set.

    Fields:
        test_error: mean of (f - y)^2 over the input measure (the whole pool, for a pool), against
            targets without noise (no factor 1/2).
        target_learnability: <f, y> / <y, y>, averages over the input measure.
        ridge: mean ridge of the training points.
        ridge_variation: standard deviation of the ridge over the training points, divided by its
            mean.
        learnability: f_k / y_k of every mode; 0 where the mode carries no target.
        converged: whether K plus the ridge was positive definite to working precision; the
            observables are NaN where it was not.
    """

    test_error: Float[Array, ""]
    target_learnability: Float[Array, ""]
    ridge: Float[Array, ""]
    ridge_variation: Float[Array, ""]
    learnability: Float[Array, "mode"]
    converged: Bool[Array, ""]


@experiment(check=single_modes)
def regression(
    system: DecimatedRegression,
    key: PRNGKeyArray,
    *,
    keep: Literal["all", "local ridge", "uniform ridge"] = "all",
) -> MeasuredRegression:
    r"""Kernel regression on `n_train` points: Gaussian features, or points drawn from a pool.

    $$ f = K_<(\cdot, X)\, [K_<(X, X) + \mathrm{diag}(r)]^{-1} y $$

    with $K_<$ the kernel of the modes that are kept and $r$ the ridges of the training points. The
    features of a `DecimatedRegression` are independent standard Gaussians; points of a
    `DecimatedPool` are drawn without replacement. A key gives the same training set for every
    `keep`.

    Args:
        keep: "all" (the default) keeps all modes, with ridge T. "local ridge" keeps the `cut`
            largest modes; the other modes have the kernel K_>, and K_>(x, x) is added to the ridge
            at each point x. "uniform ridge" keeps the same modes and adds the mean of K_>(x, x)
            over inputs to the ridge at every point.

    Raises:
        ValueError: for a spectrum with several modes in a level.

    Accuracy: "local ridge" drops the entries of K_> off the diagonal, which are small at large
    input dimension.

    Cost: O(`n_train`^3).

    Source: Howard, Jefferson, Maiti, Ringel (2024).

    >>> from orderparam.kernels import Spectrum
    >>> k = np.arange(1.0, 101)
    >>> system = DecimatedRegression(Spectrum(k**-1.5, k**-1.5), n_train=50, temperature=0.05)
    >>> measured = regression(system, jax.random.key(0))
    >>> measured.learnability.shape, bool(measured.converged)
    ((100,), True)
    """
    count, spectrum = system.size("n_train"), system.spectrum
    draw_key, noise_key = jax.random.split(key)
    if isinstance(system, DecimatedPool):
        # coefficients of the target in the pool's modes
        target = system.features.T @ system.targets / system.targets.size
        chosen = jax.random.permutation(draw_key, system.targets.size)[:count]
        features, labels = system.features[chosen], system.targets[chosen]
    else:
        target = jnp.sqrt(spectrum.target_power)
        feature_key, rest_key = jax.random.split(draw_key)
        features = jax.random.normal(feature_key, (count, target.size))
        # The part of the target outside of the resolved modes is never learned and acts as label
        # noise.
        labels = features @ target + jnp.sqrt(spectrum.tail_power) * jax.random.normal(
            rest_key, (count,)
        )
    labels = labels + jnp.sqrt(system.noise) * jax.random.normal(noise_key, (count,))
    kept = np.ones(target.size, bool) if keep == "all" else np.asarray(kept_levels(system))
    local = jnp.asarray(keep != "uniform ridge")
    ridge = system.temperature + spectrum.tail
    return _regress(
        spectrum.eigenvalues,
        target,
        spectrum.tail_power,
        features,
        labels,
        jnp.asarray(kept),
        local,
        ridge,
    )


@jax.jit
def _regress(
    eigenvalues: Float[Array, "mode"],
    target: Float[Array, "mode"],
    rest: Float[Array, ""],
    features: Float[Array, "train mode"],
    labels: Float[Array, "train"],
    kept: Bool[Array, "mode"],
    local: Bool[Array, ""],
    ridge: Float[Array, ""],
) -> MeasuredRegression:
    lost = jnp.where(kept, 0.0, eigenvalues)
    # K_>(x, x), or its mean over inputs, is added to the ridge.
    ridges = ridge + jnp.where(local, features**2 @ lost, jnp.sum(lost))
    weights = jnp.where(kept, eigenvalues, 0.0)
    conditioned = condition((features * weights) @ features.T + jnp.diag(ridges), labels, 0.0)
    # coefficients f_k of the predictor
    found = weights * (features.T @ conditioned.discrepancy)
    present = target != 0
    return MeasuredRegression(
        test_error=jnp.sum((found - target) ** 2) + rest,
        target_learnability=found @ target / (target @ target + rest),
        ridge=jnp.mean(ridges),
        ridge_variation=jnp.std(ridges) / jnp.mean(ridges),
        learnability=jnp.where(present, found / jnp.where(present, target, 1.0), 0.0),
        converged=jnp.isfinite(jnp.sum(found)),
    )
