"""Theories along the axis of a page, in worker threads: the latest request alone counts, and what
is stale ends early.

A page asks as often as a slider moves. While one request is evaluated the next waits, and is
replaced by a newer one: nothing is computed for a position that the slider has left, and the page
is never blocked. Every curve is an `op.sweep` of the same number of points, so that other numbers
of the same system run a program that is compiled already. Host algorithms, whose points are solved
one by one, are drawn ever finer.
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

KEPT = 24  # compiled programs; beyond them all are forgotten, so that memory does not grow
THREADS = 3
# every so many points of the axis are there, pass by pass, of a theory that is not compiled
FINER = (16, 8, 4, 2, 1)

_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="theories")
# a page opens while theories are compiled
_opening = ThreadPoolExecutor(2, thread_name_prefix="opening")
_compiled: set[Any] = set()
_changing = threading.Lock()


class Stale(Exception):
    """A newer request has come."""


@dataclass(frozen=True)
class Drawn:
    """A theory along the axis: its data, or why there are none. milliseconds: what it took.

    stored: whether it comes with the package, to four digits, until the theory is evaluated.
    """

    theory: str
    data: xr.Dataset | None
    problem: str
    milliseconds: float
    stored: bool = False


@dataclass
class Latest:
    """Runs the latest of the requests that are asked for, one after another, in a worker thread.

    work(request, stale): what is done; `stale()` says whether a newer one waits. since: when the
    running one began.
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
        """Drops what waits and makes stale what runs."""
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
    """Whether a theory runs without being compiled first, as far as is known."""
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
    """One theory along the axis. seen: called with what there is of a curve that is drawn ever
    finer.

    Raises `Stale` where a newer request has come between two of its blocks.
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
    lost: list[str] = []  # why, for each point of a pass in which all failed

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
        except Exception as error:  # a theory says why, in whatever type; the page shows it
            lost += len(own) * [_sentence(error)]
    if traced and parts:
        remember(_structure(state, name))
    return drawn()


def _ever_finer(grid: list[float]) -> Iterator[list[float]]:
    """The points of each pass: those between the points before."""
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
    """Whether a sweep takes an executor for it: not for what is defined in a running script."""
    return isinstance(unwrap(fn)[0], Theory) and unwrap(fn)[0].__module__ != "__main__"


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 400 else f"{text[:397]}..."


def remember(structure: Any) -> None:
    """Counts a program that was compiled; where there are too many, all are forgotten."""
    with _changing:
        _compiled.add(structure)
        if len(_compiled) > KEPT:
            _compiled.clear()
            forget_programs()
            jax.clear_caches()
