"""Runs the Python blocks of pages, and writes what they print into the text blocks below them.

    python docs/printed.py [PAGE ...]

Without names all pages of docs/tutorials and docs/howto. Figures are not written.
"""

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parent
# a block of Python; where a block of text follows with nothing between them, it is its output
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def run(text: str, names: dict, page: str = "page") -> Iterator[tuple[re.Match, str]]:
    """The Python blocks of a page, run from top to bottom in the namespace `names`, each with what
    it prints on standard output."""
    for found in BLOCK.finditer(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(found[1], page, "exec"), names)
        yield found, printed.getvalue()


def renewed(page: Path) -> str:
    """The text of a page with the outputs of today."""
    text, parts, end = page.read_text(encoding="utf-8"), [], 0
    for found, printed in run(text, {"__name__": "page"}, page.name):
        parts.append(text[end : found.start()])
        parts.append(f"```python\n{found[1]}```\n")
        if found[2] is not None:
            # long lines may be wrapped on the page
            same = found[2].split() == printed.split()
            parts.append(f"\n```text\n{found[2] if same else printed}```\n")
        end = found.end()
    return "".join([*parts, text[end:]])


def main() -> None:
    given = [Path(name).resolve() for name in sys.argv[1:]]
    pages = given or [*sorted(DOCS.glob("tutorials/*.md")), *sorted(DOCS.glob("howto/*.md"))]
    for page in pages:
        with tempfile.TemporaryDirectory() as empty:
            for table in page.parent.glob("*.csv"):
                shutil.copy(table, empty)
            os.chdir(empty)
            text = renewed(page)
            os.chdir(DOCS)
        changed = text != page.read_text(encoding="utf-8")
        if changed:
            page.write_text(text, encoding="utf-8")
        print(f"{page.relative_to(DOCS)}: {'changed' if changed else 'as it was'}")


if __name__ == "__main__":
    main()
