"""What is too much is refused before it is made, and a finished run is found by its study."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from magnet import Paramagnet, exact
from typer.testing import CliRunner

from orderparam.cli.commands import app
from orderparam.cli.finished import finished_run
from orderparam.cli.limits import check_parameters, check_workers, within_memory
from orderparam.comparison import Curve, study
from orderparam.comparison.registry import _registry
from orderparam.comparison.summary import opened, sealed


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


@pytest.fixture(scope="module")
def magnets():
    def draw(comparison):
        import matplotlib.pyplot as plt

        return plt.figure()

    @study(
        "test-limits",
        title="t",
        source="s",
        draw=draw,
        seconds=(1, 2),
        observables=("magnetisation",),
        full={"spins": 4000},
    )
    def build(
        spins: int = 400,
        field: float = 0.5,
        spacing: float = 0.5,
        temperatures: tuple[float, ...] = (1.0,),
    ):
        np.zeros((round(3 / spacing),) * 2)
        return [Curve("exact", exact, Paramagnet(1.0, field, spins), {"temperature": temperatures})]

    yield build
    _registry.pop("test-limits")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("spins=4000001", "at most 4000000, 1000 times"),
        ("spins=" + "9" * 30, "at most 4000000"),
        ("spins=1e300", "at most 4000000"),
        ("field=inf", "must be a finite number"),
        ("field=nan", "must be a finite number"),
        ("temperatures=" + ",".join(["1"] * 10001), "at most 10000"),
        ("spacing=1e-7", "emory"),  # a matrix of 3e7 x 3e7
    ],
)
def test_a_setting_beyond_its_bound_is_refused(run, magnets, setting, message):
    result = run("run", "test-limits", "--set", setting)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert run("show", "test-limits").exit_code == 2


def test_a_size_within_its_bound_is_not_refused(magnets):
    check_parameters(magnets, magnets.parameters(settings={"spins": "4000000"}), {"spins": 0})


def test_memory_that_the_machine_lacks_is_refused_when_asked_for():
    import os

    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with within_memory(), pytest.raises(MemoryError):
        np.empty(machine + 2**20, np.uint8)


def test_workers_have_a_bound():
    with pytest.raises(ValueError, match="at most"):
        check_workers(10**6)
    check_workers(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "digits", "--arch", "fc:99999999:relu"], "depth must be at most 1000"),
        (
            ["predict", "digits", "--arch", "fc:1x" + "9" * 30 + ":relu"],
            "width must be at most 1000000",
        ),
        (["predict", "digits", "--width", "1000000000000"], "at most 1000000"),
        (["predict", "digits", "--width", "9" * 400], "at most 1000000"),
        (["predict", "digits", "--temperature", "inf"], "finite"),
        (["predict", "digits", "--seeds", "1000000000"], "10000"),
        (["run", "round.py"], "round.py: "),
        (["explore", "--no-browser", "--folder", "round.csv"], "round.csv: "),
        (["predict", "round.csv"], "round.csv"),
        (["predict", "~nosuchuser/x.csv"], "no such user"),
        (["features", "~nosuchuser/x.csv"], "no such user"),
        (["features", "x.npy", "--ridge", "inf"], "finite"),
        (["run", "digits-learning-curve", "--workers", "1000000"], "four for each processor"),
    ],
)
def test_what_is_beyond_its_bound_is_refused(run, arguments, message):
    for name in ("round.py", "round.csv"):
        Path(name).symlink_to(name)  # a circle
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def _finish(folder, name, when):
    import os

    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps({"study": name}))
    os.utime(folder / "summary.json", (when, when))


def test_show_finds_the_newest_run_of_a_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = Path("results")
    _finish(results / "magnet-seeds=50", "magnet", 100)
    _finish(results / "magnet-full", "magnet", 200)
    _finish(results / "magnet-phases", "magnet-phases", 300)
    assert finished_run(Path("magnet")) == results / "magnet-full"
    assert finished_run(results / "magnet") == results / "magnet-full"
    assert finished_run(Path("magnet-s")) == results / "magnet-seeds=50"
    assert finished_run(Path("magnet-phases")) == results / "magnet-phases"
    assert finished_run(results / "magnet-seeds=50") == results / "magnet-seeds=50"
    with pytest.raises(ValueError, match="did you mean 'magnet-full'"):
        finished_run(Path("magnt-full"))
    with pytest.raises(ValueError, match="holds no finished run"):
        finished_run(Path("elsewhere/magnet"))


def test_what_run_writes_is_shown_by_the_name_of_its_study(run, magnets):
    assert run("run", "test-limits", "--set", "spins=500").exit_code == 0
    shown = run("show", "test-limits")
    assert shown.exit_code == 0, shown.output
    assert "test-limits-spins=500" in shown.stdout
    assert run("show", "results/test-limits").exit_code == 0


@pytest.mark.parametrize(
    "damage", [{"title": {"a": 1}}, {"seconds": "long"}, {"source": None}, {"curves": 3}]
)
@pytest.mark.parametrize("seal", [json.dumps, sealed], ids=["edited", "sealed"])
def test_a_crafted_summary_is_one_line(run, magnets, tmp_path, damage, seal):
    assert run("run", "test-limits", "--out", "r").exit_code == 0
    file = tmp_path / "r" / "summary.json"
    file.write_text(seal({**opened(file.read_text()), **damage}))
    result = run("show", "r")
    assert result.exit_code in (0, 2)
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if result.exit_code == 2:
        assert "damaged" in result.stderr


def test_a_command_may_be_called_again_in_the_same_process():
    """A group of Zarr before and after each, so that its thread runs and is needed again."""
    code = """
import signal, sys, threading
import zarr
from orderparam import cli
sys.argv = ["orderparam", "--version"]
for _ in range(3):
    zarr.create_group({})
    try:
        cli.main()
    except SystemExit as end:
        assert end.code == 0
assert sum(thread.name == "signals" for thread in threading.enumerate()) == 1
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.ps1 = "> "
try:
    cli.main()
except SystemExit:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
zarr.create_group({})
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr, ended.stdout.count("orderparam ")) == (0, "", 4)


def test_zarr_ends_in_silence_on_a_busy_machine():
    """Its thread is busy for longer than the 0.2 s that it is given at exit."""
    code = """
import time, sys
from orderparam import cli
from zarr.core import sync
sync._get_loop().call_soon_threadsafe(time.sleep, 1)
sys.argv = ["orderparam", "--version"]
cli.main()
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0
    assert ended.stderr == ""
