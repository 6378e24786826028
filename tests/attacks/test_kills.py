"""SIGKILL of the real command line with workers, at random moments; signals while it starts; two
commands at once; a clock that jumps."""

import json
import os
import pty
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from interrupts import children, hear_interrupts, is_pythons_own, left_of

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
    command = [sys.executable, "-m", "orderparam", *words]
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
        number = draw.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        process = start(place, "run", "killed_study.py", "--out", "out")
        time.sleep(draw.uniform(0, float(os.environ.get("ORDERPARAM_TEST_START", "0.3"))))
        process.send_signal(number)
        error = process.communicate(timeout=60)[1]
        if process.returncode == 128 + number:
            assert error.count("\n") == 1
            assert "finished points are kept" in error
        else:
            assert process.returncode in (-number, 1), error  # 1: Python itself had not started
            assert is_pythons_own(error, number), error
        ends.append(process.returncode > 0)
        assert not (place / "out").exists()
    print(f"{sum(ends)} of {len(ends)} ended with one line")


def test_two_commands_at_once_on_one_folder(place):
    """One fills it, the other one is told so; whichever of their processes is first."""
    draw, told = random.Random(6), 0
    for number in range(8):
        first = start(place, "run", "killed_study.py", "--out", f"two{number}")
        time.sleep(draw.choice((0, draw.uniform(0, 3))))
        begun = time.monotonic()
        second = start(place, "run", "killed_study.py", "--out", f"two{number}", "--workers", "2")
        ends = {
            process: (process.communicate()[1], process.returncode) for process in (first, second)
        }
        seconds = time.monotonic() - begun
        errors = sorted(ends.values(), key=lambda end: end[1])
        assert errors[0] == ("", 0)
        if errors[1][1]:  # else the second one began when the first had ended
            told += 1
            assert errors[1][1] == 2
            assert errors[1][0].count("\n") == 1
            assert "is being filled by another process" in errors[1][0]
        print(f"{seconds:.1f} s, {errors}")
    computed = (place / "log").read_text().split("\n")[:-1]
    assert len(computed) == 8 * 120
    assert told >= 6


FAKETIME = os.environ.get("ORDERPARAM_TEST_FAKETIME") or next(
    (str(path) for path in Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None
)


@pytest.mark.skipif(FAKETIME is None, reason="there is no libfaketime")
@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_a_clock_that_jumps_by_years_changes_nothing(place, workers):
    """Back and forth, twenty times a second, while a command runs in a terminal that shows how long
    it still takes; and between two commands on one store."""
    clock, draw, shown = place / "clock", random.Random(7), b""
    clock.write_text("+0")
    environment = os.environ | {
        "LD_PRELOAD": FAKETIME,
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "TERM": "xterm",
        "COLUMNS": "120",
    }
    here, there = pty.openpty()
    command = [sys.executable, "-m", "orderparam", "run", "killed_study.py", "--out", "out"]
    for kills in (1, 0):
        process = subprocess.Popen(
            [*command, *workers],
            cwd=place,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=there,
            preexec_fn=hear_interrupts,
        )
        while process.poll() is None:
            aside = place / "aside"
            aside.write_text(draw.choice(("+0", "+10y", "-10y", "+1h", "-1h", "+40d")))
            aside.replace(clock)
            while select.select([here], [], [], 0.05)[0]:
                shown += os.read(here, 65536)
            if kills and len(finished(place)) > 20:
                process.kill()
        assert process.returncode == (-signal.SIGKILL if kills else 0), shown[-2000:]
    os.close(there)
    text = shown.decode(errors="replace")
    assert "Traceback" not in text
    assert "left" in text
    assert "day" not in text  # of what still is to be done
    assert "-1:" not in text
    whole = place / "whole"
    assert start(place, "run", "killed_study.py", "--out", str(whole)).wait() == 0
    from orderparam.comparison import load

    one, other = (load(folder) for folder in (place / "out", whole))
    for key, data in one.datasets.items():
        np.testing.assert_array_equal(data["magnetisation"], other.datasets[key]["magnetisation"])
        assert np.all((data["seconds"] >= 0) & (data["seconds"] < 1000))
