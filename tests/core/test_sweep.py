"""A sweep: theories batched, experiments seeded by their coordinates alone, failures marked, nothing lost."""

import os
import shutil
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
import xarray as xr
from magnet import Paramagnet, always_killing, counted, exact, failing_at_two, killing_its_process_once, sampled

import orderparam as op
from orderparam.core.grid import Grid, point_key
from orderparam.core.program import Experiment, Task, Theory
from orderparam.core.store import PointStore, StoreError
from orderparam.core.sweep import SweepError

SYSTEM = Paramagnet(1.0)
GRID = {"temperature": [0.5, 1.0, 2.0], "field": [0.1, 0.2]}


def test_a_theory_over_numbers_and_structure():
    data = op.sweep(exact, SYSTEM, {"temperature": [0.5, 1.0, 2.0], "shape": ["tanh", "line"], "field": [0.1, 0.2, 0.3]})
    assert data["occupation"].dims == ("temperature", "shape", "field", "state")
    t, h = data["temperature"], data["field"]
    np.testing.assert_allclose(data["magnetisation"].sel(shape="tanh"), np.tanh(h / t).T, rtol=1e-14)
    np.testing.assert_allclose(data["magnetisation"].sel(shape="line"), (h / t).T, rtol=1e-14)
    assert (data["status"] == 1).all()


def test_without_a_grid_there_is_one_point():
    data = op.sweep(exact, SYSTEM)
    assert float(data["magnetisation"]) == pytest.approx(np.tanh(0.5))
    assert op.sweep(sampled, SYSTEM, seeds=3)["magnetisation"].dims == ("seed",)


def test_a_large_grid_is_worked_off_in_blocks_that_fit_the_memory():
    over = {"temperature": np.linspace(1, 2, 70), "field": np.linspace(0, 1, 40)}
    whole = op.sweep(exact, SYSTEM, over)
    small = op.sweep(exact, SYSTEM, over, memory=1000)
    np.testing.assert_array_equal(whole["magnetisation"], small["magnetisation"])
    assert max(Theory(exact, SYSTEM, Grid.of(over), 1000).block_shape()) < 40
    assert Theory(exact, SYSTEM, Grid.of(over), 2**30).block_shape() == (25, 40)


def test_unconverged_points_are_kept_marked_and_counted_once():
    with pytest.warns(UserWarning, match="of 4 points 2 did not converge") as caught:
        data = op.sweep(exact, SYSTEM, {"temperature": [0.1, 0.2, 0.3, 0.4]})
    assert len(caught) == 1
    assert data["status"].values.tolist() == [2, 2, 1, 1]
    assert np.isfinite(data["magnetisation"]).all()


def test_one_failing_point_does_not_end_the_sweep():
    with pytest.warns(UserWarning, match=r"of 12 points 4 failed.*no spins left"):
        data = op.sweep(failing_at_two, SYSTEM, GRID, seeds=2)
    failed = data["status"] == 3
    assert failed.sel(temperature=2.0).all()
    assert int(failed.sum()) == 4
    assert np.isnan(data["magnetisation"].sel(temperature=2.0)).all()
    assert np.isfinite(data["magnetisation"].sel(temperature=1.0)).all()


def test_a_theory_that_cannot_be_batched_is_evaluated_point_by_point():
    def written_in_python(system):
        if system.temperature > 1.5:
            raise ValueError("too hot")
        return exact(system)

    with pytest.warns(UserWarning, match=r"point by point|too hot"):
        data = op.sweep(written_in_python, SYSTEM, {"temperature": [0.5, 1.0, 2.0]})
    assert data["status"].values.tolist() == [1, 1, 3]


def test_when_every_point_fails_the_first_error_is_raised():
    with pytest.raises(SweepError, match=r"every point failed.*no spins left"):
        op.sweep(failing_at_two, SYSTEM, {"temperature": [2.0]}, seeds=2)


def test_the_key_of_a_point_depends_on_seed_and_coordinates_alone():
    few = op.sweep(sampled, SYSTEM, {"temperature": [1.0, 2.0]}, seeds=[3, 1])
    more = op.sweep(sampled, SYSTEM, {"temperature": [2, 0.7, 1]}, seeds=4)
    for t in (1.0, 2.0):
        for seed in (1, 3):
            a, b = few.sel(temperature=t, seed=seed), more.sel(temperature=t, seed=seed)
            assert float(a["magnetisation"]) == float(b["magnetisation"])
    keys = {tuple(jax.random.key_data(point_key(s, {"t": t})).tolist()) for s in range(20) for t in range(20)}
    assert len(keys) == 400


def test_paired_dimensions_share_their_randomness():
    a = jax.random.key_data(point_key(0, {"t": 1.0, "h": 2.0}, paired=("t",)))
    b = jax.random.key_data(point_key(0, {"t": 5.0, "h": 2.0}, paired=("t",)))
    assert (a == b).all()


def test_seeds_in_one_vmapped_call_give_the_same_numbers():
    def traceable(system, key):
        return sampled(system, key)

    one = op.sweep(traceable, SYSTEM, GRID, seeds=3)
    batched = op.sweep(traceable, SYSTEM, GRID, seeds=3, batch_seeds=True)
    np.testing.assert_array_equal(one["magnetisation"], batched["magnetisation"])


def test_an_experiment_agrees_with_its_theory_within_error_bars():
    theory = op.sweep(exact, SYSTEM, GRID)["magnetisation"]
    runs = op.sweep(sampled, SYSTEM, GRID, seeds=40)["magnetisation"]
    z = (runs.mean("seed") - theory) / (runs.std("seed", ddof=1) / np.sqrt(40))
    assert float((z**2).mean()) < 3.0  # six independent z: the mean square exceeds 3 once in 200


@pytest.mark.parametrize(
    ("over", "options", "message"),
    [
        ({"temprature": [1.0]}, {}, "did you mean 'temperature'"),
        ({"temperature": []}, {}, "is empty"),
        ({"temperature": 1.0}, {}, "give a sequence"),
        ({"temperature": "abc"}, {}, "give a sequence"),
        ({"temperature": [1.0, -1.0]}, {}, "must be > 0"),
        ({"temperature": [1.0, 1]}, {}, "twice"),
        ({"temperature": [1.0, float("nan")]}, {}, "must be > 0"),
        ({"spins": [10, 10.5]}, {}, "an integer"),
        ({"temperature": [1.0]}, {"seeds": 0}, "at least one"),
        ({"temperature": [1.0]}, {"seeds": [1, 1]}, "different integers"),
        ({"temperature": [1.0]}, {"seeds": [-1]}, ">= 0"),
        ({"temperature": [1.0]}, {"seeds": []}, "at least one"),
        ({"temperature": [1.0]}, {"executor": 0}, "at least 1"),
        ({"temperature": [1.0]}, {"executor": 1.5}, "give None, a number of processes"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(over, options, message):
    with pytest.raises(ValueError, match=message):
        op.sweep(exact if "seeds" not in options else sampled, SYSTEM, over, **options)


# -- the store ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setenv("ORDERPARAM_TEST_LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def test_a_stored_sweep_is_not_computed_again(tmp_path, log):
    first = op.sweep(counted, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    second = op.sweep(counted, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    assert len(log.read_text().splitlines()) == 12
    xr.testing.assert_identical(first.drop_attrs(), second.drop_attrs())
    opened = xr.open_zarr(tmp_path / "s.zarr", consolidated=False).load()
    np.testing.assert_array_equal(opened["occupation"], first["occupation"])
    assert opened["occupation"].dims == ("temperature", "field", "seed", "state")


def test_only_missing_and_failed_points_run_again(tmp_path, log):
    store = PointStore(tmp_path / "s.zarr", *_layout(SYSTEM, GRID, 2))
    program = Experiment(counted, SYSTEM, Grid.of(GRID), (0, 1), False, ())
    for i, j in [(0, 0), (2, 1)]:
        task = Task((slice(i, i + 1), slice(j, j + 1)), slice(0, 1))
        store.write(task, program(task))
    log.write_text("")
    op.sweep(counted, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    assert len(log.read_text().splitlines()) == 10


def _layout(system, over, seeds):
    from orderparam.core.sweep import _identity

    grid = Grid.of(over)
    coords = {**grid.coords(), "seed": np.arange(seeds)}
    return _identity(counted, system, grid, coords["seed"], ()), coords, lambda: (1, 1, 1)


def test_an_observable_that_is_zero_everywhere_is_kept(tmp_path):
    first = op.sweep(exact, SYSTEM, {"field": [0.0]}, store=tmp_path / "z.zarr")
    again = op.sweep(exact, SYSTEM, {"field": [0.0]}, store=tmp_path / "z.zarr")
    assert first["magnetisation"].values.tolist() == again["magnetisation"].values.tolist() == [0.0]


def test_a_theory_is_stored_in_its_blocks(tmp_path):
    over = {"temperature": np.linspace(1, 2, 70), "field": np.linspace(0, 1, 40)}
    a = op.sweep(exact, SYSTEM, over, store=tmp_path / "t.zarr")
    b = op.sweep(exact, SYSTEM, over)
    np.testing.assert_array_equal(a["magnetisation"], b["magnetisation"])
    assert op.sweep(exact, SYSTEM, {"shape": ["tanh", "line"]}, store=tmp_path / "u.zarr")["shape"].values.tolist() == [
        "tanh",
        "line",
    ]


@pytest.mark.parametrize("other", [{"system": Paramagnet(1.0, spins=401)}, {"over": {"temperature": [1.0]}}, {"seeds": 3}])
def test_the_store_of_another_sweep_is_refused(tmp_path, other):
    op.sweep(sampled, SYSTEM, GRID, seeds=2, store=tmp_path / "s.zarr")
    asked = {"system": SYSTEM, "over": GRID, "seeds": 2, **other}
    with pytest.raises(StoreError, match="holds another sweep"):
        op.sweep(sampled, store=tmp_path / "s.zarr", **asked)


def test_a_foreign_or_damaged_store_is_refused_and_left_alone(tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("years of work")
    with pytest.raises(StoreError, match="no result of a sweep"):
        op.sweep(sampled, SYSTEM, GRID, seeds=1, store=foreign)
    assert (foreign / "thesis.tex").read_text() == "years of work"
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="no result of a sweep"):
        op.sweep(sampled, SYSTEM, GRID, seeds=1, store=tmp_path / "file")
    op.sweep(sampled, SYSTEM, GRID, seeds=1, store=tmp_path / "s.zarr")
    chunk = next(p for p in (tmp_path / "s.zarr" / "magnetisation").rglob("0") if p.is_file())
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"\x00")
    with pytest.raises(StoreError, match="damaged"):
        op.sweep(sampled, SYSTEM, GRID, seeds=1, store=tmp_path / "s.zarr")
    chunk.unlink()
    with pytest.raises(StoreError, match="chunks of 'magnetisation' are gone"):
        op.sweep(sampled, SYSTEM, GRID, seeds=1, store=tmp_path / "s.zarr")


def test_a_store_that_is_deleted_while_it_is_filled_is_missed(tmp_path):
    def deleting(system, key):
        shutil.rmtree(tmp_path / "s.zarr", ignore_errors=True)
        return sampled(system, key)

    with pytest.raises(StoreError, match="is gone"):
        op.sweep(deleting, SYSTEM, {"temperature": [1.0]}, seeds=2, store=tmp_path / "s.zarr")


def test_a_store_that_cannot_be_written_says_so(tmp_path, monkeypatch):
    with pytest.raises(StoreError, match="cannot write"):
        op.sweep(sampled, SYSTEM, GRID, seeds=1, store="/proc/nowhere/s.zarr")
    import zarr

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zarr.Array, "__setitem__", full)
    with pytest.raises(StoreError, match="No space left on device"):
        op.sweep(sampled, SYSTEM, GRID, seeds=1, store=tmp_path / "s.zarr")


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
        child = subprocess.Popen([sys.executable, "-c", SLOW_SWEEP.format(core=core, grid=GRID, store=str(store))])
        deadline = time.time() + 60
        while not (store / "status" / "c").exists() and time.time() < deadline:
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
    np.testing.assert_array_equal(complete["magnetisation"], op.sweep(sampled, SYSTEM, GRID, seeds=20)["magnetisation"])


# -- executors ------------------------------------------------------------------------------------------------------------


def test_local_processes_survive_a_killed_worker(tmp_path, monkeypatch):
    monkeypatch.setenv("ORDERPARAM_TEST_MARKER", str(tmp_path / "killed"))
    here = op.sweep(sampled, SYSTEM, GRID, seeds=2)
    away = op.sweep(killing_its_process_once, SYSTEM, GRID, seeds=2, executor=2)
    assert (tmp_path / "killed").exists()
    np.testing.assert_array_equal(here["magnetisation"], away["magnetisation"])
    assert (away["status"] == 1).all()


def test_a_task_that_always_kills_its_worker_is_marked_and_the_rest_completes():
    with pytest.warns(UserWarning, match=r"1 failed.*temperature = 2\.0.*its worker died"):
        data = op.sweep(always_killing, SYSTEM, {"temperature": [1.0, 2.0]}, seeds=1, executor=1)
    assert data["status"].values.ravel().tolist() == [1, 3]


def test_a_dask_cluster_whose_worker_is_killed_ends_complete(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("ORDERPARAM_TEST_MARKER", str(tmp_path / "killed"))
    here = op.sweep(sampled, SYSTEM, GRID, seeds=6)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        away = op.sweep(killing_its_process_once, SYSTEM, GRID, seeds=6, executor=client, store=tmp_path / "s.zarr")
        again = op.sweep(sampled, SYSTEM, GRID, seeds=2, executor=cluster.scheduler_address)
    assert (tmp_path / "killed").exists()
    np.testing.assert_array_equal(here["magnetisation"], away["magnetisation"])
    np.testing.assert_array_equal(here["magnetisation"][..., :2], again["magnetisation"])
    assert (away["status"] == 1).all()
