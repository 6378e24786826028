"""Numbers of a person's own code are computed again where that code was edited, and only there."""

import importlib
import sys
import warnings

import pytest

import orderparam as op
from orderparam.core.own_code import state_of_own_code
from orderparam.running.store import OtherCode

SOURCE = '''
"""A system of a person."""
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import orderparam as op

FACTOR = 2.0


class Line(op.System):
    """A number."""

    x: float = op.parameter("number x", above=0)


class Value(op.Result):
    """A value.

    Fields:
        value: factor times x.
        residual: zero.
        converged: always True.
    """

    value: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def product(x):
    return FACTOR * x


@op.theory
def doubled(system: Line) -> Value:
    """Twice a number."""
    return Value(value=product(system.x), residual=jnp.zeros(()), converged=jnp.asarray(True))


@op.theory
def same(system: Line) -> Value:
    """The number."""
    return Value(value=jnp.asarray(system.x), residual=jnp.zeros(()), converged=jnp.asarray(True))


@op.study(
    "own-line",
    title="A line",
    source="nobody",
    seconds=(1, 1),
    observables=("value",),
    panels=[op.Panel("x", "value")],
)
def own_line() -> list[op.Curve]:
    """A line."""
    grid = {"x": [1.0, 2.0]}
    return [op.Curve(fn.__name__, fn, Line(1.0), grid) for fn in (doubled, same)]
'''


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """Writes the person's file with a change, and imports it anew."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(old="FACTOR", new="FACTOR"):
        assert old in SOURCE
        (tmp_path / "own_line_file.py").write_text(SOURCE.replace(old, new))
        sys.modules.pop("own_line_file", None)
        importlib.invalidate_caches()
        return importlib.import_module("own_line_file")

    yield load
    sys.modules.pop("own_line_file", None)


def run(module, out):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = op.compare(module.own_line, out=out)
    values = {name: curve["value"].values.tolist() for name, curve in done.curves("theory").items()}
    return values, [str(one.message) for one in caught if "edited" in str(one.message)]


def test_only_the_curve_whose_code_was_edited_is_computed_again(loaded, tmp_path):
    out = tmp_path / "result"
    assert run(loaded(), out) == ({"doubled": [2.0, 4.0], "same": [1.0, 2.0]}, [])
    values, warned = run(loaded("FACTOR = 2.0", "FACTOR = 3.0"), out)
    assert values == {"doubled": [3.0, 6.0], "same": [1.0, 2.0]}
    assert len(warned) == 1
    assert warned[0].startswith("doubled: its code was edited")
    assert [one.name for one in (out / "earlier-code").iterdir()] == ["doubled-1"]
    assert run(loaded("FACTOR = 2.0", "FACTOR = 3.0"), out)[1] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A line", "Another title"),
        ('"""Twice a number."""', '"""Two times a number."""'),
        ("FACTOR = 2.0", "# two\nFACTOR = 2.0"),
        ("return FACTOR * x", 'return FACTOR * x  # "2 x"'),
    ],
)
def test_words_do_not_enter(loaded, old, new):
    before = loaded().doubled.own_code
    assert before
    assert loaded(old, new).doubled.own_code == before


@pytest.mark.parametrize(
    ("old", "new"),
    [("FACTOR = 2.0", "FACTOR = 3.0"), ("FACTOR * x", "FACTOR + x"), ("above=0", "above=1")],
)
def test_what_the_function_reaches_enters(loaded, old, new):
    before = loaded().doubled.own_code
    assert loaded(old, new).doubled.own_code != before


def test_a_sweep_refuses_points_of_older_code(loaded, tmp_path):
    first, grid, store = loaded(), {"x": [1.0, 2.0]}, tmp_path / "points"
    op.sweep(first.doubled, first.Line(1.0), grid, store=store)
    second = loaded("FACTOR = 2.0", "FACTOR = 3.0")
    with pytest.raises(OtherCode, match="gave before its code was edited"):
        op.sweep(second.doubled, second.Line(1.0), grid, store=store)


def test_functions_of_the_package_have_no_state_of_their_own():
    from orderparam.systems.associative_memory import replica_symmetric

    assert replica_symmetric.own_code == ""


def test_code_that_was_loaded_before_an_edit_keeps_its_state(loaded, tmp_path):
    """The process goes on with the old code, and its points are those of the old code."""
    module, grid, store = loaded(), {"x": [1.0, 2.0]}, tmp_path / "points"
    op.sweep(module.doubled, module.Line(1.0), grid, store=store)
    path = tmp_path / "own_line_file.py"
    path.write_text(SOURCE.replace("FACTOR = 2.0", "FACTOR = 3.0"))
    found = op.sweep(module.doubled, module.Line(1.0), grid, store=store)
    assert found["value"].values.tolist() == [2.0, 4.0]


def test_plain_functions_have_a_state_too():
    assert len(state_of_own_code(run)) == 16
    assert state_of_own_code(op.sweep) == ""
