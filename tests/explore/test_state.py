"""What a page shows as an address, as Python and as commands: all three say the same, to the last
digit."""

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import orderparam as op
from orderparam.cli.commands import app
from orderparam.core.fields import declarations
from orderparam.explore.address import LONGEST, read
from orderparam.explore.evaluate import curve
from orderparam.explore.first_state import is_start, opened
from orderparam.explore.knobs import STEPS
from orderparam.explore.starts import starts
from orderparam.explore.state import observables
from orderparam.explore.systems import experiments_of, is_whole, kind_of, kinds, theories_of

MAGNET = "spins.MeanFieldMagnet"
# a system of numbers, one with a part, one whose arrays come from a study, one along whole numbers
TAKEN = {
    MAGNET: {"field": 0.0123},
    "associative_memory.DenseMemory": {"load": 0.0421},
    "generalised_linear.ElasticNet": {"prior.density": 0.213},
    "kernel_regression.KernelRegression": {"noise": 0.0317},
    "random_networks.AngledPair": {"bias_variance": 0.07},
}


def never():
    return False


@pytest.fixture(scope="module")
def magnet():
    return opened(MAGNET)


def moved(name):
    state = opened(name)
    return state.with_(changes={**state.changes, **TAKEN[name]})


@pytest.mark.parametrize("name", TAKEN)
def test_an_address_opens_what_it_was_written_for(name):
    state = moved(name)
    again = read(state.address)
    assert again == state
    assert again.value(next(iter(TAKEN[name]))) == next(iter(TAKEN[name].values()))


@pytest.mark.parametrize("name", TAKEN)
def test_python_gives_the_numbers_that_are_drawn(name):
    state = moved(name).with_(experiment="")
    drawn = curve(state, state.theories[0], never)
    assert drawn.data is not None, drawn.problem
    found = {}
    exec(state.python(), found)
    again = found["curves"][state.theories[0]]
    for key in drawn.data.data_vars:
        if key != "seconds":
            np.testing.assert_array_equal(again[key].values, drawn.data[key].values, err_msg=key)


def test_python_measures_what_is_measured(magnet):
    from orderparam.running.sweep import sweep

    state = magnet.with_(
        theories=(), seeds=2, measured=2, options={("spins.glauber", "sweeps"): 40}
    )
    found = {}
    exec(state.python(), found)
    measured = sweep(
        state.verb_with_options(state.experiment),
        state.instance,
        {state.x: state.places},
        seeds=2,
        progress=False,
    )
    np.testing.assert_array_equal(
        found["measured"]["magnetisation"].values, measured["magnetisation"].values
    )


@pytest.mark.parametrize(
    "name", [name for name in TAKEN if not name.startswith("kernel_regression")]
)
def test_commands_give_the_numbers_that_are_drawn(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    state = moved(name)
    theory = state.theories[0]
    state = state.with_(experiment="", theories=(theory,))
    drawn = curve(state, theory, never)
    (line,) = state.commands()
    words = shlex.split(line)
    assert words[:3] == ["orderparam", "solve", theory]
    answer = CliRunner().invoke(app, [*words[1:], "--out", str(tmp_path / "out")])
    assert answer.exit_code == 0, answer.output
    with open(tmp_path / "out" / f"{theory}.csv") as opened_file:
        rows = list(csv.DictReader(opened_file))
    assert [float(row[state.x]) for row in rows] == state.grid
    shown = state.show[0]
    # NaN where there is no solution
    np.testing.assert_array_equal([float(row[shown]) for row in rows], drawn.data[shown].values)


def test_a_system_that_words_cannot_say_has_no_command():
    from orderparam.explore.written import Unwritten

    state = opened("renormalization.InteractingRegression")
    assert "study.build" in state.python()
    with pytest.raises(Unwritten):
        state.commands()


def test_what_an_address_cannot_say_is_refused_by_name(magnet):
    base = f"?system={MAGNET}&"
    for words, said in {
        "f.field=__import__('os').getpid()": "field = __import__",
        "f.field=nan": "field = nan",
        "f.temperature=-1": "temperature = -1",
        "f.fielt=1": "no number 'fielt'",
        "f.spins=1.5": "spins",
        "theory=spins.mean_field,os.system": "no theory 'os.system'",
        "theory=associative_memory.overlaps": "no theory 'associative_memory.overlaps'",
        "o.spins.mean_field.branch=anything": "branch = anything",
        "o.spins.mean_field.nothing=1": "no option 'nothing'",
        "x=temperature:2:1": "increasing",
        "x=temperature:0:1": "temperature",
        "x=temperature:0.1:inf": "finite",
        "x=spins:1:2": "no number 'spins'",
        "show=__class__": "no observable '__class__'",
        "order=__class__": "no observable '__class__'",
        "measured=1": "measured = 1",
        "seeds=1e9": "seeds = 1e",
        "start=../../etc/passwd:0": "STUDY:POSITION",
        "start=mean-field-magnet:999": "curves",
        "start=hopfield-capacity:0": "not of spins.MeanFieldMagnet",
        "experiment=spins.wolff": "no experiment",
    }.items():
        with pytest.raises(ValueError, match=said.replace("(", r"\(").replace("[", r"\[")):
            read(base + words)
    with pytest.raises(ValueError, match="no system"):
        read("?system=spins.Nothing")
    with pytest.raises(ValueError, match="characters"):
        read(base + "x" * LONGEST)


def test_every_position_of_every_slider_is_a_number_that_comes_back(magnet):
    for name in (
        MAGNET,
        "associative_memory.Hopfield",
        "random_features.RandomFeatures",
        "proportional.FullyConnected",
    ):
        for knob in opened(name).knobs.values():
            values = [knob.value(position) for position in range(STEPS + 1)]
            assert values == sorted(values)
            assert knob.axis.low == values[0] < values[-1] == knob.axis.high
            positions = [knob.position(value) for value in values]
            assert all(abs(a - b) <= 1 or knob.whole for a, b in zip(positions, range(STEPS + 1)))
            assert not knob.whole or all(value.is_integer() for value in values[1:-1])


def test_a_page_reads_at_most_what_its_axis_can_hold(magnet):
    assert len(magnet.grid) == 65
    assert magnet.grid[0] == magnet.span[0]
    assert magnet.grid[-1] == magnet.span[1]
    assert set(magnet.places) <= set(magnet.grid)
    teacher = opened("random_features.RandomFeatures")
    assert teacher.along_integers
    assert all(value.is_integer() for value in teacher.grid)


def test_what_experiments_ask_a_whole_number_of_is_a_count():
    """Else most of the points of a measurement along it would fail."""
    asked = {
        name
        for file in Path(op.__file__).parent.rglob("*.py")
        for name in re.findall(r'\.size\("(\w+)"\)', file.read_text(encoding="utf-8"))
    }
    assert len(asked) > 10
    for system in kinds():
        for name, declaration in declarations(kind_of(system)).items():
            number = declaration.kind == "parameter" and () in declaration.shapes
            assert is_whole(declaration) or name not in asked or not number, (system, name)


def test_every_registered_system_opens_or_says_why_not():
    closed = {}
    for name in kinds():
        try:
            state = opened(name)
        except ValueError as error:
            closed[name] = str(error)
            continue
        assert read(state.address) == state
        assert state.x in state.knobs
        # The table of starts leaves a theory out where none depends on its axis, and an experiment
        # where none fits a first look.
        if name in starts():
            assert set(state.theories) == set(starts()[name].theories)
        else:
            assert bool(state.theories) == bool(theories_of(name))
        assert (
            state.experiment in experiments_of(name) or is_start(state) or not experiments_of(name)
        )
        assert set(state.show) <= set(observables(state))
        assert state.show
    for name, words in closed.items():
        assert (
            "no slider makes" in words and "orderparam.systems" in words
        ) or "no number" in words, name
    assert len(closed) <= len(kinds()) / 8
