"""Programs: what a sweep computes for one block of grid points. A theory is batched and compiled;
an experiment runs one point at a time.

Any exception of a theory or an experiment, `SystemExit` included, is the failure of its point. Only
`KeyboardInterrupt`, which a person causes, ends the sweep.

A program travels to worker processes and keeps its compiled code there; it is the only thing an
executor needs to know.
"""

import dataclasses
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from orderparam.core.devices import over_devices, rounded_up
from orderparam.core.errors import message_of
from orderparam.core.grid import Block, Grid, label, numeric, point_key
from orderparam.core.registry import check_unedited
from orderparam.core.result import Result
from orderparam.core.system import System, is_number, replace
from orderparam.core.verb import Theory, Verb, unwrap
from orderparam.running.status import DONE, FAILED, UNCONVERGED
from orderparam.running.threads import one_blas_thread
from orderparam.running.zarr3 import blank

_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
# types of an observable
KEPT = ("bool", *_INTEGERS, "float16", "float32", "float64", "complex64", "complex128")


@dataclass(frozen=True, eq=False)
class Task:
    """One block of the grid, and for an experiment the positions of its seeds."""

    block: Block
    seeds: slice | None = None

    @property
    def region(self) -> Block:
        """The place of the outcome in arrays whose leading dimensions are the grid's, then the
        seeds'."""
        return self.block if self.seeds is None else (*self.block, self.seeds)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(part.stop - part.start for part in self.region)


class WrongResult(ValueError):
    """A theory or an experiment returned something other than its class declares, so that none of
    its points can be kept."""


@dataclass(frozen=True)
class Outcome:
    """The observables of one task, shaped (grid block, seeds, dimensions of the observable), with
    the status of every point.

    wrong: the reason why neither this outcome nor that of any other task can be kept.
    """

    values: dict[str, np.ndarray]
    dims: dict[str, tuple[str, ...]]
    status: np.ndarray
    seconds: float
    errors: tuple[str, ...] = ()
    wrong: str = ""

    @classmethod
    def failure(cls, task: Task, error: str, seconds: float = 0.0) -> "Outcome":
        return cls({}, {}, np.full(task.shape, FAILED, np.int8), seconds, (error,))

    def check(self, taken: Sequence[str]) -> None:
        """Raises `WrongResult` for observables that do not fit what their class declares, or whose
        names or dimensions are `taken`."""
        if self.wrong:
            raise WrongResult(self.wrong)
        extents: dict[str, tuple[int, str]] = {}
        for name, value in self.values.items():
            own = value.shape[self.status.ndim :]
            if name in taken:
                raise WrongResult(
                    f"an observable is called {name!r}, as a dimension or a variable of every "
                    "sweep: rename it"
                )
            if value.dtype.name not in KEPT:
                raise WrongResult(
                    f"{name} holds {value.dtype}: give booleans, integers, real or complex numbers"
                )
            if len(own) != len(self.dims[name]):
                declared = f"({', '.join(self.dims[name])})" if self.dims[name] else "one number"
                raise WrongResult(
                    f"{name} has shape {own}, but is declared as {declared}: let the shape follow "
                    "the annotation"
                )
            for dim, extent in zip(self.dims[name], own):
                if dim in taken:
                    raise WrongResult(
                        f"{name} has a dimension {dim!r}, as the sweep has: rename it"
                    )
                first, where = extents.setdefault(
                    dim, (int(dim), "the annotation") if dim.isdigit() else (extent, name)
                )
                if extent != first:
                    raise WrongResult(
                        f"{name} has shape {own}, ({', '.join(self.dims[name])}): {where} says "
                        f"{dim} = {first}"
                    )


def _status(values: dict[str, np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """The status of each point: done, unconverged, or failed (unconverged and without a single
    finite number)."""
    rows = {name: value.reshape((*shape, -1)) for name, value in values.items()}
    converged = rows["converged"].all(-1) if "converged" in rows else np.ones(shape, bool)
    absent = [
        np.isnan(row).all(-1) for row in rows.values() if np.issubdtype(row.dtype, np.inexact)
    ]
    nothing = np.all(absent, axis=0) if absent else np.zeros(shape, bool)
    return np.where(converged, DONE, np.where(nothing, FAILED, UNCONVERGED)).astype(np.int8)


def _stack(
    results: Sequence[Result | None], shape: tuple[int, ...]
) -> tuple[dict[str, np.ndarray], dict, np.ndarray]:
    """Stacks the results of single points into arrays over the block; points without a result are
    NaN (or zero) and marked as failed."""
    model = next((result for result in results if result is not None), None)
    if model is None:
        return {}, {}, np.full(shape, FAILED, np.int8)
    dims = type(model).dims()
    observed = [None if result is None else result.observables() for result in results]
    values: dict[str, np.ndarray] = {}
    for name, one in model.observables().items():
        absent = np.full_like(one, blank(one.dtype))
        rows = [absent if observables is None else observables[name] for observables in observed]
        values[name] = np.stack(rows).reshape((*shape, *one.shape))
    failed = np.asarray([result is None for result in results]).reshape(shape)
    return values, dims, np.where(failed, FAILED, _status(values, shape)).astype(np.int8)


def _checked(result: Any, fn: Callable) -> Result:
    if not isinstance(result, Result):
        raise WrongResult(f"{describe(fn)} returned {type(result).__name__}, not a Result")
    try:
        type(result).dims()
    except TypeError as error:
        raise WrongResult(str(error)) from None
    return result


def _as_others(result: Result, results: Sequence[Result | None]) -> Result:
    """The result, if it has the type and shapes of the results at other points. Raises `ValueError`
    otherwise."""
    model = next((other for other in results if other is not None), result)
    if type(model) is not type(result):
        raise ValueError(
            f"returned {type(result).__name__} here and {type(model).__name__} at other points"
        )
    others = model.observables()
    for name, value in result.observables().items():
        if value.shape != others[name].shape:
            raise ValueError(
                f"{name} has shape {value.shape} here and {others[name].shape} at other points"
            )
    return result


def _wrong(task: Task, error: WrongResult) -> Outcome:
    return dataclasses.replace(Outcome.failure(task, str(error)), wrong=str(error))


def describe(fn: Callable, *, registered: bool = False) -> str:
    """The text `module.name(keyword=value)` of a function or `functools.partial`.

    registered: name a theory or an experiment by its name in the registry, `topic.name`, which does
    not change when its module moves.
    """
    if registered and isinstance(fn, Verb):
        return fn.name
    inner = getattr(fn, "func", None)
    if inner is not None:
        arguments = [repr(a) for a in getattr(fn, "args", ())]
        arguments += [f"{k}={v!r}" for k, v in sorted(getattr(fn, "keywords", {}).items())]
        return f"{describe(inner, registered=registered)}({', '.join(arguments)})"
    return f"{getattr(fn, '__module__', '?')}.{getattr(fn, '__qualname__', type(fn).__name__)}"


def fn_name(fn: Callable) -> str:
    """Short name of a function or partial: the label of its curve."""
    return describe(fn).split("(")[0].rsplit(".", 1)[-1].replace("_", " ")


def _words(point: dict[str, Any]) -> str:
    parts = (
        f"{name} = {value if is_number(value) else label(value)}" for name, value in point.items()
    )
    return ", ".join(parts) or "the only point"


def _message(error: BaseException) -> str:
    lines = message_of(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


@dataclass
class TheoryRun:
    """A theory over a grid. Numeric dimensions are vmapped inside one compiled program per
    combination of the others."""

    fn: Callable[..., Any]
    system: System
    grid: Grid
    memory: int
    sizes: set[int] = field(default_factory=set)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "bound"}

    @cached_property
    def bound(self) -> tuple[Theory, dict[str, Any]]:
        """The theory and its options. A function without the decorator becomes a theory for this
        sweep only."""
        verb, options = unwrap(self.fn)
        if isinstance(verb, Theory):
            return verb, options

        def plain(system: System) -> Any:
            return self.fn(system)

        plain.__module__, plain.__qualname__ = type(self).__module__, fn_name(self.fn)
        return Theory(plain, None, True, True), {}

    @property
    def static_dims(self) -> tuple[str, ...]:
        return tuple(
            name
            for name, values in self.grid.over.items()
            if not numeric(values) or self._is_static(name)
        )

    def _is_static(self, path: str) -> bool:
        module: Any = self.system
        *parents, last = path.split(".")
        for name in parents:
            module = getattr(module, name)
        return bool(module.__dataclass_fields__[last].metadata.get("static", False))

    def block_shape(self) -> tuple[int, ...]:
        """The shape of a block with as many points as fit into `memory` bytes of temporaries and
        outputs, by the compiler's estimate.

        For a host algorithm it is one point at a time: each is kept as it finishes, and workers
        share them.
        """
        if not self.bound[0].traced:
            return (1,) * len(self.grid.dims)
        shape = self.grid.block_shape(1024, self.static_dims)
        first = next(iter(self.grid.blocks(shape)))
        points = len(self.grid.points(first))
        if points == 1:
            return shape
        try:
            static, batch = self._split(self.grid.points(first))
            analysis = self._program(static, tuple(batch), rounded_up(points))[0].memory_analysis()
            used = (analysis.temp_size_in_bytes + analysis.output_size_in_bytes) if analysis else 0
        except KeyboardInterrupt:
            raise
        except BaseException:  # the evaluation of the block reports errors point by point
            return shape
        if used <= self.memory:
            return shape
        self.sizes.clear()
        return self.grid.block_shape(max(1, int(points * self.memory / used)), self.static_dims)

    def _split(self, points: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        static = {name: points[0][name] for name in self.static_dims}
        batch = {
            n: np.asarray([float(p[n]) for p in points]) for n in self.grid.dims if n not in static
        }
        return static, batch

    def _program(
        self, static: dict[str, Any], batched: tuple[str, ...], size: int
    ) -> tuple[Any, Any]:
        """The compiled theory for one combination of static values, and the system's numbers to
        call it with."""
        theory, options = self.bound
        made = theory.batched(replace(self.system, static), options, batched, size)
        self.sizes.add(size)
        return made

    def __call__(self, task: Task) -> Outcome:
        start = time.perf_counter()
        points = self.grid.points(task.block)
        shape = task.shape
        errors: tuple[str, ...] = ()
        try:
            if not self.bound[0].traced:
                values, dims, status, errors = self._one_by_one(points, shape)
            else:
                values, dims, status = self._batched(points, shape)
        except WrongResult as error:
            return _wrong(task, error)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            try:
                values, dims, status, errors = self._one_by_one(points, shape, error)
            except WrongResult as wrong:
                return _wrong(task, wrong)
        return Outcome(values, dims, status, time.perf_counter() - start, errors)

    def where(self, task: Task) -> str:
        """The point or block of a task, as a text."""
        points = self.grid.points(task.block)
        return (
            f"{_words(points[0])} to {_words(points[-1])}" if len(points) > 1 else _words(points[0])
        )

    def _batched(
        self, points: list[dict[str, Any]], shape: tuple[int, ...]
    ) -> tuple[dict, dict, np.ndarray]:
        theory, options = self.bound
        if theory.judges:
            for point in points:
                theory.judge(replace(self.system, point), options)
        static, batch = self._split(points)
        # an edge block is padded: no second compilation
        size = rounded_up(max([len(points), *self.sizes]))
        program, numbers = self._program(static, tuple(batch), size)
        padded = {
            name: np.pad(column, (0, size - len(points)), mode="edge")
            for name, column in batch.items()
        }
        with one_blas_thread() if batch else nullcontext():
            result = jax.block_until_ready(program(numbers, padded))
        values = {}
        for name, value in _checked(result, self.fn).observables().items():
            value = value[: len(points)] if batch else value[None]
            values[name] = value.reshape((*shape, *value.shape[1:]))
        return values, type(result).dims(), _status(values, shape)

    def _one_by_one(
        self,
        points: list[dict[str, Any]],
        shape: tuple[int, ...],
        error: BaseException | None = None,
    ) -> tuple[dict, dict, np.ndarray, tuple[str, ...]]:
        """Evaluates each point separately: for host algorithms, and after the failure of a batch,
        so that one bad point does not spoil the others."""
        results: list[Result | None] = []
        errors: list[str] = []
        for point in points:
            try:
                results.append(
                    _as_others(_checked(self.fn(replace(self.system, point)), self.fn), results)
                )
            except (WrongResult, KeyboardInterrupt):
                raise
            except BaseException as single:
                results.append(None)
                errors.append(f"{_words(point)}: {_message(single)}")
        if error is not None and any(result is not None for result in results):
            warnings.warn(
                f"{describe(self.fn)} could not be batched ({_message(error)}); evaluated point by "
                "point",
                stacklevel=2,
            )
        return (*_stack(results, shape), tuple(errors))


@dataclass
class ExperimentRun:
    """An experiment over a grid: a task is one point and one seed, or all seeds of a point in one
    vmapped call."""

    fn: Callable[[System, jax.Array], Result]
    system: System
    grid: Grid
    seeds: tuple[int, ...]
    batch_seeds: bool
    paired: tuple[str, ...]

    def _seeds(self, task: Task) -> tuple[int, ...]:
        return self.seeds[task.seeds or slice(None)]

    def block_shape(self) -> tuple[int, ...]:
        return (*(1 for _ in self.grid.dims), len(self.seeds) if self.batch_seeds else 1)

    def __call__(self, task: Task) -> Outcome:
        start = time.perf_counter()
        (point,) = self.grid.points(task.block)
        keys = [point_key(seed, point, self.paired) for seed in self._seeds(task)]
        try:
            system = replace(self.system, point)
            if self.batch_seeds:
                divided = jax.device_put(jnp.stack(keys), over_devices(len(keys)))
                with one_blas_thread():
                    batch = jax.block_until_ready(
                        _checked(jax.vmap(lambda k: self.fn(system, k))(divided), self.fn)
                    )
                results: list[Result | None] = [
                    jax.tree.map(lambda leaf, i=i: leaf[i], batch) for i in range(len(keys))
                ]
            else:
                results = [
                    jax.block_until_ready(_checked(self.fn(system, key), self.fn)) for key in keys
                ]
            return Outcome(*_stack(results, task.shape), time.perf_counter() - start)
        except WrongResult as error:
            return _wrong(task, error)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return Outcome.failure(
                task, f"{self.where(task)}: {_message(error)}", time.perf_counter() - start
            )

    def where(self, task: Task) -> str:
        """The point and seeds of a task, as a text."""
        return (
            f"{_words(self.grid.points(task.block)[0])}, seed "
            f"{', '.join(map(str, self._seeds(task)))}"
        )


Program = TheoryRun | ExperimentRun


def pickled(program: Program) -> bytes:
    """The pickled program that other processes receive. Raises `ValueError` for a function of a
    person's own file that was edited since it was loaded: they would import what it is now."""
    import cloudpickle

    check_unedited(getattr(unwrap(program.fn)[0], "__module__", ""))
    return cloudpickle.dumps(program)
