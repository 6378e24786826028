"""Numbers and dates as people write them are read, or refused where they cannot be known; what is
lost is said."""

import warnings

import numpy as np
import pandas as pd
import pytest

from orderparam.data.columns import fit_encoding, moments
from orderparam.data.frame import read_frame
from orderparam.data.written import dates_of, numbers_of
from orderparam.learning_curves.problem import from_file, from_frame

ROWS = 120
RANDOM = np.random.default_rng(0)
DAYS = pd.Series(pd.date_range("2015-01-03", periods=ROWS, freq="5D"))


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("%d.%m.%Y", "read as day, month, year"),
        ("%d/%m/%Y", "read as day, month, year"),
        ("%m/%d/%Y", "read as month, day, year"),
        ("%d-%m-%Y %H:%M", "read as day, month, year"),
        ("%b %d, %Y", "read as month, day, year"),
        ("%Y/%m/%d", ""),
        ("%Y-%m-%d", ""),
    ],
)
def test_dates_in_any_order_are_those_of_iso(form, said):
    words = DAYS.dt.strftime(form).rename("day")
    assert dates_of(words).description == said
    assert np.array_equal(moments(words), DAYS)
    encoding = fit_encoding(words.to_frame())
    assert encoding.columns[0].kind == "dates"
    assert np.allclose(encoding(words.to_frame()), fit_encoding(DAYS.to_frame())(DAYS.to_frame()))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["03/04/2015", "05/06/2016"],
            (
                "column 'when' holds '03/04/2015' and the like, of which no row tells the day from "
                "the month"
            ),
        ),
        (["25/3/2015", "3/25/2015"], "dates that are not all written alike"),
        (["25.03.15", "01.04.16"], "write years with four digits"),
        (
            ["Monday", "Tuesday"],
            "column 'when' holds 'Monday': times must all be numbers, or all dates",
        ),
        (
            [*["2015-03-25"] * 19, "2015-13-45"],
            "column 'when', row 19 holds '2015-13-45': times must",
        ),
    ],
)
def test_times_that_cannot_be_known_are_refused(words, message):
    column = pd.Series(words * 10, name="when")
    with pytest.raises(ValueError, match=message):
        moments(column)


def test_rows_in_time_are_in_the_order_of_days_and_not_of_words():
    days, order = DAYS.dt.strftime("%d.%m.%Y"), RANDOM.permutation(ROWS)
    frame = pd.DataFrame(
        {"x": RANDOM.normal(size=ROWS), "y": np.arange(float(ROWS)), "day": days}
    ).iloc[order]
    problem = from_frame(frame, ["y"], time="day")
    assert np.allclose(problem.values[:, 0], np.arange(ROWS))


@pytest.mark.parametrize(
    ("words", "values", "said"),
    [
        (
            ["$1,002", "$5.50", "-$3"],
            [1002, 5.5, -3],
            "read without $, read with commas between thousands",
        ),
        (["12 %", "7.5%", "0"], [12, 7.5, 0], "read without %"),
        (["1,234,567", "1,000", "12"], [1234567, 1000, 12], "read with commas between thousands"),
        (["3,5", "1.002,25", "7"], [3.5, 1002.25, 7], "read with a decimal comma"),
        (["5 EUR", "7.25 EUR", "EUR 8"], [5, 7.25, 8], "read without EUR"),
        (
            ["70.5 kg", "80kg", "1,002 kg"],
            [70.5, 80, 1002],
            "read without kg, read with commas between thousands",
        ),
        (["-3 m²", "4 m²", "5 m²"], [-3, 4, 5], "read without m²"),
        (["-3 °C", "4.5 °C", "5 °C"], [-3, 4.5, 5], "read without °C"),
        (["3 km/h", "4 km/h", "5 km/h"], [3, 4, 5], "read without km/h"),
        (["(3.50)", "4.25", "(0.5)"], [-3.5, 4.25, -0.5], "read (1) as -1"),
        (
            ["($1,200)", "$5", "$(2.5)"],
            [-1200, 5, -2.5],
            "read without $, read with commas between thousands, read (1) as -1",
        ),
    ],
)
def test_money_percent_and_separators_are_numbers(words, values, said):
    column = pd.Series(words)
    how = numbers_of(column)
    assert how.description == said
    assert np.allclose(how.read(column), values)


@pytest.mark.parametrize("words", [["$5", "€6"], ["12%", "0.3"]])
def test_two_units_in_one_column_are_refused(words):
    with pytest.raises(
        ValueError, match=r"column 'price' holds .*: all numbers of a column must be in one unit"
    ):
        fit_encoding(pd.DataFrame({"price": words * 10}))


@pytest.mark.parametrize("words", [["12A", "12B", "7C"], ["1st", "2nd", "3rd"], ["5 kg", "300 g"]])
def test_numbers_followed_by_several_words_are_words(words):
    assert numbers_of(pd.Series(words * 10)) is None


def test_money_is_the_same_input_and_the_same_target_as_its_number(tmp_path):
    price = np.round(RANDOM.uniform(500, 5000, ROWS))
    path = tmp_path / "t.csv"
    pd.DataFrame(
        {"a": [f"${p:,.0f}" for p in price], "b": [f"{p:,.2f}" for p in price * 2]}
    ).to_csv(path, index=False)
    problem = from_file(str(path), "b")
    assert np.allclose(problem.inputs[:, 0], (price - price.mean()) / price.std())
    assert np.allclose(problem.values[:, 0], 2 * price)
    assert "read with commas between thousands" in problem.notes[0]
    assert (
        problem.columns[0].done
        == "read without $, read with commas between thousands; standardised"
    )


def table_with(cells, path):
    lines = [f"{cell},{y}" for cell, y in zip(cells, RANDOM.normal(size=len(cells)))]
    path.write_text("b,y\n" + "\n".join(lines) + "\n")
    return str(path)


def test_one_bad_cell_does_not_drop_a_column_of_numbers(tmp_path):
    cells = [f"{value:.4f}" for value in RANDOM.normal(size=141)]
    cells[15] = "x"
    path = table_with(cells, tmp_path / "t.csv")
    with pytest.warns(
        UserWarning,
        match=r"column 'b': line 17 holds 'x', which is no number: it was taken as a gap.* "
        r"--missing 'x'",
    ):
        problem = from_file(path, "y")
    assert [column.kind for column in problem.columns] == ["numbers"]
    assert problem.inputs.shape == (141, 2)  # the number, and whether it is a gap
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = from_file(path, "y", missing=["X"])
    assert np.allclose(said.inputs, problem.inputs)
    with pytest.raises(ValueError, match="target 'b': line 17 holds 'x', which is no number"):
        from_file(path, "b")


def test_empty_mixed_and_identifying_columns_are_said():
    frame = pd.DataFrame(
        {
            "x": RANDOM.normal(size=ROWS),
            "nothing": np.nan,
            "mixed": np.where(np.arange(ROWS) % 3 == 0, "1", RANDOM.choice(["low", "high"], ROWS)),
            "patient_id": RANDOM.permutation(3 * ROWS)[:ROWS] + 17,
            "drawn": RANDOM.choice(np.arange(10**5, 10**6), ROWS, replace=False),
            "measured": np.round(1e5 * np.exp(RANDOM.normal(size=ROWS))),
        }
    )
    with pytest.warns(UserWarning, match="column") as told:
        encoding = fit_encoding(frame)
    said = "\n".join(str(one.message) for one in told)
    assert "column 'nothing' is empty: it was left out" in said
    assert "column 'mixed' mixes 40 numbers with 80 words such as" in said
    assert (
        "column 'patient_id' was left out as an identifier: its 120 whole numbers are all different"
        in said
    )
    assert "column 'drawn' was left out as an identifier" in said
    assert len(told) == 4
    assert {column.name for column in encoding.columns if column.inputs} == {
        "x",
        "mixed",
        "measured",
    }


def test_a_column_that_identifies_groups_of_rows_is_named():
    frame = pd.DataFrame(
        {
            "x": RANDOM.normal(size=ROWS),
            "nr": np.repeat(RANDOM.permutation(900)[: ROWS // 4], 4),
            "count": np.repeat(np.arange(ROWS // 4), 4),
            "record": RANDOM.choice([1.0, 2.0, 3.0], ROWS),
        }
    )
    with pytest.warns(UserWarning, match="column") as told:
        fit_encoding(frame)
    (only,) = (str(one.message) for one in told)
    assert only.startswith(
        "column 'nr' has the name of identifiers, and each of its 30 numbers stands in 4 rows"
    )
    assert only.endswith("give it as groups (--groups nr)")


def test_words_for_gaps_hold_in_other_formats(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": ["1", "x", "3"], "b": [1.0, 2.0, 3.0]}).to_parquet(path)
    frame = read_frame(path, missing=["x"])
    assert frame["a"].isna().tolist() == [False, True, False]
    assert frame.index.tolist() == [1, 2, 3]
