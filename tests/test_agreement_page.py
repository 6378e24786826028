"""The page that says how far theory and measurement of every study are apart."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from magnet import Paramagnet, exact, sampled

from orderparam.core.study import Curve, compare, study
from orderparam.core.study.registry import _registry
from orderparam.plotting import Panel

SCRIPT = Path(__file__).parents[1] / "docs" / "agreement.py"
_spec = importlib.util.spec_from_file_location("agreement_page", SCRIPT)
agreement = importlib.util.module_from_spec(_spec)
sys.modules["agreement_page"] = agreement  # where its dataclass looks for its annotations
_spec.loader.exec_module(agreement)


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
    cells = agreement.row(finished()).split(" | ")
    assert cells[0] == "| `test-page`"
    assert cells[1:3] == ["exact", "0 of 3"]
    assert 0 < float(cells[3].removesuffix(" %")) < 30
    assert cells[-1] == " |"  # nothing to explain


def test_a_disagreement_stands_with_the_sentence_of_its_study(finished):
    wrong = finished(right=False)
    cells = agreement.row(wrong).split(" | ")
    assert cells[1:3] == ["twice", "3 of 3"]
    assert cells[-1] == "The field is another one. |"
    assert not agreement.unexplained(wrong)


@pytest.mark.parametrize(("beyond", "points", "by_chance"), [(1, 40, True), (1, 3, False), (3, 1000, True), (12, 1000, False)])
def test_what_chance_explains(beyond, points, by_chance):
    """P(at least one of 40 beyond three) = 10 %, of three 0.8 %; at least 3 of 1000 47 %, at least 12 of 1000 2e-5."""
    one = agreement.Agreement("", np.repeat([4.0, 1.0], [beyond, points - beyond]), np.zeros(0))
    assert one.beyond == beyond
    assert one.by_chance is by_chance


def test_a_study_depends_on_what_its_module_imports(tmp_path, monkeypatch):
    def write(path, text):
        (tmp_path / "orderparam" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "orderparam" / path).write_text(text)
        return agreement.source_state("orderparam.spins.studies")

    monkeypatch.setattr(agreement.orderparam, "__file__", str(tmp_path / "orderparam" / "__init__.py"))
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
    monkeypatch.setattr(agreement.orderparam, "__file__", str(tmp_path / "orderparam" / "__init__.py"))

    def state(words, width):
        (tmp_path / "orderparam" / "studies.py").write_text(code.format(words=words, width=width))
        return agreement.source_state("orderparam.studies")

    assert state("One", 10) == state("Two", 10) != state("Two", 11)
