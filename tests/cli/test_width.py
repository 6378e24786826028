"""`orderparam width`: a table of runs, one figure, one summary, mistakes in one line."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from orderparam.cli.commands import app


def orderparam(*words):
    return CliRunner().invoke(app, ["width", *map(str, words)])


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = []
    for n in (64, 128, 256, 512):
        for s in range(3):
            offset = 0.02 * rng.normal()
            d1, d2 = n**-0.5 * np.exp(0.02 * rng.normal(size=2)) * (1, n**0.5)
            for x in range(-6, 3):
                loss = np.exp((x + 1.8) ** 2 / 8 + offset + 0.003 * rng.normal())
                rows.append((n, 2.0**x, s, loss, 2.0**x * d1, 2.0**x * d2))
    return pd.DataFrame(rows, columns=["N", "lr", "run", "final", "dh", "df"])


COLUMNS = ("--width", "N", "--learning-rate", "lr", "--seed", "run", "--loss", "final")


def test_a_table_becomes_a_figure_and_a_summary(table, tmp_path):
    table.to_csv("runs.csv", index=False)
    done = orderparam("runs.csv", *COLUMNS, "--updates", "dh,df")
    assert done.exit_code == 0, done.output
    assert "NTK with gradient descent" in done.output
    assert "transfers" in done.output
    folder = tmp_path / "results" / "width-runs"
    assert (folder / "figure.png").stat().st_size > 10_000
    summary = json.loads((folder / "summary.json").read_text())
    low, high = summary["exponents"]["dh"]["interval"]
    assert low < -0.5 < high
    low, high = summary["best_rate"]["interval"]
    assert low < 0 < high
    assert summary["best_rate"]["verdict"] == "transfers"


def test_a_table_of_best_rates(table):
    pd.DataFrame({"width": [1, 2, 4, 8], "learning_rate": [8, 4, 2, 1]}).to_csv(
        "a.csv", index=False
    )
    done = orderparam("a.csv")
    assert done.exit_code == 0, done.output
    assert "moves" in done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("runs.csv",), "has no column 'width'"),
        (("runs.csv", "--width", "M"), "has no column 'M'"),
        (("nowhere.csv",), "there is no file nowhere.csv"),
        (("runs.txt",), "must be one of .csv"),
        (("empty.csv",), "empty.csv: the file is empty"),
        (("runs.csv", *COLUMNS, "--updates", "dh"), "name a column for each layer"),
        (("runs.csv", *COLUMNS, "--updates", "dh,dh"), "write different names of columns"),
        (("runs.csv", *COLUMNS, "--updates", "dh,dg"), "has no column 'dg'; did you mean 'dh'"),
        (("runs.csv", *COLUMNS, "--optimiser", "adan"), "must be one of sgd, adam"),
        (("runs.csv", *COLUMNS, "--updates", "dh,df", "--at-rate", 3), "at_rate = 3: must be"),
        (("twice.csv", *COLUMNS), "rows 1 and 109 have one width, learning rate and seed"),
        (("one.csv", *COLUMNS), "there is nothing to say"),
        (("two.csv", *COLUMNS), "at least 3 are needed"),
    ],
)
def test_mistakes_are_one_line(table, words, message):
    table.to_csv("runs.csv", index=False)
    table.to_csv("runs.txt", index=False)
    table[table["lr"] == 1].to_csv("one.csv", index=False)
    table[table["N"] < 200].to_csv("two.csv", index=False)
    pd.concat([table, table[:1]]).to_csv("twice.csv", index=False)
    open("empty.csv", "w").close()
    done = orderparam(*words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.output
    assert not os.path.exists("results")


def test_what_has_no_end_is_not_read(table):
    os.mkfifo("pipe.csv")
    os.symlink("/dev/zero", "zero.csv")
    for name in ("pipe.csv", "zero.csv"):
        done = orderparam(name)
        assert done.exit_code == 2
        assert f"{name} is a pipe, a socket or a device: must be a file" in done.stderr
