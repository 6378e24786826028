"""Runs every study at its quick size, keeps its figure and numbers in docs/gallery, and writes docs/agreement.md from them.

    python docs/agreement.py [STUDY ...] [--results FOLDER] [--no-run]

A study's result is kept in FOLDER/STUDY-STATE, where STATE is a hash of the code that its module imports, directly or not,
without what carries and draws numbers (`core`, `plotting`, the decorators of studies) and without comments and docstrings. While
that is unchanged, a finished study is not run again and an interrupted one goes on where it stopped. A study that fails is
reported and the rest goes on. With names, these alone are run. With --no-run nothing is: what has a result is taken, the newest
of another state where there is none of this one.

docs/gallery/STUDY.webp is the figure, drawn again when words or the house style change; docs/gallery/STUDY.json what the page of
the study and the table of all studies say. Pages are made of these alone, without results.

The exit status is 1 when a study failed, or differs from its theory by more than chance without a sentence (`explained=` of its
decorator) that says why.
"""

import argparse
import functools
import hashlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from _site.names import title  # noqa: E402
from _site.record import draw, record  # noqa: E402
from _site.state import source_state  # noqa: E402

import orderparam.plotting  # noqa: E402
from orderparam.core.study import Study, load, studies  # noqa: E402

GALLERY = HERE / "gallery"
INTRODUCTION = """\
# How far theory and measurement are apart

Made by `make figures`, which runs every study at its quick size (`orderparam run STUDY` makes one of them, with its figure and
the table of all points). Of the points at which a measurement, with its standard error, stands beside a theory: how many differ
by more than three standard errors, and the median of |mean / theory − 1|. Where several theories stand beside the same
measurements, the row is that of the one that agrees at most points, which is named; curves for orientation do not count. By
chance 0.27 % of independent points lie beyond three: a number that chance explains (more than 1 % probable, binomial) says so.
"""


def unexplained(shown: Mapping[str, Any], explained: str) -> bool:
    """Whether the best theory is beyond chance and nothing says why."""
    return bool(shown["best"]["beyond"] and not shown["best"]["by_chance"] and not explained)


def row(name: str, shown: Mapping[str, Any] | None, explained: str) -> str:
    """The table's row of a study, from its record."""
    if shown is None:
        return f"| `{name}` | | not run | | | |"
    best = shown["best"]
    beyond, deviation, why = "no measurement", "", ""
    if best["median_deviation"] is not None:
        deviation = f"{100 * best['median_deviation']:.2g} %"
        beyond = "no errors"
    if best["points"]:
        beyond = f"{best['beyond']} of {best['points']}"
    if best["beyond"]:
        why = "chance" if best["by_chance"] else explained or "**not explained**"
    cells = (f"`{name}`", best["theory"], beyond, deviation, f"{shown['processor_seconds']:.0f}", why)
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def page(known: Iterable[Study]) -> Iterator[str]:
    """The lines of the page: a table for each room."""
    yield INTRODUCTION
    rooms: dict[str, list[str]] = {}
    for study in sorted(known, key=lambda study: (study.room, study.name)):
        rooms.setdefault(study.room, []).append(row(study.name, kept(study.name), study.explained))
    for room, rows in rooms.items():
        yield f"## {title(room)}\n"
        yield "| study | theory | beyond three standard errors | median deviation | processor seconds | why |"
        yield "| --- | --- | --- | --- | --- | --- |"
        yield from rows
        yield ""


def kept(name: str) -> dict[str, Any] | None:
    """The record of a study, if there is one."""
    path = GALLERY / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def is_finished(folder: Path) -> bool:
    """Whether a run is complete, with no point that failed."""
    summary = folder / "summary.json"
    return summary.is_file() and not any(curve["failed"] for curve in json.loads(summary.read_text())["curves"])


def newest(results: Path, name: str, state: str) -> Path | None:
    """The finished result of this state, else the newest of any."""
    folders = [path for path in results.glob(f"{name}-*") if re.fullmatch("[0-9a-f]{8}", path.name.removeprefix(f"{name}-"))]
    found = [path for path in folders if is_finished(path)]
    return max(found, key=lambda path: (path.name.endswith(state), (path / "summary.json").stat().st_mtime), default=None)


def keep(study: Study, folder: Path) -> None:
    """Figure and record of a finished study into the gallery, unless those of the same numbers, words and style are there."""
    style = Path(orderparam.plotting.__file__).parent.rglob("*.py")
    written = Path(inspect.getfile(inspect.unwrap(study.build)))
    files = [*sorted(style), HERE / "_site" / "record.py", written, folder / "summary.json"]
    look = hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:8]
    known = kept(study.name)
    if known and known["look"] == look and (GALLERY / f"{study.name}.webp").is_file():
        return
    finished = load(folder)
    draw(finished, GALLERY / f"{study.name}.webp")
    shown = {**record(finished, folder.name[-8:]), "look": look}
    (GALLERY / f"{study.name}.json").write_text(json.dumps(shown, indent=1, ensure_ascii=False, default=float) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    known = {name: study for name, study in studies().items() if study.build.__module__.startswith("orderparam.")}
    parser.add_argument("studies", nargs="*", metavar="STUDY", help="run these alone (default: all)")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the results (default: results)")
    parser.add_argument("--no-run", action="store_true", help="run nothing, take what has a result")
    arguments = parser.parse_args()
    if wrong := set(arguments.studies) - known.keys():
        parser.error(f"there is no study {', '.join(sorted(wrong))}")
    state_of = functools.cache(source_state)
    problems: dict[str, list[str]] = {}
    for name in arguments.studies or known:
        study = known[name]
        state = state_of(study.build.__module__)
        folder = arguments.results / f"{name}-{state}"
        if not arguments.no_run and not is_finished(folder):
            command = [sys.executable, "-m", "orderparam.cli", "run", name, "--out", str(folder)]
            if subprocess.run(command, check=False).returncode or not is_finished(folder):
                problems.setdefault("failed", []).append(name)
                continue
        result = newest(arguments.results, name, state)
        try:
            if result is not None:
                keep(study, result)
        except Exception as error:  # a result of other code, which this one cannot draw
            print(f"{result}: {type(error).__name__}: {error}", file=sys.stderr)
            problems.setdefault("cannot be drawn", []).append(name)
        shown = kept(name)
        if shown is None:
            problems.setdefault("without a result", []).append(name)
        elif unexplained(shown, study.explained):
            problems.setdefault("more than chance beyond three standard errors, and no explanation", []).append(name)
        elif shown["state"] != state:
            print(f"{name}: a result of other code", file=sys.stderr)
    (HERE / "agreement.md").write_text("\n".join(page(known.values())).rstrip() + "\n")
    for what, names in problems.items():
        print(f"{what}: {', '.join(names)}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
