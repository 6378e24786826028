"""The table of starts: the figure with which each system opens, and the questions under which the
systems are listed.

The table is `starts.toml` beside this file.
"""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("starts.toml")
EXPECTED = ("agreement", "bound", "approximation")
OTHERS = "Other systems"


@dataclass(frozen=True)
class FirstFigure:
    """The first figure of a system; the head of the table explains each field."""

    system: str
    title: str
    sees: str
    x: str
    show: tuple[str, ...]
    theories: tuple[str, ...]
    study: str = ""
    curve: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    log_y: bool = False
    experiment: str = ""
    points: int = 6
    runs: int = 4
    expect: str = "agreement"
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    knobs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """A question, and the topics whose systems and studies answer it."""

    title: str
    about: str
    topics: tuple[str, ...]


@functools.cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(TABLE.read_text())


@functools.cache
def questions() -> tuple[Question, ...]:
    """The questions in the order of the page."""
    return tuple(
        Question(one["title"], one["about"], tuple(one["topics"])) for one in _table()["question"]
    )


def question_of(topic: str) -> str:
    """The title of the question that a topic belongs to; `OTHERS` for a topic that the table does
    not name."""
    return next((one.title for one in questions() if topic in one.topics), OTHERS)


@functools.cache
def starts() -> Mapping[str, FirstFigure]:
    """System -> its start, in the order of the table."""
    return {name: _start(name, row) for name, row in _table().items() if name != "question"}


def _start(name: str, row: Mapping[str, Any]) -> FirstFigure:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
    }
    return FirstFigure(name, **fields)
