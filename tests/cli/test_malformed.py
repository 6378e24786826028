"""Malformed command lines end in one line and exit status 2: no traceback, no call that does not
end."""

import pytest
import typer
from malformed import COMMANDS, calls, faults

from orderparam.cli.commands import app
from orderparam.comparison import studies
from orderparam.core.registry import index, outline, studies_made

# What these refuse, they refuse before any topic is imported, which takes most of the time.
ALONE = tuple(command for command in COMMANDS if command not in ("solve", "phases", "cite"))


@pytest.mark.timeout(600)
def test_malformed_calls_end_in_one_line(tmp_path, monkeypatch):
    assert faults(tmp_path, monkeypatch, calls(0, 100, studies())) == []


def test_malformed_calls_that_need_no_topic_end_in_one_line(tmp_path, monkeypatch):
    names = [entry.name for entry in index() if entry.kind == "study"][:6]
    # Where an earlier test of this process has imported a study, it has no outline.
    known = {name: studies_made.get(name) or outline(name) for name in names}
    assert all(known.values())
    assert faults(tmp_path, monkeypatch, calls(1, 60, known, ALONE)) == []


def test_every_option_of_every_command_is_tried():
    tried = {
        (line[0], word) for line in calls(0, 1500, studies()) for word in line if word[:2] == "--"
    }
    there = {
        (name, option)
        for name, command in typer.main.get_command(app).commands.items()
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--")
    }
    # --full is --size full, and a browser would open
    assert there - tried == {("run", "--full"), ("explore", "--browser")}
