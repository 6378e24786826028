"""Gives the records in docs/gallery the state and the captions of this checkout's code, after a
change that leaves all numbers equal.

    python docs/carry_records.py BEFORE

BEFORE is a checkout of the commit before the change. A record that was up to date there keeps its
measurements and takes the new state; others are left alone. This is for changes that are known to
leave numbers equal but for rounding, as two versions of a library do: a function that moves or is
renamed, a sum in another order. The commit says how that is known. A record whose caption was that
of the code before takes the new caption; its figure shows no caption and stays. Records of full
size, in docs/gallery/full, are carried as those of the gallery are.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from _site.state import source_state  # noqa: E402

from orderparam.comparison import studies  # noqa: E402
from orderparam.plotting.captions import filled  # noqa: E402


def words() -> dict[str, dict[str, str]]:
    """The state and the caption, not yet formatted, of every study of the package that Python finds
    first."""
    return {
        name: {
            "state": source_state(study.build.__module__, study.build.__name__),
            "caption": study.caption,
        }
        for name, study in studies().items()
        if study.build.__module__.startswith("orderparam.")
    }


def words_of(checkout: Path) -> dict[str, dict[str, str]]:
    """The states and captions of the studies of another checkout, found by a process of its own."""
    found = subprocess.run(
        [sys.executable, __file__, "--words"],
        env=os.environ | {"PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(json.loads(found.stdout))


def carry(
    gallery: Path, before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]
) -> list[str]:
    """Write new states into the records that were up to date before, and new captions into those
    with the caption of before; the names of the records that were changed."""
    carried = []
    places = itertools.product(after.items(), (gallery, gallery / "full"))
    for (name, new), folder in places:
        path = folder / f"{name}.json"
        if name not in before or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        shown, old = json.loads(text), before[name]
        lines = {"state": (old["state"], new["state"])}
        was, now = (_caption(one["caption"], shown["parameters"]) for one in (old, new))
        if was is not None and now is not None:
            lines["caption"] = shown["caption"], _carried(shown["caption"], was, now)
        for field, (was, now) in lines.items():
            was, now = (f' "{field}": {json.dumps(one, ensure_ascii=False)}' for one in (was, now))
            text = text.replace(was, now)
        if text != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8")
            carried.append(str(path.relative_to(gallery).with_suffix("")))
    return carried


def _carried(shown: str, was: str, now: str) -> str:
    """The caption shown with `now` in place of the words `was` at its beginning; unchanged where it
    has other words there, or the new ones already."""
    there = now.startswith(was) and shown.startswith(now)
    if there or not shown.startswith(was):
        return shown
    return f"{now} {shown.removeprefix(was).lstrip()}".strip()


def _caption(template: str, parameters: dict[str, Any]) -> str | None:
    """The caption with the values of the parameters; None of a record of other parameters."""
    try:
        return " ".join(filled(template, parameters).split())
    except KeyError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("before", type=Path, nargs="?", help="checkout before the change")
    parser.add_argument("--words", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.words:
        print(json.dumps(words()))
        return
    if arguments.before is None or not (arguments.before / "orderparam").is_dir():
        parser.error(f"{arguments.before} is not a checkout of this package")
    for name in carry(HERE / "gallery", words_of(arguments.before), words()):
        print(name)


if __name__ == "__main__":
    main()
