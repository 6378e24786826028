"""One answer for any batch and step: the closed theory where it holds, the theory of drawn first
layers where it does not.
"""

import warnings

import jax
import jax.numpy as jnp

from orderparam.core.verb import theory
from orderparam.systems.one_step.experiment import layer_of, train_first_layer
from orderparam.systems.one_step.model import OneStep
from orderparam.systems.one_step.theory import (
    ReadoutCurve,
    first_layer,
    given_layer,
    one_step_asymptotics,
)


@theory(traced=False)
def predict_read_out(system: OneStep, *, layers: int = 4) -> ReadoutCurve:
    """`one_step_asymptotics`, or, where `first_layer` says that the bulk is not isotropic,
    `given_layer` averaged over `layers` first layers of the system's input dimension, drawn with
    keys 0, 1, ...; a `UserWarning` says so.

    For one system with concrete numbers, not under `vmap`. Warns also where the step learns nothing
    of the teacher, and where the labels have a mean that an odd activation cannot fit. Raises
    `ValueError` for steps so long, or batches so small, that the theory of a drawn layer does not
    hold.
    """
    known = first_layer(system)
    if not bool(known.learns):
        warnings.warn(
            "the step learns nothing of the teacher: E[y theta.x] or E[activation'] vanishes",
            stacklevel=2,
        )
    if float(known.unfitted_mean) != 0:
        warnings.warn(
            f"the labels have mean {float(known.unfitted_mean):.3g}, of which an odd activation makes noise",
            stacklevel=2,
        )
    if bool(known.isotropic):
        return one_step_asymptotics(system)
    warnings.warn(
        f"the step leaves the first layer's bulk anisotropic ({float(known.anisotropy):.2g}, stretch "
        f"{float(known.stretch):.2g}): errors from {layers} drawn layers with input_dim = {system.input_dim}",
        stacklevel=2,
    )
    examples = system.sample_ratio * system.input_dim
    drawn = [train_first_layer(system, jax.random.key(number)) for number in range(layers)]
    try:
        curves = [given_layer(layer_of(system, layer, examples)) for layer in drawn]
    except ValueError as error:
        raise ValueError(
            f"OneStep.step = {float(system.step):g}, batch_ratio = {float(system.batch_ratio):g}: {error}"
        ) from None
    mean = jax.tree.map(
        lambda *parts: jnp.mean(jnp.stack([jnp.asarray(part, float) for part in parts]), axis=0),
        *curves,
    )
    fields = {name: getattr(mean, name) for name in type(mean).dims()}
    return ReadoutCurve(**(fields | {"converged": fields["converged"] == 1}))
