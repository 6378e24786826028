"""Malformed command lines of all commands, none a traceback or a hang; some of them as processes of
their own."""

import os
import subprocess
import sys

import pytest
from malformed import LONGEST, calls, every_file, faults, make_files, settings

from orderparam.comparison import studies

pytestmark = pytest.mark.attack


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(1, 7))
def test_malformed_calls(tmp_path, monkeypatch, seed):
    assert faults(tmp_path, monkeypatch, calls(seed, 500, studies()), bombs=True) == []


@pytest.mark.timeout(7200)
def test_every_file(tmp_path, monkeypatch):
    assert faults(tmp_path, monkeypatch, every_file(), bombs=True) == []


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(1, 4))
def test_every_setting(tmp_path, monkeypatch, seed):
    assert faults(tmp_path, monkeypatch, settings(seed, studies())) == []


@pytest.mark.timeout(3600)
def test_malformed_calls_in_processes(tmp_path):
    make_files(tmp_path)
    wrong = []
    for arguments in calls(7, 60, studies()):
        if arguments[0] in ("run", "solve", "phases", "explore") or any(
            "\0" in word or len(word) > 100000 for word in arguments
        ):
            continue  # what is accepted would really run
        command = [sys.executable, "-m", "orderparam", *arguments]
        try:
            ended = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=10 * LONGEST)
        except subprocess.TimeoutExpired:
            wrong.append((arguments, "hangs"))
            continue
        if ended.returncode not in (0, 2) or b"Traceback" in ended.stderr:
            wrong.append((arguments, ended.returncode, ended.stderr[-300:]))
    assert wrong == []


@pytest.mark.parametrize("level", ["1", "2"])
def test_python_without_assertions_and_docstrings(tmp_path, level):
    """The same numbers, figures and refusals; and nothing without docstrings is kept for others."""
    environment = os.environ | {"ORDERPARAM_CACHE": str(tmp_path / "programs")}

    def said(words, **further):
        ended = subprocess.run(
            [sys.executable, "-m", "orderparam", *words.split()],
            cwd=tmp_path, env=environment | further, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert "Traceback" not in ended.stderr
        return ended.returncode, ended.stdout, ended.stderr

    for words in (
        "list spins.mean_field",
        "solve spins.mean_field temperature=0.5 --over field=0:1:3 --out r",
        "solve associative_memory.replica_symmetric load=0.05",
        "solve spins.onsager temperature=2",
        "solve spins.mean_field temperature=-1",
        "run digits-learning-curve --set x=1",
        "exponents z1*z2",
        "exponents z1+",
        "list",
        "--help",
    ):
        bare = said(words, PYTHONOPTIMIZE=level)
        whole = said(words)
        assert bare[0] == whole[0]
        assert bare[2] == whole[2]
        if level == "1" or not words.endswith(("list spins.mean_field", "--help")):
            assert bare[1] == whole[1]
    assert "The magnetisation solves" in said("list spins.mean_field")[1]
