"""Every theory, experiment and public function explains itself in one form.

    One sentence that says what is returned.

    The equations, with every symbol tied to the name of a field.

    Args:
        option: its meaning, unit or convention, and range.

    Returns:
        The result, or what its fields do not say of themselves.

    Raises:
        ValueError: when.

    Accuracy: and where it ends. Cost: where it is not negligible.

    Source: authors, year, equation; or "derived here".

    >>> an example that runs

Every topic of the package is tested, also one that is new.
"""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import orderparam as op

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
docstrings = importlib.import_module("_site.docstrings")

UNPLAIN = (
    "Of ",
    "The same",
    "Those",
    "Its ",
    "As ",
    "By ",
    "Their ",
    "From ",
    "What ",
    "Whether ",
    "For ",
)


def _verbs():
    return [
        verb
        for verb in (*op.theories().values(), *op.experiments().values())
        if verb.fn.__module__.startswith("orderparam.systems.")
    ]


def _sections(text):
    blocks = re.split(r"\n\s*\n", inspect.cleandoc(text or ""))
    return {
        block.partition(":")[0]: block.partition(":")[2]
        for block in blocks
        if re.match(r"[A-Z][a-z]+:", block)
    }


@pytest.mark.parametrize("verb", _verbs(), ids=lambda verb: verb.name)
def test_a_theory_or_experiment_explains_itself(verb):
    text = inspect.cleandoc(verb.fn.__doc__ or "")
    first = text.partition("\n\n")[0]
    assert first.endswith("."), "the first paragraph is one sentence"
    assert not first.startswith(UNPLAIN), "the first sentence says what is returned"
    sections = _sections(text)
    listed = dict(docstrings.entries(sections.get("Args", "")))
    assert set(verb.options) <= {name for names in listed for name in re.split(r",\s*", names)}, (
        "Args: lists every option"
    )
    assert all(listed.values())
    assert "Source" in sections, "Source: authors and year, or derived here"
    assert re.search(r"\b(1[89]|20)\d\d\b|derived here", sections["Source"], re.IGNORECASE)
    assert ">>> " in text, "an example that runs"
    if re.search(r"\bValueError\b", text):
        assert "Raises" in sections


@pytest.mark.parametrize(
    "result",
    sorted({kind for verb in _verbs() for kind in verb.results}, key=lambda kind: kind.__name__),
)
def test_a_result_explains_its_fields(result):
    known = {"converged", "residual", "steps", "valid"}
    for kind in result.__mro__:
        known |= docstrings.meanings(kind.__doc__, list(result.dims())).keys()
    assert set(result.dims()) <= known


@pytest.mark.parametrize(
    "name", [name for name in op.__all__ if inspect.isfunction(getattr(op, name))]
)
def test_a_public_function_explains_its_arguments(name):
    function = getattr(op, name)
    sections = _sections(function.__doc__)
    listed = {
        one
        for names in dict(docstrings.entries(sections.get("Args", "")))
        for one in names.split(", ")
    }
    assert set(inspect.signature(function).parameters) <= listed, "Args: lists every argument"
