"""`orderparam design`: a table without labels is read whole, whatever its format, and mistakes are
one line."""

import numpy as np
import pytest
from typer.testing import CliRunner

from orderparam.cli.commands import app
from orderparam.data.files import load_design

ROWS = np.random.default_rng(0).standard_normal((40, 3))


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", ROWS)
    np.savez("rows.npz", x=ROWS, other=ROWS[:2])
    np.savez("one.npz", table=ROWS)
    np.savez("two.npz", a=ROWS, b=ROWS)
    np.savetxt("rows.csv", ROWS, delimiter=",", header="a,b,y", comments="", fmt="%.17g")
    np.savetxt("rows.tsv", ROWS, delimiter="\t", fmt="%.17g")
    np.save("cube.npy", ROWS[:, :, None])


@pytest.mark.parametrize("name", ["rows.npy", "rows.npz", "one.npz", "rows.csv", "rows.tsv"])
def test_every_column_is_an_input(files, name):
    np.testing.assert_array_equal(load_design(name), ROWS)


def test_a_csv_without_labels_is_assessed(files):
    result = CliRunner().invoke(app, ["design", "rows.csv", "--no-labels", "--noise", "0.1"])
    assert result.exit_code == 0
    assert "40 rows, 3 columns" in result.stdout
    assert "measured" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["two.npz", "--no-labels"], "name it 'x'"),
        (["cube.npy", "--no-labels"], "must be (rows, columns)"),
        (["rows.csv", "--no-labels", "--target", "y"], "leave one of them out"),
        (["rows.cvs", "--no-labels"], "did you mean 'rows.csv'"),
        (["words.csv", "--no-labels"], "'blue' is not a number"),
        (["rows.txt", "--no-labels"], "must be one of .npz, .npy, .csv, .tsv"),
    ],
)
def test_mistakes_say_what_to_do_in_one_line(files, arguments, said):
    with open("words.csv", "w") as stream:
        stream.write("a,b\n1,2\n3,blue\n4,5\n")
    with open("rows.txt", "w") as stream:
        stream.write("1 2\n")
    result = CliRunner().invoke(app, ["design", *arguments])
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
