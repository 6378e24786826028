"""What the documentation shows is run: the Python blocks of a page from top to bottom, and the
examples of docstrings."""

import ast
import doctest
import importlib
import importlib.util
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
from unchanged import Reached

import orderparam
from orderparam.core.registry import index
from orderparam.core.verb import forget_programs

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))
printed = importlib.import_module("printed")
state = importlib.import_module("_site.state")
# tests/core/test_clusters_page.py runs it, with jobs that start on this machine
ELSEWHERE = ("clusters.md",)


def _blocks(path: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), flags=re.DOTALL | re.MULTILINE)


def _pages() -> list[str]:
    pages = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [
        str(page.relative_to(ROOT))
        for page in pages
        if page.name not in ELSEWHERE and _blocks(page)
    ]


def _words(text: str) -> list[str]:
    """The words of an output, without its numbers, which can differ between machines."""
    return re.sub(r"[-+]?[0-9][0-9.e+-]*|[-=]+", "", text).split()


def _readme(names: dict) -> None:
    mean = names["runs"]["test_error"].mean("seed")
    expected = names["op"].sweep(
        names["self_consistent"], names["system"], {"n_train": [20, 50, 100]}
    )["test_error"]
    np.testing.assert_allclose(mean, expected, rtol=0.25)
    assert Path("learning-curve.png").stat().st_size > 5000


def _new_system(names: dict) -> None:
    with pytest.raises(ValueError, match=r"Magnet\.spins = 1: must be an integer and >= 2"):
        names["Magnet"](1.0, spins=1)


def _your_data(names: dict) -> None:
    assert names["low"] < names["value"] < names["high"]
    assert names["fewest"] < names["rows"]
    assert names["scores"].mean() > 0.3
    assert names["beyond"].examples == 442


def _phases(names: dict) -> None:
    assert abs(names["onset"].location - 2 / np.log(1 + np.sqrt(2))) < 1e-9
    assert abs(names["memory"].spinodals["retrieval"][0] - 0.1379055665) < 1e-9
    assert {"jump", "crossover"} <= {one.kind for one in names["diagram"].boundaries}


CHECKS: dict[str, Callable[[dict], None]] = {
    "README.md": _readme,
    "new-system.md": _new_system,
    "your-data.md": _your_data,
    "phases.md": _phases,
}


def _reached_by_page(page):
    """What the blocks of a page of a theory use; unknown for other pages, which show commands."""
    if not page.startswith("docs/theory/"):
        return None
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = [part for found in printed.BLOCK.finditer(text) for part in found.groups("")]
    return Reached(state.used_in("\n".join(_blocks(ROOT / page))), "".join(shown))


@pytest.mark.reaches(by=_reached_by_page)
@pytest.mark.parametrize("page", _pages())
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    for table in (ROOT / page).parent.glob("*.csv"):
        shutil.copy(table, tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "page"}
    for block, output in printed.run((ROOT / page).read_text(), names, page):
        if block[2] is not None:
            assert _words(output) == _words(block[2]), "python docs/printed.py writes it anew"
    CHECKS.get(Path(page).name, lambda _: None)(names)
    plt.close("all")


def test_every_check_has_its_page():
    assert {Path(page).name for page in _pages()} >= CHECKS.keys()


def test_the_counts_of_the_readme_are_those_of_the_registry():
    """The number of topics exactly; the others as "more than", rounded down to tens."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    counted = {
        plural: int(re.search(rf"(\d+) {plural}", text)[1])
        for plural in ("theories", "experiments", "studies", "topics")
    }
    entries = [one for one in index() if one.module.startswith("orderparam.systems.")]
    topics = {one.topic for one in entries}
    assert counted.pop("topics") == len(topics)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"Physics in {len(topics)} topics" in changes
    for plural, stated in counted.items():
        kind = {"theories": "theory", "experiments": "experiment", "studies": "study"}[plural]
        there = sum(one.kind == kind for one in entries)
        assert stated in range(there // 10 * 10 - 20, there, 10), f"{there} {plural}"


def _examples() -> list[str]:
    """The modules with an example in a docstring."""
    package = Path(orderparam.__file__).parent
    files = (path for path in sorted(package.rglob("*.py")) if ">>> " in path.read_text())
    return [
        ".".join(("orderparam", *path.relative_to(package).with_suffix("").parts)) for path in files
    ]


@pytest.fixture(autouse=True)
def few_programs():
    """Forgets compiled programs before a process holds so many that the system refuses it more
    pieces of memory: 65,530 by default on Linux, a few for each program, and it dies."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_text().count("\n") > 25_000:
        forget_programs()
        jax.clear_caches()


def _reached_by_examples(module):
    """A module of the physics, and what its examples use; unknown for other modules."""
    if module.split(".")[1] in state.LEFT_OUT:
        return None
    file = Path(importlib.util.find_spec(module).origin)
    examples = [
        example
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module)
        for example in doctest.DocTestParser().get_examples(ast.get_docstring(node) or "")
    ]
    used = state.used_in("".join(["import orderparam as op\n", *(one.source for one in examples)]))
    shown = "".join(one.source + one.want for one in examples)
    return Reached([(file, state.ALL), *used], shown)


@pytest.mark.reaches(by=_reached_by_examples)
@pytest.mark.parametrize("module", _examples())
def test_the_examples_of_docstrings_are_true(module):
    found = importlib.import_module(module)
    for extra in ("torch", "flax"):
        if f">>> import {extra}" in Path(found.__file__).read_text(encoding="utf-8"):
            pytest.importorskip(extra)
    names = {"op": orderparam, "np": np}
    outcome = doctest.testmod(
        found, extraglobs=names, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert outcome.attempted > 0
    assert outcome.failed == 0
