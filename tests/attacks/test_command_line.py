"""Three thousand malformed command lines, none a traceback or a hang; some of them as processes of their own."""

import subprocess
import sys

import pytest
from malformed import LONGEST, calls, faults, make_files

from orderparam.core.study import studies

pytestmark = pytest.mark.attack


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(1, 7))
def test_malformed_calls(tmp_path, monkeypatch, seed):
    assert faults(tmp_path, monkeypatch, seed, count=500) == []


@pytest.mark.timeout(3600)
def test_malformed_calls_in_processes(tmp_path):
    make_files(tmp_path)
    wrong = []
    for arguments in calls(7, 40, studies()):
        if arguments[0] == "run" or any("\0" in word or len(word) > 100000 for word in arguments):
            continue  # what is accepted would really run
        command = [sys.executable, "-m", "orderparam.cli", *arguments]
        try:
            ended = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            wrong.append((arguments, "hangs"))
            continue
        if ended.returncode not in (0, 2) or b"Traceback" in ended.stderr:
            wrong.append((arguments, ended.returncode, ended.stderr[-300:]))
    assert wrong == []
