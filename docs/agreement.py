"""Runs every study at the size of the gallery, keeps figures and numbers in docs/gallery, and
writes docs/agreement.md from them.

    python docs/agreement.py [STUDY ...] [--size SIZE] [--results FOLDER] [--no-run] [--list]

A study's result is kept in FOLDER/SIZE/STUDY-STATE, where STATE is a hash of the code that the
study reaches, wherever it stands, without what carries and draws numbers (`core`, `running`,
`comparison`, `plotting`, the decorators of studies) and without comments and docstrings. While that
is unchanged, a finished study is not run again and an interrupted one goes on where it stopped. A
study that fails is reported and the rest goes on. Before each study it is said how many are left
and, from the records of earlier runs, about how long they take; --list says only that. With names,
these alone are run. With --no-run nothing is: what has a result is taken, the newest of another
state where there is none of this one.

docs/gallery/STUDY.webp is the figure, drawn again when words or the house style change;
docs/gallery/STUDY.json what the page of the study and the table of all studies say. Pages are made
of these alone, without results. A result of full size is kept beside them, in docs/gallery/full;
what it shows beyond the gallery's is said in docs/gallery/full.toml.

The exit status is 1 when a study failed, or differs from its theory by more than chance without a
sentence (`explained=` of its decorator) that says why.
"""

import argparse
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
from orderparam.comparison import Study, load, studies  # noqa: E402
from orderparam.core.outline import SIZES  # noqa: E402

GALLERY = HERE / "gallery"
INTRODUCTION = """\
# How far theory and measurement are apart

`make figures` writes this page from its runs of every study; `orderparam run STUDY` makes one of
them, with its figure and the table of all points. The columns mean:

- *runs*: independent runs that converged at a measured point, fewest to most. *Unconverged* runs
  are counted in their own column and are in no mean.
- *resolution*: the standard error of a measured mean over the theory, in the median of the points.
  A deviation that is smaller than this could not have been seen. Where a theory is itself an
  average over samples, its own standard error is added in squares, here and in what follows.
- *beyond 3*: how many of the points at which a measurement with its error stands beside a theory
  differ by more than three standard errors. An error from the scatter of n runs is itself
  uncertain: the deviation is judged by Student's t with n − 1 degrees of freedom, so that 0.27 % of
  independent points lie beyond three by chance at any n. With four runs this means 9.2 of the
  errors that are drawn, with sixteen 3.6, with forty 3.2.
- *rms z*: the root mean square of these deviations in standard errors: 1 within 1/√(2 points) where
  theory and measurement agree; less where errors are overestimated or correlated.
- *probability*: that chance gives such an rms z or a larger one (χ² of all points). Points of the
  same runs are correlated, as those of one training at many times are. The degrees of freedom are
  therefore K²/Σr², where r is the correlation of two of the K points over the runs. A small
  probability means that many points differ a little, even if none lies beyond three.
- *why*: the reason for a disagreement. *chance* stands where points lie beyond three, but chance
  explains their number (binomial) and the rms z, each with a probability of more than 1 %.
  *Metastable*: why more than a tenth of the runs do not converge in a study whose figure shows the
  runs one by one. *Coarse*: why a resolution worse than 5 % suffices for what the title says.
  *Unproved* stands where neither is said.
- A theory that is a *lower* or *upper bound* is compared on one side alone: only a measurement
  below a lower bound deviates from it. The resolution is then the error over the larger of the two.
- *median*, *worst*: of |mean / theory − 1|. Where a theory is zero to rounding its largest value
  stands in the denominator.

Where several theories stand beside the same measurements, the row is that of the one with the
fewest points beyond three, then with the smallest rms z; it is named. Curves for orientation do not
count, nor do observables that the figure does not show, and a measurement that stands at several
points of a theory counts once. *Size* says which of a study's three sizes was run: the gallery's
in the tables of the topics. Some studies were run at full size as well, that of their source or as
near to it as three hours come: these are in the last table, and the page of the study says what the
full size adds.
"""
LARGEST_SHARE = 0.1  # of unconverged runs in a study that is finished
COARSEST = 0.05  # resolution of a study that proves something


def unexplained(shown: Mapping[str, Any], explained: str) -> bool:
    """Whether the best theory is beyond chance and nothing says why."""
    return bool(shown["best"]["points"] and not shown["best"]["by_chance"] and not explained)


HEADS = (
    "study", "size", "theory", "runs", "unconverged", "resolution", "beyond 3", "rms z",
    "probability", "median", "worst",
    "core seconds", "why",
)  # fmt: skip


def row(name: str, shown: Mapping[str, Any] | None, explained: str, reserve: str = "") -> str:
    """The table's row of a study, from its record. reserve: what `reserves` says of it."""
    if shown is None:
        return _joined([f"`{name}`", "not run", *[""] * (len(HEADS) - 2)])
    best = shown["best"]
    beyond, why = "no measurement", ""
    if best["median_deviation"] is not None:
        beyond = "no errors"
    if best["points"]:
        beyond = f"{best['beyond']} of {best['points']}"
    if best["points"] and not best["by_chance"]:
        why = explained or "**not explained**"
    elif best["beyond"]:
        why = "chance"
    runs = best.get("runs")
    measured = shown["points"]["experiment"]
    return _joined(
        [
            f"`{name}`",
            shown["size"],
            best["theory"],
            "" if not runs else str(runs[0]) if runs[0] == runs[1] else f"{runs[0]} to {runs[1]}",
            f"{measured['unconverged']} of {measured['points']}" if measured["unconverged"] else "",
            _percent(best.get("resolution")),
            beyond,
            "" if best.get("rms_z") is None else f"{best['rms_z']:.2g}",
            "" if best.get("probability") is None else f"{best['probability']:.1g}",
            _percent(best["median_deviation"]),
            _percent(best.get("worst_deviation")),
            f"{shown['processor_seconds']:.0f}",
            " ".join(part for part in (why, reserve) if part),
        ]
    )


def _percent(number: float | None) -> str:
    return "" if number is None else f"{100 * number:.2g} %"


def _joined(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def unproved(shown: Mapping[str, Any]) -> str:
    """Why the runs of a study do not prove anything yet; "" where they do, where nothing is
    measured, or where the study says why its runs suffice (see `Study`)."""
    study = studies().get(shown["study"])
    told = "" if study is None else study.metastable
    measured = shown["points"]["experiment"]
    missed = measured["unconverged"] > LARGEST_SHARE * measured["points"]
    if missed and not (told and study and study.shows_runs(shown["parameters"])):
        return "more than a tenth of the runs did not converge"
    if _is_coarse(shown) and not (study and study.coarse):
        return "resolution worse than 5 %"
    return ""


def _is_coarse(shown: Mapping[str, Any]) -> bool:
    """Whether errors exceed what a study may have without a reason."""
    resolution = shown["best"].get("resolution")
    return resolution is not None and resolution > COARSEST


def reserves(shown: Mapping[str, Any], study: Study) -> str:
    """What the row of a study says of runs that did not converge and of large errors."""
    if why := unproved(shown):
        return f"**Unproved**: {why}."
    measured = shown["points"]["experiment"]
    missed = measured["unconverged"] > LARGEST_SHARE * measured["points"]
    said = (
        f"*Metastable*: {study.metastable}" if missed else "",
        f"*Coarse*: {study.coarse}" if _is_coarse(shown) else "",
    )
    return " ".join(part for part in said if part)


def page(known: Iterable[Study]) -> Iterator[str]:
    """The lines of the page: a table for each topic."""
    yield INTRODUCTION
    topics: dict[str, list[str]] = {}
    for study in sorted(known, key=lambda study: (study.topic, study.name)):
        shown = kept(study.name)
        reserve = "" if shown is None else reserves(shown, study)
        topics.setdefault(study.topic, []).append(row(study.name, shown, study.explained, reserve))
    for topic, rows in topics.items():
        yield f"## {title(topic)}\n"
        yield _joined(HEADS)
        yield _joined(["---"] * len(HEADS))
        yield from rows
        yield ""
    full = [(study, shown) for study in known if (shown := kept(study.name, "full"))]
    if full:
        yield "## At full size\n"
        yield _joined(HEADS)
        yield _joined(["---"] * len(HEADS))
        for study, shown in sorted(full, key=lambda pair: pair[0].name):
            yield row(study.name, shown, study.explained, reserves(shown, study))
        yield ""


def place(size: str) -> Path:
    """The folder of the figures and records of a size: full ones stand beside the gallery's."""
    return GALLERY / "full" if size == "full" else GALLERY


def kept(name: str, size: str = "gallery") -> dict[str, Any] | None:
    """The record of a study at a size, if there is one."""
    path = place(size) / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def is_finished(folder: Path) -> bool:
    """Whether a run is complete, with no point that failed."""
    summary = folder / "summary.json"
    return summary.is_file() and not any(
        curve["failed"] for curve in json.loads(summary.read_text())["curves"]
    )


def has_sizes(described: Mapping[str, Any], study: Study, size: str) -> bool:
    """Whether a record or a summary has the parameters that the study has at this size today."""
    parameters = json.loads(json.dumps(dict(study.parameters(size)), default=float))
    return bool(described["parameters"] == parameters)


def is_recorded(name: str, size: str, state: str) -> bool:
    """Whether the gallery shows a study at this size and of this code."""
    shown = kept(name, size)
    return shown is not None and (shown["size"], shown["state"]) == (size, state)


def expected_seconds(study: Study, size: str) -> float:
    """Core seconds of a study, from its record: in proportion to the number of its runs at another
    size."""
    shown = kept(study.name, size) or kept(study.name)
    if shown is None:
        return study.seconds[1] if size == "full" else study.seconds[0]
    if shown["size"] == size:
        return float(shown["processor_seconds"])
    runs = [max(1, sum(_runs(study.parameters(one)))) for one in (size, shown["size"])]
    return float(shown["processor_seconds"]) * runs[0] / runs[1]


def _runs(parameters: Mapping[str, Any]) -> list[int]:
    """The numbers of independent runs among a study's parameters."""
    return [
        value for name, value in parameters.items() if name == "seeds" or name.endswith("_seeds")
    ]


def newest(results: Path, name: str, state: str) -> Path | None:
    """The finished result of this state, else the newest of any."""
    folders = [
        path
        for path in results.glob(f"{name}-*")
        if re.fullmatch("[0-9a-f]{8}", path.name.removeprefix(f"{name}-"))
    ]
    found = [path for path in folders if is_finished(path)]
    return max(
        found,
        key=lambda path: (path.name.endswith(state), (path / "summary.json").stat().st_mtime),
        default=None,
    )


def keep(study: Study, folder: Path) -> None:
    """Figure and record of a finished study into the gallery, at the place of its size, unless
    those of the same numbers, words and style are there. Of a full size there is no figure for
    telephones."""
    style = Path(orderparam.plotting.__file__).parent.rglob("*.py")
    written = Path(inspect.getfile(inspect.unwrap(study.build)))
    files = [*sorted(style), HERE / "_site" / "record.py", written, folder / "summary.json"]
    look = hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:8]
    size = json.loads((folder / "summary.json").read_text())["size"]
    home = place(size)
    home.mkdir(exist_ok=True)
    known = kept(study.name, size)
    if known and known["look"] == look and (home / f"{study.name}.webp").is_file():
        return
    finished = load(folder)
    caption = draw(finished, home / f"{study.name}.webp", for_telephones=size != "full")
    shown = {**record(finished, folder.name[-8:], caption), "look": look}
    (home / f"{study.name}.json").write_text(
        json.dumps(shown, indent=1, ensure_ascii=False, default=float) + "\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    known = {
        name: study
        for name, study in studies().items()
        if study.build.__module__.startswith("orderparam.")
    }
    parser.add_argument(
        "studies", nargs="*", metavar="STUDY", help="run these alone (default: all)"
    )
    parser.add_argument(
        "--size", choices=SIZES, default="gallery", help="the size of the runs (default: gallery)"
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        help="folder of the results (default: results)",
    )
    parser.add_argument(
        "--list", action="store_true", help="say what is left to run, and run nothing"
    )
    parser.add_argument("--no-run", action="store_true", help="run nothing, take what has a result")
    arguments = parser.parse_args()
    if wrong := set(arguments.studies) - known.keys():
        parser.error(f"there is no study {', '.join(sorted(wrong))}")
    results = arguments.results / arguments.size
    names = arguments.studies or list(known)
    states = {
        name: source_state(known[name].build.__module__, known[name].build.__name__)
        for name in names
    }
    left = [
        name
        for name in names
        if not is_finished(folder := results / f"{name}-{states[name]}")
        or not has_sizes(
            json.loads((folder / "summary.json").read_text()), known[name], arguments.size
        )
    ]
    # those that the records do not show yet first, then the quickest
    left.sort(
        key=lambda name: (
            is_recorded(name, arguments.size, states[name]),
            expected_seconds(known[name], arguments.size),
        )
    )
    if arguments.list:
        for name in left:
            print(f"{name}: about {expected_seconds(known[name], arguments.size) / 60:.0f} min")
        print(f"{len(left)} of {len(names)} studies are left")
        return 0
    problems: dict[str, list[str]] = {}
    if not arguments.no_run:
        for at, name in enumerate(left):
            rest = sum(expected_seconds(known[other], arguments.size) for other in left[at:])
            print(
                f"== {name}: {len(left) - at} left, about {rest / 3600:.1f} hours of one core",
                file=sys.stderr,
                flush=True,
            )
            folder = results / f"{name}-{states[name]}"
            command = [
                sys.executable,
                "-m",
                "orderparam",
                "run",
                name,
                "--size",
                arguments.size,
                "--out",
                str(folder),
            ]
            if subprocess.run(command, check=False).returncode or not is_finished(folder):
                problems.setdefault("failed", []).append(name)
                continue
            keep(known[name], folder)
    for name in names:
        study, state = known[name], states[name]
        result = newest(results, name, state)
        try:
            if result is not None:
                keep(study, result)
        except Exception as error:  # a result of other code, which this code cannot draw
            print(f"{result}: {type(error).__name__}: {error}", file=sys.stderr)
            problems.setdefault("cannot be drawn", []).append(name)
        shown = kept(name, arguments.size)
        if shown is None:
            problems.setdefault("without a result", []).append(name)
            continue
        if unexplained(shown, study.explained):
            problems.setdefault(
                "more than chance beyond three standard errors, and no explanation", []
            ).append(name)
        if why := unproved(shown):
            print(f"{name}: {why}", file=sys.stderr)
        if shown["state"] != state:
            print(f"{name}: a result of other code", file=sys.stderr)
        elif not has_sizes(shown, study, shown["size"]):
            print(f"{name}: a result of other sizes", file=sys.stderr)
    (HERE / "agreement.md").write_text("\n".join(page(known.values())).rstrip() + "\n")
    for what, names in problems.items():
        print(f"{what}: {', '.join(names)}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
