"""Paths as people write them, and files that are there whole or not at all."""

import os
import subprocess
import sys
from contextlib import suppress

import pytest

from orderparam.core.paths import expanded, resolved, whole_file


def test_two_processes_may_write_the_same_file(tmp_path, monkeypatch):
    """Each writes its own aside; the later one is what is there."""
    target = tmp_path / "table.csv"
    with whole_file(target) as one:
        one.write_text("one")
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: 1)
            with whole_file(target) as two:
                two.write_text("two")
        assert target.read_text() == "two"
    assert target.read_text() == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_a_file_that_is_not_finished_does_not_take_the_place_of_the_other(tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("before")
    with suppress(KeyError), whole_file(target) as aside:
        aside.write_text("half")
        raise KeyError
    assert target.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_what_a_killed_process_left_of_a_file_is_removed(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for machine in (f"{os.uname().nodename}.", ""):
        (tmp_path / f".table.csv.{machine}{dead.pid}.new").touch()
    kept = [f".table.csv.elsewhere.{dead.pid}.new", f".other.csv.{dead.pid}.new"]
    for name in kept:
        (tmp_path / name).touch()
    with whole_file(tmp_path / "table.csv") as aside:
        aside.write_text("one")
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv", *kept}


def test_places_that_are_nowhere_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(ValueError, match="there is no such user"):
        expanded("~nosuchuser/x")
    with pytest.raises((ValueError, OSError), match="round"):  # Python 3.13 follows no such links
        resolved("round").stat()
