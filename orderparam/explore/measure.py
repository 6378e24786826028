"""Experiments in background processes: their points go into a store as they finish, and are found
again there.

A measurement is an `op.sweep` with a store. What is drawn is read from that store, whether this
page measures, another one does, or it was measured last week.
"""

import functools
import hashlib
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import xarray as xr

from orderparam.core.errors import SweepError
from orderparam.core.verb import unwrap
from orderparam.explore.state import PageState
from orderparam.running.layout import StoreError
from orderparam.running.program import FAILED, MISSING
from orderparam.running.store import read
from orderparam.running.sweep import sweep
from orderparam.running.workers import run_in_workers

MOST = 4  # measurements of one server at a time
WORKERS = max(1, min(4, (os.cpu_count() or 2) - 1))

_free = threading.BoundedSemaphore(MOST)


def store_of(state: PageState, folder: Path) -> Path:
    """Where the points of a measurement are kept: one place for each system, experiment, options,
    points and seeds."""
    kept = state.with_(theories=(), show=(), order="", y="", options=_of(state), measured=0)
    text = f"{kept.address} {state.places}"
    name = f"{state.experiment}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return folder / "measurements" / f"{name}.zarr"


def _of(state: PageState) -> dict[tuple[str, str], object]:
    return {
        (state.experiment, option): value
        for option, value in sorted(state.own_options(state.experiment).items())
    }


@dataclass(frozen=True)
class MeasuredPoints:
    """What is known of a measurement: its points so far, how many runs are done, failed and wanted."""

    data: xr.Dataset
    done: int
    failed: int
    wanted: int


def measured(state: PageState, folder: Path) -> MeasuredPoints | None:
    """The points that a store holds, finished or not; None where there is none."""
    path = store_of(state, folder)
    if not state.experiment or not path.is_dir():
        return None
    try:
        data = read(path, whole=False)
    except StoreError:  # it is being written at this moment, or damaged: the sweep itself says so
        return None
    status = data["status"].values
    failed = int(np.sum(status == FAILED))
    data = data.assign_attrs(label=state.experiment)
    return MeasuredPoints(data, int(np.sum(status != MISSING)) - failed, failed, int(status.size))


@dataclass
class Measurement:
    """A running measurement. problem: why it ended early, in a sentence."""

    state: PageState
    folder: Path
    problem: str = ""
    ended: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Raises `ValueError` where too many are running, or the experiment refuses its system."""
        verb, options = unwrap(self.state.verb_with_options(self.state.experiment))
        verb.accept(self.state.instance, options)
        if not _free.acquire(blocking=False):
            raise ValueError(f"{MOST} measurements are running here: cancel one, or wait")
        threading.Thread(target=self._run, name="measurement", daemon=True).start()

    def cancel(self) -> None:
        """Kills its worker processes; finished points are kept."""
        self._stop.set()

    def _run(self) -> None:
        state = self.state
        executor = functools.partial(run_in_workers, WORKERS, stop=self._stop)
        try:
            path = store_of(state, self.folder)
            path.parent.mkdir(parents=True, exist_ok=True)
            over, fn = {state.x: state.places}, state.verb_with_options(state.experiment)
            data = sweep(
                fn,
                state.instance,
                over,
                seeds=state.seeds,
                store=path,
                executor=executor,
                progress=False,
            )
            failures = data.attrs.get("failures", [])
            self.problem = failures[0] if failures else ""
        except (ValueError, OSError, SweepError) as error:
            self.problem = " ".join(str(error).split())
        finally:
            self.ended = True
            _free.release()
