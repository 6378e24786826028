"""Columns as they are in people's tables become inputs as scikit-learn's users expect, and what was
done is said."""

import numpy as np
import pandas as pd
import pytest

from orderparam.data.columns import fit_encoding
from orderparam.data.frame import read_frame

ROWS = 200


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    numbers = rng.normal(3.0, 2.0, size=ROWS)
    return pd.DataFrame(
        {
            "id": np.arange(1000, 1000 + ROWS)[rng.permutation(ROWS)],
            "x": numbers,
            "gaps": np.where(np.arange(ROWS) % 10 == 0, np.nan, rng.normal(size=ROWS)),
            "constant": 3.0,
            "copy": numbers,
            "truth": rng.random(ROWS) < 0.3,
            "word": rng.choice(["a", "b", "c"], ROWS),
            "many": pd.Categorical(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), ROWS)),
            "name": [f"person {i}" for i in range(ROWS)],
            "day": pd.date_range("2020-01-01", periods=ROWS, freq="3D"),
            "hour": [str(t) for t in pd.date_range("2020-01-01", periods=ROWS, freq="7h")],
            "perhaps": pd.array([True, None, False, True] * (ROWS // 4), dtype="boolean"),
            "text": pd.array(["u", None] * (ROWS // 2), dtype="string"),
        }
    )


def test_what_is_done_to_every_kind_of_column(frame):
    encoding = fit_encoding(frame)
    found = {column.name: column for column in encoding.columns}
    assert [column.name for column in encoding.columns] == list(frame.columns)
    left_out = {name for name, column in found.items() if column.inputs == 0}
    assert left_out == {"id", "constant", "copy", "name"}
    assert found["copy"].done == "left out: a copy of x"
    assert found["gaps"].done.startswith("20 gaps filled with the median and marked")
    widths = {
        "x": 1,
        "gaps": 2,
        "truth": 1,
        "word": 3,
        "many": 21,
        "day": 3,
        "hour": 3,
        "perhaps": 2,
        "text": 2,
    }
    assert {name: found[name].inputs for name in widths} == widths
    inputs = encoding(frame)
    assert inputs.shape == (ROWS, sum(widths.values()))
    assert np.isfinite(inputs).all()
    assert np.allclose(inputs[:, 0], (frame["x"] - frame["x"].mean()) / frame["x"].std(ddof=0))


def test_new_rows_with_unknown_words_gaps_and_far_numbers(frame):
    encoding = fit_encoding(frame)
    new = frame.iloc[:3].copy()
    new.loc[0, "word"] = "never seen"
    new.loc[1, "x"] = 1e9
    new.loc[2, "gaps"] = np.nan
    inputs = encoding(new)
    assert np.isfinite(inputs).all()
    spread = np.ptp((frame["x"] - frame["x"].mean()) / frame["x"].std(ddof=0))
    assert inputs[1, 0] < 2.5 * spread  # set back to a range beyond the largest


def test_tables_without_anything_to_learn_from_are_refused():
    with pytest.raises(ValueError, match=r"no column is left to learn from .*never changes"):
        fit_encoding(pd.DataFrame({"a": [1.0, 1.0, 1.0]}))
    with pytest.raises(ValueError, match="column 'a' holds inf"):
        fit_encoding(pd.DataFrame({"a": [1.0, np.inf, 2.0]}))


def test_a_text_file_keeps_gaps_words_truth_and_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",a,b,c,d\n0,1,x,yes,?\n1,2.5,,no,3\n2,NA,y,yes,4\n")
    frame = read_frame(path)
    assert list(frame.columns) == ["(row)", "a", "b", "c", "d"]
    assert frame["a"].isna().tolist() == [False, False, True]
    assert frame["b"].isna().tolist() == [False, True, False]
    assert frame["c"].tolist() == [True, False, True]
    assert frame["d"].iloc[2] == 4


@pytest.mark.parametrize(
    ("ending", "package"), [("parquet", "pyarrow"), ("feather", "pyarrow"), ("xlsx", "openpyxl")]
)
def test_other_formats_hold_the_same(tmp_path, frame, ending, package):
    pytest.importorskip(package)
    kept = frame.drop(columns=["perhaps", "text", "many"])
    path = tmp_path / f"t.{ending}"
    {"parquet": kept.to_parquet, "feather": kept.to_feather}.get(
        ending, lambda p: kept.to_excel(p, index=False)
    )(path)
    assert np.allclose(fit_encoding(read_frame(path))(read_frame(path)), fit_encoding(kept)(kept))


@pytest.mark.parametrize("ending", ["parquet", "feather", "xlsx"])
def test_damaged_files_are_refused_in_one_line(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(
        ValueError, match=rf"t\.{ending}: (cannot be read|\.{ending} files need)"
    ) as told:
        read_frame(path)
    assert "\n" not in str(told.value).strip() or ending == "xlsx"


def test_large_text_is_read_as_small_text_is(tmp_path, monkeypatch):
    path = tmp_path / "large.csv"
    rows = [
        f"{i},{i / 7:.2f},{'NA' if i % 5 else i},{['p', 'q r', 'none'][i % 3]},"
        f"{['yes', 'no'][i % 2]},True"
        for i in range(9)
    ]
    path.write_text(",a,gaps,word,answer,always\n" + "\n".join(rows))
    slow = read_frame(path)
    monkeypatch.setattr("orderparam.data.frame.LARGE", 0)
    fast = read_frame(path)
    assert list(fast.columns) == list(slow.columns)
    for name in slow.columns:
        assert fast[name].isna().equals(slow[name].isna())
        assert fast[name].dropna().astype(str).tolist() == slow[name].dropna().astype(str).tolist()
    path.write_text("a,b\n1,2\n3\n")
    with pytest.raises(ValueError, match="line 3 has 1 cell,"):
        read_frame(path)
