"""The table of papers: the studies that it names are there, and no study of the package is left
out."""

import re
from pathlib import Path

from orderparam.core import registry

PAGE = (Path(__file__).parent.parent / "docs" / "papers.md").read_text(encoding="utf-8")


def test_the_table_of_papers_names_every_study_and_no_other():
    named = {
        word
        for row in PAGE.splitlines()
        if row.startswith("|")
        for word in re.findall(r"`([a-z][a-z0-9-]+)`", row)
    }
    known = {entry.name for entry in registry.index() if entry.kind == "study"}
    assert named == known
