"""Evaluates theories along the axis of a page in worker threads. Only the latest request counts; an
outdated one ends early.

A page sends a request whenever a slider moves. While one request is evaluated the next one waits,
and a newer one replaces it: nothing is computed for a position that the slider has left, and the
page is never blocked. Every curve is an `op.sweep` of the same number of points, so that other
numbers of the same system run a program that is already compiled. Host algorithms, whose points are
solved one by one, are drawn in passes, each finer than the last.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import jax
import xarray as xr

from orderparam.core.verb import Theory, forget_programs, unwrap
from orderparam.explore.state import PageState
from orderparam.explore.written import text
from orderparam.running.program import Outcome, Program, Task
from orderparam.running.sweep import sweep

# largest number of compiled programs; above it all are dropped, so that memory does not grow
KEPT = 24
THREADS = 3
# spacing of the points in each pass of a theory that is not compiled
FINER = (16, 8, 4, 2, 1)

_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="theories")
# a page may open while theories are being compiled
_opening = ThreadPoolExecutor(2, thread_name_prefix="opening")
_compiled: set[Any] = set()
_changing = threading.Lock()


class Stale(Exception):
    """A newer request has come."""


@dataclass(frozen=True)
class Drawn:
    """A theory along the axis: its data, or the reason why there are none. milliseconds: the time
    it took.

    stored: True for a curve stored in the package to four digits, which is shown until the theory
    is evaluated.
    """

    theory: str
    data: xr.Dataset | None
    problem: str
    milliseconds: float
    stored: bool = False


@dataclass
class Latest:
    """Runs requests one after another in a worker thread, always the latest one that waits.

    work(request, stale): the function that runs; `stale()` is true if a newer request waits. since:
    the time at which the running request began.
    """

    work: Callable[[Any, Callable[[], bool]], None]
    since: float | None = None
    _wanted: list[Any] = field(default_factory=list)
    _running: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, request: Any) -> None:
        with self._lock:
            self._wanted[:] = [request]
            if self._running:
                return
            self._running = True
        _pool.submit(self._serve)

    def end(self) -> None:
        """Drops the waiting request and marks the running one as outdated."""
        with self._lock:
            self._wanted[:] = [None]

    def _serve(self) -> None:
        while True:
            with self._lock:
                request = self._wanted.pop() if self._wanted else None
                self.since = None if request is None else time.perf_counter()
                if request is None:
                    self._running = False
                    return
            try:
                self.work(request, lambda: bool(self._wanted))
            except Stale:
                continue


def in_background(work: Callable[[], None]) -> None:
    """Runs a function in a thread of its own."""
    _opening.submit(work)


def is_compiled(state: PageState, name: str) -> bool:
    """True if a theory is known to run without being compiled first."""
    return _structure(state, name) in _compiled


def _structure(state: PageState, name: str) -> Any:
    words = tuple(
        (field, text(value)) for field, value in state.changes.items() if field not in state.knobs
    )
    begin = state.system, state.opening.name
    return (
        name,
        begin,
        words,
        state.x,
        len(state.grid),
        tuple(sorted(state.own_options(name).items(), key=str)),
    )


def curve(
    state: PageState,
    name: str,
    stale: Callable[[], bool],
    seen: Callable[[Drawn], None] = lambda part: None,
) -> Drawn:
    """One theory along the axis. seen: called with each pass of a curve that is drawn in passes.

    Raises `Stale` where a newer request arrived between two of its blocks.
    """

    def in_turn(program: Program, tasks: Iterable[Task]) -> Iterator[tuple[Task, Outcome]]:
        for task in tasks:
            if stale():
                raise Stale
            yield task, program(task)

    started = time.perf_counter()
    fn, system, grid = state.verb_with_options(name), state.instance, state.grid
    traced = getattr(unwrap(fn)[0], "traced", False)
    executor = in_turn if _travels(fn) else None
    parts: list[xr.Dataset] = []
    lost: list[str] = []  # the reason for each point of a pass in which all failed

    def drawn() -> Drawn:
        milliseconds = 1e3 * (time.perf_counter() - started)
        return Drawn(
            name,
            _joined(parts, lost, state.x) if parts else None,
            "" if parts else lost[0],
            milliseconds,
        )

    for own in [grid] if traced else _ever_finer(grid):
        if parts:
            seen(drawn())
        try:
            parts.append(sweep(fn, system, {state.x: own}, progress=False, executor=executor))
        except Stale:
            raise
        # an exception of any type gives the reason, which the page shows
        except Exception as error:
            lost += len(own) * [_sentence(error)]
    if traced and parts:
        remember(_structure(state, name))
    return drawn()


def _ever_finer(grid: list[float]) -> Iterator[list[float]]:
    """The points of each pass: those half way between the points of the passes before."""
    done: set[int] = set()
    for step in FINER:
        new = [i for i in range(0, len(grid), step) if i not in done]
        done.update(new)
        if new:
            yield [grid[i] for i in new]


def _joined(parts: list[xr.Dataset], lost: list[str], x: str) -> xr.Dataset:
    """The points of all parts, in order."""
    data = xr.concat(parts, x, join="outer").sortby(x) if len(parts) > 1 else parts[0]
    count = {
        key: sum(part.attrs[key] for part in parts) for key in ("points", "failed", "unconverged")
    }
    failures = [*lost, *(one for part in parts for one in part.attrs.get("failures", []))]
    count = {**count, "points": count["points"] + len(lost), "failed": count["failed"] + len(lost)}
    return data.assign_attrs(parts[0].attrs, **count, failures=failures)


def _travels(fn: Callable[..., Any]) -> bool:
    """True if the theory can run in another process: not if it is defined in a running script."""
    return isinstance(unwrap(fn)[0], Theory) and unwrap(fn)[0].__module__ != "__main__"


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 400 else f"{text[:397]}..."


def remember(structure: Any) -> None:
    """Counts a program that was compiled; where there are too many, all are dropped."""
    with _changing:
        _compiled.add(structure)
        if len(_compiled) > KEPT:
            _compiled.clear()
            forget_programs()
            jax.clear_caches()
