"""Forecasts of tables as they are: what they say about themselves, held against errors measured
later."""

import dataclasses
import re
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import check_estimator

import orderparam as op
from orderparam.learning_curves import KernelForecaster, from_arrays, from_file
from orderparam.learning_curves.choice import Candidate
from orderparam.learning_curves.comparison import compare_learners, half_of_the_columns
from orderparam.learning_curves.learners import Exact, Large, kernel_of, learner
from orderparam.learning_curves.problem import Problem
from orderparam.running import threads

ARCH = "fc:1:relu"


def table(rows, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 5))
    return x, x[:, 0] + 0.5 * x[:, 1] * x[:, 2] + noise * rng.normal(size=rows)


@pytest.fixture(scope="module")
def known():
    return op.forecast(*table(250), arch=ARCH, compare=False)


def test_the_error_measured_later_is_inside(known):
    """Four times the rows: regression with the same kernel and ridge, done here in NumPy."""
    x, y = table(3000, seed=1)
    train, test = slice(0, 1000), slice(1000, None)
    x0, y0 = table(250)
    inputs = (x - x0.mean(0)) / x0.std(0)
    kernel = kernel_of(ARCH)
    dual = np.linalg.solve(
        kernel(inputs[train], None) + known.ridge * np.eye(1000), y[train] - y0.mean()
    )
    wrong = y[test] - y0.mean() - kernel(inputs[test], inputs[train]) @ dual
    error = np.mean(wrong**2)
    value, low, high = known.at(1000)
    assert low < error / y.var() < high
    assert high < 2.5 * low
    middle, least, most = known.in_units(1000)
    assert least < np.sqrt(error) < most
    assert middle == pytest.approx(np.sqrt(value * known.unit))


def test_what_it_says_of_itself_hangs_together(known):
    curve = known.measured["test_error"]
    assert known.unit == pytest.approx(table(250)[1].var())
    assert int(curve["n_train"][-1]) == 249
    assert float(curve[-1].mean()) == pytest.approx(known.leave_one_out)
    assert known.at(249)[0] == pytest.approx(known.leave_one_out)
    sizes = known.predicted["n_train"].values
    after = known.predicted["test_error"].values[sizes >= 249]
    assert np.all(np.diff(after) <= 1e-12)  # the best ridge: more data do no harm
    needed, earliest, latest = known.rows_for(known.at(1000)[0])
    assert needed == pytest.approx(1000, rel=0.02)
    assert earliest < needed < latest
    assert known.rows_for(1e-9)[0] == float("inf")
    gain, least, most = known.gain_of_doubling()
    assert gain == pytest.approx(1 - known.at(500)[0] / known.at(250)[0], rel=1e-6)
    assert least < gain < most
    assert known.summary()["unit"] == "variance of target over the 250 examples"


def test_no_upper_end_rises_beyond_the_data():
    """A few rows of much noise, where the interval would otherwise open upwards; but the error of a
    given ridge may rise with more rows."""
    x, y = table(60, noise=5.0)
    free = op.forecast(x, y, arch=ARCH, ridge=1e-6, compare=False).predicted
    best = op.forecast(x, y, arch=ARCH, compare=False)
    beyond = best.predicted.sel(n_train=slice(59, None))
    for curve in (beyond["upper"].values, best.curve("rmse")[2][-len(beyond["n_train"]) :]):
        assert (np.diff(curve) <= 0).all()
    open_ended = beyond["test_error"] * np.exp(1.96 * beyond["spread"])
    assert float((open_ended / beyond["upper"])[-1]) > 1.05
    assert (beyond["lower"] < beyond["test_error"]).all()
    assert (beyond["test_error"] <= beyond["upper"]).all()
    upper = free["test_error"] * np.exp(1.96 * free["spread"])
    np.testing.assert_allclose(free["upper"], upper, rtol=1e-12)


def test_a_target_whose_variance_is_in_few_rows_is_named():
    x, y = table(60)
    (note,) = op.forecast(x, np.exp(3 * y), arch=ARCH, compare=False).notes
    assert re.match(r"\d+% of the variance of target is in [123] rows? of 60: ", note)
    assert op.forecast(x, y, arch=ARCH, compare=False).notes == ()


def test_why_the_network_with_the_lower_error_is_not_used_is_said(known, capsys):
    from orderparam.cli.forecasts import print_answers

    used, other = Candidate(ARCH, 1.0, 0.3, 0.1, 250), Candidate("fc:1:erf", 0.9, 0.2, 0.1, 250)
    print_answers(dataclasses.replace(known, candidates=(used, other)))
    assert (
        "fc:1:erf has the lower leave-one-out error there, but the lower evidence, too"
        in capsys.readouterr().out
    )
    print_answers(
        dataclasses.replace(known, candidates=(used, dataclasses.replace(other, leave_one_out=0.4)))
    )
    assert "lower evidence" not in capsys.readouterr().out


def test_kernels_are_chosen_by_evidence():
    """A target drawn from the process of one kernel has, for each example, most evidence under
    it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    standardised = (x - x.mean(0)) / x.std(0)
    covariance = kernel_of("fc:3:erf")(standardised, None) + 1e-3 * np.eye(300)
    y = np.linalg.cholesky(covariance) @ rng.normal(size=300)
    result = op.forecast(x, y, arch=["fc:1:relu", "fc:3:erf"], compare=False)
    assert result.arch == "fc:3:erf"
    assert [one.arch for one in result.candidates] == ["fc:3:erf", "fc:1:relu"]


def test_the_evidence_is_that_of_the_gaussian_process():
    from orderparam.kernels.gp import gp_posterior

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 3)), rng.normal(size=(30, 1))
    kernel = x @ x.T + np.exp(-((x[:, None] - x[None]) ** 2).sum(-1))
    learner = Exact(kernel, y)
    best = learner.log_evidence() * 30
    others = []
    for ridge in learner.ridges[::5]:
        amplitude = float(y[:, 0] @ np.linalg.solve(kernel + ridge * np.eye(30), y[:, 0])) / 30
        found = gp_posterior(
            amplitude * kernel,
            amplitude * kernel,
            amplitude * np.diag(kernel),
            y[:, 0],
            amplitude * ridge,
        )
        others.append(float(found.log_evidence))
    assert max(others) == pytest.approx(best, abs=0.05)
    assert max(others) <= best + 1e-6


def test_classes_are_measured_and_predicted():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    words = np.where(x[:, 0] + 0.5 * rng.normal(size=300) > 0, "up", "down")
    result = op.forecast(x, words, arch=ARCH, compare=False)
    assert result.problem.classes == ("down", "up")
    rate, low, high = result.at(299, "error_rate")
    measured = float(result.measured["error_rate"][-1].mean())
    assert rate == pytest.approx(measured, rel=1e-6)
    assert low < np.arctan(0.5) / np.pi * 1.1 < high  # the best rule errs in arctan(0.5)/pi
    loss = result.at(3000, "log_loss")
    assert 0 < loss[1] < loss[0] < loss[2] < np.log(2) * 1.5
    three = op.forecast(x, np.digitize(x[:, 0], [-0.5, 0.5]), arch=ARCH, compare=False)
    assert three.problem.values.shape == (300, 3)
    assert three.at(300, "error_rate")[0] < 0.3


def test_several_targets_share_the_inputs():
    x, y = table(120)
    result = op.forecast(x, np.stack([y, 10 * x[:, 3]], axis=1), arch=ARCH, compare=False)
    errors = result.measured["output_error"].isel(n_train=-1).mean("seed").values
    assert errors.sum() == pytest.approx(result.leave_one_out)
    assert errors[1] < errors[0]
    assert "divided by its standard deviation" in result.notes[0]


def test_leaving_groups_out_is_what_it_says():
    rng = np.random.default_rng(0)
    x, y, groups = rng.normal(size=(24, 3)), rng.normal(size=(24, 2)), np.repeat(np.arange(6), 4)
    kernel = x @ x.T
    found = Exact(kernel, y).leave_group_out(0.3, groups)
    for group in range(6):
        out, rest = groups == group, groups != group
        dual = np.linalg.solve(kernel[np.ix_(rest, rest)] + 0.3 * np.eye(20), y[rest])
        assert np.allclose(found[out], y[out] - kernel[np.ix_(out, rest)] @ dual, atol=1e-10)
    single = Exact(kernel, y)
    assert np.allclose(
        single.leave_group_out(0.3, np.arange(24)), single.leave_one_out(0.3), atol=1e-10
    )


def test_groups_that_matter_are_noticed():
    """Each group has an offset of its own, which its inputs give away: random rows make it look
    easy."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 8)
    x = rng.normal(size=(20, 4))[groups] + 0.05 * rng.normal(size=(160, 4))
    y = rng.normal(size=20)[groups] + 0.1 * rng.normal(size=160)
    with pytest.warns(
        UserWarning,
        match=r"held-out other groups: error .* random rows: .* a significant difference, by a "
        r"factor",
    ):
        grouped = op.forecast(x, y, arch=ARCH, compare=False, groups=groups, orders=4)
    plain = op.forecast(x, y, arch=ARCH, compare=False, orders=4)
    assert grouped.at(159)[0] > 3 * plain.at(159)[0]


def test_rows_in_time_are_predicted_from_earlier_ones():
    rng = np.random.default_rng(0)
    drift = np.cumsum(rng.normal(size=300)) / 3
    x = rng.normal(size=(300, 3)) + drift[:, None]
    y = x[:, 0] + drift**2 / 3 + 0.1 * rng.normal(size=300)
    order = rng.permutation(300)
    with pytest.warns(
        UserWarning,
        match=r"held-out later rows: error .* ± .*; random rows: .* ± .*: a significant difference",
    ):
        timed = op.forecast(
            x[order], y[order], arch=ARCH, compare=False, time=np.arange(300)[order], orders=4
        )
    assert timed.problem.ordered
    assert np.allclose(timed.problem.values[:, 0], y)
    assert int(timed.measured["n_train"][-1]) == 270


def test_rows_in_random_order_seldom_drift_significantly(monkeypatch):
    """The whole forecast for one table, and the comparison alone for 200, of which 5 % are
    expected: at most 18, which chance exceeds once in 300 times.
    """
    x, y = table(80, noise=1.0)
    of_rows, of_law, of_inputs, of_network = op.forecast(
        x, y, arch=ARCH, compare=False, time=np.arange(80), orders=2
    ).notes[-4:]
    assert of_network.startswith("the last fifth, learned from the earlier rows: ")
    assert of_law.startswith("what the inputs say of the target is not seen to move with time")
    assert of_rows.endswith(": no significant difference")
    assert of_inputs.startswith("inputs of the last fifth of the rows and those of earlier rows: ")
    learning = sys.modules["orderparam.learning_curves.drift"]
    monkeypatch.setattr(learning, "best_ridge", lambda found: (1.0, 1.0))
    drifting = moving = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(80, 4))
        problem = Problem(x, x[:, :1] + rng.normal(size=(80, 1)), "t", ("y",), ordered=True)
        found = learning.learner(ARCH, problem.inputs, problem.targets)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = learning.dependence(problem, found, learning.measure(problem, found, 1.0, 2))
        drifting += "a significant difference" in said[0]
        moving += "does move" in said[1]
    assert drifting <= 18
    assert moving <= 18


def test_a_drift_is_seen_before_later_rows_have_larger_errors():
    """One term of the target changes sign over 500 rows, with a tenth of the target's variance."""
    learning = sys.modules["orderparam.learning_curves.drift"]
    seen = larger = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x, times = rng.normal(size=(500, 5)), np.linspace(-0.5, 0.5, 500)
        y = np.tanh(x[:, 0]) + 0.5 * x[:, 1] + 0.5 * times * x[:, 2] + 0.5 * rng.normal(size=500)
        problem = Problem(x, y[:, None], "t", ("y",), ordered=True)
        found = learning.learner(ARCH, problem.inputs, problem.targets)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            measured = learning.measure(problem, found, learning.best_ridge(found)[0], 2)
            said = learning.dependence(problem, found, measured)
        seen += "does move with time" in said[1]
        larger += "a significant difference" in said[0]
    assert seen >= 8
    assert larger <= 4


def test_many_rows_are_learned_by_the_exact_kernel(monkeypatch):
    """Leave-one-out, leave-group-out and held-out errors from Cholesky factors are those from the
    eigendecomposition."""
    x, y = table(150)
    targets = ((y - y.mean()) / y.std())[:, None]
    exact = Exact(kernel_of(ARCH)(x, None), targets)
    monkeypatch.setattr("orderparam.learning_curves.learners.MOST_ROWS", 60)
    large = Large.of(kernel_of(ARCH), x, targets)
    order, groups = np.random.default_rng(0).permutation(150), np.arange(150) // 3
    for one, other in zip(
        exact.curve(0.1, order, [40, 100]).residuals, large.curve(0.1, order, [40, 100]).residuals
    ):
        assert np.allclose(one, other, atol=1e-8)
    assert np.allclose(exact.leave_one_out(0.1), large.leave_one_out(0.1), atol=1e-8)
    assert np.allclose(
        exact.leave_group_out(0.1, groups), large.leave_group_out(0.1, groups), atol=1e-8
    )
    assert len(large.eigenvalues) == 60


def test_more_rows_never_give_a_worse_answer():
    """One law, whose floor is known: the forecasts of its first 2000, 2001 and 5000 rows agree, and
    none claims another floor."""
    x, y = table(5000, noise=0.6)
    floor = 0.36 / (1.25 + 0.36)
    found = {
        rows: op.forecast(x[:rows], y[:rows], arch=ARCH, compare=False, orders=2)
        for rows in (2000, 2001, 5000)
    }
    for rows, result in found.items():
        low, high = result.floor_interval
        assert low < floor * 1.05
        assert high > floor * 0.9
        for size in (4000, 20_000, 100_000):
            assert result.at(size)[1] < found[5000].at(size)[0] < result.at(size)[2], (rows, size)
    assert found[2001].at(100_000)[0] == pytest.approx(found[2000].at(100_000)[0], rel=0.02)
    assert (
        found[5000].at(100_000)[2] / found[5000].at(100_000)[1]
        < found[2000].at(100_000)[2] / found[2000].at(100_000)[1]
    )


def test_ten_thousand_rows_and_more_are_measured_on_a_part(monkeypatch):
    for module in ("forecast", "learners", "measured"):
        monkeypatch.setattr(sys.modules[f"orderparam.learning_curves.{module}"], "LARGEST", 300)
    monkeypatch.setattr("orderparam.learning_curves.learners.MOST_ROWS", 700)
    x, y = table(900)
    result = op.forecast(x, y, arch=ARCH, compare=False, orders=2)
    assert int(result.measured["n_train"][-1]) == 300
    assert "learned up to 300 of the 900 rows, exactly" in result.notes[0]
    assert result.at(900)[0] < result.at(300)[0]


def test_a_table_of_words_gaps_and_dates(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "kind": rng.choice(["a", "b"], 80),
            "size": np.where(rng.random(80) < 0.1, np.nan, rng.normal(size=80)),
            "day": pd.date_range("2021-01-01", periods=80).astype(str),
        }
    )
    frame["price"] = (frame["kind"] == "a") + frame["size"].fillna(0) + 0.1 * rng.normal(size=80)
    frame.loc[3, "price"] = np.nan
    path = tmp_path / "shop.csv"
    frame.to_csv(path)  # with the row index that pandas writes
    problem = from_file(str(path), "price")
    assert problem.inputs.shape == (79, 2 + 2 + 1)
    assert [column.kind for column in problem.columns] == ["words", "numbers", "dates"]
    assert problem.notes == ("1 row left out: no price",)
    result = op.forecast(frame.drop(columns="price"), frame["price"], arch=ARCH, compare=False)
    assert result.at(78)[0] == pytest.approx(float(result.leave_one_out))
    assert np.allclose(problem.values[:, 0], result.problem.values[:, 0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            dict(X=np.zeros((39, 2)) + np.arange(39)[:, None] ** 2, y=np.arange(39.0) ** 2),
            "39 examples: .* at least 40",
        ),
        (dict(X=np.eye(50), y=np.zeros(49)), "y has 49 rows, X has 50"),
        (dict(X=np.eye(50), y=np.full(50, 2.0)), "target"),
        (dict(X=np.ones((50, 2)), y=np.arange(50.0)), "no column is left to learn from"),
        (dict(X=np.eye(50), y=np.arange(50.0), groups=[1, 2]), r"\(groups\) has 2 rows"),
        (dict(X=np.eye(50), y=[f"person {i}" for i in range(50)]), "50 different words in 50 rows"),
        (dict(X=np.eye(50), y=np.r_[np.arange(49.0), np.inf]), "must be finite"),
        (
            dict(X=table(60)[0], y=table(60)[1], ridge=-1.0),
            "ridge = -1.0: must be a finite number >= 0",
        ),
        (dict(X=table(60)[0], y=table(60)[1], ridge="a"), "ridge = 'a': must be .* or None"),
        (dict(X=table(60)[0], y=table(60)[1], ridge=1j), "ridge = 1j: must be a finite number"),
        (dict(X=table(60)[0], y=table(60)[1], orders=1), "orders = 1"),
        (dict(X=table(60)[0], y=table(60)[1], orders="x"), "orders = 'x': must be an integer >= 2"),
        (dict(X=table(60)[0], y=table(60)[1], orders=2.5), "orders = 2.5: must be an integer"),
        (dict(X=table(60)[0], y=table(60)[1], reach=None), "reach = None: .* from 1 to 10000"),
        (dict(X=table(60)[0], y=table(60)[1], reach=[2, 3]), r"reach = \[2, 3\]: must be a finite"),
        (dict(X=table(60)[0], y=table(60)[1], compare="no"), "compare = 'no': must be True or"),
        (dict(X=table(60)[0], y=table(60)[1], task=3), "task = 3: must be a word"),
        (dict(X=np.eye(50) + 1j, y=np.arange(50.0)), "column '0' holds complex numbers, .* real"),
        (dict(X=np.eye(50), y=np.arange(50.0) + 1j), r"target 'target' .* such as 0\+1j"),
        (dict(X=np.eye(50), y=[*range(49), 1j]), "target 'target' holds complex numbers"),
        (
            dict(X=pd.DataFrame({"a": range(50), "b": ["x", 1j] * 25}), y=np.arange(50.0)),
            "column 'b' holds complex numbers",
        ),
        (dict(X=np.eye(50), y=np.arange(50.0), time=np.arange(50) * 1j), "complex numbers"),
        (dict(X=np.ones((50, 2, 2)), y=np.arange(50) * 1j), "y holds complex numbers"),
        (dict(X=table(60)[0], y=table(60)[1], arch="fc:1:rule"), "rule"),
        (dict(X=table(60)[0], y=table(60)[1], arch=[]), r"arch = \[\]: must be the name"),
        (dict(X=table(60)[0], y=table(60)[1], arch=3), "arch = 3: must be the name"),
        (dict(X=sparse.eye_array(50), y=np.arange(50.0)), r"X is one dia_array: .* X.toarray\(\)"),
        (dict(X=np.eye(50), y=np.zeros((50, 1, 1))), r"y has shape \(50, 1, 1\): must be"),
        (dict(X=np.eye(50), y=np.arange(50.0), time=np.eye(50)), r"time has shape \(50, 50\)"),
        (dict(X=np.ones((50, 2, 2)), y=np.arange(50.0), groups=[1, 2]), "groups has 2 rows"),
        (dict(X=np.ones((0, 2, 2)), y=[]), r"X has shape \(0, 2, 2\): must be images with at le"),
        (dict(X=[[1, 2], [3]], y=[1, 2]), "X has rows of unequal lengths: must be an array"),
        (dict(X=np.eye(2), y=[[1, 2], [3]]), "y has rows of unequal lengths"),
        (dict(X=np.eye(2), y=[1, 2], groups=[[1, 2], [3]]), "groups has rows of unequal lengths"),
        (dict(X=np.ones((9, 2, 2)), y=np.arange(9.0), time=[np.nan] * 9), "time lacks 9 values"),
    ],
)
def test_what_cannot_be_forecast_is_refused_in_one_line(arguments, message):
    with pytest.raises(ValueError, match=message) as told:
        op.forecast(**arguments)
    assert "\n" not in str(told.value)


def test_words_that_hardly_occur_twice_are_no_classes(tmp_path):
    file = tmp_path / "weights.csv"
    file.write_text(
        "x,weight\n" + "\n".join(f"{i}.5,{i // 2} {'kg' if i % 4 else 'g'}" for i in range(9))
    )
    with pytest.raises(
        ValueError, match=r"7 different words in 9 rows, such as '0 g'.*without its unit"
    ):
        from_file(str(file))


def test_images_are_normalised_one_by_one():
    images = np.random.default_rng(0).random((50, 4, 4))
    problem = from_arrays(images, np.arange(50) % 2)
    assert np.allclose((problem.inputs**2).sum(axis=1), 16)


def test_the_names_of_a_persons_targets_are_left_as_they_are():
    targets = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)))
    assert from_arrays(table(60)[0], targets).names == ("0 (target)", "1 (target)")
    assert targets.columns.tolist() == [0, 1]


def test_groups_and_times_of_images_hold_for_the_images_that_are_used():
    images, times = np.random.default_rng(0).random((60, 4, 4)), np.arange(60.0)[::-1]
    labels, groups = np.arange(60) % 3, np.repeat(["b", "a", "c"], 20)
    problem = from_arrays(images, labels, "0-vs-2", groups, times)
    used = np.flatnonzero(labels != 1)[::-1]  # in the order of time
    assert problem.ordered
    assert problem.groups.tolist() == np.repeat([1, 0, 2], 20)[used].tolist()
    assert (problem.values[:, 0] > 0).tolist() in ((labels[used] == k).tolist() for k in (0, 2))
    centred = (images[used] - images[used].mean(axis=0)).reshape(-1, 16)
    assert np.allclose(problem.inputs / centred, (problem.inputs / centred)[:, :1])


def test_images_of_known_groups_are_forecast_for_other_groups():
    random = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 5)
    images = random.normal(size=(20, 4, 4))[groups] + 0.3 * random.normal(size=(100, 4, 4))
    y = random.normal(size=20)[groups]
    alike = op.forecast(images, y, arch=ARCH, compare=False)
    with pytest.warns(UserWarning, match="held-out other groups"):
        apart = op.forecast(images, y, arch=ARCH, compare=False, groups=groups)
    assert alike.leave_one_out < 0.2 < 0.8 < apart.leave_one_out


@pytest.mark.parametrize("ridge", ["a", -1.0, 1j, np.nan])
def test_a_ridge_that_is_no_number_is_refused_by_the_estimator(ridge):
    with pytest.raises(ValueError, match=r"ridge = .*: must be a finite number >= 0, or None"):
        KernelForecaster(ridge=ridge).fit(*table(60))


def test_complex_targets_of_a_data_frame_are_refused_by_the_estimator():
    frame = pd.DataFrame({"a": np.arange(50.0), "b": ["x", "y"] * 25})
    with pytest.raises(ValueError, match="y holds complex numbers"):
        KernelForecaster().fit(frame, np.arange(50) * 1j)


def test_a_network_that_is_no_name_is_refused_by_the_estimator():
    with pytest.raises(ValueError, match="arch = 3: must be the name of a network"):
        KernelForecaster(arch=3).fit(*table(50))


def test_half_of_the_columns_is_learned_in_one_thread(monkeypatch):
    """Two threads wait for one another: 2.2 s of processor instead of 0.03 for 500 rows."""
    inside = []
    monkeypatch.setattr(
        sys.modules["orderparam.learning_curves.forecast"],
        "half_of_the_columns",
        lambda *_: inside.append(threads._inside),
    )
    op.forecast(*table(60), arch=ARCH)
    assert inside == [1]


def test_half_of_the_columns_is_the_same_with_an_error_that_is_known():
    problem = from_arrays(*table(100))
    found = learner(ARCH, problem.inputs, problem.targets)
    judged = compare_learners(problem, found, 0.1, ARCH, {})
    for one in judged:
        with_known = half_of_the_columns(problem, one.estimator, 0.1, ARCH, one)
        anew = half_of_the_columns(problem, one.estimator, 0.1, ARCH)
        assert with_known == pytest.approx(anew, rel=1e-9)


def test_the_estimator_is_one_of_scikit_learns():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own checks that are skipped
        check_estimator(KernelForecaster())


def test_the_estimator_predicts_and_forecasts():
    x, y = table(100)
    model = KernelForecaster(ridge=0.1).fit(x[:80], y[:80])
    scaled = (x - x[:80].mean(0)) / x[:80].std(0)
    dual = np.linalg.solve(
        kernel_of(ARCH)(scaled[:80], None) + 0.1 * np.eye(80), y[:80] - y[:80].mean()
    )
    assert np.allclose(
        model.predict(x[80:]),
        y[:80].mean() + kernel_of(ARCH)(scaled[80:], scaled[:80]) @ dual,
        atol=1e-9,
    )
    curve = model.learning_curve(orders=4)
    assert curve.ridge == 0.1
    assert curve.leave_one_out == pytest.approx(model.leave_one_out_)
    frame = pd.DataFrame({"a": x[:, 0], "w": np.where(x[:, 1] > 0, "p", "q")})
    assert KernelForecaster().fit(frame, y).predict(frame).shape == (100,)


def test_any_estimator_is_forecast_beside_those_that_are_compared():
    x, y = table(200)
    result = op.forecast(x, y, estimator="sklearn.neighbors.KNeighborsRegressor")
    assert result.learner == "KNeighborsRegressor"
    names = [one.name for one in result.compared]
    assert set(names) == {
        "KNeighborsRegressor",
        "boosting",
        "forest",
        "ridge",
        f"network {result.arch}",
    }
    assert [one.error for one in result.compared] == sorted(one.error for one in result.compared)
    assert result.best is not None
    assert result.best.learner == names[0] != result.learner
    assert int(result.measured["n_train"][-1]) == 160
    own = next(one for one in result.compared if one.name == result.learner)
    assert result.leave_one_out == pytest.approx(own.error, rel=0.01)  # the same folds
    ratio, low, high = own.against(result.compared[0])
    assert low < ratio < high
    assert ratio == pytest.approx(own.error / result.compared[0].error)
    halved, least, most = result.columns_halved
    assert least < halved < most
    assert halved > 1
    assert result.sentence().startswith(
        "With your 200 rows the root mean square error in target is "
    )


def test_the_curve_of_an_estimator_is_measured_and_holds_what_comes_later():
    """Ridge regression of a linear law: its error later, measured here."""
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 20))
    y = x @ rng.normal(size=20) / 4 + rng.normal(size=3000)
    result = op.forecast(x[:200], y[:200], estimator=Ridge(), compare=False)
    assert result.compared == ()
    assert result.best is None
    model = Ridge().fit(x[:1000], y[:1000])
    error = np.mean((model.predict(x[1000:]) - y[1000:]) ** 2) / y.var()
    _, low, high = result.at(1000)
    assert low < error < high
    assert high < 4 * low


def test_classes_of_an_estimator_are_judged_by_its_probabilities():
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    words = np.where(x[:, 0] + 0.5 * rng.normal(size=300) > 0, "up", "down")
    result = op.forecast(x, words, estimator=LogisticRegression(), compare=False)
    last = result.measured.isel(n_train=-1).mean("seed")
    assert abs(float(last["confidence"]) - (1 - float(last["error_rate"]))) < 0.06
    _, low, high = result.at(1000, "error_rate")
    assert low < np.arctan(0.5) / np.pi < high
    assert re.match(
        r"With your 300 rows the error rate is [0-9.]+ % \([0-9.]+-[0-9.]+\)\. Twice the rows: ",
        result.sentence(),
    )
    hard = op.forecast(x, words, estimator=LinearSVC(), compare=False)
    assert hard.at(300, "error_rate")[0] == pytest.approx(result.at(300, "error_rate")[0], rel=0.3)
    twelve = op.forecast(
        x, (x[:, 0] * 2).round().clip(-5, 5).astype(int) + 5, estimator=GaussianNB(), compare=False
    )
    assert len(twelve.problem.classes) > 5
    assert 0 < twelve.at(300, "error_rate")[0] < 0.5


def test_rows_for_every_measure(known):
    assert known.rows_for(0.3, "test_error") == pytest.approx(known.rows_for(0.7, "r2"))
    rows = known.rows_for(known.in_units(1000)[0], "rmse")
    assert rows[0] == pytest.approx(1000, rel=0.02)
    assert "R² 0.7 needs about" in known.sentence(
        0.7, "r2"
    ) or "R² 0.7 would need about" in known.sentence(0.7, "r2")
    assert (
        "is out of reach: 25,000 rows, 100 times yours, are predicted to leave 0.0"
        in known.sentence(1e-6)
    )
    with pytest.raises(
        ValueError, match="'error_rate': of data/target must be one of test_error, r2, rmse"
    ):
        known.rows_for(0.1, "error_rate")


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        ("sklearn.ensemble.RandomForst", "cannot be imported"),
        ("nothing", "cannot be imported"),
        ("sklearn.ensemble.StackingRegressor", "needs settings"),
        ("sklearn.preprocessing.StandardScaler", "has no predict"),
        (Exact, "is a class"),
        (3, "has no fit and no predict and no get_params"),
    ],
)
def test_what_is_no_estimator_is_refused(estimator, message):
    with pytest.raises(ValueError, match=message):
        op.forecast(*table(60), estimator=estimator)


def test_the_floor_of_pure_noise_may_be_the_whole_variance():
    """Nothing can be learned: the error is 1 at any number of rows, also where chance makes the
    measured error smaller."""
    draws = np.random.default_rng(3)
    result = op.forecast(
        draws.normal(size=(80, 3)), draws.normal(size=80), arch=ARCH, compare=False
    )
    low, high = result.floor_interval
    assert low <= 1 <= high
    assert result.summary()["floor_interval"] == [low, high]
