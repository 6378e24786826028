"""The real runs: a network with all its weights, and its overlaps alone, which for Gaussian inputs are a Markov chain."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.systems.online_sgd.committee.chain import followed
from orderparam.systems.online_sgd.committee.model import CommitteeSGD, OverlapDynamics
from orderparam.systems.online_sgd.committee.network import trained


def _whole_steps(system: CommitteeSGD) -> Int[Array, "record"]:
    """The recorded numbers of steps as integers. Raises `ValueError` when the horizon holds no step."""
    steps = np.asarray(system.steps()).astype(np.int64)
    if steps[-1] < 1:
        raise ValueError(
            f"CommitteeSGD.horizon = {system.horizon}: with input_dim = {system.input_dim} and batch_size = "
            f"{system.batch_size} it holds no step; must be at least batch_size / input_dim"
        )
    return jnp.asarray(steps)


def _room_for_all(system: CommitteeSGD) -> None:
    _large_enough(system, "width + teacher_width", system.width + system.teacher_width)


def _markov(system: CommitteeSGD) -> None:
    _large_enough(system, "2 width + teacher_width", 2 * system.width + system.teacher_width)
    if system.batch_size > 1 and system.repeats > 1:
        raise ValueError(
            f"CommitteeSGD.repeats = {system.repeats}: must be 1 with batch_size = {system.batch_size} in the overlap chain"
        )


def _large_enough(system: CommitteeSGD, words: str, least: int) -> None:
    if system.input_dim < least:
        raise ValueError(f"CommitteeSGD.input_dim = {system.input_dim}: must be >= {words} = {least}")


@experiment(check=_room_for_all)
def trained_network(system: CommitteeSGD, key: PRNGKeyArray) -> OverlapDynamics:
    """One training run of a student with weights of shape (width, input_dim); its overlaps at the records, no
    trajectory.

    The first weights have exactly the overlaps of `system.start`, in a random orthonormal frame. Weights are float32.
    Traceable in the key: `batch_seeds=True` trains all seeds at once. Raises `ValueError` if d < width + teacher_width.
    """
    return trained(system, _whole_steps(system), key, system.size("input_dim"), system.size("batch_size"))


@experiment(check=_markov)
def overlap_chain(system: CommitteeSGD, key: PRNGKeyArray) -> OverlapDynamics:
    """One run of SGD in `input_dim` dimensions, followed through its overlaps: the same law as `trained_network`, also for
    d = 10^9.

    Traceable in the key. Raises `ValueError` when d < 2 width + teacher_width, and for repeated samples in batches
    larger than 1 (there the overlaps alone are no Markov chain: use `trained_network`).
    """
    return followed(system, _whole_steps(system), key, system.size("batch_size"))
