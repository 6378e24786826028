"""The page that says how far theory and measurement of every study are apart."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from magnet import Paramagnet, exact, sampled

from orderparam.core.study import Curve, compare, study
from orderparam.core.study.registry import _registry
from orderparam.plotting import Panel

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))
record = importlib.import_module("_site.record")
state_of = importlib.import_module("_site.state")
page = importlib.import_module("agreement")


def shown(finished):
    """The record of a finished study after its way through a file."""
    return json.loads(json.dumps(record.record(finished, "01234567")))


@pytest.fixture(scope="module")
def finished():
    """Measured at field 0.3 beside: that field (wrong at no point), a field of 2 (wrong at all), and no field for orientation."""
    temperatures = {"temperature": (1.0, 2.0, 3.0)}

    @study(
        "test-page",
        title="A magnet",
        source="Langevin 1905",
        seconds=(1, 2),
        observables=("magnetisation",),
        panels=[Panel("temperature", "magnetisation")],
        explained="The field is another one.",
    )
    def build(right: bool = True):
        wrong = Curve("twice", exact, Paramagnet(1.0, 2.0), temperatures)
        return [
            *([Curve("exact", exact, Paramagnet(1.0, 0.3), temperatures)] if right else []),
            wrong,
            Curve("no field", exact, Paramagnet(1.0, 0.0), temperatures, baseline=True),
            Curve("sampled", sampled, Paramagnet(1.0, 0.3, 100), temperatures, seeds=8),
        ]

    yield lambda **settings: compare("test-page", settings=settings, progress=False)
    _registry.pop("test-page")


def test_a_row_is_that_of_the_theory_that_agrees_at_most_points(finished):
    cells = page.row("test-page", shown(finished()), "The field is another one.").split(" | ")
    assert cells[0] == "| `test-page`"
    assert cells[1:3] == ["exact", "0 of 3"]
    assert 0 < float(cells[3].removesuffix(" %")) < 30
    assert cells[-1] == " |"  # nothing to explain


def test_a_disagreement_stands_with_the_sentence_of_its_study(finished):
    wrong = finished(right=False)
    cells = page.row("test-page", shown(wrong), wrong.study.explained).split(" | ")
    assert cells[1:3] == ["twice", "3 of 3"]
    assert cells[-1] == "The field is another one. |"
    assert not page.unexplained(shown(wrong), wrong.study.explained)
    assert page.unexplained(shown(wrong), "")


def test_a_record_has_every_theory_beside_every_measurement(finished):
    kept = shown(finished())
    assert kept["points"]["theory"] == {"points": 9, "failed": 0, "unconverged": 0}
    assert kept["points"]["experiment"]["points"] == 24
    rows = {(one["theory"], one["baseline"]): (one["beyond"], one["points"]) for one in kept["agreement"]}
    assert rows[("exact", False)] == (0, 3)
    assert rows[("twice", False)] == (3, 3)
    assert ("no field", True) in rows


def test_a_study_without_a_result_says_so():
    assert page.row("test-page", None, "") == "| `test-page` | | not run | | | |"


def test_the_gallery_keeps_a_picture_until_words_change(finished, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "GALLERY", tmp_path)
    done = finished()
    folder = tmp_path / "test-page-01234567"
    compare("test-page", out=folder, progress=False)
    page.keep(done.study, folder)
    picture = tmp_path / "test-page.webp"
    assert 2_000 < picture.stat().st_size <= record.BYTES
    assert page.kept("test-page")["state"] == "01234567"
    before = picture.stat().st_mtime_ns
    page.keep(done.study, folder)
    assert picture.stat().st_mtime_ns == before
    (folder / "summary.json").write_text((folder / "summary.json").read_text() + "\n")
    page.keep(done.study, folder)
    assert picture.stat().st_mtime_ns > before


def test_a_result_of_this_code_comes_before_newer_ones_of_other_code(tmp_path):
    for folder in ("one-two-01234567", "one-89abcdef", "one-01234567", "one-half"):
        (tmp_path / folder).mkdir()
        failed = "1" if folder == "one-half" else "0"
        (tmp_path / folder / "summary.json").write_text(f'{{"curves": [{{"failed": {failed}}}]}}')
    assert page.newest(tmp_path, "one", "89abcdef").name == "one-89abcdef"
    assert page.newest(tmp_path, "one", "fedcba98").name == "one-01234567"
    assert page.newest(tmp_path, "none", "89abcdef") is None


@pytest.mark.parametrize(("beyond", "points", "by_chance"), [(1, 40, True), (1, 3, False), (3, 1000, True), (12, 1000, False)])
def test_what_chance_explains(beyond, points, by_chance):
    """P(at least one of 40 beyond three) = 10 %, of three 0.8 %; at least 3 of 1000 47 %, at least 12 of 1000 2e-5."""
    one = record.Agreement("", np.repeat([4.0, 1.0], [beyond, points - beyond]), np.zeros(0))
    assert one.beyond == beyond
    assert one.by_chance is by_chance


def test_a_study_depends_on_what_its_module_imports(tmp_path, monkeypatch):
    def write(path, text):
        (tmp_path / "orderparam" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "orderparam" / path).write_text(text)
        return state_of.source_state("orderparam.spins.studies")

    monkeypatch.setattr(state_of.orderparam, "__file__", str(tmp_path / "orderparam" / "__init__.py"))
    write("spins/studies.py", "from orderparam.spins.theory import exact\n")
    write("spins/theory.py", "from orderparam import solve\nfrom orderparam.core.verb import theory\n")
    write("solve/__init__.py", "from orderparam.solve.root import bisect\n")
    before = write("solve/root.py", "bisect = 1\n")
    assert write("one_step/theory.py", "other = 1\n") == before
    assert write("core/verb.py", "theory = 1\n") == before
    assert write("solve/root.py", "bisect = 2\n") != before


def test_a_study_does_not_depend_on_words(tmp_path, monkeypatch):
    code = """'''{words}.'''
@study("a", title="{words}")
def build(width={width}):
    '''{words}.'''
    return width  # {words}
"""
    (tmp_path / "orderparam").mkdir()
    monkeypatch.setattr(state_of.orderparam, "__file__", str(tmp_path / "orderparam" / "__init__.py"))

    def state(words, width):
        (tmp_path / "orderparam" / "studies.py").write_text(code.format(words=words, width=width))
        return state_of.source_state("orderparam.studies")

    assert state("One", 10) == state("Two", 10) != state("Two", 11)
