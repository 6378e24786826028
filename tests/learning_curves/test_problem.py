"""A person's table as a learning problem: what cannot be predicted is refused by name."""

import numpy as np
import pandas as pd
import pytest

from orderparam.learning_curves.drift import encoding_for
from orderparam.learning_curves.problem import from_file, from_frame


@pytest.fixture
def frame():
    draws = np.random.default_rng(0).normal(size=(60, 3))
    return pd.DataFrame(draws, columns=["a", "b", "y"])


def test_an_empty_target_is_refused(frame):
    with pytest.raises(ValueError, match="column 'y' is empty in every row"):
        from_frame(frame.assign(y=np.nan), ["y"])


def test_rows_without_both_target_and_group_are_refused(frame):
    groups = np.where(np.arange(60) % 2, 1.0, np.nan)
    y = frame["y"].where(np.arange(60) % 2 == 0)
    with pytest.raises(ValueError, match="no row has a value in each of the columns y, group"):
        from_frame(frame.assign(group=groups, y=y), ["y"], groups="group")


@pytest.mark.parametrize(("value", "shown"), [(1.5, "1.5"), ("word", "word"), (True, "yes")])
def test_a_target_that_never_changes_is_refused(frame, value, shown):
    constant = frame.assign(y=value)
    with pytest.raises(ValueError, match=f"the target 'y' is {shown} in every row"):
        from_frame(constant, ["y"])


def test_one_of_several_targets_that_never_changes_is_refused(frame):
    with pytest.raises(ValueError, match="the target 'b' is 2 in every row"):
        from_frame(frame.assign(b=2.0), ["y", "b"])


def test_a_target_that_was_not_named_is_noted(frame, tmp_path):
    frame.to_csv(tmp_path / "with_y.csv", index=False)
    frame.rename(columns={"y": "z"}).to_csv(tmp_path / "without.csv", index=False)
    np.save(tmp_path / "array.npy", frame.to_numpy())
    assert from_file(str(tmp_path / "with_y.csv")).notes == ()
    assert "last column, 'z'" in from_file(str(tmp_path / "without.csv")).notes[0]
    assert from_file(str(tmp_path / "without.csv"), "z").notes == ()
    assert "last column, 'column 2'" in from_file(str(tmp_path / "array.npy")).notes[0]


def test_a_misspelt_data_set_is_recognised():
    with pytest.raises(ValueError, match="did you mean 'digits'"):
        from_file("digit")


def test_new_rows_without_a_column_are_refused(frame):
    problem = from_frame(frame, ["y"])
    assert encoding_for(problem, frame) is problem.encoding
    with pytest.raises(ValueError, match="there is no column 'b'; there are: a, c, y"):
        encoding_for(problem, frame.rename(columns={"b": "c"}))
