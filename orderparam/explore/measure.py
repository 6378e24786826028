"""Experiments in background processes. Finished points go into a store and are found there again.

A measurement is an `op.sweep` with a store. The figure is drawn from that store, whether this page
measures, another one does, or the points were measured last week.
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
from orderparam.running.status import FAILED, MISSING
from orderparam.running.store import read
from orderparam.running.sweep import sweep
from orderparam.running.workers import run_in_workers

MOST = 4  # largest number of measurements that one server runs at a time
WORKERS = max(1, min(4, (os.cpu_count() or 2) - 1))

_free = threading.BoundedSemaphore(MOST)


def store_of(state: PageState, folder: Path) -> Path:
    """The place of the points of a measurement: one store for each system, experiment, options,
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
    """The state of a measurement: its points so far, and the numbers of runs that are done, failed
    and wanted."""

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
    # it is being written at this moment, or is damaged, which the sweep itself reports
    except StoreError:
        return None
    status = data["status"].values
    failed = int(np.sum(status == FAILED))
    data = data.assign_attrs(label=state.experiment)
    return MeasuredPoints(data, int(np.sum(status != MISSING)) - failed, failed, int(status.size))


@dataclass
class Measurement:
    """A running measurement. problem: a sentence on why it ended early."""

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
