"""What can be named is found without importing it, and imported by name."""

import ast
import inspect
import subprocess
import sys
import textwrap
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest

import orderparam
from orderparam.core import registry
from orderparam.core.fields import declarations
from orderparam.gaussian import Activation, activation

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
    return Energy(energy=-1 / system.temperature)
'''


def test_the_list_needs_no_jax():
    code = (
        "import sys; from orderparam.core.registry import index; index(); print('jax' in "
        "sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "False\n"
    )


def test_every_study_tells_its_title_source_and_time_without_being_imported():
    studies = [entry for entry in registry.index() if entry.kind == "study"]
    assert len(studies) >= 65
    silent = [
        e.name
        for e in studies
        if not all(e.details.get(key) for key in ("title", "source", "seconds"))
    ]
    assert silent == []


def test_systems_are_those_that_can_be_made():
    found = registry.systems()
    assert not any(inspect.isabstract(system) for system in found.values())
    networks = {name for name in found if name.startswith("proportional.")}
    assert networks == {
        f"proportional.{name}" for name in ("FullyConnected", "Convolutional", "LocallyConnected")
    }


def test_the_theories_of_every_topic_are_tested():
    topics = {
        entry.topic
        for entry in registry.index()
        if entry.kind == "theory" and entry.module.startswith("orderparam.")
    }
    files = {
        path.stem.removeprefix("test_")
        for path in (Path(__file__).parents[1] / "every_theory").glob("test_*.py")
    }
    assert topics - files == set()


def test_every_activation_is_chosen_alike():
    fields = [
        (system, *one)
        for system in registry.systems().values()
        for one in declarations(system).items()
    ]
    found = [(name, field.convert) for _, name, field in fields if Activation in field.annotations]
    assert len(found) > 15
    assert set(found) == {("activation", activation)}


def test_no_two_public_classes_share_a_name():
    package = Path(orderparam.__file__).parent
    places = defaultdict(list)
    for path in package.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(package)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_every_package_and_module_is_completed_before_it_is_imported():
    code = (
        "import sys, orderparam as op; print('jax' in sys.modules, dir(op), dir(op.systems), "
        "dir(op.core), dir(op.solve))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert said.startswith("False")
    package = Path(orderparam.__file__).parent
    inside = [
        path for folder in ("", "systems", "core", "solve") for path in (package / folder).iterdir()
    ]
    names = {
        path.stem for path in inside if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    missing = [name for name in names if not name.startswith("_") and f"'{name}'" not in said]
    assert missing == []
    with pytest.raises(AttributeError, match="no attribute 'spinz'"):
        orderparam.systems.spinz  # noqa: B018


def test_a_file_of_ones_own_is_loaded_once_and_found(tmp_path):
    path = tmp_path / "glass_for_test.py"
    path.write_text(GLASS)
    module = registry.load_file(path)
    assert registry.load_file(path) is module
    assert module.frozen(module.Glass(2.0)).energy == -0.5
    assert module.frozen.name == "glass_for_test.frozen"
    assert registry.find("glass_for_test.frozen") is module.frozen


def test_the_file_of_that_path_is_loaded_and_not_another_of_its_name(tmp_path, monkeypatch):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "twin_for_test.py").write_text(f"FOLDER = {folder!r}")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "one"), str(tmp_path / "two"), *sys.path])
    assert registry.load_file(tmp_path / "two" / "twin_for_test.py").FOLDER == "two"
    with pytest.raises(ValueError, match="there is a module 'twin_for_test' already"):
        registry.load_file(tmp_path / "one" / "twin_for_test.py")


ODD = """
import orderparam as op

TITLE = {[]: "no constant"}

@op.core.verb.theory(traced=False, check=lambda *_: None)
def attribute(system): ...

@op.experiment
async def later(system, key): ...

@op.study(name="odd-study", title=TITLE, source=-"x", seconds=(1, 2))
def by_keyword(): ...

@op.study(*["starred"], title="", source="", seconds=(1, 2))
def starred(): ...
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Modules in a folder, as if installed packages named them as their topics."""

    def install(name, files):
        for file, content in files.items():
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_bytes(content)
        monkeypatch.syspath_prepend(str(tmp_path))
        point = SimpleNamespace(module=name)
        monkeypatch.setattr(registry, "entry_points", lambda group: [point])
        registry.index.cache_clear()
        return {
            (entry.kind, entry.name)
            for entry in registry.index()
            if not entry.module.startswith("orderparam")
        }

    yield install
    registry.index.cache_clear()


@pytest.mark.parametrize(
    ("name", "files", "found"),
    [
        (
            "odd_for_test",
            {"odd_for_test.py": ODD.encode()},
            {("theory", "odd_for_test.attribute"), ("study", "odd-study")},
        ),
        (
            "latin_for_test",
            {
                "latin_for_test.py": "# coding: latin-1\n# \xe9\n@theory\ndef cafe(s): ...".encode(
                    "latin-1"
                )
            },
            {("theory", "latin_for_test.cafe")},
        ),
        (
            "spread_for_test",
            {"spread_for_test/glass.py": b"@theory\ndef cold(s): ..."},
            {("theory", "glass.cold")},
        ),
    ],
)
def test_odd_modules_of_installed_packages_are_read(installed, name, files, found):
    assert installed(name, files) == found


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("nowhere_for_test", {}, "names nowhere_for_test as its topics, which cannot be found"),
        (
            "failing_for_test.topics",
            {"failing_for_test/__init__.py": b"1 / 0"},
            "failing_for_test.topics as its topics",
        ),
        (
            "wrong_for_test",
            {"wrong_for_test.py": b"@theory\ndef f(:"},
            "wrong_for_test.py of an installed package is left out",
        ),
        (
            "zero_for_test",
            {"zero_for_test.py": b"@theory\n\0"},
            "zero_for_test.py of an installed package is left out",
        ),
        (
            "bytes_for_test",
            {"bytes_for_test.py": b"'\xff'\n@theory"},
            "bytes_for_test.py of an installed package is left out",
        ),
        ("sys", {}, "built-in of an installed package is left out"),
    ],
)
def test_a_broken_package_is_warned_of_and_takes_nothing_else_away(installed, name, files, message):
    with pytest.warns(UserWarning, match=message):
        assert installed(name, files) == set()
    assert len(registry.index()) > 100


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("no-name.py", "", "must be a Python name"),
        ("broken_for_test.py", "1 / 0", "ZeroDivisionError"),
        ("json.py", "", "there is a module 'json' already"),
        ("turtledemo.py", "", "there is a module 'turtledemo' already"),
        ("leaving_for_test.py", "import sys; sys.exit(3)", "leaving_for_test.py: SystemExit: 3"),
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


def test_a_tool_is_found_by_name_and_a_wrong_name_names_the_nearest():
    found = registry.find_tool("multi_index.exponents")
    assert found.__name__ == "exponents"
    assert found.__module__ == "orderparam.systems.multi_index.exponents"
    with pytest.raises(ValueError, match=r"no tool .*did you mean 'multi_index.exponents'"):
        registry.find_tool("multi_index.exponent")
