"""The glossary: its terms are in order, and what it names is there."""

import importlib
import re
from pathlib import Path

import orderparam as op
from orderparam.core import registry

PAGE = (Path(__file__).parent.parent / "docs" / "glossary.md").read_text(encoding="utf-8")


def test_terms_are_in_alphabetical_order_and_met_once():
    terms = [term.lower() for term in re.findall(r"^\*\*(.+?)\.\*\*", PAGE, flags=re.MULTILINE)]
    # some four for each topic: it is read, not searched
    assert 40 <= len(terms) <= 4 * len(topics())
    letters = [re.sub("[^a-z ]", "", term) for term in terms]
    assert letters == sorted(set(letters))


def topics() -> set[str]:
    return {entry.name.partition(".")[0] for entry in registry.index() if "." in entry.name}


def test_every_name_is_there():
    known = {entry.name for entry in registry.index()}
    for name in re.findall(r"`([\w.]+)`", PAGE):
        first, _, last = name.rpartition(".")
        if first in topics():
            assert name in known or name == "topic.function", name
        elif first == "op":
            assert hasattr(op, last), name
        elif first.startswith("orderparam"):
            assert hasattr(importlib.import_module(first), last), name
    for name in re.findall(r"[Ss]tudy\s+`([\w-]+)`", PAGE):
        assert name in known, name
