"""The number of threads of linear algebra: one inside a batched program, whose rows already use all
cores; otherwise all.

XLA's factorisations on a CPU are those of the BLAS library that SciPy brings, which starts its own
threads in each of XLA's. For the small matrices of a batch they spend their time waiting for one
another; one large matrix needs them.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_CHOSEN_BY = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)

_lock = threading.Lock()
_inside = 0
_before: list[tuple[Any, int]] = []


def for_workers() -> dict[str, str]:
    """The environment of worker processes, which use all cores together: one BLAS thread each,
    unless the user has chosen a number."""
    chosen = any(os.environ.get(name) for name in _CHOSEN_BY)
    return dict(os.environ) | ({} if chosen else dict.fromkeys(_CHOSEN_BY, "1"))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context inside which BLAS libraries use one thread. After the outermost one, over all
    Python threads, they use as many as before.

    The result must be computed before the context ends (`jax.block_until_ready`), because the
    number of threads belongs to the process and not to a call. Nothing is changed where the user
    has chosen a number in the environment (`OPENBLAS_NUM_THREADS`, `OMP_NUM_THREADS`,
    `MKL_NUM_THREADS`, `BLIS_NUM_THREADS`, `VECLIB_MAXIMUM_THREADS`); a limit set by threadpoolctl
    is never raised, and is restored afterwards. Libraries are searched for once; after that a call
    takes microseconds.
    """
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = [(library, library.get_num_threads()) for library in _libraries()]
            for library, _ in _before:
                _set(library, 1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                for library, count in _before:
                    _set(library, count)


def batched(function: Callable[P, T]) -> Callable[P, T]:
    """Decorates a function whose programs are batches (of chains, say), so that it runs with one
    BLAS thread until its result is computed."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> T:
        import jax

        with one_blas_thread():
            return jax.block_until_ready(function(*args, **kwargs))

    return inside


def _set(library: Any, count: int) -> None:
    """Sets the number of threads from any Python thread: threadpoolctl 3.8 lets only the first
    thread change OpenBLAS until that thread restores it."""
    give_up = getattr(library, "clear_controlling_thread", None)
    if give_up:
        give_up(force=True)
    library.set_num_threads(count)
    if give_up:
        give_up(force=True)


@cache
def _libraries() -> tuple[Any, ...]:
    """The BLAS libraries whose number of threads this package may choose."""
    if any(os.environ.get(name) for name in _CHOSEN_BY):
        return ()
    import numpy  # noqa: F401, both bring a library, which must be loaded to be found
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)
