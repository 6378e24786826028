"""Interrupts at random moments, while it imports, compiles, computes, writes and ends: a hundred of
a sweep, and a hundred of the commands."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cluster import cluster
from interrupts import (
    ENDS,
    LINE,
    check_goes_on,
    check_interrupt,
    children,
    hear_interrupts,
    is_pythons_own,
    left_of,
)

from orderparam.running.store import read

pytestmark = [pytest.mark.attack, pytest.mark.timeout(1800)]
STUDY = """
import orderparam as op
from magnet import Paramagnet, exact, unhurried

@op.study("magnet", title="Magnet", source="", seconds=(1, 1), observables=("magnetisation",),
          panels=[op.Panel("temperature", "magnetisation")])
def magnet(seeds: int = 5):
    temperatures = {"temperature": [0.5, 1.0, 1.5, 2.0]}
    yield op.Curve("exact", exact, Paramagnet(1.0), temperatures)
    yield op.Curve("sampled", unhurried, Paramagnet(1.0), temperatures, seeds=seeds)
"""
COMMANDS = {
    "run": ("run", "study.py"),
    "run --workers": ("run", "study.py", "--workers", "2"),
    "solve": ("solve", "mean_field", "--over", "temperature=0.3:0.6:3", "--against", "glauber"),
    "phases": ("phases", "mean_field", "temperature=0.5:1.5", "field=-0.2:0.2"),
    "predict": ("predict", "rows.csv", "--arch", "fc:1:relu", "--seeds", "2"),
}
TIMES = 20  # each command
QUICK = "points"  # of `phases`: batches are kept where they took a tenth of a second, by chance


@pytest.mark.parametrize(("executor", "times"), [("here", 40), ("2", 30), ("dask", 30)])
def test_interrupts(tmp_path, monkeypatch, executor, times):
    monkeypatch.setenv("ORDERPARAM_TEST_SECONDS", "0.03")
    draw = random.Random(executor)
    store, interrupted = tmp_path / "s.zarr", 0
    with cluster(tmp_path) as dask:
        if executor == "dask":
            pytest.importorskip("distributed")
            dask.start_scheduler()
            for _ in range(2):
                dask.start_worker()
        command = [
            sys.executable,
            "sweeping.py",
            str(store),
            dask.address if executor == "dask" else executor,
        ]
        for _ in range(times):
            number = draw.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
            begun = store / "status" / "c.0.0.0" if draw.random() < 0.5 else None
            if check_interrupt(command, number, draw.uniform(0, 3), store, begun):
                interrupted += 1
            elif os.path.exists(store):
                shutil.rmtree(store)  # it was finished: once more from the beginning
        monkeypatch.setenv("ORDERPARAM_TEST_SECONDS", "0")
        check_goes_on(command, store)
    assert interrupted >= times // 2


def start(place, words):
    return subprocess.Popen(
        [sys.executable, "-m", "orderparam", *words],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,
    )


def listens(process):
    """Whether the handlers of all three signals are in place."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    caught = [int(line.split()[1], 16) for line in lines if line.startswith("SigCgt")]
    return bool(caught) and all(caught[0] >> (number - 1) & 1 for number in ENDS)


def numbers(folder):
    """All numbers of a folder but how long they took."""
    found = {}
    for path in sorted(folder.rglob("*.zarr")):
        if (path / "status").is_dir() and path.parent.name != QUICK:
            found[path.name] = read(path).drop_vars("seconds").drop_attrs()
        elif path.name == "diagram.zarr":
            found[path.name] = xr.open_zarr(path, consolidated=False).load()
    return found


def files_of(folder):
    """The files of a folder, and what stands in its tables but how long it took."""

    def content(path):
        if path.suffix != ".csv":
            return ""
        return pd.read_csv(path).drop(columns="seconds", errors="ignore").to_csv()

    return {
        str(path.relative_to(folder)): content(path)
        for path in folder.rglob("*")
        if path.is_file() and QUICK not in path.relative_to(folder).parts
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_interrupts_of_commands(tmp_path, monkeypatch, name):
    """Every other one within 90 ms of its start. Before the handlers are there it ends as Python
    does; afterwards with the one line; and the same command completes what it left."""
    monkeypatch.setenv("ORDERPARAM_TEST_SECONDS", "0.02")
    (tmp_path / "study.py").write_text(STUDY)
    x = np.random.default_rng(0).normal(size=(120, 3))
    rows = np.column_stack([x, x[:, 0] * x[:, 1]])
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="a,b,c,target", comments="")
    whole = start(tmp_path, [*COMMANDS[name], "--out", "whole"])
    begin = time.monotonic()
    assert "Traceback" not in whole.communicate()[1]
    seconds = time.monotonic() - begin
    assert whole.returncode == 0
    draw, ends = random.Random(name), []
    for time_of in range(TIMES):
        number = draw.choice(list(ENDS))
        process = start(tmp_path, [*COMMANDS[name], "--out", "stopped"])
        time.sleep(draw.uniform(0, 0.09 if time_of % 2 else seconds))
        heard, below = process.poll() is None and listens(process), children(process.pid)
        process.send_signal(number)
        error = process.communicate(timeout=60)[1]
        assert not left_of(below)
        lines = [line for line in error.splitlines(True) if not line.startswith("warning:")]
        status, word = ENDS[number]
        if process.returncode == 0:  # it had ended, or all was done
            assert "Traceback" not in error
            ends.append("done")
            shutil.rmtree(tmp_path / "stopped", ignore_errors=True)
        elif process.returncode == status:
            assert lines[-1:] == [word + LINE], error
            ends.append("line")
        else:  # Python itself had not started, or not the package
            assert not heard, error
            assert process.returncode in (-number, 1), error
            assert is_pythons_own(error, number), error
            ends.append("before")
    last = start(tmp_path, [*COMMANDS[name], "--out", "stopped"])
    assert last.communicate()[1].count("Traceback") == 0
    assert last.returncode == 0
    one, other = (numbers(tmp_path / folder) for folder in ("whole", "stopped"))
    assert one.keys() == other.keys()
    assert all(one[key].identical(other[key]) for key in one)
    files = [files_of(tmp_path / folder) for folder in ("whole", "stopped")]
    assert files[0] == files[1]
    print(
        f"{name}: {json.dumps({end: ends.count(end) for end in sorted(set(ends))})}, {seconds:.1f} "
        "s"
    )
