"""`orderparam scaling-law`: tables of runs as trackers write them, one figure, one summary,
mistakes in one line."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from orderparam.cli.commands import app


def orderparam(*words):
    return CliRunner().invoke(app, ["scaling-law", *map(str, words)])


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n, d = 10 ** rng.uniform(7.5, 10.2, 40), 10 ** rng.uniform(9.3, 11.7, 40)
    loss = (1.69 + 406.4 * n**-0.34 + 410.7 * d**-0.28) * np.exp(rng.normal(0, 0.003, 40))
    return pd.DataFrame(
        {"name": [f"run-{i}" for i in range(40)], "params": n, "tokens": d, "loss": loss}
    )


def alpha(folder):
    return json.loads((folder / "summary.json").read_text())["values"]["alpha"]


def test_one_row_a_run(table, tmp_path):
    table.to_csv("runs.csv", index=False)
    done = orderparam(
        "runs.csv", "--params", "params", "--data", "tokens", "--compute", "1e24", "--bootstrap", 20
    )
    assert done.exit_code == 0, done.output
    assert "best parameters" in done.output
    assert "1e+24" in done.output
    assert "times beyond your largest run" in done.output
    folder = tmp_path / "results" / "scaling-law-runs"
    assert (folder / "figure.png").stat().st_size > 10_000
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["allocations"][0]["compute"] == 1e24
    assert (
        summary["intervals"]["alpha"][0]
        < summary["values"]["alpha"]
        < summary["intervals"]["alpha"][1]
    )


def test_all_shapes_of_a_table_are_the_same_runs(table, tmp_path):
    """A row a run with "1.3B", a row a logged step, a column a run with the sizes in a second
    table, a row a logged number."""
    short = table.assign(params=[f"{n / 1e9:.17g}B" for n in table["params"]])
    short.to_json("short.json", orient="records")
    steps = pd.concat(
        [table.assign(step=s, loss=table["loss"] * (1 + 1 / s if s < 3 else 1)) for s in (1, 2, 3)]
    )
    steps = pd.concat([steps, table.assign(step=4, loss=np.nan)])  # a step without an evaluation
    steps.to_csv("steps.tsv", sep="\t", index=False)
    wide = pd.DataFrame(
        {"Step": [1, 2]}
        | {f"{name} - loss": [9.0, loss] for name, loss in zip(table["name"], table["loss"])}
    )
    wide = wide.assign(**{"run-0 - loss__MIN": [0.0, 0.0]})
    wide.to_csv("wide.csv", index=False)
    table.drop(columns="loss").to_csv("sizes.csv", index=False)
    tags = steps.rename(columns={"name": "run"}).melt(
        ["run", "step"], ["loss", "params", "tokens"], "tag"
    )
    tags[::-1].to_csv("tags.csv", index=False)  # later steps first
    common = ("--params", "params", "--data", "tokens", "--bootstrap", 20, "--form", "additive")
    found = []
    for words in (
        ("short.json",),
        ("steps.tsv", "--run", "name"),
        ("wide.csv", "--runs", "sizes.csv"),
        ("tags.csv",),
    ):
        done = orderparam(*words, *common, "--out", tmp_path / words[0].partition(".")[0])
        assert done.exit_code == 0, done.output
        found.append(alpha(tmp_path / words[0].partition(".")[0]))
    np.testing.assert_allclose(found, found[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("runs.csv",), "name the column of the sizes"),
        (("runs.csv", "--params", "parms"), "has no column 'parms'; did you mean 'params'"),
        (
            ("runs.csv", "--params", "name"),
            "row 1: name = 'run-0': must be a number, such as 1.3e9 or 1.3B",
        ),
        (("nowhere.csv", "--params", "params"), "there is no file nowhere.csv"),
        (("~nosuchuser/a.csv", "--params", "params"), "there is no such user"),
        (("runs.txt", "--params", "params"), "must be one of .csv"),
        (("empty.csv", "--params", "params"), "empty.csv: the file is empty"),
        (("empty.json", "--params", "params"), "empty.json: "),
        (
            ("runs.csv", "--params", "params", "--compute", "1e21,many"),
            "--compute 1e21,many: write one or more numbers",
        ),
        (("runs.csv", "--params", "params", "--compute", "-1"), "must be positive and finite"),
        (("runs.csv", "--params", "params", "--form", "additive"), "one of offset, power, broken"),
        (("wide.csv", "--params", "params"), "name a table with the runs' sizes"),
        (("wide.csv", "--params", "params", "--runs", "few.csv"), "does not have the run 'run-39'"),
        (("twice.csv", "--params", "params", "--data", "tokens"), "rows 1 and 41 are the same run"),
    ],
)
def test_mistakes_are_one_line(table, words, message):
    table.to_csv("runs.csv", index=False)
    table.to_csv("runs.txt", index=False)
    pd.concat([table, table[:1]]).to_csv("twice.csv", index=False)
    open("empty.csv", "w").close()
    open("empty.json", "w").close()
    pd.DataFrame(
        {f"{name} - loss": [loss] for name, loss in zip(table["name"], table["loss"])}
    ).to_csv("wide.csv", index=False)
    table[:39].to_csv("few.csv", index=False)
    done = orderparam(*words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.output
    assert not os.path.exists("results")


def test_what_has_no_end_is_not_read(table):
    """A pipe blocked for ever, and a link to /dev/zero filled the memory."""
    table.to_csv("runs.csv", index=False)
    os.mkfifo("pipe.csv")
    for name, device in (
        ("zero.csv", "/dev/zero"),
        ("zero.json", "/dev/zero"),
        ("linked.jsonl", "pipe.csv"),
    ):
        os.symlink(device, name)
    for name in ("pipe.csv", "zero.csv", "zero.json", "linked.jsonl"):
        for words in ((name,), ("runs.csv", "--run", "name", "--runs", name)):
            done = orderparam(*words, "--params", "params")
            assert done.exit_code == 2
            assert f"{name} is a pipe, a socket or a device: must be a file" in done.stderr
    assert not os.path.exists("results")


def test_a_folder_that_was_asked_for_is_as_it_was_after_a_refusal(table):
    table.to_csv("runs.csv", index=False)
    os.makedirs("there")
    for folder in ("there", "there/new/er"):
        assert (
            orderparam(
                "runs.csv", "--params", "params", "--form", "additive", "--out", folder
            ).exit_code
            == 2
        )
        assert os.path.isdir("there")
        assert not os.listdir("there")
