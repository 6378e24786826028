"""The errors and order parameters that every theory and experiment reports of the minimiser of a
penalised loss."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.result import Result
from orderparam.losses.base import Loss
from orderparam.losses.fresh import Means
from orderparam.losses.minimise import FittedWeights


class FittedErrors(Result):
    """Errors and order parameters of the minimiser f of loss + penalty.

    test_error, train_error: mean of (y - f)^2 without 1/2, label noise included, at new and at
                             training examples.
    test_loss, train_loss:   mean of l(y, f) at new and at training examples.
    classification_error:    P(sign f != y) at new examples; NaN for real labels.
    teacher_overlap:         m = Cov(nu, f) with the teacher's field nu. self_overlap: q = Var f.
    weight_power:            |a|^2 / p.
    """

    test_error: Float[Array, ""]
    train_error: Float[Array, ""]
    test_loss: Float[Array, ""]
    train_loss: Float[Array, ""]
    classification_error: Float[Array, ""]
    teacher_overlap: Float[Array, ""]
    self_overlap: Float[Array, ""]
    weight_power: Float[Array, ""]


def measured_errors(
    loss: Loss, found: FittedWeights, labels: Float[Array, "train"], means: Means
) -> dict[str, Array]:
    """The fields of `FittedErrors` from a minimiser, its training labels and the means over new
    examples (`losses.fresh`)."""
    return {
        **{name: means[name] for name in ("test_error", "test_loss", "classification_error")},
        "train_error": jnp.mean((labels - found.fields) ** 2),
        "train_loss": jnp.mean(loss(labels, found.fields)),
        "teacher_overlap": means["overlap"],
        "self_overlap": means["square"] - means["mean"] ** 2,
        "weight_power": jnp.mean(found.weights**2),
    }
