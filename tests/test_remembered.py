"""What `pytest --remember` writes about long tests, and what a test reaches by its parameters."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import unchanged

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
state = importlib.import_module("_site.state")

LEFT_OUT = "solve/test_secant.py::test_left_out"
FAILED = "solve/test_secant.py::test_failed"
PASSED = "solve/test_secant.py::test_passed"


def test_a_long_test_that_was_left_out_keeps_its_line(tmp_path, monkeypatch):
    """Short tests of the same function run, and say nothing about its long ones."""
    monkeypatch.setattr(unchanged, "PASSED", tmp_path / "passed.txt")
    unchanged.PASSED.write_text(f"00000000 {LEFT_OUT}\n00000000 {FAILED}\n")
    states = {FAILED: "11111111", PASSED: "11111111"}
    unchanged.remember({LEFT_OUT: True, FAILED: False, PASSED: True}, states)
    assert unchanged.known() == {LEFT_OUT: "00000000", PASSED: "11111111"}


def _item(by, **params):
    """A long test of this file whose parameters say what it reaches."""
    return SimpleNamespace(
        nodeid=f"tests/{Path(__file__).name}::test_known[{'-'.join(params.values())}]",
        originalname="_item",
        callspec=SimpleNamespace(params=params),
        get_closest_marker=lambda name: pytest.mark.reaches(by=by) if name == "reaches" else None,
    )


def test_a_parameter_that_names_code_has_a_line_of_its_own():
    file = unchanged.TESTS.parent / "orderparam" / "solve" / "secant.py"

    def reached(name, words=""):
        return unchanged.Reached([(file, name)], words)

    first = unchanged.line(_item(lambda name: reached(name), name="secant_fixed_point"))
    other = unchanged.line(_item(lambda name: reached(name), name="_WORSE"))
    worded = unchanged.line(_item(lambda name: reached(name, "an example"), name="_WORSE"))
    assert first[0] == f"{Path(__file__).name}::test_known[secant_fixed_point]"
    assert len({None, first[1], other[1], worded[1]}) == 4
    assert unchanged.line(_item(lambda name: None, name="_WORSE"))[1] is None


def test_a_text_uses_what_it_names():
    """By attributes of the package, by imports, and by names in the registry."""
    used = {name for _, name in state.used_in("import orderparam as op\nop.transition(f)\n")}
    assert "transition" in used
    source = "from orderparam.systems.spins import glauber as run\nrun(system)\n"
    assert "glauber" in {name for _, name in state.used_in(source)}
    assert "mean_field" in {name for _, name in state.used_in("ask('spins.mean_field')\n")}
    assert state.used_in("def mean_field(x):\n    return x\nmean_field(2)\n") == []
