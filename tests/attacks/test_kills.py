"""SIGKILL of the real command line with workers, at random moments; and signals while it starts."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from interrupts import children, hear_interrupts, left_of

pytestmark = [pytest.mark.attack, pytest.mark.timeout(1800)]
KILLS = int(os.environ.get("ORDERPARAM_ATTACK_KILLS", "30"))
STUDY = """
import orderparam as op
from magnet import Paramagnet, exact, unhurried

@op.study("killed", title="Killed", source="", seconds=(1, 1), observables=("magnetisation",),
          panels=[op.Panel("temperature", "magnetisation")])
def killed(seeds: int = 20):
    temperatures = {"temperature": [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]}
    yield op.Curve("exact", exact, Paramagnet(1.0), temperatures)
    yield op.Curve("sampled", unhurried, Paramagnet(1.0), temperatures, seeds=seeds)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "killed_study.py").write_text(STUDY)
    monkeypatch.setenv("ORDERPARAM_TEST_SECONDS", "0.05")
    monkeypatch.setenv("ORDERPARAM_TEST_LOG", str(tmp_path / "log"))
    (tmp_path / "log").touch()
    return tmp_path


def start(place, *words):
    command = [sys.executable, "-m", "orderparam.cli", *words]
    return subprocess.Popen(
        command,
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,
    )


def finished(place):
    return {
        path.relative_to(place).as_posix() for path in place.glob("out/result.zarr/*/status/c.*")
    }


def test_kills_of_the_command_with_workers(place):
    draw, kills = random.Random(3), 0
    while True:
        before = finished(place)
        process = start(place, "run", "killed_study.py", "--out", "out", "--workers", "2")
        deadline = time.monotonic() + draw.uniform(0, 3)
        while (
            process.poll() is None
            and finished(place) == before
            and time.monotonic() < deadline + 30
        ):
            # at any moment, the imports among them
            if draw.random() < 0.001 and time.monotonic() > deadline:
                break
            time.sleep(0.005)
        time.sleep(draw.uniform(0, 0.4))
        below = children(process.pid)
        if kills < KILLS:
            process.kill()
        error = process.communicate()[1]
        if process.returncode == 0:
            break
        kills += 1
        assert (process.returncode, error) == (-signal.SIGKILL, "")
        assert not left_of(below)
        assert before <= finished(place)
    computed = (place / "log").read_text().split("\n")[:-1]
    print(f"{kills} kills, {len(computed)} points computed for {len(set(computed))}")
    assert kills >= min(KILLS, 15)
    assert len(set(computed)) == 120
    assert len(computed) <= 120 + 2 * kills
    whole = place / "whole"
    assert start(place, "run", "killed_study.py", "--out", str(whole)).wait() == 0
    from orderparam.comparison import load

    one, other = (load(folder) for folder in (place / "out", whole))
    for key, data in one.datasets.items():
        np.testing.assert_array_equal(data["magnetisation"], other.datasets[key]["magnetisation"])
    assert json.loads((place / "out" / "summary.json").read_text())["study"] == "killed"
    assert {path.name for path in (place / "out").iterdir() if path.name.startswith(".")} == {
        ".result.zarr.lock"
    }


def test_signals_while_it_starts(place):
    """From the first moment: one line once the handlers are there; before them the end that Python
    has, and nothing computed."""
    draw, ends = random.Random(4), []
    shutil.rmtree(place / "out", ignore_errors=True)
    for _ in range(44):
        number = draw.choice((signal.SIGINT, signal.SIGTERM))
        process = start(place, "run", "killed_study.py", "--out", "out")
        time.sleep(draw.uniform(0, float(os.environ.get("ORDERPARAM_TEST_START", "0.3"))))
        process.send_signal(number)
        error = process.communicate(timeout=60)[1]
        if process.returncode == 128 + number:
            assert error.count("\n") == 1
            assert "finished points are kept" in error
        else:
            assert process.returncode in (-number, 1), error  # 1: Python itself had not started
            assert error == "" or (number == signal.SIGINT and "KeyboardInterrupt" in error)
        ends.append(process.returncode > 0)
        assert not (place / "out").exists()
    print(f"{sum(ends)} of {len(ends)} ended with one line")
