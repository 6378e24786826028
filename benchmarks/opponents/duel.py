"""One piece of work done by the package and by its opponent, and the processor time of both."""

import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

ROUNDS, LEAST = 7, 0.02


class Duel(NamedTuple):
    """A piece of work: what it is, who the opponent is, and the same numbers from both.

    tolerance: largest difference that the accuracy of the theory allows; None where both are
    random.
    measure: largest difference of the two answers, in the units of the tolerance.
    """

    work: str
    opponent: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    tolerance: float | None = 1e-9


def difference(duel: Duel) -> float:
    """Largest difference of the two answers, in units of the largest of them."""
    one, other = (np.asarray(run(), float) for run in (duel.ours, duel.theirs))
    return float(np.max(np.abs(one - other)) / np.max(np.abs(other)))


def processor_seconds(run: Callable[[], object]) -> float:
    """Of one call, on the average of as many as last a while."""
    calls, begin = 0, time.process_time()
    while True:
        jax.block_until_ready(run())
        calls += 1
        spent = time.process_time() - begin
        if spent > LEAST:
            return spent / calls


def fought(duel: Duel) -> tuple[float, float]:
    """Least processor seconds of ours and of theirs in rounds that alternate, after a first call
    of both."""
    rounds = [
        (processor_seconds(duel.ours), processor_seconds(duel.theirs)) for _ in range(ROUNDS + 1)
    ]
    ours, theirs = (min(column) for column in zip(*rounds[1:]))
    return ours, theirs
