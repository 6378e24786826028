"""Executors: here, in local processes, on a Dask cluster; with workers and schedulers that die."""

import builtins
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import magnet
import numpy as np
import pytest
import xarray as xr
from cluster import cluster
from magnet import (
    Homebound,
    Paramagnet,
    always_killing,
    killing_its_process_once,
    sampled,
    shouting,
    unhurried,
)
from sweeping import SEEDS

import orderparam as op
from orderparam.core.registry import load_file
from orderparam.running.executor import _connected
from orderparam.running.store import StoreError, read
from orderparam.running.workers import _send

SYSTEM = Paramagnet(1.0)
GRID = {"temperature": [0.5, 1.0, 2.0], "field": [0.1, 0.2]}
HERE = Path(__file__).parent


def test_local_processes_survive_a_killed_worker(tmp_path, monkeypatch):
    monkeypatch.setenv("ORDERPARAM_TEST_MARKER", str(tmp_path / "killed"))
    here = op.sweep(sampled, SYSTEM, GRID, seeds=2)
    away = op.sweep(killing_its_process_once, SYSTEM, GRID, seeds=2, executor=2)
    assert (tmp_path / "killed").exists()
    np.testing.assert_array_equal(here["magnetisation"], away["magnetisation"])
    assert (away["status"] == 1).all()


def test_a_task_that_always_kills_its_worker_is_marked_and_the_rest_completes():
    with pytest.warns(UserWarning, match=r"1 failed.*temperature = 2\.0.*its worker died 3 times"):
        data = op.sweep(always_killing, SYSTEM, {"temperature": [1.0, 2.0]}, seeds=1, executor=1)
    assert data["status"].values.ravel().tolist() == [1, 3]


def test_what_an_experiment_prints_does_not_get_between_the_answers(capfd):
    data = op.sweep(shouting, SYSTEM, {"temperature": [1.0]}, seeds=3, executor=1)
    assert (data["status"] == 1).all()
    printed = capfd.readouterr()
    assert printed.err.count("an experiment speaks") == 3
    assert not printed.out


def test_what_worker_processes_cannot_load_is_said():
    with pytest.raises(
        ValueError, match="worker processes cannot load what is to be run: RuntimeError: only here"
    ):
        op.sweep(sampled, Homebound(1.0), {"temperature": [1.0]}, seeds=1, executor=1)


def test_workers_end_when_the_sweep_does(tmp_path):
    command = [sys.executable, "sweeping.py", str(tmp_path / "s.zarr"), "2"]
    process = subprocess.Popen(
        command, cwd=HERE, env={**os.environ, "ORDERPARAM_TEST_SECONDS": "0.2"}
    )
    while not any(tmp_path.glob("s.zarr/status/c.*")) and process.poll() is None:
        time.sleep(0.02)
    listed = subprocess.run(
        ["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    workers = [
        int(line.split()[0]) for line in listed.splitlines() if int(line.split()[1]) == process.pid
    ]
    assert len(workers) == 2
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.time() + 10
    while any(_alive(pid) for pid in workers) and time.time() < deadline:
        time.sleep(0.02)
    assert not any(_alive(pid) for pid in workers)


def test_a_worker_that_nobody_listens_to_ends_in_silence():
    code = "from orderparam.running.workers import serve; serve()"
    worker = subprocess.Popen(
        [sys.executable, "-c", code],
        **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE),
    )
    worker.stdout.close()
    for message in (len, "a task"):
        _send(worker.stdin, pickle.dumps(message))
    assert worker.stderr.read() == b""
    assert worker.wait() == 0
    worker.stdin.close()
    worker.stderr.close()


def test_an_executor_is_ended_when_the_disk_is_full_though_the_error_is_kept(tmp_path, monkeypatch):
    ended = []

    def run(program, tasks):
        try:
            for task in tasks:
                yield task, program(task)
        finally:
            ended.append(True)

    def full(aside, place):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError) as caught:
        op.sweep(sampled, SYSTEM, GRID, seeds=1, executor=run, store=tmp_path / "s.zarr")
    assert caught.value.__traceback__ is not None
    assert ended


def test_workers_end_when_another_cannot_start(monkeypatch):
    monkeypatch.setenv("ORDERPARAM_TEST_SECONDS", "20")
    started = []

    def start(*arguments, **options):
        started.append(popen(*arguments, **options))
        if len(started) == 2:
            raise OSError(11, "Resource temporarily unavailable")
        return started[-1]

    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start)
    begin = time.time()
    with pytest.raises(OSError, match="temporarily") as caught:
        op.sweep(unhurried, SYSTEM, GRID, seeds=1, executor=2)
    assert time.time() - begin < 15
    assert started[0].poll() is not None
    started[1].kill()
    del caught


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# -- Dask ----------------------------------------------------------------------------------------


def test_a_dask_cluster_whose_worker_is_killed_ends_complete(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("ORDERPARAM_TEST_MARKER", str(tmp_path / "killed"))
    here = op.sweep(sampled, SYSTEM, GRID, seeds=6)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        away = op.sweep(
            killing_its_process_once,
            SYSTEM,
            GRID,
            seeds=6,
            executor=client,
            store=tmp_path / "s.zarr",
        )
    assert (tmp_path / "killed").exists()
    np.testing.assert_array_equal(here["magnetisation"], away["magnetisation"])
    assert (away["status"] == 1).all()


def test_a_scheduler_that_is_not_there_is_one_line(tmp_path):
    """Among them a port where something listens and says nothing."""
    pytest.importorskip("distributed")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for address in (
            "tcp://127.0.0.1:9",
            "nonsense",
            "tcp://[",
            "foo://x:1",
            f"tcp://127.0.0.1:{silent.getsockname()[1]}",
        ):
            command = [sys.executable, "sweeping.py", str(tmp_path / "s.zarr"), address]
            ended = subprocess.run(
                command, cwd=HERE, capture_output=True, text=True, check=False, timeout=60
            )
            assert ended.returncode == 2
            assert ended.stderr.startswith(f"error: no Dask scheduler answers at '{address}': ")
            assert ended.stderr.count("\n") == 1


@pytest.fixture
def dask(tmp_path, monkeypatch):
    """A scheduler and two workers in processes of their own; each point takes a moment there."""
    pytest.importorskip("distributed")
    monkeypatch.setenv("ORDERPARAM_TEST_SECONDS", "0.1")
    with cluster(tmp_path) as started:
        started.scheduler, started.workers = (
            started.start_scheduler(),
            [started.start_worker() for _ in range(2)],
        )
        yield started


def points(store):
    return len(list(store.glob("status/c.*")))


def run_on(address, store, then=lambda: None):
    """The sweep of sweeping.py on the cluster; `then` is done when some of its points are there.
    Returns status and errors."""
    command, before = [sys.executable, "sweeping.py", str(store), address], points(store)
    process = subprocess.Popen(command, cwd=HERE, stderr=subprocess.PIPE, text=True)
    while points(store) < before + 10 and process.poll() is None:
        time.sleep(0.02)
    then()
    error = process.communicate(timeout=200)[1]
    return process.returncode, error


def test_an_address_is_all_that_dask_needs_and_a_killed_worker_costs_nothing(tmp_path, dask):
    store = tmp_path / "s.zarr"
    assert run_on(dask.address, store, dask.workers[0].kill) == (0, "")
    truth = op.sweep(sampled, SYSTEM, GRID, seeds=SEEDS)
    np.testing.assert_array_equal(read(store)["magnetisation"], truth["magnetisation"])


def test_a_file_of_ones_own_travels_to_dask(tmp_path, dask, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "own" / "magnet_for_dask.py"
    path.parent.mkdir()
    path.write_text(Path(magnet.__file__).read_text())
    own = load_file(path)
    sweep = partial(
        op.sweep, own.sampled, own.Paramagnet(1.0), {"temperature": [0.5, 1.0]}, seeds=2
    )
    xr.testing.assert_equal(sweep(executor=dask.address)["magnetisation"], sweep()["magnetisation"])


@pytest.mark.parametrize("kind", ["ConnectionResetError", "CommClosedError", "TimeoutError"])
def test_a_request_that_a_lost_scheduler_broke_off_is_the_same_error(kind):
    """Dask raises one of these before its client notices the loss."""
    comm = pytest.importorskip("distributed.comm")
    client = SimpleNamespace(status="running", scheduler=SimpleNamespace(address="tcp://a:1"))
    error = getattr(builtins, kind, None) or getattr(comm, kind)
    with (
        pytest.raises(ConnectionError, match="the Dask scheduler at tcp://a:1 is lost"),
        _connected(client),
    ):
        raise error("[Errno 104]")
    with pytest.raises(ZeroDivisionError), _connected(client):
        raise ZeroDivisionError


@pytest.mark.slow
def test_a_killed_scheduler_is_one_line_and_the_same_command_goes_on(tmp_path, dask):
    store = tmp_path / "s.zarr"
    code, error = run_on(dask.address, store, dask.scheduler.kill)
    assert code == 2
    assert error.startswith(
        f"error: the Dask scheduler at {dask.address} is lost; finished points are kept"
    )
    assert error.count("\n") == 1
    assert 10 <= points(store) < 120
    for worker in dask.workers:
        worker.kill()
    dask.start_scheduler()
    dask.start_worker()
    assert run_on(dask.address, store)[0] == 0
    truth = op.sweep(sampled, SYSTEM, GRID, seeds=SEEDS)
    np.testing.assert_array_equal(read(store)["magnetisation"], truth["magnetisation"])


def test_the_command_line_runs_a_study_on_dask(tmp_path, dask):
    """`--dask ADDRESS` with a worker that is killed on the way: the same numbers as here."""
    command = [
        sys.executable,
        "-m",
        "orderparam",
        "run",
        str(HERE / "magnet_study.py:magnet"),
        "--out",
    ]
    store = tmp_path / "away" / "result.zarr" / "sampled"
    away = subprocess.Popen(
        [*command, str(tmp_path / "away"), "--dask", dask.address],
        stdout=subprocess.PIPE,
        text=True,
    )
    while points(store) < 10 and away.poll() is None:
        time.sleep(0.02)
    dask.workers[1].kill()
    assert "magnetisation" in away.communicate(timeout=200)[0]
    assert away.returncode == 0
    truth = op.sweep(sampled, SYSTEM, GRID, seeds=SEEDS)
    np.testing.assert_array_equal(read(store)["magnetisation"], truth["magnetisation"])
