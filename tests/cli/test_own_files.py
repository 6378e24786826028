"""A person's own file: written by `new-system`, found, run, read again; and modules of installed
packages."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import orderparam as op
from orderparam.cli.commands import app
from orderparam.comparison import find
from orderparam.core import registry
from orderparam.running.executor import local_processes


def orderparam(*words):
    return CliRunner().invoke(app, list(words))


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A fresh folder with `own_magnet.py` in it; what its tests register is forgotten after
    each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    registries = [
        (known, dict(known))
        for known in (registry.theories_made, registry.experiments_made, registry.studies_made)
    ]
    files = dict(registry.loaded_files)
    assert orderparam("new-system", "own_magnet").exit_code == 0
    yield tmp_path
    sys.modules.pop("own_magnet", None)
    registry.loaded_files.clear()
    registry.loaded_files.update(files)
    for known, before in registries:
        known.clear()
        known.update(before)


def test_the_file_that_is_written_runs_and_agrees_with_its_theory(own):
    chosen = find("own_magnet.py:own-magnet")
    comparison = op.compare(chosen, settings={"spins": "300", "sweeps": "150"}, out="result")
    theory = comparison.curves("theory")["mean field"]["magnetisation"]
    assert float(theory.sel(temperature=0.5)) == pytest.approx(0.9575040241, abs=1e-9)
    deviation = comparison.agreement["Glauber dynamics"]["magnetisation"]["relative_deviation"]
    assert float(np.abs(deviation).max()) < 0.1  # finite-size corrections of order 1/n below T = 1
    assert (Path("result") / "figure.png").stat().st_size > 5000


def test_its_result_is_read_where_the_file_is_not_loaded(own):
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "orderparam",
            "run",
            "own_magnet.py",
            "--set",
            "spins=50",
            "--set",
            "sweeps=20",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    shown = orderparam("show", "own-magnet")
    assert shown.exit_code == 0
    assert "Spontaneous magnetisation" in shown.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "own_magnet.py:own-magnt"), "did you mean 'own-magnet'"),
        (("run", "nowhere.py"), "there is no file"),
        (("new-system", "own_magnet"), "is there already"),
        (("new-system", "Own-Magnet"), "lower-case letters"),
        (("new-system", "_magnet"), "lower-case letters"),
        *(
            (("new-system", name), f"{name}: there is a module")
            for name in ("class", "range", "random", "jax", "typer")
        ),
        *(
            (("new-system", name), "used in the file itself")
            for name in ("magnetisation", "glauber", "partial")
        ),
    ],
)
def test_mistakes_are_one_line(own, words, message):
    done = orderparam(*words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def not_caught(status):
    raise AssertionError("this process would have ended")


def test_a_point_that_ends_the_process_is_a_point_that_failed(own, monkeypatch):
    monkeypatch.setattr("os._exit", not_caught)
    text = (own / "own_magnet.py").read_text()
    sudden = (
        "    if system.temperature > 0.75:\n        __import__('os')._exit(0)\n    n = system.size"
    )
    assert "    n = system.size" in text
    (own / "own_magnet.py").write_text(text.replace("    n = system.size", sudden))
    done = orderparam("run", "own_magnet.py", "--set", "spins=20", "--set", "sweeps=20")
    assert done.exit_code == 0, done.output
    assert "of 12 points 4 failed" in done.stderr
    assert "temperature = 0.8, seed 0, 1, 2, 3: SystemExit: os._exit(0)" in done.stderr
    assert Path("results/own-magnet-spins=20-sweeps=20/summary.json").is_file()
    assert os._exit is not_caught  # put back


@pytest.mark.parametrize("where", ["import", "study"])
def test_a_file_that_ends_the_process_is_told(own, monkeypatch, where):
    monkeypatch.setattr("os._exit", not_caught)
    text = (own / "own_magnet.py").read_text()
    end = "__import__('os')._exit(0)\n"
    text = text + end if where == "import" else text.replace("    grid = ", f"    {end}    grid = ")
    assert end in text
    (own / "own_magnet.py").write_text(text)
    done = orderparam("run", "own_magnet.py")
    assert done.exit_code == 2
    assert "os._exit(0)" in done.stderr
    assert done.stderr.count("\n") == 1


def test_forked_processes_and_watchdogs_still_end_at_once():
    code = """
import os, threading
from orderparam.running.signals import sudden_ends_are_errors
with sudden_ends_are_errors():
    child = os.fork()
    if child == 0:
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    threading.Thread(target=os._exit, args=(9,)).start()
    threading.Event().wait(60)
"""
    ended = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert ended.returncode == 9


def test_the_topics_of_an_installed_package_are_in_every_list(own, monkeypatch):
    class Point:
        module = "own_magnet"

    monkeypatch.syspath_prepend(str(own))
    monkeypatch.setattr(
        registry, "entry_points", lambda group: [Point] if group == "orderparam.topics" else []
    )
    registry.index.cache_clear()
    try:
        names = {(entry.kind, entry.name) for entry in registry.index()}
        assert {
            ("theory", "own_magnet.mean_field"),
            ("experiment", "own_magnet.glauber"),
            ("study", "own-magnet"),
        } <= names
        assert registry.find("own_magnet.mean_field").systems[0].__name__ == "OwnMagnet"
        assert "own-magnet" in orderparam("list", "magnet").output
    finally:
        registry.index.cache_clear()


def edited(own, before, after):
    text = (own / "own_magnet.py").read_text()
    assert before in text
    (own / "own_magnet.py").write_text(text.replace(before, after))


def test_a_file_that_was_edited_is_read_again(own):
    before = find("own_magnet.py:own-magnet")
    assert find("own_magnet.py:own-magnet") is before
    edited(own, '"own-magnet"', '"her-magnet"')  # as long, within the same second
    assert find("own_magnet.py:her-magnet").defaults == before.defaults
    with pytest.raises(ValueError, match="has no study 'own-magnet'"):
        find("own_magnet.py:own-magnet")
    edited(own, "import ", "imprt ")
    with pytest.raises(ValueError, match="SyntaxError"):
        find("own_magnet.py")
    edited(own, "imprt ", "import ")
    assert find("own_magnet.py").name == "her-magnet"


def test_workers_do_not_mix_a_file_with_what_it_was(own):
    study = find("own_magnet.py:own-magnet")
    (own / "own_magnet.py").write_text((own / "own_magnet.py").read_text() + "# more\n")
    with pytest.raises(ValueError, match=r"own_magnet\.py: was edited since it was loaded"):
        op.compare(study, settings={"spins": "20", "sweeps": "5"}, executor=local_processes(2))
