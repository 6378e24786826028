"""Evaluates a theory at any points of its axes, in compiled batches whose results are kept as they
finish."""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from orderparam.analysis.phases.axes import Axis
from orderparam.core.errors import SweepError
from orderparam.core.grid import Listed
from orderparam.core.names import nearest
from orderparam.core.system import System
from orderparam.core.verb import Theory, unwrap
from orderparam.running.program import Task, TheoryRun, fn_name
from orderparam.running.status import FAILED, UNCONVERGED
from orderparam.running.store import MemoryStore, PointStore
from orderparam.running.sweep import identity

Order = str | Sequence[str] | Callable[[xr.Dataset], xr.DataArray]

# seconds above which a batch is written to disk: a faster one is computed again as fast as it is
# read
WORTH_KEEPING = 0.1
SMALL = 16  # points of a small call: with two sizes at most two programs are compiled
# names of options that choose among several solutions
BRANCH_OPTIONS = ("branch", "start")
STABLE = "stable"
# words for the branch of lowest free energy, which theories with this option choose themselves
_OF_LEAST = ("stable", "lowest")


@dataclass
class Points:
    """The order parameters of a theory at requested points, all of which are remembered.

    A view is one branch of the theory, or `stable`: at every point the branch of lowest free energy
    among those whose field `stable`, if they have one, is not False; it is unknown where one of the
    branches did not converge. Without branches there is one view, whose name is empty. unit:
    coordinates in the unit square; values: (point, view, component); NaN where the branch does not
    exist or the point failed, infinite where it did not converge; such a value is never used.
    unconverged, failed: the numbers of evaluations that did not converge, and that failed.
    """

    fn: Callable[..., Any]
    system: System
    axes: tuple[Axis, ...]
    order: Order
    branches: tuple[tuple[str, Callable[..., Any]], ...]
    store: Path | None
    batch: int
    unit: list[np.ndarray] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)
    views: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    calls: int = 0
    unconverged: int = 0
    failed: int = 0

    def __call__(self, unit: np.ndarray) -> np.ndarray:
        """(n, axes) -> (n, view, component); a point that occurs twice in one call is evaluated
        once."""
        unit, inverse = np.unique(unit, axis=0, return_inverse=True)
        count = -(-len(unit) // self.batch)
        # Every batch has points from the entire range: if all points of a batch fail, no point of
        # the range can be expected to succeed.
        parts = [self._batch(unit[start::count]) for start in range(count)]
        values = np.zeros(
            (len(unit), *(parts[0].shape[1:] if parts else (len(self.views), len(self.components))))
        )
        for start, part in enumerate(parts):
            values[start::count] = part
        self.unit.append(unit)
        self.values.append(values)
        return values[inverse.reshape(-1)]

    def _batch(self, unit: np.ndarray) -> np.ndarray:
        columns = {
            axis.name: tuple(axis.value(unit[:, k]).tolist()) for k, axis in enumerate(self.axes)
        }
        orders: list[np.ndarray] = []
        energies: list[np.ndarray | None] = []
        unknown = np.zeros(len(unit), bool)
        for name, fn in self.branches:
            data = self._evaluate(name, fn, Listed(columns), len(unit))
            # not in the first batch, whose failure is an error
            if np.all(data["status"].values == FAILED):
                orders.append(np.full((len(unit), len(self.components)), np.nan))
                energies.append(np.full(len(unit), np.inf))
                continue
            order, self.components = _order(data, self.order)
            lost = data["status"].values == UNCONVERGED
            if "valid" in data:
                valid = np.asarray(data["valid"].values.reshape(len(unit), -1).all(axis=1))
                order, lost = np.where(valid[:, None], order, np.nan), lost & valid
            energy = _free_energy(data, order)
            if energy is not None and "stable" in data:
                energy = np.where(data["stable"].values, energy, np.inf)
            energies.append(energy)
            orders.append(np.where(lost[:, None], np.inf, order))
            unknown |= lost
            self.unconverged += int(np.sum(lost))
        self.calls += 1
        names = [name for name, _ in self.branches]
        values = np.stack(orders, axis=1)
        given = [energy for energy in energies if energy is not None]
        if len(names) > 1 and not set(_OF_LEAST) & set(names) and len(given) == len(names):
            least = _least(np.stack(given, axis=1), values)
            lowest = np.where(unknown[:, None], np.inf, values[np.arange(len(unit)), least])
            values = np.concatenate([lowest[:, None], values], axis=1)
            names = [STABLE, *names]
        self.views = tuple(names)
        return values

    def _evaluate(
        self, name: str, fn: Callable[..., Any], listed: Listed, count: int
    ) -> xr.Dataset:
        """One batch of one branch: read from disk where it is stored, and otherwise computed, and
        stored where that took long enough."""
        size = min(SMALL, self.batch) if count <= SMALL else self.batch
        run = TheoryRun(fn, self.system, listed, 0, {size})
        coords, task = {"point": np.arange(count)}, Task((slice(0, count),))
        words = "-".join(
            filter(
                None,
                ("batch", f"{self.calls:04d}", "".join(c if c.isalnum() else "-" for c in name)),
            )
        )
        kept = None if self.store is None else self.store / f"{words}.zarr"

        def stored() -> PointStore:
            return PointStore(
                str(kept), identity(fn, self.system, listed, None, ()), coords, lambda: (count,)
            )

        with (
            stored()
            if kept is not None and kept.exists()
            else MemoryStore(coords, (count,)) as points
        ):
            start = time.perf_counter()
            outcomes = [run(waiting) for waiting in points.unfinished([task])]
            seconds = time.perf_counter() - start
            for outcome in outcomes:
                if (outcome.status == FAILED).all() and not self.values:
                    why = outcome.errors[0] if outcome.errors else "it is no number"
                    raise SweepError(f"{fn_name(fn)}: every point failed; the first: {why}")
                points.write(task, outcome)
            data = points.dataset({})
        if kept is not None and not kept.exists() and seconds >= WORTH_KEEPING:
            with stored() as keep:
                keep.write(task, outcomes[0])
        self.failed += int(np.sum(data["status"].values == FAILED))
        return data


def points_of(
    theory: Callable[..., Any],
    system: System,
    axes: tuple[Axis, ...],
    order: Order,
    branches: Sequence[str] | None,
    store: str | Path | None,
    batch: int,
) -> Points:
    """The points of a theory. Raises `ValueError` for anything but a theory, for a system of a
    wrong type, and for unknown observables and branches."""
    verb, options = unwrap(theory)
    if not isinstance(verb, Theory):
        raise ValueError(
            f"{fn_name(theory)} is no theory: only a theory can be asked at points that follow "
            "from its answers"
        )
    verb.accept(system, options)
    if not callable(order):
        observables = [name for result in verb.results for name in result.dims()]
        for name in (order,) if isinstance(order, str) else tuple(order):
            if name not in observables:
                raise ValueError(
                    f"{verb.name} has no observable {name!r}{nearest(str(name), observables)}"
                )
    if not 1 <= batch <= 10**6:
        raise ValueError(f"batch = {batch}: must be a number of points, at least 1")
    chosen = _branches(verb, theory, options, branches)
    return Points(
        theory, system, axes, order, chosen, None if store is None else Path(store), int(batch)
    )


def _branches(
    verb: Theory, theory: Callable[..., Any], options: dict[str, Any], asked: Sequence[str] | None
) -> tuple[tuple[str, Callable[..., Any]], ...]:
    option = next(
        (name for name in BRANCH_OPTIONS if verb.choices(name) and name not in options), None
    )
    choices = [str(word) for word in verb.choices(option)] if option else []
    for word in asked or ():
        if word not in choices:
            reason = (
                nearest(str(word), choices) if choices else ": it has no option that chooses one"
            )
            raise ValueError(f"{verb.name} has no branch {word!r}{reason}")
    words = choices if asked is None else list(asked)
    if option is None or not words:
        return (("", theory),)
    return tuple((word, functools.partial(theory, **{option: word})) for word in words)


def _order(data: xr.Dataset, order: Order) -> tuple[np.ndarray, tuple[str, ...]]:
    """The order parameters (point, component) and the names of the components."""
    if callable(order):
        arrays = [order(data).rename(getattr(order, "__name__", "order"))]
    else:
        arrays = [data[name] for name in ((order,) if isinstance(order, str) else order)]
    columns, names = [], []
    for array in arrays:
        flat = np.asarray(array.transpose("point", ...).values, float).reshape(
            data.sizes["point"], -1
        )
        columns.append(flat)
        names += (
            [str(array.name)]
            if flat.shape[1] == 1
            else [f"{array.name} {k + 1}" for k in range(flat.shape[1])]
        )
    return np.concatenate(columns, axis=1), tuple(names)


def _least(energies: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The branch of lowest free energy at every point. Where free energies differ only by rounding,
    as near a continuous transition, it is the branch with the larger order parameter."""
    floor = np.min(energies, axis=1, keepdims=True)
    rounding = np.where(np.isfinite(floor), 1e-13 * (1 + np.abs(floor)), 0.0)
    equal = energies <= floor + rounding
    size = np.where(np.isfinite(values), np.abs(values), 0.0).sum(axis=2)
    return np.argmax(np.where(equal, size, -1.0), axis=1)


def _free_energy(data: xr.Dataset, order: np.ndarray) -> np.ndarray | None:
    """The free energy of one branch at every point, infinite where the branch does not exist; None
    where the theory has no free energy."""
    for name, sign in (("free_energy", 1.0), ("free_entropy", -1.0)):
        if name in data and data[name].ndim == 1:
            energy = sign * data[name].values
            return np.where(np.isnan(energy) | np.isnan(order).any(axis=1), np.inf, energy)
    return None
