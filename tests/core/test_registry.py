"""What can be named is found without importing it, and imported by name."""

import subprocess
import sys
import textwrap

import pytest

from orderparam.core import registry

GLASS = '''
import jax.numpy as jnp
from jaxtyping import Array, Float

import orderparam as op
from orderparam.core.result import Result
from orderparam.core.system import System, parameter
from orderparam.core.verb import theory


class Glass(System):
    """A glass."""

    temperature: float = parameter("temperature", above=0)


class Energy(Result):
    energy: Float[Array, ""]


@theory
def frozen(system: Glass) -> Energy:
    """The energy of a frozen glass. More is not known."""
    return Energy(-1 / system.temperature)
'''


def test_the_list_needs_no_jax():
    code = "import sys; from orderparam.core.registry import index; index(); print('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_every_study_tells_its_title_source_and_time_without_being_imported():
    studies = [entry for entry in registry.index() if entry.kind == "study"]
    assert len(studies) >= 65
    silent = [e.name for e in studies if not all(e.details.get(key) for key in ("title", "source", "seconds"))]
    assert silent == []


def test_a_file_of_ones_own_is_loaded_once_and_found(tmp_path):
    path = tmp_path / "glass_for_test.py"
    path.write_text(GLASS)
    module = registry.load_file(path)
    assert registry.load_file(path) is module
    assert module.frozen(module.Glass(2.0)).energy == -0.5
    assert module.frozen.name == "glass_for_test.frozen"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("no-name.py", "", "must be a Python name"),
        ("broken_for_test.py", "1 / 0", "ZeroDivisionError"),
        ("json.py", "", "there is a module 'json' already"),
        ("data.csv", "", "not a Python file"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_named(tmp_path, name, text, message):
    (tmp_path / name).write_text(textwrap.dedent(text))
    with pytest.raises(ValueError, match=message):
        registry.load_file(tmp_path / name)


def test_a_wrong_name_gets_the_nearest():
    with pytest.raises(ValueError, match="there is no theory or experiment 'adapted_wieghts'"):
        registry.find("adapted_wieghts")
