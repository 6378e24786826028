"""Malformed command lines of all commands, none a traceback or a hang; some of them as processes of
their own."""

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
        command = [sys.executable, "-m", "orderparam.cli", *arguments]
        try:
            ended = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=10 * LONGEST)
        except subprocess.TimeoutExpired:
            wrong.append((arguments, "hangs"))
            continue
        if ended.returncode not in (0, 2) or b"Traceback" in ended.stderr:
            wrong.append((arguments, ended.returncode, ended.stderr[-300:]))
    assert wrong == []
