"""New rows, later rows and the calibration of classes: what is significant and what is not."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from typer.testing import CliRunner

from orderparam.cli.commands import app
from orderparam.learning_curves import forecast
from orderparam.learning_curves.classes import calibrated
from orderparam.learning_curves.drift import told_apart

runner = CliRunner()


def table(rows, seed, shift=0.0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 3)) + np.array([shift, 0.0, 0.0])
    y = x[:, 0] + 0.5 * x[:, 1] + random.normal(size=rows)
    return pd.DataFrame({"age": x[:, 0], "height": x[:, 1], "weight": x[:, 2], "cost": y})


def test_rows_of_one_law_are_seldom_told_apart():
    found = [told_apart(rows[:60], rows[60:]) for rows in drawn(30)]
    assert sum(one.significant for one in found) <= 4
    assert np.mean([one.area for one in found]) == pytest.approx(0.5, abs=0.03)


def drawn(count):
    random = np.random.default_rng(1)
    return (random.standard_t(3, size=(100, 4)) for _ in range(count))


def test_shifted_rows_are_told_apart_and_their_column_is_named():
    old, new = table(200, 0), table(100, 1, shift=1.0)
    result = forecast(old.drop(columns="cost"), old["cost"], estimator=Ridge(), compare=False)
    found = result.new_rows(new)
    assert found.separation.p_value < 1e-6
    assert [name for name, _ in found.columns] == ["age"]
    # a linear target is learned as well at the shifted rows
    assert found.p_value > 0.01
    assert "no significant difference" in found.sentences()[2]
    assert "their inputs explain it" in found.sentences()[3]
    worse = result.new_rows(new.assign(cost=2 * new["cost"]))
    assert worse.p_value < 1e-3
    without = result.new_rows(new.drop(columns="cost"))
    assert without.error is None
    assert without.p_value is None
    assert len(without.sentences()) == 3


def test_errors_on_new_rows_are_those_of_the_learner():
    old, new = table(120, 0), table(80, 1)
    ridge = forecast(old.drop(columns="cost"), old["cost"], estimator=Ridge(), compare=False)
    standard = old.drop(columns="cost")
    fitted = Ridge().fit((standard - standard.mean()) / standard.std(ddof=0), old["cost"])
    inputs = (new.drop(columns="cost") - standard.mean()) / standard.std(ddof=0)
    expected = np.mean((fitted.predict(inputs) - new["cost"]) ** 2) / old["cost"].var(ddof=0)
    assert ridge.new_rows(new).error[0] == pytest.approx(expected, rel=1e-6)
    network = forecast(old.drop(columns="cost"), old["cost"], arch="fc:1:erf", compare=False)
    assert network.new_rows(new).error[0] == pytest.approx(expected, rel=0.3)


def test_new_rows_that_cannot_be_compared_are_refused():
    old = table(60, 0).assign(cost=lambda frame: np.where(frame["cost"] > 0, "high", "low"))
    result = forecast(old.drop(columns="cost"), old["cost"], estimator=Ridge(), compare=False)
    new = old.iloc[:20]
    with pytest.raises(ValueError, match="9 new rows: there must be at least 10"):
        result.new_rows(new.iloc[:9])
    with pytest.raises(ValueError, match="holds 'medium': must be one of high, low"):
        result.new_rows(new.assign(cost="medium"))
    with pytest.raises(ValueError, match="age"):
        result.new_rows(new.drop(columns="age"))


def test_probabilities_that_are_too_sure_are_called_overconfident():
    random = np.random.default_rng(0)
    chance = random.uniform(0.05, 0.95, 1000)
    truth = np.where(random.random(1000) < chance, 1.0, -1.0)[:, None]
    problem = SimpleNamespace(values=truth, variance=1.0)

    def judged(probability):
        predicted = 2 * probability[:, None] - 1
        return calibrated(problem, np.arange(1000), truth - predicted)

    right = judged(chance)
    assert right.verdict == "no more than chance"
    assert right.p_value > 0.05
    assert right.accuracy == pytest.approx(np.mean(np.maximum(chance, 1 - chance)), abs=0.03)
    sharp = judged(np.clip(0.5 + 2 * (chance - 0.5), 0.01, 0.99))
    assert sharp.verdict == "overconfident"
    assert sharp.p_value < 0.01
    assert sharp.error > 3 * sharp.by_chance
    assert judged(0.5 + 0.4 * (chance - 0.5)).verdict == "underconfident"


def test_the_command_line_compares_new_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(80, 0).to_csv("old.csv", index=False)
    table(60, 1, shift=2.0).to_csv("new.csv", index=False)
    estimator = ["--estimator", "sklearn.linear_model.Ridge"]
    call = ["predict", "old.csv", "--target", "cost", *estimator, "--new", "new.csv"]
    said = runner.invoke(app, call)
    assert said.exit_code == 0, said.output
    assert "60 new rows, inputs: a forest ranks" in said.output
    assert "columns that differ most: age" in said.output
    missing = runner.invoke(app, [*call[:-1], "none.csv"])
    assert missing.exit_code == 2
