r"""Exact second moments of (h, s) at any dimension and context length. They give the error of any
matrix Gamma without a test set.

For a task w, with v = |w|^2/d + rho,

    E h = w,    E s = v,    E h h^T = (1 + 1/l) w w^T + (d/l) v 1,
    E h s = (1 + 2/l) v w,    E s^2 = (1 + 2/l) v^2.

The last one is (1 + rho)^2 (1 + 2/l) for |w|^2 = d, not 1 + rho^2 (derived here).
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class TaskMoments(eqx.Module):
    """Averages over a law of tasks and their contexts.

    labels: E y^2, the second moment of the label of the query.
    cross: E w (h, s)^T, the correlation of the task with the features.
    second: E (h, s) (h, s)^T, the second moment of the features.
    """

    labels: Float[Array, ""]
    cross: Float[Array, "input feature"]
    second: Float[Array, "feature feature"]


def mean_error(gamma: Float[Array, "input feature"], law: TaskMoments) -> Float[Array, ""]:
    """E (y - x^T Gamma (h, s))^2, averaged over tasks, contexts and queries."""
    explained = 2 * jnp.sum(gamma * law.cross) - jnp.sum(gamma @ law.second * gamma)
    return law.labels - explained / len(gamma)


@eqx.filter_jit
def moments_of(tasks: Float[Array, "task input"], noise: Any, context: Any) -> TaskMoments:
    """Moments of given tasks with equal weights."""
    dimension = tasks.shape[1]
    variance = jnp.sum(tasks**2, axis=1) / dimension + noise
    return _moments(
        tasks.T @ tasks / len(tasks),
        jnp.mean(variance[:, None] * tasks, axis=0),
        jnp.mean(variance),
        jnp.mean(variance**2),
        context,
    )


@eqx.filter_jit
def fresh_moments(variances: Float[Array, "input"], noise: Any, context: Any) -> TaskMoments:
    """Moments of tasks C^(1/2) u with u uniform on the sphere |u|^2 = d."""
    dimension = len(variances)
    size = jnp.mean(variances)
    # E u_i^2 u_j^2 = d (1 + 2 delta_ij)/(d + 2) on the sphere
    scatter = 2 * (jnp.mean(variances**2) - size**2) / (dimension + 2)
    variance = size + noise
    none = jnp.zeros(dimension)
    return _moments(jnp.diag(variances), none, variance, variance**2 + scatter, context)


def _moments(second: Array, mixed: Array, variance: Any, square: Any, context: Any) -> TaskMoments:
    """The moments from `second` E w w^T, `mixed` E v w, `variance` E v and `square` E v^2."""
    dimension = len(second)
    more = 1 + 2 / context
    hh = (1 + 1 / context) * second + dimension / context * variance * jnp.eye(dimension)
    hs = more * mixed
    rows = jnp.concatenate([hh, hs[:, None]], axis=1)
    last = jnp.append(hs, more * square)
    return TaskMoments(
        variance,
        jnp.concatenate([second, mixed[:, None]], axis=1),
        jnp.concatenate([rows, last[None]], axis=0),
    )
