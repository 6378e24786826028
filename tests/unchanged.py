"""Long tests that need not run again, because nothing that they reach has changed since they last
passed.

`passed.txt` holds a line for each long test that passed: a hash of the code that it reaches
(docs/_site/state.py) with the versions of Python and of the numerical libraries, and its name.
`pytest --changed` leaves out the long tests whose line is still true; `pytest --remember` writes
the lines.

What a test function reaches is read off its source, and its line holds for all its parameters.
Where a parameter names the code instead (a theory, a study, a module, a page), the mark `reaches`
says what that is, `by` a function of the parameters, and each parameter has its own line:

    @pytest.mark.reaches(by=lambda module: Reached([(file_of(module), ALL)]))

Short tests, and tests that find code by name at run time without this mark (the command line, the
explorer), always run.
"""

import ast
import functools
import importlib
import importlib.metadata
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent
PASSED = TESTS / "passed.txt"
LIBRARIES = (
    "jax",
    "jaxlib",
    "numpy",
    "scipy",
    "equinox",
    "optimistix",
    "diffrax",
    "lineax",
    "blackjax",
    "scikit-learn",
)
# The folders whose tests name the code that they test.
FOLDERS = (
    "analysis", "channels", "data", "gaussian", "kernels", "learning_curves", "losses", "networks",
    "physics", "priors",
    "sampling", "solve", "systems",
)  # fmt: skip
# Modules that find code by name: what a test that imports one of them reaches cannot be read off
# its source.
BY_NAME = ("orderparam.cli", "orderparam.core.registry", "orderparam.comparison", "subprocess")


class Reached(NamedTuple):
    """What a test reaches by its parameters."""

    definitions: list[tuple[Path, str]]  # (file, name)
    words: str = ""  # texts that decide as well: examples, titles, pages
    left_out: tuple[str, ...] | None = None  # folders that it does not reach; those of a record


def is_long(item) -> bool:
    return bool(item.get_closest_marker("long") or item.get_closest_marker("slow"))


def function_of(nodeid: str) -> str:
    """The test function of a test, as `folder/file.py::function`: without the parameters and
    without the folder `tests`."""
    return nodeid.removeprefix("tests/").partition("[")[0]


def known() -> dict[str, str]:
    """The hash of each test function that passed."""
    lines = PASSED.read_text(encoding="utf-8").splitlines() if PASSED.is_file() else []
    return {function: state for state, function in (line.split(" ", 1) for line in lines)}


@functools.cache
def _versions() -> str:
    return " ".join(
        [f"{sys.version_info[:2]}", *(importlib.metadata.version(name) for name in LIBRARIES)]
    )


@functools.cache
def _state_of() -> Callable[..., str]:
    sys.path.insert(0, str(TESTS.parent / "docs"))
    return importlib.import_module("_site.state").state_of


@functools.cache
def _finds_by_name(file: Path) -> bool:
    """Whether a test file imports what finds code by name."""
    imported: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            imported += [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
        elif isinstance(node, ast.Import):
            imported += [one.name for one in node.names]
    return any(f"{name}.".startswith(f"{module}.") for name in imported for module in BY_NAME)


@functools.cache
def state(function: str) -> str | None:
    """The hash of a test function and of all code that it reaches; None where that cannot be
    known."""
    path, _, name = function.partition("::")
    file = TESTS / path
    if Path(path).parts[0] not in FOLDERS or "::" in name or _finds_by_name(file):
        return None
    return _state_of()(
        [(file, name), (file, "pytestmark")], (file.parent, TESTS / "core"), _versions()
    )


def line(item) -> tuple[str, str | None]:
    """The name of a test in `passed.txt`, and the hash of what it reaches."""
    mark = item.get_closest_marker("reaches")
    function = function_of(item.nodeid)
    if mark is None:
        return function, state(function)
    by = mark.kwargs["by"]
    reached = by(**{name: item.callspec.params[name] for name in inspect.signature(by).parameters})
    if reached is None:
        return function, None
    file = TESTS / function.partition("::")[0]
    definitions = [*reached.definitions, (file, item.originalname), (file, "pytestmark")]
    words = f"{_versions()} {reached.words}"
    others = {} if reached.left_out is None else {"left_out": reached.left_out}
    return item.nodeid.removeprefix("tests/"), _state_of()(
        definitions, (file.parent, TESTS / "core"), words, **others
    )


def leave_out(items: list) -> tuple[list, list]:
    """The tests to run, and those to leave out."""
    passed = known()
    run, left = [], []
    for item in items:
        unchanged = False
        if is_long(item):
            name, now = line(item)
            unchanged = now is not None and passed.get(name) == now
        (left if unchanged else run).append(item)
    return run, left


def remember(outcomes: dict[str, bool], states: dict[str, str | None]) -> None:
    """Write the lines of the tests that passed, and drop those of tests that failed.

    outcomes: name in `passed.txt` -> whether all its tests that ran passed; states: that of long
    tests that ran -> the hash of what they reach.
    """
    passed = known()
    for name, good in outcomes.items():
        if not good:
            passed.pop(name, None)
        elif now := states.get(name):
            passed[name] = now
    there = {
        name: now for name, now in passed.items() if (TESTS / name.partition("::")[0]).is_file()
    }
    PASSED.write_text(
        "".join(f"{now} {name}\n" for name, now in sorted(there.items())),
        encoding="utf-8",
    )
