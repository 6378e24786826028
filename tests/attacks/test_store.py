"""Attacks on stores: random damage, kills, writers at the same time, a full disk.
docs/howto/robustness.md says how they end."""

import functools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from damage import silent
from interrupts import alive, children, left_of, state
from magnet import Paramagnet, sampled
from sweeping import GRID, SEEDS

import orderparam as op
from orderparam.running.store import read

pytestmark = [pytest.mark.attack, pytest.mark.timeout(900)]
CORE = Path(__file__).parent.parent / "core"


def command(store, executor="here"):
    return [sys.executable, "sweeping.py", str(store), executor]


def finished(store):
    return {path.relative_to(store).as_posix() for path in store.glob("status/c.*")}


@pytest.fixture(scope="module")
def truth():
    return op.sweep(sampled, Paramagnet(1.0), GRID, seeds=SEEDS)


@pytest.mark.parametrize("seed", range(4))
def test_random_damage(tmp_path, seed):
    resume = functools.partial(op.sweep, sampled, Paramagnet(1.0), GRID, seeds=2)
    truth = resume(store=tmp_path / "s.zarr")
    draw = random.Random(100 + seed)
    passed = [silent(tmp_path / "s.zarr", truth, resume, draw) for _ in range(500)]
    assert not [what for what in passed if what]


@pytest.mark.parametrize("executor", ["here", "2"])
def test_kills(tmp_path, monkeypatch, truth, executor):
    """SIGKILL at random moments: nothing that was finished is lost or computed again, and no
    process is left."""
    draw = random.Random(7)
    store, log = tmp_path / "s.zarr", tmp_path / "log"
    monkeypatch.setenv("ORDERPARAM_TEST_SECONDS", "0.05")
    monkeypatch.setenv("ORDERPARAM_TEST_LOG", str(log))
    log.write_text("")
    kills = 0
    while True:
        before = finished(store)
        process = subprocess.Popen(command(store, executor), cwd=CORE)
        # soon after it has finished a point; else at any moment, the imports among them
        if draw.random() < 0.7:
            while process.poll() is None and finished(store) == before:
                time.sleep(0.005)
            time.sleep(draw.uniform(0, 0.3))
        else:
            time.sleep(draw.uniform(0, 4))
        below = children(process.pid)
        process.kill()
        if process.wait() == 0:
            break
        kills += 1
        assert not left_of(below)
        assert before <= finished(store)
    assert kills >= 15
    computed = [line for line in log.read_text().splitlines() if line]
    # Each kill may have cost the points that were being computed, and no others.
    assert 120 <= len(computed) <= 120 + kills * (1 if executor == "here" else 2)
    assert len(set(computed)) == 120
    np.testing.assert_array_equal(read(store)["magnetisation"], truth["magnetisation"])
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_writers_at_the_same_time(tmp_path, monkeypatch, truth):
    """Four commands on one store at once, six times: one computes, the others are told."""
    monkeypatch.setenv("ORDERPARAM_TEST_SECONDS", "0.05")
    for attempt in range(6):
        store, log = tmp_path / f"{attempt}.zarr", tmp_path / f"{attempt}.log"
        monkeypatch.setenv("ORDERPARAM_TEST_LOG", str(log))
        writers = [
            subprocess.Popen(command(store), cwd=CORE, stderr=subprocess.PIPE, text=True)
            for _ in range(4)
        ]
        ends = [(writer.communicate(timeout=200)[1], writer.returncode) for writer in writers]
        assert sum(code == 0 for _, code in ends) >= 1
        for error, code in ends:
            assert code == 0 or (
                code == 2
                and "is being filled by another process" in error
                and error.count("\n") == 1
            ), error
        assert len(log.read_text().splitlines()) == 120
        np.testing.assert_array_equal(read(store)["magnetisation"], truth["magnetisation"])


def test_a_store_that_is_removed_again_and_again(tmp_path, monkeypatch, truth):
    monkeypatch.setenv("ORDERPARAM_TEST_SECONDS", "0.05")
    store = tmp_path / "s.zarr"
    process = subprocess.Popen(command(store), cwd=CORE)
    removed = 0
    while process.poll() is None:
        if len(finished(store)) > 5 and removed < 20:
            removed += (
                subprocess.run(
                    ["rm", "-rf", str(store)], stderr=subprocess.DEVNULL, check=False
                ).returncode
                == 0
            )
            time.sleep(0.1)
        time.sleep(0.01)
    assert process.returncode == 0
    assert removed >= 5
    np.testing.assert_array_equal(read(store)["magnetisation"], truth["magnetisation"])


def test_a_full_disk(tmp_path, truth):
    """A file system of its own with room for a part of the points; then more room, and the same
    command."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    try:
        store = place / "s.zarr"
        ended = subprocess.run(
            command(store), cwd=CORE, capture_output=True, text=True, check=False, timeout=200
        )
        assert ended.returncode == 2
        assert "No space left on device; finished points are safe" in ended.stderr
        assert ended.stderr.count("\n") == 1
        there = finished(store)
        assert 10 < len(there) < 120
        subprocess.run(["mount", "-o", "remount,size=64m", str(place)], check=True)
        assert subprocess.run(command(store), cwd=CORE, check=False, timeout=200).returncode == 0
        assert there <= finished(store)
        np.testing.assert_array_equal(read(store)["magnetisation"], truth["magnetisation"])
    finally:
        subprocess.run(["umount", str(place)], check=False)


def test_killed_workers(tmp_path, monkeypatch, truth):
    """The workers, not the sweep, in the middle of a point; no point loses more than one worker:
    three would be too many."""
    log, begun = tmp_path / "log", tmp_path / "begun"
    for name, value in (("SECONDS", "0.1"), ("LOG", log), ("BEGUN", begun)):
        monkeypatch.setenv(f"ORDERPARAM_TEST_{name}", str(value))
    log.touch()
    begun.touch()
    draw, store, killed = random.Random(8), tmp_path / "s.zarr", set()
    process = subprocess.Popen(command(store, "3"), cwd=CORE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        time.sleep(draw.uniform(0, 0.2))
        running = dict(line.split(" ", 1) for line in begun.read_text().splitlines())
        workers = [pid for pid in running if alive(pid)]
        if not workers or len(killed) == 20:
            continue
        pid = draw.choice(workers)
        if stopped(pid):  # so that it is still in what it is read to be in when it is killed
            point = dict(line.split(" ", 1) for line in begun.read_text().splitlines())[pid]
            if point in killed or point in log.read_text().splitlines():
                os.kill(int(pid), signal.SIGCONT)
            else:
                os.kill(int(pid), signal.SIGKILL)
                killed.add(point)
    assert (process.returncode, process.communicate()[1]) == (0, "")
    assert len(killed) == 20
    computed = log.read_text().splitlines()
    assert len(computed) == len(set(computed)) == 120
    np.testing.assert_array_equal(read(store)["magnetisation"], truth["magnetisation"])


def stopped(pid):
    """Stops a process; False where it is gone."""
    try:
        os.kill(int(pid), signal.SIGSTOP)
    except ProcessLookupError:
        return False
    while alive(pid) and state(pid) != "T":
        time.sleep(0.001)
    return alive(pid)
