"""What is answered, or refused, before JAX is imported, which takes longer than all of it."""

import ast
import os
import subprocess
import sys

import pytest

from orderparam.cli import parameters
from orderparam.comparison import find
from orderparam.core import declared, registry
from orderparam.core.described import kept
from orderparam.core.fields import Refused, declarations
from orderparam.core.given import _numbers
from orderparam.core.registry import systems

QUICK = [
    ("list hopfield-capacity", 0, "basin_loads"),
    ("list lasso", 0, "penalties"),
    ("list spins.mean_field", 0, "temperature T in units of the coupling"),
    (
        "list spins.mean_field",
        0,
        "from orderparam.systems.spins import MeanFieldMagnet, mean_field",
    ),
    ("list mean_feild", 2, "nothing is called"),
    ("run hopfield-capacty", 2, "did you mean 'hopfield-capacity'"),
    ("run hopfield-capacity --set lods=1", 2, "did you mean 'loads'"),
    ("run hopfield-capacity --set loads=many", 2, "numbers separated by commas"),
    ("run hopfield-capacity --set spins=100000000000", 2, "must be at most"),
    ("solve mean_feild", 2, "there is no theory or experiment"),
    ("solve spins.mean_field temprature=1", 2, "did you mean 'temperature'"),
    (
        "solve spins.mean_field temperature=1 --against glaubr",
        2,
        "there is no theory or experiment",
    ),
    ("phases spins.mean_field temprature=1:2", 2, "did you mean 'temperature'"),
    ("solve spins.mean_field temperature=-1", 2, "MeanFieldMagnet.temperature = -1.0: must be > 0"),
    ("solve spins.mean_field temperature=", 2, "temperature: the value after = is empty"),
    ("solve spins.mean_field temperature=1e400", 2, "1e400: is beyond the largest number"),
    ("solve spins.mean_field temperature=nan", 2, "temperature = nan: must be finite and > 0"),
    ("solve spins.mean_field temperature=cold", 2, "temperature = cold: must be a number"),
    ("solve spins.mean_field --over temperature=0,1", 2, "temperature = 0.0: must be > 0"),
    ("solve spins.mean_field --over temperature=1:1e400:5", 2, "temperature = 1e400: is beyond"),
    ("solve spins.mean_field --over temperature=1,1e400", 2, "temperature = 1e400: is beyond"),
    ("phases spins.mean_field temperature=1:1e400", 2, "temperature = 1e400: is beyond"),
    ("phases spins.mean_field temperature=-1:2", 2, "temperature = -1.0: must be > 0"),
    ("scaling-law nothing.csv --params n", 2, "there is no file"),
    ("width nothing.csv", 2, "there is no file"),
    ("cite hopfield-capacty", 2, "did you mean 'hopfield-capacity'"),
    ("cite hopfield-capacity", 0, "Amit"),
    ("show nothing", 2, "there is no result"),
    ("predict nothing.csv", 2, "there is no file"),
    ("features nothing.npy", 2, "there is no file"),
    ("design nothing.csv", 2, "there is no file"),
    ("exponents z1+", 2, "is not a formula"),
    ("exponents sing(z1)", 2, "did you mean 'sin'"),
    ("explore --no-browser --allow-origin http://x/", 2, "write a NAME or NAME:PORT"),
    ("explore --no-browser --folder ~nosuchuser", 2, "there is no such user"),
]


def test_what_needs_no_jax_does_not_import_it(tmp_path):
    """All in one process; the description of the theory is kept from an earlier one, as after the
    first time."""
    code = """
import sys
from typer.testing import CliRunner
from orderparam.cli.commands import app
for words in sys.argv[1:]:
    result = CliRunner().invoke(app, words.split())
    print(result.exit_code, " ".join(result.output.split()))
    assert not {"jax", "bokeh", "panel", "tornado"} & set(sys.modules), words
"""
    environment = os.environ | {"ORDERPARAM_CACHE": str(tmp_path / "programs")}
    subprocess.run(
        [sys.executable, "-m", "orderparam", "list", "spins.mean_field"],
        env=environment, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    words = [words for words, _, _ in QUICK]
    asked = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    for line, (command, status, said) in zip(asked.stdout.splitlines(), QUICK, strict=True):
        assert line.startswith(str(status)), (command, line)
        assert said in line, (command, line)


def test_a_run_that_another_process_fills_is_refused_as_quickly(tmp_path):
    from orderparam.running.lock import alone

    (tmp_path / "results" / "hopfield-capacity" / "result.zarr").mkdir(parents=True)
    code = (
        "import sys; from orderparam.cli import main; sys.argv = ['orderparam', 'run', "
        "'hopfield-capacity']\n"
    )
    code += "try:\n    main()\nfinally:\n    assert 'jax' not in sys.modules"
    with alone(tmp_path / "results" / "hopfield-capacity"):
        ended = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "is being filled by another process" in ended.stderr


def test_an_outline_is_what_the_import_would_say():
    for name in ("hopfield-capacity", "lasso", "mean-field-magnet"):
        outline = registry._entry("study", name).outline
        study = find(name)
        assert outline.defaults == study.defaults
        assert (outline.gallery, outline.full, outline.seconds) == (
            study.gallery,
            study.full,
            study.seconds,
        )
        assert (outline.title, outline.source, outline.module) == (
            study.title,
            study.source,
            study.build.__module__,
        )
        assert registry.outline(name) is None  # imported by now


def test_what_is_left_out_of_the_source_says_nothing(monkeypatch):
    """The index from parts of the files is that from all of them."""
    short = [said(entry) for entry in registry.index()]
    monkeypatch.setattr(declared, "_parsed", lambda source: ast.parse(source).body)
    whole = registry.index.__wrapped__()
    assert short == [said(entry) for entry in whole]


def said(entry):
    told = (entry.kind, entry.name, entry.module, entry.topic, entry.details, entry.summary)
    return (*told, entry.outline) if entry.kind == "study" else told


@pytest.mark.parametrize("text", ["-1", "0", "nan", "inf", "-inf", "1.5", "3", "1e300", "many"])
def test_a_number_is_refused_as_quickly_as_it_would_be_later(text):
    """In the same words, by every field of every system that is one number."""
    found = 0
    for name, system in systems().items():
        kind = parameters.kind_in_words(system)
        for field, declaration in declarations(system).items():
            if field not in kind.numbers:
                continue
            found += 1
            later = quick = None
            try:
                declaration(_numbers(text, field, declaration.shapes))
            except Refused as error:
                later = f"{system.__name__}.{error}"
            except ValueError as error:
                later = str(error)
            try:
                kind.check({field: text})
            except ValueError as error:
                quick = str(error)
            assert quick == later, (name, field)
    assert found > 200


def test_a_description_is_kept_until_the_source_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("ORDERPARAM_CACHE", str(tmp_path))
    first = parameters.described("spins.mean_field")
    file = tmp_path / "descriptions.json"
    with monkeypatch.context() as patch:
        patch.setattr(parameters, "_described", lambda name: pytest.fail("made again"))
        assert parameters.described("mean_field").name == first.name
    source = tmp_path / "source.py"
    source.write_text("")
    assert kept("spins.mean_field", [*registry.source_files(), source]) is None
    for damaged in (
        "",
        "[]",
        '{"state": 1}',
        file.read_text()[:-20],
        file.read_text().replace('"known"', '"unknown"'),
    ):
        file.write_text(damaged)
        assert kept("spins.mean_field", registry.source_files()) is None
    assert parameters.described("spins.mean_field").observables == first.observables
    monkeypatch.setenv("ORDERPARAM_CACHE", "off")
    assert kept("spins.mean_field", registry.source_files()) is None
    assert [path.name for path in tmp_path.glob("*.new")] == []
