"""Experiments on drawn sequences: regression with the kernel, and training of a layer with a finite
number of heads."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.kernels.gp import condition
from orderparam.networks import Architecture
from orderparam.solve.minimum import lbfgs_minimum
from orderparam.systems.attention.sectors.model import (
    SequenceRegression,
    Sequences,
    sequence_features,
)

_TEST = 4000  # new sequences
Scalar = Float[Array, ""]


class SectorRegression(Result):
    """Errors of regression on one training set, for the target of a sector.

    Fields:
        test_error: mean of (f - y)^2 on 4000 new sequences.
        learnability: mean of f y divided by that of y^2.
    """

    test_error: Scalar
    learnability: Scalar


class SectorTraining(Result):
    """Errors of a trained layer with finitely many heads, for the target of a sector.

    Fields:
        test_error: mean of (f - y)^2 on 4000 new sequences.
        learnability: mean of f y divided by that of y^2.
        residual: largest entry of the gradient at the end of training.
        converged: whether the residual is below 1e-5.
    """

    test_error: Scalar
    learnability: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


@experiment
def sector_regression(system: SequenceRegression, key: PRNGKeyArray) -> SectorRegression:
    r"""Errors of Gaussian-process regression on drawn sequences with the kernel of infinitely many
    heads.

    Source: the experiment of Lavie, Gur-Ari, Ringel (2024), with this kernel.

    >>> import jax
    >>> found = sector_regression(SequenceRegression(20), jax.random.key(0))
    >>> bool(found.test_error < 0.5)
    True
    """
    # the sequences are the same as in `sector_training`
    data_key, _ = jax.random.split(key)
    train, test, labels, wanted = _drawn(system, data_key)
    phi = sequence_features(system, train)
    fit = condition(phi @ phi.T, labels, float(system.ridge))
    predicted = sequence_features(system, test) @ (phi.T @ fit.discrepancy)
    return SectorRegression(**_scores(predicted, wanted))


@experiment
def sector_training(system: SequenceRegression, key: PRNGKeyArray) -> SectorTraining:
    r"""Errors of a layer with a finite number of heads, all of whose weights are trained on drawn
    sequences.

    From weights $u_0 \sim N(0, 1)$ (the "ntk" scaling) the minimum of

    $$ \frac1{2 T_{\mathrm{ridge}}} \sum_\mu \big( f_u(X_\mu) - f_{u_0}(X_\mu) - y_\mu \big)^2 +
       \frac12 |u - u_0|^2 $$

    is found by L-BFGS, and the prediction is $f_u - f_{u_0}$. With infinitely many heads and
    infinitely wide queries this is regression with the tangent kernel. The derivatives by the tied
    queries vanish as their width grows, so that the tangent kernel equals the kernel of the
    Gaussian process.

    Source: derived here.

    >>> import jax
    >>> system = SequenceRegression(10, heads=2, width_per_head=2, tokens=2, input_dim=3)
    >>> bool(sector_training(system, jax.random.key(0)).converged)
    True
    """
    data_key, weight_key = jax.random.split(key)
    train, test, labels, wanted = _drawn(system, data_key)
    architecture = system.architecture()
    whitened = architecture.draw(weight_key, train.shape[1:])
    change, residual, converged = _trained(
        architecture, whitened, train, test, labels, system.ridge
    )
    return SectorTraining(**_scores(change, wanted), residual=residual, converged=converged)


def _drawn(
    system: SequenceRegression, key: PRNGKeyArray
) -> tuple[Sequences, Sequences, Array, Array]:
    count = system.size("n_train")
    x = jax.random.normal(key, (count + _TEST, system.tokens, system.input_dim))
    y = system.labels(x)
    return x[:count], x[count:], y[:count], y[count:]


def _scores(predicted: Array, wanted: Array) -> dict[str, Scalar]:
    return {
        "test_error": jnp.mean((predicted - wanted) ** 2),
        "learnability": (predicted @ wanted) / (wanted @ wanted),
    }


@eqx.filter_jit
def _trained(
    architecture: Architecture,
    whitened: Any,
    train: Sequences,
    test: Sequences,
    labels: Array,
    ridge: Array | float,
) -> tuple[Array, Scalar, Bool[Array, ""]]:
    start, unravel = ravel_pytree(whitened)

    def outputs(change: Array, x: Sequences) -> Array:
        return architecture.apply(unravel(start + change), x)[:, 0]

    before = outputs(jnp.zeros_like(start), train)

    # the objective is divided by n/ridge, so that its values are of order one
    unit = len(labels) / ridge

    def objective(change: Array) -> Scalar:
        gap = outputs(change, train) - before - labels
        return (jnp.sum(gap**2) / ridge + jnp.sum(change**2)) / (2 * unit)

    found = lbfgs_minimum(objective, jnp.zeros_like(start), tolerance=1e-5, max_steps=3000)
    predicted = outputs(found.value, test) - outputs(jnp.zeros_like(start), test)
    return predicted, found.residual, found.converged
