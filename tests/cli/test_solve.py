"""`solve`, `phases` and `list` of theories: what a person types, what comes back, and what is said
of a mistake."""

import csv
import errno
import math
import os
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import orderparam as op
from orderparam.cli import completion
from orderparam.cli.commands import app
from orderparam.cli.ranges import swept
from orderparam.cli.solve import _title
from orderparam.core.given import assignments, read
from orderparam.core.registry import find
from orderparam.kernels import power_law
from orderparam.systems.kernel_regression import KernelRegression, self_consistent
from orderparam.systems.spins import IsingLattice, onsager

FEW_MODES = ("spectrum.modes=60", "spectrum.infinite=false")
REGRESSION = (
    "n_train=100",
    "temperature=0.1",
    "spectrum=power_law",
    "spectrum.capacity=1.5",
    "spectrum.source=0.5",
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        return CliRunner().invoke(app, list(arguments))

    return call


def test_a_theory_is_solved_at_numbers_of_ones_own(run):
    result = run("solve", "onsager", "temperature=2.0")
    assert result.exit_code == 0
    shown = dict(line.split()[:2] for line in result.stdout.splitlines()[1:])
    known = onsager(IsingLattice(temperature=2.0))
    for name in type(known).dims():
        if name in shown and np.ndim(getattr(known, name)) == 0:
            assert math.isclose(float(shown[name]), float(getattr(known, name)), rel_tol=1e-7), name


def test_what_has_too_many_numbers_for_the_table_is_named(run):
    where = ("input_dim=100", "width=20", "decay=1", "noise=0.1", "--over", "n_train=2000,4000")
    shown = run("solve", "extensive_width.bayes_optimal", *where, "--show", "overlap")
    assert "not in the table, for their many numbers at each point: overlap (20)" in shown.stdout
    assert (
        "not in the table"
        not in run("solve", "onsager", "--over", "temperature=2,2.5", "--show", "energy").stdout
    )


def test_the_range_of_a_field_that_changes_the_structure_is_listed(run):
    shown = run("list", "speciation").stdout
    assert "an integer >= " in shown


def test_a_name_with_a_point_is_that_of_a_theory(run):
    shown = run("list", "extensive_width.bayes_optima").output
    assert "nothing is called 'extensive_width.bayes_optima'" in shown
    assert "extensive_width.bayes_optimal" in shown


def test_a_part_is_given_by_what_makes_it():
    system, options = read(find("kernel_regression.self_consistent"), assignments(REGRESSION), {})
    assert not options
    wanted = self_consistent(KernelRegression(power_law(1.5, 0.5), n_train=100, temperature=0.1))
    assert float(self_consistent(system).test_error) == float(wanted.test_error)


def test_arrays_are_written_out_or_read_from_files(tmp_path):
    verb = find("extensive_width.bayes_optimal")
    np.save(tmp_path / "readout.npy", np.array([1.0, 0.5]))
    (tmp_path / "readout.csv").write_text("1.0,0.5\n")
    for text in ("1,0.5", str(tmp_path / "readout.npy"), str(tmp_path / "readout.csv")):
        given = {"readout": text, "input_dim": "50", "n_train": "500", "noise": "0.1"}
        system, _ = read(verb, given, {})
        assert type(system).__name__ == "WeightedTeacher"
        assert np.array_equal(system.readout, [1.0, 0.5])


def test_of_several_systems_the_one_with_these_fields_is_made():
    verb = find("extensive_width.bayes_optimal")
    system, _ = read(
        verb,
        {"width": "20", "decay": "0.8", "input_dim": "50", "n_train": "500", "noise": "0.1"},
        {},
    )
    assert type(system).__name__ == "HierarchicalTeacher"


def test_a_sweep_is_a_table_a_figure_and_files(run, tmp_path):
    result = run("solve", "onsager", "--over", "temperature=1:4:7", "--out", "swept")
    assert result.exit_code == 0, result.output
    data = op.sweep(
        onsager, IsingLattice(temperature=1.0), {"temperature": np.linspace(1, 4, 7).tolist()}
    )
    with open(tmp_path / "swept" / "spins.onsager.csv") as opened:
        rows = list(csv.DictReader(opened))
    assert [float(row["temperature"]) for row in rows] == data["temperature"].values.tolist()
    assert np.allclose([float(row["energy"]) for row in rows], data["energy"], rtol=0, atol=0)
    assert np.array_equal(
        xr.open_zarr(tmp_path / "swept" / "spins.onsager.zarr", consolidated=False)["energy"],
        data["energy"],
    )
    assert (tmp_path / "swept" / "figure.png").stat().st_size > 5000
    assert len([line for line in result.stdout.splitlines() if line.strip()[:1].isdigit()]) == 7


def test_an_experiment_is_set_against_its_theory(run, tmp_path):
    result = run(
        "solve", "self_consistent", *REGRESSION[1:], *FEW_MODES, "--over", "n_train=20,40",
        "--against", "gaussian_design",
        "--seeds", "4", "--show", "test_error", "--out", "both",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "measured" in result.stdout
    assert (tmp_path / "both" / "kernel_regression.gaussian_design.csv").exists()


def test_an_experiment_alone_shows_means_and_errors(run):
    result = run(
        "solve", "gaussian_design", *REGRESSION, *FEW_MODES, "--seeds", "4", "--show", "test_error"
    )
    assert result.exit_code == 0, result.output
    assert "(" in result.stdout.splitlines()[1]


def test_a_plane_is_a_diagram_with_files_and_goes_on(run, tmp_path):
    arguments = (
        "phases",
        "mean_field",
        "temperature=0.3:1.7",
        "field=-0.5:0.61",
        "--order",
        "magnetisation",
        "--level",
        "0",
    )
    result = run(*arguments, "--resolution", "8", "--out", "plane")
    assert result.exit_code == 0, result.output
    assert "PhaseDiagram(temperature, field:" in result.stdout
    with open(tmp_path / "plane" / "boundaries.csv") as opened:
        rows = list(csv.DictReader(opened))
    assert rows
    assert (
        max(
            abs(float(row["field"]))
            for row in rows
            if row["kind"] == "jump" and row["branch"] == "stable"
        )
        < 1e-5
    )
    stored = xr.open_zarr(tmp_path / "plane" / "diagram.zarr", consolidated=False)
    assert "jump" in stored["boundary_kind"].attrs["meanings"]
    assert run(*arguments, "--resolution", "8", "--out", "plane").stdout == result.stdout
    next(
        file for file in (tmp_path / "plane" / "diagram.zarr").rglob("c/*") if file.is_file()
    ).write_bytes(b"other")
    damaged = run(*arguments, "--resolution", "8", "--out", "plane")
    assert damaged.exit_code == 2
    assert "diagram.zarr is damaged, or another diagram: move it away" in damaged.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("solve", "onsager", "--over", "temperature=1,2"),
        ("phases", "mean_field", "temperature=0.5:1.5", "field=-0.2:0.2", "--resolution", "8"),
        ("phases", "mean_field", "temperature=0.5:1.5"),
    ],
)
def test_what_another_wrote_is_not_written_over(run, tmp_path, command):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "figure.png").write_text("not to be lost")
    (tmp_path / "file").write_text("")
    for place, told in (("mine", "is not empty and holds no"), ("file", "is a file")):
        result = run(*command, "--out", place)
        assert result.exit_code == 2
        assert f"{place} {told}" in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert (tmp_path / "mine" / "figure.png").read_text() == "not to be lost"
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["figure.png"]


def test_the_observables_of_one_result_are_chosen(run):
    result = run("solve", "onsager", "temperature=2", "--show", "energy")
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == ["energy"]
    wrong = run("solve", "onsager", "temperature=2", "--show", "enrgy")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "did you mean 'energy'" in wrong.stderr
    nothing = run("solve", "onsager", "temperature=2", "--out", "r")
    assert nothing.exit_code == 2
    assert "not written" in nothing.stderr


def test_one_range_is_a_transition(run):
    result = run(
        "phases",
        "onsager",
        "temperature=1.5:3",
        "--order",
        "absolute_magnetisation",
        "--out",
        "line",
    )
    assert result.exit_code == 0, result.output
    assert "temperature = 2.26918531" in result.stdout
    assert "exponent 0.125" in result.stdout


def test_lists_of_theories_experiments_and_systems(run):
    assert "spins.onsager" in run("list", "theories").stdout
    assert "spins.onsager" not in run("list", "experiments").stdout
    assert "spins.IsingLattice" in run("list", "systems").stdout
    assert len(run("list", "theories", "ising").stdout) < len(run("list", "theories").stdout)
    shown = run("list", "self_consistent").stdout
    assert "label noise" in " ".join(shown.split())
    assert "power_law" in shown


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("solve", "onsagr", "temperature=2"), "did you mean 'onsager'"),
        (("solve", "onsager", "temprature=2"), "did you mean 'temperature'"),
        (("solve", "onsager", "temperature=hot"), "must be a number"),
        (("solve", "onsager", "temperature=-2"), "must be > 0"),
        (("solve", "onsager", "temperature"), "write NAME=VALUE"),
        (("solve", "bayes_optimal", "noise=1"), "HierarchicalTeacher needs input_dim"),
        (("solve", "bayes_optimal", "noise=1", "readout=1,2"), "WeightedTeacher needs input_dim"),
        (("solve", "onsager", "temperature=1", "temperature=2"), "given twice"),
        (("solve", "onsager"), "temperature T in units of the coupling"),
        (("solve", "mean_field", "temperature=1", "branch=stabel"), "did you mean 'stable'"),
        (
            ("solve", "onsager", "temperature=2", "temperature.=1"),
            "temperature.=1: write NAME=VALUE",
        ),
        (
            ("solve", "onsager", "--over", "temperature=1,2", "--over", "temperature=3,4"),
            "temperature is swept twice",
        ),
        (
            ("solve", "onsager", "temperature=2", "--over", "temperature=3,4"),
            "temperature is given twice",
        ),
        (
            ("run", "digits-learning-curve", "--set", "seeds=3", "--set", "seeds=4"),
            "seeds is given twice: 3 and 4",
        ),
        (
            ("run", "digits-learning-curve", "--set", "seeds=3", "--seeds", "4"),
            "seeds is given twice: 3 and 4",
        ),
        (("solve", "onsager", "--over", "temperature=1:2"), "write NAME=LOW:HIGH:NUMBER"),
        (("solve", "onsager", "--over", "temperature=-1:2:3:log"), "must be positive"),
        (("solve", "onsager", "temperature=2", "--seeds", "4"), "which has no runs"),
        (("solve", "onsager", "temperature=2", "--against", "kaufman"), "name an experiment"),
        (
            ("solve", "self_consistent", *REGRESSION[:2], "spectrum=powr_law"),
            "did you mean 'power_law'",
        ),
        (("solve", "self_consistent", *REGRESSION[:4]), "needs spectrum.source"),
        (("solve", "self_consistent", *REGRESSION, "spectrum.sorce=1"), "did you mean 'source'"),
        (
            (
                "solve",
                "extensive_width.bayes_optimal",
                "readout=none.npy",
                "input_dim=5",
                "noise=1",
            ),
            "there is no file none.npy",
        ),
        (
            (
                "solve",
                "extensive_width.bayes_optimal",
                "readout=pipe.npy",
                "input_dim=5",
                "noise=1",
            ),
            "pipe.npy is a pipe",
        ),
        (("phases", "onsager", "temperature=2"), "0 ranges are given"),
        (("phases", "onsager", "temperature=1:nan"), "both ends of a range must be finite"),
        (("phases", "onsager", "temperature=1:3:lg"), "write temperature=LOW:HIGH"),
        (
            ("phases", "onsager", "temperature=1:3", "--order", "magnetisatoin"),
            "did you mean 'absolute_magnetisation'",
        ),
        (
            ("phases", "onsager", "temperature=3:4", "--order", "absolute_magnetisation"),
            "no transition between",
        ),
        (("list", "theories", "zebra"), "no theory mentions 'zebra'"),
    ],
)
def test_a_mistake_is_one_line(run, arguments, told):
    os.mkfifo("pipe.npy")
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output


def test_names_complete():
    assert "spins.onsager" in dict(completion.verbs("spins.on"))
    assert "onsager" in dict(completion.verbs("onsa"))
    assert {"theories", "spins.onsager"} <= set(dict(completion.listed("")))

    context = SimpleNamespace(params={"name": "mean_field"})
    assert "temperature=" in dict(completion.arguments(context, "temp"))
    assert [choice for choice, _ in completion.arguments(context, "branch=s")] == ["branch=stable"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("solve", "onsager", f"temperature={'9x' * 1500}"),
        ("solve", "a" * 3000),
        ("solve", "onsager", "b" * 3000),
        ("run", "c" * 3000),
        ("list", "theories", "d" * 3000),
        ("predict", f"{'e' * 3000}.csv"),
        ("f" * 3000,),
        ("solve", "onsager", f"--{'g' * 3000}"),
        ("exponents", "h" * 3000),
        ("exponents", "z1 + " * 1000),
    ],
)
def test_a_word_without_end_is_not_repeated_whole(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert 20 < len(result.stderr) < 2600
    assert max(map(len, result.stderr.split())) < 200


def test_rows_without_a_solution_are_marked(run):
    """The metastable state of a magnet in a field ends at its spinodal; above it the numbers are
    NaN and were not marked."""
    magnet = ("mean_field", "field=0.1", "branch=metastable", "--show", "magnetisation")
    result = run("solve", *magnet, "--over", "temperature=0.2:1.2:3", "--out", "o")
    assert result.exit_code == 0, result.output
    rows = {
        row.split()[0]: row
        for row in result.stdout.splitlines()
        if row.strip().startswith(("0.2", "0.7", "1.2"))
    }
    assert rows["1.2"].split()[1:] == ["nan", "not", "valid"]
    assert "not valid" not in rows["0.2"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("solve", "onsager", "--over", "temperature=1:4:4"),
        ("phases", "mean_field", "temperature=0.5:1.5", "field=-0.2:0.2", "--resolution", "8"),
    ],
)
def test_a_finished_result_that_can_only_be_read_is_shown_again(run, monkeypatch, arguments):
    first = run(*arguments, "--out", "r")
    assert first.exit_code == 0

    def refuse(target):
        raise OSError(errno.EROFS, "Read-only file system", str(target))

    monkeypatch.setattr("orderparam.core.paths.aside_of", refuse)
    again = run(*arguments, "--out", "r")
    assert again.exit_code == 0, again.stderr
    assert again.stdout.splitlines()[:3] == first.stdout.splitlines()[:3]
    told = again.stderr.splitlines()
    assert told
    assert all("r can only be read: its" in line for line in told)
    missing = run(*arguments, "--out", "new")
    assert missing.exit_code == 2
    assert missing.stderr.count("\n") == 1


def test_ranges_that_are_swept():
    assert swept("x=1:100:3:log")[1] == pytest.approx([1, 10, 100])
    assert swept("x=1,2") == ("x", [1.0, 2.0])
    assert swept("activation=relu,erf") == ("activation", ["relu", "erf"])
    with pytest.raises(ValueError, match="'text' is not a finite number"):
        swept("x=0.1,text")


def test_rows_without_a_solution_are_explained(run):
    """Of the Hopfield model at load 0.05 retrieval ends at T = 0.5423."""
    done = run("solve", "replica_symmetric", "load=0.05", "--over", "temperature=0.4,0.5,0.6,0.7")
    assert (
        "valid is False at 2 of 4 points: there is no such solution beyond temperature = 0.5"
        in done.stdout
    )


def test_the_figure_says_what_is_held():
    assert (
        _title("associative_memory.replica_symmetric", {"load": "0.05"})
        == "replica symmetric: load = 0.05"
    )
    assert _title("onsager", {}) == "onsager"
