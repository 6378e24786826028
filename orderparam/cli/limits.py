"""Limits of requests: every number has an upper bound, and a request for more memory than the
machine has raises an error.

A size is bounded by a multiple of the largest size of its study. The memory that all sizes together
need is unknown before a study builds its arrays, so that the request for memory itself fails,
before the machine runs out of it.
"""

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from orderparam.core.outline import HasParameters

SEEDS = 10_000
WIDTH = 1_000_000
DEPTH = 1000
_TIMES = 1000  # factor above the largest size of a study, quick, gallery or full
_VALUES = 10_000  # largest number of values of one parameter


def check_parameters(
    study: HasParameters, parameters: Mapping[str, Any], names: Mapping[str, Any]
) -> None:
    """Refuses values of the named parameters that are not finite, that are too many, or that are
    sizes above 1000 times the study's largest."""
    largest = [study.parameters("gallery"), study.parameters("full")]
    for name in names:
        values = _listed(parameters[name])
        if len(values) > _VALUES:
            raise ValueError(
                f"parameter {name} has {len(values)} values: must be at most {_VALUES}"
            )
        usual = [
            *_listed(study.defaults[name]),
            *(value for size in largest for value in _listed(size[name])),
        ]
        sizes = [x for x in usual if isinstance(x, int) and not isinstance(x, bool)]
        for value in values:
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"parameter {name} = {value}: must be a finite number")
            if (
                sizes
                and isinstance(value, int)
                and abs(value) > (limit := _TIMES * max(1, *map(abs, sizes)))
            ):
                raise ValueError(
                    f"parameter {name} = {value}: must be at most {limit}, {_TIMES} times the "
                    "study's largest"
                )


def _listed(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def check_workers(workers: int | None) -> None:
    """Refuses more than four processes for each processor."""
    limit = 4 * (os.cpu_count() or 1)
    if workers is not None and workers > limit:
        raise ValueError(f"--workers {workers}: must be at most {limit} (four for each processor)")


@contextmanager
def within_memory() -> Iterator[None]:
    """A context inside which a request for more memory than the machine has fails with
    `MemoryError` (where the system can report it) instead of stopping the machine."""
    try:
        import resource

        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limits = [limit for limit in (soft, hard, machine) if limit != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    except (ImportError, ValueError, OSError):  # not on this system
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
