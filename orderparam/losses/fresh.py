"""The errors of linear predictors on examples outside the training set."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.channels import Labels, SignLabels
from orderparam.losses.base import Loss

BATCH = 1000  # number of examples in memory at a time

# features (including the factor 1/sqrt(p)), teacher's field
Batch = tuple[Float[Array, "example feature"], Float[Array, "example"]]
Means = dict[str, Float[Array, ""]]


@eqx.filter_jit
def field_means(
    loss: Loss,
    weights: Float[Array, "feature"],
    matrix: Float[Array, "example feature"],
    teacher: Float[Array, "example"],
    labels: Float[Array, "example"],
) -> Means:
    """Means over examples with f = weights . features: test_error (y - f)^2, test_loss,
    classification_error (sign f != y), and of f times the teacher's field ("overlap"), f ("mean"),
    f^2 ("square")."""
    fields = matrix @ weights
    return {
        "test_error": jnp.mean((labels - fields) ** 2),
        "test_loss": jnp.mean(loss(labels, fields)),
        "classification_error": jnp.mean(fields * labels < 0, dtype=float),
        "overlap": jnp.mean(teacher * fields),
        "mean": jnp.mean(fields),
        "square": jnp.mean(fields**2),
    }


def fresh_means(
    loss: Loss,
    labels: Labels,
    weights: Float[Array, "feature"],
    source: Callable[[PRNGKeyArray, int], Batch],
    key: PRNGKeyArray,
    examples: int,
) -> Means:
    """`field_means` over fresh examples, their number rounded up to thousands; classification_error
    is NaN for real labels.

    Raises `ValueError` for fewer than one.
    """
    if examples < 1:
        raise ValueError(f"{examples} test examples: must be at least 1")
    batches = []
    for batch_key in jax.random.split(key, -(-examples // BATCH)):
        input_key, label_key = jax.random.split(batch_key)
        matrix, teacher = source(input_key, BATCH)
        batches.append(field_means(loss, weights, matrix, teacher, labels.draw(teacher, label_key)))
    means = {name: jnp.mean(jnp.stack([batch[name] for batch in batches])) for name in batches[0]}
    return (
        means
        if isinstance(labels, SignLabels)
        else {**means, "classification_error": jnp.asarray(jnp.nan)}
    )
