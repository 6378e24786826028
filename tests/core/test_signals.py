"""SIGINT, SIGTERM and SIGHUP at any moment: one line, exit status 130, 143 or 129, a valid store,
and no process left behind."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from interrupts import check_goes_on, check_interrupt, interrupted


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="asks /proc when the handlers are in place"
)
@pytest.mark.parametrize("executor", ["here", "2"])
def test_an_interrupted_sweep_ends_with_one_line_and_goes_on(tmp_path, monkeypatch, executor):
    """Eight of the hundred of tests/attacks: while it starts, and three times while it computes."""
    monkeypatch.setenv("ORDERPARAM_TEST_SECONDS", "0.05")
    store = tmp_path / "s.zarr"
    command = [sys.executable, "sweeping.py", str(store), executor]
    assert check_interrupt(command, signal.SIGINT, 0.4, store)
    assert check_interrupt(command, signal.SIGTERM, 0.1, store, begun=store / "status" / "c.0.0.0")
    finished = len(list(store.glob("status/c.*")))
    assert check_interrupt(command, signal.SIGINT, 0.1, store, begun=store / "status" / "c.2.1.0")
    assert check_interrupt(command, signal.SIGHUP, 0.1, store, begun=store / "status" / "c.2.1.0")
    assert 0 < finished <= len(list(store.glob("status/c.*"))) < 120
    monkeypatch.setenv("ORDERPARAM_TEST_SECONDS", "0")
    check_goes_on(command, store)


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [(["run", "x"], "finished points are kept"), (["predict"], "nothing is kept")],
)
def test_an_interrupted_command_promises_only_what_it_stores(arguments, kept):
    """`predict` and `inspect` write their files at the end."""
    code = (
        "import os, signal, sys, orderparam.cli as cli\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "cli.mend_streams = lambda: None\n"
        "import orderparam.cli.commands as commands\n"
        "commands.app = lambda: os.kill(os.getpid(), signal.SIGINT) or signal.pause()\n"
        f"sys.argv[1:] = {arguments!r}\n"
        "cli.main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 130
    assert ended.stderr.startswith(f"interrupted; {kept}")
    assert ended.stderr.count("\n") == 1


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="asks /proc when the handlers are in place"
)
@pytest.mark.parametrize("seconds", [0.0, 1.0])
@pytest.mark.parametrize("name", ["inspect", "width"])
def test_an_interrupted_report_leaves_no_files(tmp_path, name, seconds):
    """As soon as the folder of the result is there, and a second later: one line, status 130."""
    out = tmp_path / "results" / "here"
    if name == "inspect":
        x = np.random.default_rng(0).normal(size=(1500, 60))
        np.savez(tmp_path / "a.npz", h=x, k=x**2, y=x[:, 0])
        words = [str(tmp_path / "a.npz"), "--target", "y"]
    else:
        grid = [(n, 2.0**k, seed) for n in (8, 16, 32) for k in range(-3, 4) for seed in (0, 1)]
        rows = [f"{n},{rate},{2 + rate + 1 / rate + seed / 9},{seed}" for n, rate, seed in grid]
        (tmp_path / "a.csv").write_text("\n".join(["width,learning_rate,loss,seed", *rows]))
        words = [str(tmp_path / "a.csv")]
    command = [sys.executable, "-m", "orderparam", name, *words, "--out", str(out)]
    code, error, left = interrupted(command, signal.SIGINT, seconds, out)
    assert not left
    if code == 0:  # it was faster
        assert (out / "summary.json").exists()
        return
    assert (code, error) == (130, "interrupted; nothing is kept\n")
    assert len(list(tmp_path.iterdir())) == 1
