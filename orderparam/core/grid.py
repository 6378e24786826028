"""The grid of a sweep: named dimensions, the blocks in which it is computed, and the random key of
every point."""

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from orderparam.core.system import is_number

Block = tuple[slice, ...]


@dataclass(frozen=True)
class Grid:
    """A product grid. `over` maps a field of the system (dotted names reach into nested modules) to
    its values."""

    over: dict[str, tuple[Any, ...]]

    @classmethod
    def of(cls, over: Mapping[str, Any] | None) -> "Grid":
        """Checks and freezes `over`; raises `ValueError` for an empty, scalar or repeating
        dimension."""
        if not isinstance(over, Mapping | None):
            raise ValueError(f"over = {over!r}: give a mapping of fields to sequences of values")
        frozen: dict[str, tuple[Any, ...]] = {}
        for name, values in (over or {}).items():
            if isinstance(values, str) or not isinstance(
                values, Sequence | np.ndarray | jax.Array | range
            ):
                raise ValueError(f"over[{name!r}] = {values!r}: give a sequence of values")
            listed = tuple(
                value.item() if is_number(value) and hasattr(value, "item") else value
                for value in values
            )
            if not listed:
                raise ValueError(f"over[{name!r}] is empty: give at least one value")
            try:
                labels = [label(value) for value in listed]
            except OverflowError:
                raise ValueError(
                    f"over[{name!r}] holds an integer that no floating-point number reaches"
                ) from None
            if len(set(labels)) < len(labels):
                repeated = next(x for x in labels if labels.count(x) > 1)
                raise ValueError(
                    f"over[{name!r}] names {repeated!r} twice: every grid point must be different"
                )
            frozen[name] = listed
        return cls(frozen)

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(self.over)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(values) for values in self.over.values())

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def coords(self) -> dict[str, np.ndarray]:
        """The coordinate of every dimension: numbers where all values are numbers, labels
        otherwise."""
        return {
            name: np.asarray(values) if numeric(values) else np.asarray([label(v) for v in values])
            for name, values in self.over.items()
        }

    def points(self, block: Block) -> list[dict[str, Any]]:
        """The points of a block in row-major order, each as field -> value."""
        ranges = [values[part] for values, part in zip(self.over.values(), block)]
        return [dict(zip(self.over, values)) for values in itertools.product(*ranges)]

    def blocks(self, shape: Sequence[int]) -> Iterator[Block]:
        """Tiles the grid with blocks of the given shape (smaller at the far edges)."""
        starts = [range(0, size, step) for size, step in zip(self.shape, shape)]
        for corner in itertools.product(*starts):
            yield tuple(slice(a, min(a + n, size)) for a, n, size in zip(corner, shape, self.shape))

    def block_shape(self, points: int, single: Sequence[str] = ()) -> tuple[int, ...]:
        """The largest row-major block of at most `points` points that has extent one along the
        dimensions in `single`."""
        shape, room = [], max(points, 1)
        for name, size in reversed(list(zip(self.dims, self.shape))):
            extent = 1 if name in single else min(size, room)
            shape.append(extent)
            room = room // extent if extent == size else 1
        return tuple(reversed(shape))


@dataclass(frozen=True)
class Listed(Grid):
    """Points in any order, with one value each in every column of `over`: numbers, along a single
    dimension."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(next(iter(self.over.values()))),)

    def points(self, block: Block) -> list[dict[str, Any]]:
        (part,) = block
        return [dict(zip(self.over, values)) for values in list(zip(*self.over.values()))[part]]


def numeric(values: Sequence[Any]) -> bool:
    """True if all values are numbers, so that they can be batched."""
    return all(is_number(value) for value in values)


def label(value: Any) -> str:
    """Stable text of a grid value: the same on every machine and in every process."""
    if is_number(value):
        return repr(float(value))
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    return name if isinstance(name, str) else str(value)


def point_key(seed: int, point: Mapping[str, Any], paired: Sequence[str] = ()) -> jax.Array:
    """The random key of one grid point, which depends on the seed and on the point's coordinates
    and on nothing else.

    A sweep that is resumed, reordered, extended or distributed therefore draws the same numbers.
    Dimensions in `paired` are left out, so that points differing only there share their randomness
    (common random numbers: paired comparisons).
    """
    text = ";".join(
        f"{name}={label(value)}" for name, value in sorted(point.items()) if name not in paired
    )
    words = np.frombuffer(hashlib.blake2b(text.encode(), digest_size=8).digest(), dtype=np.uint32)
    key = jax.random.key(seed)
    for word in words:
        key = jax.random.fold_in(key, word)
    return key
