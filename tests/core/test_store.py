"""The store of a sweep: nothing lost, nothing computed twice, nothing damaged believed."""

import errno
import functools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from damage import silent
from jaxtyping import Array, Bool, Complex, Float, Int
from magnet import Magnetisation, Paramagnet, counted, exact, sampled

import orderparam as op
from orderparam.core.grid import Grid
from orderparam.running.program import ExperimentRun, Task
from orderparam.running.store import PointStore, StoreError, read
from orderparam.running.sweep import identity

SYSTEM = Paramagnet(1.0)
GRID = {"temperature": [0.5, 1.0, 2.0], "field": [0.1, 0.2]}


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setenv("ORDERPARAM_TEST_LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def held(path):
    """The store of `sweep(counted, SYSTEM, GRID, seeds=2)`, open."""
    grid = Grid.of(GRID)
    coords = {**grid.coords(), "seed": np.arange(2)}
    return PointStore(
        path, identity(counted, SYSTEM, grid, coords["seed"], ()), coords, lambda: (1, 1, 1)
    )


def write_points(store, points):
    program = ExperimentRun(counted, SYSTEM, Grid.of(GRID), (0, 1), False, ())
    for i, j in points:
        task = Task((slice(i, i + 1), slice(j, j + 1)), slice(0, 1))
        store.write(task, program(task))


def test_a_store_goes_on_after_its_theory_moved_to_another_module(tmp_path):
    calls = []

    def exactly(system: Paramagnet, *, power: float = 1.0) -> Magnetisation:
        calls.append(float(system.temperature))
        m = jnp.tanh(system.field / system.temperature) ** power
        return Magnetisation(
            magnetisation=m, occupation=jnp.stack([1 - m, 1 + m]) / 2, converged=jnp.asarray(True)
        )

    def swept(module):
        exactly.__module__ = f"orderparam.systems.spins.{module}"
        fn = functools.partial(op.core.verb.Theory(exactly, None, False, False), power=2.0)
        return op.sweep(fn, SYSTEM, {"temperature": [0.5, 1.0]}, store=tmp_path / "s.zarr")

    before = swept("mean_field.theory")
    after = swept("magnets")
    assert calls == [0.5, 1.0]
    xr.testing.assert_identical(before.drop_attrs(), after.drop_attrs())


def test_a_stored_sweep_is_not_computed_again(tmp_path, log):
    first = op.sweep(counted, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    second = op.sweep(counted, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    assert len(log.read_text().splitlines()) == 12
    xr.testing.assert_identical(first.drop_attrs(), second.drop_attrs())
    xr.testing.assert_identical(first.drop_attrs(), read(tmp_path / "s.zarr").drop_attrs())


def test_only_missing_and_failed_points_run_again(tmp_path, log):
    with held(tmp_path / "s.zarr") as store:
        write_points(store, [(0, 0), (2, 1)])
    log.write_text("")
    op.sweep(counted, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    assert len(log.read_text().splitlines()) == 10


class Everything(op.Result):
    """Every type of number that an observable may have, and an empty one."""

    real: Float[Array, "i j"]
    single: Float[Array, ""]
    whole: Int[Array, "i"]
    complex: Complex[Array, "j"]
    yes: Bool[Array, ""]
    none: Float[Array, "empty"]


def everything(system):
    x = system.temperature
    return Everything(
        real=x * jnp.arange(6.0).reshape(2, 3),
        single=x.astype(jnp.float32),
        whole=jnp.asarray([1, 2]) + x.astype(int),
        complex=x * jnp.asarray([1j, 2, 0]),
        yes=x > 1,
        none=jnp.zeros(0),
    )


def test_zarr_and_xarray_open_a_store(tmp_path):
    """Of theories in blocks that do not divide the grid, with words along a dimension, and of a
    single point."""
    over = {"shape": ["tanh", "line"], "temperature": np.linspace(0.5, 2, 7)}
    for name, asked in (("grid", over), ("point", None)):
        path = tmp_path / name
        data = op.sweep(everything, SYSTEM, asked, store=path, memory=400).drop_attrs()
        opened = xr.open_zarr(path, consolidated=False).load().drop_vars("checksum").drop_attrs()
        if asked:
            opened["shape"] = opened["shape"].astype("U4")
            assert (path / "real" / "c.1.1.0.0").exists()  # several blocks
        xr.testing.assert_identical(opened, data)
        assert {name: value.dtype for name, value in data.items()} == {
            name: v.dtype for name, v in opened.items()
        }
        xr.testing.assert_identical(read(path).drop_attrs(), data)


def test_a_store_that_xarray_reads_has_its_bit_flips_noticed_there_too(tmp_path):
    op.sweep(exact, SYSTEM, GRID, store=tmp_path / "s.zarr")
    chunk = tmp_path / "s.zarr" / "magnetisation" / "c.0.0"
    chunk.write_bytes(b"\x01" + chunk.read_bytes()[1:])
    with pytest.raises(ValueError, match="checksum"):
        xr.open_zarr(tmp_path / "s.zarr", consolidated=False).load()


@pytest.mark.parametrize(
    "other",
    [{"system": Paramagnet(1.0, spins=401)}, {"over": {"temperature": [1.0]}}, {"seeds": 3}],
)
def test_the_store_of_another_sweep_is_refused(tmp_path, other):
    op.sweep(sampled, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    asked = {"system": SYSTEM, "over": GRID, "seeds": 2, **other}
    with pytest.raises(StoreError, match="holds another sweep"):
        op.sweep(sampled, store=tmp_path / "s.zarr", **asked)


def test_what_is_no_store_or_an_older_one_is_refused_and_left_alone(tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("x")
    for place in (foreign, tmp_path / "file"):
        with pytest.raises(StoreError, match="not the result of a sweep"):
            op.sweep(sampled, SYSTEM, GRID, seeds=1, store=place)
    assert [path.name for path in foreign.iterdir()] == ["thesis.tex"]
    assert (foreign / "thesis.tex").read_text() == "years of work"
    import zarr

    for attributes, message in (
        ({}, "not written by orderparam"),
        ({"orderparam": {"format": 1}}, "earlier version"),
    ):
        zarr.create_group(tmp_path / "group", attributes=attributes, overwrite=True)
        with pytest.raises(StoreError, match=message):
            op.sweep(sampled, SYSTEM, GRID, seeds=1, store=tmp_path / "group")


# -- damage --------------------------------------------------------------------------------------


def test_a_damaged_point_is_refused_and_its_remedy_computes_that_point_again(tmp_path, log):
    first = op.sweep(counted, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    chunks = tmp_path / "s.zarr" / "magnetisation"
    # a whole chunk in the place of another
    (chunks / "c.1.0.0").write_bytes((chunks / "c.1.0.1").read_bytes())
    with pytest.raises(StoreError, match=r"s\.zarr is damaged: 1 of its blocks") as caught:
        op.sweep(counted, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    (tmp_path / "s.zarr" / re.search(r"remove (\S+) in it", str(caught.value))[1]).unlink()
    with pytest.raises(StoreError, match="1 of 12 points are missing"):
        read(tmp_path / "s.zarr")
    log.write_text("")
    again = op.sweep(counted, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    assert len(log.read_text().splitlines()) == 1
    np.testing.assert_array_equal(again["magnetisation"], first["magnetisation"])


def test_the_coordinates_are_checked_and_what_was_removed_is_written_anew(tmp_path):
    first = op.sweep(sampled, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    axis = tmp_path / "s.zarr" / "temperature" / "c.0"
    axis.write_bytes(np.asarray([0.5, 1.0, 3.0]).tobytes() + axis.read_bytes()[-4:])
    with pytest.raises(StoreError, match=r"temperature/c\.0 was altered; remove that file"):
        read(tmp_path / "s.zarr")
    with pytest.raises(StoreError, match=r"temperature/c\.0 was altered; remove that file"):
        op.sweep(sampled, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    axis.unlink()
    (tmp_path / "s.zarr" / "occupation" / "zarr.json").unlink()
    with pytest.raises(StoreError, match=r"temperature/c\.0 is missing"):
        read(tmp_path / "s.zarr")
    again = op.sweep(sampled, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    xr.testing.assert_identical(again.drop_attrs(), first.drop_attrs())
    xr.testing.assert_identical(read(tmp_path / "s.zarr").drop_attrs(), first.drop_attrs())


def test_no_damage_passes_in_silence(tmp_path):
    """Sixty of the two thousand of tests/attacks."""
    draw = random.Random(1)
    resume = functools.partial(op.sweep, sampled, SYSTEM, GRID, seeds=2)
    truth = resume(store=tmp_path / "s.zarr")
    assert not [
        what for _ in range(60) if (what := silent(tmp_path / "s.zarr", truth, resume, draw))
    ]


# -- in use --------------------------------------------------------------------------------------


def test_a_store_that_is_removed_while_it_is_filled_is_written_anew_with_all_that_memory_holds(
    tmp_path,
):
    group = tmp_path / "result.zarr"
    op.sweep(sampled, SYSTEM, {"temperature": [1.0]}, seeds=1, store=group / "other")
    (group / "zarr.json").write_text(
        '{"zarr_format": 3, "node_type": "group", "attributes": {"mine": 1}}'
    )
    truth = op.sweep(sampled, SYSTEM, {"temperature": [1.0, 2.0]}, seeds=3)
    calls = 0

    def deleting(system, key):
        nonlocal calls
        calls += 1
        if calls in (3, 6):
            shutil.rmtree(group)
        return sampled(system, key)

    asked = {"over": {"temperature": [1.0, 2.0]}, "seeds": 3, "store": group / "s"}
    found = op.sweep(deleting, SYSTEM, **asked)
    assert calls == 6
    for data in (found, read(group / "s"), op.sweep(deleting, SYSTEM, **asked)):
        np.testing.assert_array_equal(data["magnetisation"], truth["magnetisation"])
    assert calls == 6
    assert "mine" in (group / "zarr.json").read_text()


def test_one_process_at_a_time_fills_a_store(tmp_path, log):
    path = tmp_path / "s.zarr"
    with held(path) as store:
        write_points(store, [(0, 0)])
        with pytest.raises(StoreError, match=r"s\.zarr is being filled by another process; wait"):
            op.sweep(counted, SYSTEM, GRID, seeds=2, store=path)
        write_points(store, [(1, 0)])
    assert len(log.read_text().splitlines()) == 2
    op.sweep(counted, SYSTEM, GRID, seeds=2, store=path)
    assert len(log.read_text().splitlines()) == 12


def test_leftovers_of_killed_processes_are_removed_and_those_of_living_ones_are_not(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    kept = [
        f".s.zarr.{os.getpid()}.new",
        f".other.zarr.{dead.pid}.new",
        f".s.zarr.elsewhere.{dead.pid}.new",
    ]
    for name in (f".s.zarr.{dead.pid}.new", f".s.zarr.{os.uname().nodename}.{dead.pid}.new", *kept):
        (tmp_path / name / "status").mkdir(parents=True)
    op.sweep(sampled, SYSTEM, GRID, seeds=1, store=tmp_path / "s.zarr")
    assert {path.name for path in tmp_path.iterdir()} == {"s.zarr", *kept}


def test_a_store_that_cannot_be_written_says_so(tmp_path, monkeypatch):
    with pytest.raises(StoreError, match="cannot write"):
        op.sweep(sampled, SYSTEM, GRID, seeds=1, store="/proc/nowhere/s.zarr")
    calls = []

    def full(aside, place):
        calls.append(place)
        if len(calls) == 25:
            raise OSError(28, "No space left on device")
        os.rename(aside, place)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(StoreError, match=r"No space left on device; finished points are safe"):
            op.sweep(sampled, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    again = op.sweep(sampled, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    np.testing.assert_array_equal(
        again["magnetisation"], op.sweep(sampled, SYSTEM, GRID, seeds=2)["magnetisation"]
    )


SLOW_SWEEP = """
import sys, time, jax
sys.path.insert(0, {core!r})
import magnet, orderparam as op
def slow(system, key):
    time.sleep(0.02)
    return magnet.sampled(system, key)
slow.__module__ = "magnet"; slow.__qualname__ = "sampled"
op.sweep(slow, magnet.Paramagnet(1.0), {grid!r}, seeds=20, store={store!r})
"""


def test_killed_at_any_moment_it_goes_on_without_loss(tmp_path):
    core = os.path.dirname(__file__)
    store = tmp_path / "s.zarr"
    finished = 0
    for wait in (0.15, 0.4):
        child = subprocess.Popen(
            [sys.executable, "-c", SLOW_SWEEP.format(core=core, grid=GRID, store=str(store))]
        )
        deadline = time.time() + 60
        while not any(store.glob("status/c.*")) and time.time() < deadline:
            time.sleep(0.02)
        time.sleep(wait)
        child.send_signal(signal.SIGKILL)
        child.wait()
        data = xr.open_zarr(store, consolidated=False).load()
        done = data["status"].values == 1
        assert done.sum() >= finished
        assert np.isfinite(data["magnetisation"].values[done]).all()
        finished = int(done.sum())
    assert 0 < finished < 120
    complete = op.sweep(sampled, SYSTEM, GRID, seeds=20, store=store)
    np.testing.assert_array_equal(
        complete["magnetisation"], op.sweep(sampled, SYSTEM, GRID, seeds=20)["magnetisation"]
    )


def refuse_writing(monkeypatch):
    """As a file system that is mounted to be read does."""
    usual = os.open

    def refusing(path, flags, *rest, **others):
        if flags & (os.O_CREAT | os.O_RDWR | os.O_WRONLY):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), os.fspath(path))
        return usual(path, flags, *rest, **others)

    monkeypatch.setattr(os, "open", refusing)


def test_a_finished_store_that_can_only_be_read_serves(tmp_path, monkeypatch, log):
    first = op.sweep(counted, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    with held(tmp_path / "begun.zarr") as store:
        write_points(store, [(0, 0), (2, 1)])
    log.write_text("")
    refuse_writing(monkeypatch)
    again = op.sweep(counted, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    xr.testing.assert_identical(first.drop_attrs(), again.drop_attrs())
    with pytest.raises(
        StoreError,
        match=r"cannot write .*begun.zarr: Read-only file system; finished points are safe",
    ):
        op.sweep(counted, SYSTEM, GRID, seeds=2, store=tmp_path / "begun.zarr")
    assert log.read_text() == ""  # refused before anything is computed
