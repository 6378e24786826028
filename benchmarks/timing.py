"""How benchmarks take times."""

import time
from collections.abc import Callable

import jax

REPEATS = 3


def best_of(run: Callable[[], object]) -> float:
    """Shortest of a few times in seconds, after a first call that compiles."""
    jax.block_until_ready(run())
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        jax.block_until_ready(run())
        seconds.append(time.perf_counter() - start)
    return min(seconds)
