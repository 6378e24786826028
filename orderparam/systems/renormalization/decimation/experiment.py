"""Kernel regression really done on random training sets, with all modes or with those that a
decimation leaves.
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
    """One training set. test_error: mean of (f - y)^2 against targets without noise over the input
    measure (a pool: all of it).

    target_learnability: <f, y> / <y, y>. ridge: mean ridge of the training points. ridge_variation:
    its standard deviation over the mean. learnability: (mode,) f_k / y_k, 0 where there is no
    target. converged: K + T was positive definite to working precision; the observables are NaN
    where it was not.
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
    """f = K_<(., X) [K_<(X, X) + diag(ridge)]^-1 y on n_train points: Gaussian features, or points
    of a pool without replacement.

    keep: "all" modes, with ridge T; or the system's `cut` largest, K_<, with the ridge T(x) = T +
    K_>(x, x) that the others leave where they act (Howard et al. 2024; what is off the diagonal of
    K_>, small at large input dimension, is dropped), or with its mean over the inputs. The training
    sets of a key are the same whatever is kept.
    """
    count, spectrum = system.size("n_train"), system.spectrum
    draw_key, noise_key = jax.random.split(key)
    if isinstance(system, DecimatedPool):
        target = system.features.T @ system.targets / system.targets.size
        chosen = jax.random.permutation(draw_key, system.targets.size)[:count]
        features, labels = system.features[chosen], system.targets[chosen]
    else:
        target = jnp.sqrt(spectrum.target_power)
        feature_key, rest_key = jax.random.split(draw_key)
        features = jax.random.normal(feature_key, (count, target.size))
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
    ridges = ridge + jnp.where(local, features**2 @ lost, jnp.sum(lost))
    weights = jnp.where(kept, eigenvalues, 0.0)
    conditioned = condition((features * weights) @ features.T + jnp.diag(ridges), labels, 0.0)
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
