"""The command line: what people meet, and what they meet when they are wrong (one line, exit status
2, nothing overwritten)."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from magnet import Paramagnet, exact, sampled
from typer.testing import CliRunner

from orderparam.cli.arguments import result_folder
from orderparam.cli.commands import app
from orderparam.comparison import Curve, load, study
from orderparam.comparison.registry import _registry
from orderparam.core.registry import index
from orderparam.core.text import with_error
from orderparam.plotting import Panel


@pytest.fixture(scope="module", autouse=True)
def paramagnet_study():
    @study(
        "test-paramagnet",
        title="A paramagnet",
        source="Langevin 1905",
        panels=[Panel("temperature", "magnetisation")],
        seconds=(1, 2),
        observables=("magnetisation",),
        full={"spins": 4000},
    )
    def build(
        field: float = 0.5,
        spins: int = 400,
        seeds: int = 3,
        temperatures: tuple[float, ...] = (1.0, 2.0),
        spacing: float = 0.5,
    ):
        system = Paramagnet(1.0, field, spins)
        return [
            Curve("exact", exact, system, {"temperature": np.linspace(0.5, 3, round(3 / spacing))}),
            Curve("Monte Carlo", sampled, system, {"temperature": temperatures}, seeds=seeds),
        ]

    yield build
    _registry.pop("test-paramagnet")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        return CliRunner().invoke(app, list(arguments))

    return call


def test_help_is_fast_and_imports_nothing_heavy():
    heavy = ("jax", "matplotlib", "xarray", "sklearn")
    code = f"import sys, orderparam.cli.commands; sys.exit(any(m in sys.modules for m in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_help_shows_brackets_as_they_are_typed(run):
    assert "fc:DEPTH[xWIDTH]:ACTIVATION" in "".join(
        run("predict", "--help").output.replace("│", " ").split()
    )


def test_list_names_every_study_with_source_and_time(run):
    result = run("list")
    assert result.exit_code == 0
    for entry in index():
        if entry.kind == "study":
            (line,) = [
                line for line in result.stdout.splitlines() if line.startswith(f"{entry.name} ")
            ]
            assert line.split()[-1] in ("s", "min", "h"), line


def test_list_of_a_word_is_shorter_and_of_a_study_shows_its_parameters(run):
    chosen = run("list", "double descent").stdout
    assert "random-features-double-descent" in chosen
    assert "digits-learning-curve" not in chosen
    assert run("list", "double", "descent").stdout == chosen
    parameters = run("list", "random-features-double-descent").stdout
    assert "300,600,900" in parameters
    assert "input_dim" in parameters
    wrong = run("list", "digits-learning-cruve")
    assert wrong.exit_code == 2
    assert "did you mean 'digits-learning-curve'" in wrong.output


def test_run_writes_figure_data_and_summary_and_goes_on_when_repeated(run, tmp_path):
    first = run("run", "test-paramagnet", "--set", "field=0.7", "--seeds", "4")
    assert first.exit_code == 0, first.output
    assert "Monte Carlo: magnetisation" in first.stdout
    folder = tmp_path / "results" / "test-paramagnet-field=0.7-seeds=4"
    assert {"figure.png", "figure.pdf", "result.zarr", "summary.json"} <= {
        p.name for p in folder.iterdir()
    }
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["parameters"] == {
        "field": 0.7,
        "spins": 400,
        "seeds": 4,
        "temperatures": [1.0, 2.0],
        "spacing": 0.5,
    }
    assert summary["versions"]["orderparam"]
    assert [c["points"] for c in summary["curves"]] == [6, 8]
    assert summary["agreement"]["Monte Carlo"][0]["points"] == 2
    assert run("run", "test-paramagnet", "--set", "field=0.7", "--seeds", "4").exit_code == 0
    comparison = load(folder)
    assert float(
        comparison.curves()["exact"]["magnetisation"].sel(temperature=1.0)
    ) == pytest.approx(np.tanh(0.7))
    shown = run("show", str(folder))
    assert shown.exit_code == 0
    assert "Monte Carlo: magnetisation" in shown.stdout
    comparison.figure()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "digits-learning-cruve"], "did you mean 'digits-learning-curve'"),
        (["run", "nothing-of-the-kind"], "(one of your own is FILE.py:NAME)"),
        (["run", "test-paramagnet", "--set", "feild=1"], "did you mean 'field'"),
        (["run", "test-paramagnet", "--set", "field"], "write NAME=VALUE"),
        (["run", "test-paramagnet", "--set", "=3"], "write NAME=VALUE"),
        (["run", "test-paramagnet", "--set", "field=strong"], "give a value like 0.5"),
        (["run", "test-paramagnet", "--set", "spins=2.5"], "give a value like 400"),
        (["run", "test-paramagnet", "--set", "spins=0"], "must be an integer and >= 1"),
        (["run", "test-paramagnet", "--set", "temperatures=1,hot"], "numbers separated by commas"),
        (["run", "test-paramagnet", "--set", "temperatures=1,-1"], "must be > 0"),
        (["run", "test-paramagnet", "--set", "temperatures=1,1"], "twice"),
        (["run", "test-paramagnet", "--seeds", "0"], "at least one"),
        (["run", "test-paramagnet", "--workers", "0"], "workers"),
        (
            ["run", "test-paramagnet", "--workers", "2", "--dask", "tcp://127.0.0.1:1"],
            "exclude one another",
        ),
        (["run", "test-paramagnet", "--dask", "nowhere"], "no Dask scheduler answers"),
        (["run", "test-paramagnet", "--dask", ""], "no Dask scheduler answers"),
        (
            ["run", "test-paramagnet", "--set", "spacing=-1"],
            (
                "test-paramagnet with spacing = -1.0: no curve can be built from these values: "
                "spacing must be positive"
            ),
        ),
        (
            ["run", "test-paramagnet", "--set", "spacing=0"],
            (
                "test-paramagnet with spacing = 0.0: no curve can be built from these values: "
                "spacing must be positive"
            ),
        ),
        (["run", "test-paramagnet", "--out", "occupied"], "is not empty and holds no result"),
        (["run", "test-paramagnet", "--out", "file.txt"], "is a file"),
        (["run", "test-paramagnet", "--out", "/proc/nowhere"], "cannot write"),
        (["show", "missing"], "there is no result missing"),
        (["show", "occupied"], "holds no result"),
        (["predict", "missing.csv"], "there is no file"),
        (["predict", "tabel.csv"], "did you mean 'table.csv'"),
        (["predict", "file.txt"], "unknown format"),
        (["predict", "table.csv", "--target", "prize"], "did you mean 'price'"),
        (["predict", "table.csv", "--target", "price"], "needs at least 40"),
        (
            ["predict", "table.csv", "--target", "price", "--arch", "fc:3:erff"],
            "did you mean 'erf'",
        ),
        (["predict", "table.csv", "--target", "price", "--arch", "cnn:3:erf"], "unknown family"),
        (["predict", "table.csv", "--target", "price", "--task", "a-vs-b"], "class"),
        (["predict", "table.csv", "--target", "price", "--out", "occupied"], "is not empty"),
        (["predict", "table.csv", "--target", "price", "--out", "table.csv"], "is a file"),
        (["predict", "table.csv", "--target", "price", "--new", "occupied"], "is a folder"),
        (["predict", "table.csv", "--target", "price", "--out", "/proc/nowhere"], "cannot write"),
        (["predict", "table.csv", "--temperature", "-1"], "temperature"),
        (["predict", "table.csv", "--width", "wide"], "write one or more integers"),
        (["predict", "table.csv", "--width", "0"], "at least 1"),
        (
            ["predict", "table.csv", "--target", "price", "--stop", "--groups", "area"],
            "--stop: is for a network",
        ),
        (["features", "missing.npy"], "there is no file"),
        (["features", "table.csv", "--loss", "hinge", "--stop"], "--stop: is for the square loss"),
        (["features", "table.csv", "price"], "needs at least 60"),
        (["features", "table.csv", "area,price"], "2 targets that are numbers; name one"),
        (["exponents", "__import__('os')"], "unknown function '__import__'"),
        (["exponents", "z1**"], "is not a formula"),
        (["rnu"], "Did you mean 'run'?"),
        (["predict"], "orderparam predict --help shows how"),
        (["predict", "table.csv", "--taget", "price"], "orderparam predict --help shows how"),
        (["run", "~nosuchuser/own.py"], "~nosuchuser/own.py: there is no such user"),
    ],
)
def test_a_mistake_ends_in_one_clear_line(run, tmp_path, arguments, message):
    (tmp_path / "occupied").mkdir()
    (tmp_path / "occupied" / "notes.txt").write_text("keep me")
    (tmp_path / "file.txt").write_text("keep me too")
    (tmp_path / "table.csv").write_text(
        "area,rooms,price\n" + "\n".join(f"{50 + i},{i % 4},{100 + 2 * i}.5" for i in range(20))
    )
    result = run(*arguments)
    text = " ".join(result.output.replace("│", " ").split())
    assert result.exit_code == 2, text
    assert message in text
    assert "Traceback" not in result.output
    assert (tmp_path / "occupied" / "notes.txt").read_text() == "keep me"
    assert (tmp_path / "file.txt").read_text() == "keep me too"


def test_an_experiment_that_cannot_run_is_refused_before_its_theory_runs(run, tmp_path):
    assert run("run", "test-paramagnet", "--seeds", "-1").exit_code == 2
    assert run("run", "test-paramagnet", "--set", "temperatures=1,-1").exit_code == 2
    assert run("run", "test-paramagnet", "--dask", "nowhere").exit_code == 2
    assert not (tmp_path / "results").exists()


def test_a_folder_has_a_name_that_file_systems_take():
    many = [{"n_train": ",".join(map(str, range(first, 200)))} for first in (1, 2)]
    names = {result_folder("study", "quick", changes) for changes in many}
    assert len(names) == 2
    assert max(map(len, names)) < 200
    assert result_folder("study", "full", {"path": "a/b"}) == "study-full-path=a_b"


def test_a_grid_of_labels_is_kept_and_shown_without_remarks(run, tmp_path, recwarn):
    @study(
        "test-shapes",
        title="t",
        source="s",
        draw=_draw_nothing,
        seconds=(1, 2),
        observables=("magnetisation",),
    )
    def build(seeds: int = 2):
        grid = {"shape": ["tanh", "line"]}
        return [
            Curve("exact", exact, Paramagnet(1.0), grid),
            Curve("runs", sampled, Paramagnet(1.0), grid, seeds=seeds),
        ]

    try:
        assert run("run", "test-shapes", "--out", "shapes").exit_code == 0
        comparison = load(tmp_path / "shapes")
        assert run("show", "shapes").exit_code == 0
    finally:
        _registry.pop("test-shapes")
    assert comparison.agreement["runs"]["magnetisation"]["shape"].values.tolist() == [
        "tanh",
        "line",
    ]
    assert not [w for w in recwarn if "Zarr" in str(w.message)]


def _draw_nothing(comparison):
    import matplotlib.pyplot as plt

    return plt.figure()


def test_exponents_of_a_parity(run):
    result = run("exponents", "z1*z2*z3")
    assert result.exit_code == 0
    assert "information exponent  3" in result.stdout


def test_a_result_with_other_parameters_is_not_overwritten(run, tmp_path):
    assert run("run", "test-paramagnet", "--out", "kept").exit_code == 0
    before = (tmp_path / "kept" / "summary.json").read_text()
    result = run("run", "test-paramagnet", "--set", "field=0.1", "--out", "kept")
    assert result.exit_code == 2
    assert "other values of field" in result.output
    assert (tmp_path / "kept" / "summary.json").read_text() == before
    (tmp_path / "kept" / "summary.json").write_text("{")
    damaged = run("show", "kept")
    assert damaged.exit_code == 2
    assert "damaged" in damaged.output


def test_predict_on_known_data_says_what_it_knows(run, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(260, 5))
    y = x[:, 0] + 0.5 * x[:, 1] * x[:, 2] + 0.3 * rng.normal(size=260)
    np.savetxt(tmp_path / "d.csv", np.c_[x, y], delimiter=",", header="a,b,c,d,e,y", comments="")
    command = ("predict", "d.csv", "--target", "y", "--seeds", "4", "--arch", "fc:1:relu,fc:1:erf")
    result = run(*command, "--reach", "0.12")
    assert result.exit_code == 0, result.output
    assert "100 x your data" in result.stdout
    assert re.search(
        r"With your 260 rows the root mean square error in y is [0-9.]+ \([0-9.-]+\), R² 0",
        result.stdout,
    )
    assert "share of the variance of 0.12 needs about" in result.stdout
    assert "forest instead" in result.stdout
    assert "half of the columns" in result.stdout
    assert "standardised" in result.stdout
    summary = json.loads((tmp_path / "results" / "predict-d" / "summary.json").read_text())
    import xarray as xr

    folder = tmp_path / "results" / "predict-d" / "forecast.zarr"
    predicted = xr.open_zarr(folder, group="predicted", consolidated=False)
    noise = 0.09 / y.var()
    low, high = summary["floor_interval"]
    assert low < noise < high
    at_the_end = predicted.isel(n_train=-1).load()
    # the floor is where the curve ends, with this interval
    assert float(at_the_end["lower"]) < 1.3 * noise
    assert float(at_the_end["upper"]) > noise
    assert float(predicted["test_error"][0]) > 2 * noise
    measured = xr.open_zarr(folder, group="measured", consolidated=False)["test_error"].isel(
        n_train=slice(None, -1)
    )
    mean, error = (
        measured.mean("seed"),
        measured.std("seed", ddof=1) / np.sqrt(measured.sizes["seed"]),
    )
    assert bool(
        (
            abs(predicted["test_error"].sel(n_train=measured["n_train"]) - mean)
            < 4 * error + 0.1 * mean
        ).all()
    )
    assert summary["candidates"][0]["arch"] == summary["arch"]
    assert run(*command, "--out", "results/predict-d").exit_code == 2


def test_predict_reads_words_and_gaps_and_refuses_in_one_line(run, tmp_path):
    rng = np.random.default_rng(0)
    kinds, sizes = rng.choice(["a", "b"], 60), rng.normal(size=60)
    lines = [
        f"{kind},{'' if i % 9 == 0 else size},{i % 12},{(kind == 'a') + size:.3f}"
        for i, (kind, size) in enumerate(zip(kinds, sizes))
    ]
    (tmp_path / "shop.csv").write_text("kind,size,month,price\n" + "\n".join(lines))
    result = run("predict", "shop.csv", "--arch", "fc:1:relu", "--groups", "month", "--seeds", "2")
    assert result.exit_code == 0, result.output
    assert "7 gaps filled with the median and marked" in result.stdout
    assert "held-out other groups: error" in result.stdout
    for words, message in (
        (("--groups", "mnth"), "did you mean 'month'"),
        (("--reach", "-1"), "must be a finite number > 0"),
        (("--reach", "r2=1.5"), "must be below 1"),
        (("--reach", "5%"), "a target of numbers has no error rate; give share=, rmse= or r2="),
        (("--estimator", "sklearn.svm.SRV"), "cannot be imported"),
        (
            ("--estimator", "sklearn.svm.SVR", "--arch", "fc:1:relu"),
            "cannot be combined with --arch",
        ),
        (("--arch", "fc:1:rule"), "rule"),
        (("--target", "kind,price"), "several targets must be numbers"),
    ):
        refused = run("predict", "shop.csv", *words)
        assert refused.exit_code == 2
        assert message in refused.stderr
        assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (0.1234, 0.0056, "0.1234(56)"),
        (12.3, 1.5, "12.3(1.5)"),
        (0.5, 0.0, "0.5"),
        (float("nan"), 1.0, "–"),
        (2.5e-5, 3e-6, "2.50(30)e-5"),
        (-5.219e-5, 4.9e-5, "-5.2(4.9)e-5"),
        (1e-5, 0.3, "0.00(30)"),
        (123456.0, 78.0, "123456(78)"),
        (2.5e7, 3e5, "2.500(30)e7"),
        (0.123456789, 1e-12, "0.12345679"),
        (3e-7, float("nan"), "3e-07"),
    ],
)
def test_a_number_with_its_error(mean, error, text):
    assert with_error(mean, error) == text


def test_a_forecast_says_when_to_stop_if_asked(run, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 3))
    np.savez(tmp_path / "data.npz", x=x, y=x[:, 0] + rng.standard_normal(60))
    result = run(
        "predict", "data.npz", "--target", "y", "--arch", "fc:1:erf", "--seeds", "2", "--stop"
    )
    assert result.exit_code == 0, result.output
    assert "network fc:1:erf of infinite width" in result.stdout
    assert "Gradient descent on 48 examples" in result.stdout
    assert "of the error with the best ridge" in result.stdout


def test_features_of_a_user_are_predicted_and_measured(run, tmp_path, monkeypatch):
    monkeypatch.setattr("orderparam.systems.random_features.forecast.MEASURED", 3)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 8))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", x[:, 0] + 0.5 * rng.standard_normal(300))
    result = run("features", "x.npy", "y.npy", "--ridge", "0.1", "--seeds", "2", "--stop")
    assert result.exit_code == 0, result.output
    assert "Gradient descent on 240 examples" in result.stdout
    assert "of the error with the best ridge" in result.stdout
    assert "Ridge(alpha = 8 x ridge" in result.stdout
    assert "not trained on" in result.stdout
    assert "30000 (100 x your data)" in result.stdout
    assert {"figure.png", "figure.pdf", "forecast.zarr", "summary.json"} == {
        p.name for p in (tmp_path / "results" / "features-x").iterdir()
    }
    summary = json.loads((tmp_path / "results" / "features-x" / "summary.json").read_text())
    assert summary["feature_count"] == 8
