"""Runs every study at its quick size and writes docs/agreement.md: how far theory and measurement are apart, study by study.

    python docs/agreement.py [STUDY ...] [--results FOLDER] [--page FILE]

A study's result is kept in FOLDER/STUDY-STATE, where STATE is a hash of the code that its module imports, directly or not,
without what carries and draws numbers (`core`, `plotting`, the decorators of studies) and without comments and docstrings. While
that is unchanged, a finished study is not run again and an interrupted one goes on where it stopped. A study that fails is
reported and the rest goes on. With names, these alone are run, and what else has a result stands on the page.

The exit status is 1 when a study failed, or differs from its theory by more than chance without a sentence (`explained=` of its
decorator) that says why.
"""

import argparse
import ast
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

import orderparam
from orderparam.core.registry import Entry, index
from orderparam.core.study import Comparison, load

BEYOND = 2 * stats.norm.sf(3)  # of points that differ by chance alone
BY_CHANCE = 0.01  # a number of points beyond three standard errors that is less probable than this is no chance
INTRODUCTION = """\
# How far theory and measurement are apart

Made by `make figures`, which runs every study at its quick size (`orderparam run STUDY` makes one of them, with its figure and
the table of all points). Of the points at which a measurement, with its standard error, stands beside a theory: how many differ
by more than three standard errors, and the median of |mean / theory − 1|. Where several theories stand beside the same
measurements, the row is that of the one that agrees at most points, which is named; curves for orientation do not count. By
chance 0.27 % of independent points lie beyond three: a number that chance explains (more than 1 % probable, binomial) says so.
"""


@dataclass(frozen=True)
class Agreement:
    """Of the best theory of one study: its name, |z| and |deviation| of all points that have them."""

    theory: str
    z: np.ndarray
    deviation: np.ndarray

    @property
    def beyond(self) -> int:
        return int((self.z > 3).sum())

    @property
    def by_chance(self) -> bool:
        return bool(stats.binom.sf(self.beyond - 1, self.z.size, BEYOND) > BY_CHANCE)


def source_state(module: str) -> str:
    """A hash of the code that numbers of that module's studies can come from: all it imports of the package, without `core` and
    `plotting`, which carry and draw them."""
    home = Path(orderparam.__file__).parents[1]
    reached: dict[Path, str] = {}
    names = [module]
    while names:
        path = home.joinpath(*names.pop().split("."))
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file.is_file() and file not in reached and file.relative_to(home).parts[1] not in ("core", "plotting"):
            tree = ast.parse(file.read_text())
            names += _imports(tree)
            reached[file] = _code(tree)
    found = hashlib.sha256()
    for file, code in sorted(reached.items()):
        found.update(f"{file.relative_to(home)}\0{code}\0".encode())
    return found.hexdigest()[:8]


def _code(tree: ast.Module) -> str:
    """What a module does, without its words: comments, docstrings, and what `@study` is told (titles, panels, explanations)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [it for it in node.decorator_list if "study(" not in ast.unparse(it)]
    return ast.dump(tree)


def _imports(tree: ast.Module) -> Iterator[str]:
    """Modules of the package that a module names, and what it takes from them (which may be modules too)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "orderparam":
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def best(finished: Comparison) -> Agreement:
    """The theory that agrees at most points. Measurements beside different sets of theories are judged apart, and pooled."""
    found: dict[frozenset[str], dict[str, list[tuple[np.ndarray, np.ndarray]]]] = {}
    for tables in finished.agreement.values():
        for table in tables.values():
            columns = [
                (str(finished.datasets[str(name)].attrs["label"]), table.sel(theory=name))
                for name in table["theory"].values
                if not bool(table["baseline"].sel(theory=name))
            ]
            group = found.setdefault(frozenset(label for label, _ in columns), {})
            for label, column in columns:
                z, deviation = (np.abs(column[name].values).ravel() for name in ("z", "relative_deviation"))
                group.setdefault(label, []).append((z[np.isfinite(z)], deviation[np.isfinite(deviation)]))
    names, z, deviation = [], [np.zeros(0)], [np.zeros(0)]
    for theories in found.values():
        pooled = {label: [np.concatenate(parts) for parts in zip(*columns)] for label, columns in theories.items()}
        if pooled:
            label = max(pooled, key=lambda name: (np.sum(pooled[name][0] <= 3), -np.sum(pooled[name][0] > 3)))
            names.append(label)
            z.append(pooled[label][0])
            deviation.append(pooled[label][1])
    return Agreement(", ".join(dict.fromkeys(names)), np.concatenate(z), np.concatenate(deviation))


def unexplained(finished: Comparison) -> bool:
    """Whether the best theory is beyond chance and nothing says why."""
    agreement = best(finished)
    return bool(agreement.beyond and not agreement.by_chance and not finished.study.explained)


def row(finished: Comparison) -> str:
    """The table's row of a finished study."""
    agreement = best(finished)
    beyond, deviation, why = "no measurement", "", ""
    if agreement.z.size:
        beyond = f"{agreement.beyond} of {agreement.z.size}"
    elif agreement.deviation.size:
        beyond = "no errors"
    if agreement.deviation.size:
        deviation = f"{100 * np.median(agreement.deviation):.2g} %"
    if agreement.beyond:
        why = "chance" if agreement.by_chance else finished.study.explained or "**not explained**"
    cells = (f"`{finished.study.name}`", agreement.theory, beyond, deviation, f"{finished.summary['processor_seconds']:.0f}", why)
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def page(entries: Iterable[Entry], folders: dict[str, Path]) -> Iterator[str]:
    """The lines of the page: a table for each room."""
    yield INTRODUCTION
    rooms: dict[str, list[str]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.room, entry.name)):
        folder = folders[entry.name]
        line = row(load(folder)) if is_finished(folder) else f"| `{entry.name}` | | not run | | | |"
        rooms.setdefault(entry.room, []).append(line)
    for room, rows in rooms.items():
        yield f"## {room.replace('_', ' ').capitalize()}\n"
        yield "| study | theory | beyond three standard errors | median deviation | processor seconds | why |"
        yield "| --- | --- | --- | --- | --- | --- |"
        yield from rows
        yield ""


def is_finished(folder: Path) -> bool:
    """Whether a run is complete, with no point that failed."""
    summary = folder / "summary.json"
    return summary.is_file() and not any(curve["failed"] for curve in json.loads(summary.read_text())["curves"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    known = [entry for entry in index() if entry.kind == "study" and entry.module.startswith("orderparam.")]
    parser.add_argument("studies", nargs="*", metavar="STUDY", help="run these alone (default: all)")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the results (default: results)")
    parser.add_argument("--page", type=Path, default=Path(__file__).with_suffix(".md"), help="the page (default: %(default)s)")
    arguments = parser.parse_args()
    if wrong := set(arguments.studies) - {entry.name for entry in known}:
        parser.error(f"there is no study {', '.join(sorted(wrong))}")
    states = {module: source_state(module) for module in {entry.module for entry in known}}
    folders = {entry.name: arguments.results / f"{entry.name}-{states[entry.module]}" for entry in known}
    failed, silent = [], []
    for name in arguments.studies or folders:
        if not is_finished(folders[name]):
            command = [sys.executable, "-m", "orderparam.cli", "run", name, "--out", str(folders[name])]
            if subprocess.run(command, check=False).returncode or not is_finished(folders[name]):
                failed.append(name)
                continue
        if unexplained(load(folders[name])):
            silent.append(name)
    arguments.page.write_text("\n".join(page(known, folders)).rstrip() + "\n")
    for names, what in ((failed, "failed"), (silent, "more than chance beyond three standard errors, and no explanation")):
        if names:
            print(f"{what}: {', '.join(names)}", file=sys.stderr)
    return 1 if failed or silent else 0


if __name__ == "__main__":
    sys.exit(main())
