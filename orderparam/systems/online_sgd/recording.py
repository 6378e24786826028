"""Running a stochastic process over a long logarithmic grid of times without ever keeping its trajectory."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from orderparam.systems.online_sgd import averages
from orderparam.systems.online_sgd.model import CommitteeSGD, OverlapDynamics


def record(
    advance: Callable[[PyTree, Array, Int[Array, ""]], PyTree],
    observe: Callable[[PyTree], PyTree],
    state: PyTree[Array],
    key: Array,
    steps: Int[Array, "record"],
    block: int,
) -> PyTree[Array]:
    """observe(state) after each of the increasing numbers of `steps`, stacked.

    advance(state, key, count) takes the first `count` of at most `block` steps. Keys are folded in with the block's
    number, so that memory is that of one block whatever the length of the run.
    """

    def segment(carry: tuple, count: Array) -> tuple:
        def one(i: Array, carry: tuple) -> tuple:
            state, blocks = carry
            now = jnp.minimum(block, count - i * block)
            return advance(state, jax.random.fold_in(key, blocks), now), blocks + 1

        carry = jax.lax.fori_loop(0, (count + block - 1) // block, one, carry)
        return carry, observe(carry[0])

    lengths = jnp.diff(steps, prepend=0)
    return jax.lax.scan(segment, (state, jnp.zeros((), jnp.int64)), lengths)[1]


def observed(system: CommitteeSGD, overlaps: tuple[Any, Any, Any]) -> OverlapDynamics:
    """Recorded (Q, M, v) of the units that exist, as the Result whose arrays have `largest_width` units."""
    missing = system.largest_width - overlaps[2].shape[-1]
    pad_unit, keep = (0, missing), (0, 0)
    self_overlap = jnp.pad(overlaps[0], (keep, pad_unit, pad_unit))
    teacher_overlap = jnp.pad(overlaps[1], (keep, pad_unit, keep))
    readout = jnp.pad(overlaps[2], (keep, pad_unit))

    def risk(self_overlap: Array, teacher_overlap: Array, readout: Array) -> Float[Array, ""]:
        signed = jnp.concatenate([-readout, system.readouts()[1]])
        return averages.population_risk(system.sigma, averages.covariance(self_overlap, teacher_overlap), signed)

    def negative(self_overlap: Array, teacher_overlap: Array) -> Float[Array, ""]:
        return jnp.maximum(-jnp.linalg.eigvalsh(self_overlap - teacher_overlap @ teacher_overlap.T)[0], 0.0)

    return OverlapDynamics(
        sample_ratio=system.sample_ratio(),
        population_risk=jax.vmap(risk)(self_overlap, teacher_overlap, readout),
        self_overlap=self_overlap,
        teacher_overlap=teacher_overlap,
        readout_weight=readout,
        residual=jnp.max(jax.vmap(negative)(self_overlap, teacher_overlap)),
        converged=jnp.asarray(True),
    )


def whole_steps(system: CommitteeSGD) -> Int[np.ndarray, "record"]:
    """The recorded step numbers as integers. Raises `ValueError` when the horizon holds no step."""
    steps = np.asarray(system.steps()).astype(np.int64)
    if steps[-1] < 1:
        raise ValueError(
            f"CommitteeSGD.horizon = {system.horizon}: with input_dim = {system.input_dim} and batch_size = "
            f"{system.batch_size} "
            "it holds no step; must be at least batch_size / input_dim"
        )
    return steps
