"""The forecast of the error on rows of another law of inputs: tables with a shift that is known."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.linear_model import Ridge
from typer.testing import CliRunner

from orderparam.cli.commands import app
from orderparam.learning_curves import forecast
from orderparam.learning_curves.choice import best_ridge
from orderparam.learning_curves.learners import kernel_of, learner
from orderparam.learning_curves.shift import shift_forecast

runner = CliRunner()
TABLES = 24


def shifted(seed, shift=3.0, own=150, new=120, noise=0.05):
    """A table of three columns whose target is drawn from the prior of a network, and rows that are
    moved along the first column."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(own + new, 3))
    x[own:, 0] += shift
    kernel = kernel_of("fc:2:erf")(3 * x, None)
    root = np.linalg.cholesky(kernel + 1e-9 * np.eye(len(x)))
    y = root @ random.normal(size=len(x)) + noise * np.sqrt(kernel[0, 0]) * random.normal(
        size=len(x)
    )
    frame = pd.DataFrame(x, columns=["age", "height", "weight"]).assign(cost=y)
    return frame.iloc[:own], frame.iloc[own:].reset_index(drop=True)


def forecast_of(old, **options):
    options = options or {"arch": "fc:2:erf"}
    return forecast(
        old.drop(columns="cost"), old["cost"], compare=False, reach=1.0, orders=2, **options
    )


def of_network(old, new, arch="fc:2:erf"):
    """The forecast alone, without the learning curve."""
    mean, spread = old.mean(), old.std(ddof=0)
    own, later = ((one - mean) / spread for one in (old, new))
    sides = [
        (one.drop(columns="cost").to_numpy(), one[["cost"]].to_numpy()) for one in (own, later)
    ]
    (inputs, targets), (new_inputs, new_targets) = sides
    ridge, _ = best_ridge(learner(arch, inputs, targets))
    return shift_forecast(arch, ridge, inputs, targets, new_inputs, new_targets)


@pytest.fixture(scope="module")
def found():
    return [of_network(old, new) for old, new in map(shifted, range(TABLES))]


def test_measured_errors_are_within_the_interval(found):
    """A number of misses that 95 % intervals have in 99.9 % of all cases."""
    outside = sum(not one.interval[0] < one.measured < one.interval[1] for one in found)
    assert outside <= binom.ppf(0.999, TABLES, 0.05)


def test_the_forecast_is_nearer_than_no_change(found):
    miss = [np.log(one.measured / (one.own * one.ratio)) for one in found]
    no_change = [np.log(one.measured / one.own) for one in found]
    assert np.mean(no_change) > 0.5
    assert abs(np.mean(miss)) < 0.5 * np.mean(no_change)
    assert np.mean(np.square(miss)) < np.mean(np.square(no_change))


def test_rows_of_the_same_law_are_forecast_to_err_alike():
    old, new = shifted(100, shift=0.0)
    one = of_network(old, new)
    assert one.ratio == pytest.approx(1, abs=0.15)
    assert one.p_value > 0.05
    assert "their inputs explain it" in str(one)


def test_a_target_that_changed_is_not_explained_by_the_inputs():
    old, new = shifted(101)
    one = of_network(old, new.assign(cost=-3 * new["cost"]))
    assert one.p_value < 1e-3
    assert "do not explain it" in str(one)


def test_without_targets_nothing_is_measured():
    old, new = shifted(102)
    one = forecast_of(old).new_rows(new.drop(columns="cost")).shift
    assert one.measured is None
    assert one.p_value is None
    assert str(one).endswith(")")


def test_other_learners_have_the_forecast_of_their_network_and_groups_none():
    old, new = shifted(103)
    result = forecast_of(old, estimator=Ridge())
    assert result.new_rows(new).shift.arch == result.arch
    grouped = forecast_of(old, arch="fc:1:erf", groups=np.arange(len(old)) % 30)
    assert grouped.new_rows(new).shift is None


def test_later_rows_have_a_forecast_from_the_earlier_ones():
    old, new = shifted(105, own=120, new=30)
    table = pd.concat([old, new], ignore_index=True)
    notes = forecast_of(table, arch="fc:1:erf", time=np.arange(150)).notes
    assert sum("learned from the earlier rows: network fc:1:erf" in note for note in notes) == 1


def test_the_command_line_prints_the_forecast(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old, new = shifted(104, own=80, new=60)
    old.to_csv("old.csv", index=False)
    new.to_csv("new.csv", index=False)
    call = ["predict", "old.csv", "--target", "cost", "--arch", "fc:1:erf", "--new", "new.csv"]
    printed = runner.invoke(app, call)
    assert printed.exit_code == 0, printed.output
    assert "forecast for the new rows from their inputs alone" in printed.output
