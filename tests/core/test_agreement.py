"""How far theory and measurement are apart."""

import io

import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from scipy import stats

from orderparam.comparison.agreement import (
    agreement,
    differs,
    independent_points,
    probability_by_chance,
    summary,
)
from orderparam.comparison.comparison import agreements
from orderparam.comparison.curve import Curve
from orderparam.comparison.table import tables
from orderparam.running.estimate import estimate
from orderparam.running.status import DONE, UNCONVERGED


def _measured(values):
    return xr.Dataset(
        {"error": (("n", "seed"), np.asarray(values, float))},
        {"n": [10, 20], "seed": range(len(values[0]))},
    )


def test_mean_and_standard_error_leave_out_failed_points():
    mean, error = estimate(_measured([[1, 2, 3, np.nan], [4, 4, 4, 4]]), "error")
    assert mean.values.tolist() == [2.0, 4.0]
    np.testing.assert_allclose(error, [1 / np.sqrt(3), 0.0])


def test_a_standard_error_of_their_own_bounds_the_scatter_over_runs_from_below():
    measured = _measured([[1, 1.2], [1, 3]]).assign(
        error_error=(("n", "seed"), np.full((2, 2), 0.5))
    )
    mean, error = estimate(measured, "error")
    np.testing.assert_allclose(mean, [1.1, 2.0])
    np.testing.assert_allclose(error, [np.sqrt(0.5) / 2, 1.0])
    _, own = estimate(measured.isel(seed=[0]), "error")
    np.testing.assert_allclose(own, [0.5, 0.5])


def test_a_dimension_may_have_any_name():
    measured = xr.Dataset(
        {"error": (("point", "seed"), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])},
        {"point": [0, 1], "seed": range(3)},
    )
    (table,) = tables(
        "runs",
        agreement({"theory": measured["error"].mean("seed").to_dataset()}, measured, ["error"]),
        measured,
    )
    assert table.row_count == 2


def test_z_and_relative_deviation_at_the_measured_points():
    theory = xr.Dataset({"error": ("n", [2.5, 1.0, 4.0])}, {"n": [10.0, 15.0, 20.0]})
    measured = _measured([[1, 2, 3, 2], [4, 5, 6, 5]])
    found = agreement({"theory": theory}, measured, ["error", "unknown"])
    row = found["error"].sel(theory="theory")
    t = np.array([-0.5, 1.0]) / np.sqrt(2 / 3 / 4)
    np.testing.assert_allclose(row["theory_value"], [2.5, 4.0])
    np.testing.assert_allclose(
        stats.norm.sf(np.abs(row["z"])), stats.t.sf(np.abs(t), 3), rtol=1e-10
    )
    np.testing.assert_allclose(np.sign(row["z"]), np.sign(t))
    np.testing.assert_allclose(row["relative_deviation"], [-0.2, 0.25])
    (record,) = summary(found, measured)
    assert record["rms_z"] == pytest.approx(float(np.sqrt(np.mean(row["z"] ** 2))))
    assert record["worst_relative_deviation"] == pytest.approx(0.25)
    assert record["median_relative_deviation"] == pytest.approx(0.225)
    assert (record["points"], record["points_beyond_3"]) == (2, 0)
    assert len(list(tables("run", found, measured))) == 1


def test_the_standard_error_of_a_theory_counts_with_that_of_the_measurement():
    theory = xr.Dataset(
        {"error": ("n", [2.5, 4.0]), "error_uncertainty": ("n", [0.4, 0.0])}, {"n": [10, 20]}
    )
    measured = _measured([[1, 2, 3, 2], [4, 5, 6, 5]])
    row = agreement({"theory": theory}, measured, ["error"])["error"].sel(theory="theory")
    own = np.sqrt(2 / 3 / 4)
    both = np.hypot(own, [0.4, 0.0])
    freedom = 3 * (both / own) ** 4
    expected = stats.norm.isf(stats.t.sf(np.array([0.5, 1.0]) / both, freedom))
    np.testing.assert_allclose(np.abs(row["z"]), expected, rtol=1e-10)
    np.testing.assert_allclose(row["standard_error"], [own, own])
    np.testing.assert_allclose(row["theory_error"], [0.4, 0.0])
    np.testing.assert_allclose(row["resolution"], both / [2.5, 4.0])
    alone = agreement({"theory": theory}, measured.isel(seed=[0]), ["error"])["error"]
    assert alone["z"].isnull().all()


def test_the_error_of_a_theory_is_compared_where_the_scatter_is_zero():
    theory = xr.Dataset(
        {"error": ("n", [1.0, 4.0]), "error_uncertainty": ("n", [0.5, 0.5])}, {"n": [10, 20]}
    )
    found = agreement({"theory": theory}, _measured([[2.0] * 4, [4.0] * 4]), ["error"])
    np.testing.assert_allclose(found["error"]["z"].squeeze("theory"), [2.0, 0.0], atol=1e-9)


def test_rounding_is_no_deviation_and_a_deviation_without_scatter_is():
    theory = xr.Dataset({"error": ("n", [2.0, 4.0])}, {"n": [10, 20]})
    at_start = 2.0 + np.array([0, 1, 2, 1]) * 4e-16
    found = agreement({"theory": theory}, _measured([at_start, [4, 4.1, 3.9, 4]]), ["error"])
    assert np.isfinite(found["error"]["z"]).values.tolist() == [[False, True]]
    found = agreement({"theory": theory}, _measured([at_start + 1e-3, [4] * 4]), ["error"])
    assert found["error"]["z"].isel(n=0).item() > 10


def test_three_runs_do_not_say_how_far_is_far_and_their_own_errors_do():
    theory = xr.Dataset({"error": ("n", [2.5, 4.0])}, {"n": [10, 20]})
    measured = _measured([[1, 1.001], [4, 4.001]])
    found = agreement({"theory": theory}, measured, ["error"])
    assert np.isnan(found["error"]["z"]).all()
    assert "2 runs" in _printed(found, measured)
    (record,) = summary(found, measured)
    assert (record["points"], record["points_with_z"], record["rms_z"]) == (2, 0, None)
    own = agreement(
        {"theory": theory},
        measured.assign(error_error=(("n", "seed"), np.full((2, 2), 0.1))),
        ["error"],
    )
    np.testing.assert_allclose(
        own["error"]["z"].squeeze("theory"), np.array([-1.4995, 0.0005]) / (0.1 / np.sqrt(2))
    )


def test_a_number_is_one_row_beside_an_observable_with_a_dimension():
    values = {
        "error": (("n", "seed"), np.ones((2, 4))),
        "overlap": (("n", "seed", "feature"), np.ones((2, 4, 3))),
    }
    measured = xr.Dataset(values, {"n": [10, 20], "seed": range(4)})
    found = agreement({"theory": measured.isel(seed=0, drop=True)}, measured, ["error", "overlap"])
    assert [record["points"] for record in summary(found, measured)] == [2, 6]
    assert [table.row_count for table in tables("run", found, measured)] == [2, 6]


def test_what_is_nowhere_defined_is_no_row_and_not_counted():
    measured = _measured([[1, 2, 3, 4], [np.nan] * 4])
    found = agreement(
        {"theory": xr.Dataset({"error": ("n", [2.5, np.nan])}, {"n": [10, 20]})},
        measured,
        ["error"],
    )
    assert summary(found, measured)[0]["points"] == 1
    assert [table.row_count for table in tables("run", found, measured)] == [1]
    assert "nan" not in _printed(found, measured)


def test_an_unconverged_theory_says_nothing():
    theory = xr.Dataset({"error": ("n", [2.5, 4.0]), "status": ("n", [1, 2])}, {"n": [10, 20]})
    found = agreement({"theory": theory}, _measured([[1, 2, 3, 4], [4, 5, 6, 7]]), ["error"])
    assert np.isfinite(found["error"]["z"]).values.tolist() == [[True, False]]


def test_a_baseline_stands_apart():
    values = {"error": ("n", [9.0, 9.0])}
    theories = {
        "fixed kernel": xr.Dataset(values, {"n": [10, 20]}, {"baseline": True}),
        "theory": xr.Dataset(values, {"n": [10, 20]}, {"baseline": False}),
    }
    measured = _measured([[1, 2, 3, 4], [4, 5, 6, 7]])
    found = agreement(theories, measured, ["error"])
    assert {record["theory"]: record["baseline"] for record in summary(found, measured)} == {
        "fixed kernel": True,
        "theory": False,
    }
    printed = _printed(found, measured)
    assert printed.index("theory") < printed.index("fixed kernel (baseline)")
    z = f"{float(found['error']['z'].sel(theory='theory', n=10)):+.1f}"
    assert printed.count(z) == 1  # beside the theory, and not beside the baseline


def test_only_what_lies_on_the_wrong_side_of_a_bound_deviates():
    values = {"error": ("n", [1.0, 9.0])}
    theories = {
        kind: xr.Dataset(values, {"n": [10, 20]}, {"bound": kind}) for kind in ("lower", "upper")
    }
    theories["theory"] = xr.Dataset(values, {"n": [10, 20]})
    measured = _measured([[1.9, 2, 2, 2.1], [3.9, 4, 4, 4.1]])
    found = agreement(theories, measured, ["error"])
    records = {record["theory"]: record for record in summary(found, measured)}
    assert {name: record["bound"] for name, record in records.items()} == {
        "lower": "lower",
        "upper": "upper",
        "theory": "",
    }
    z = {name: found["error"]["z"].sel(theory=name).values for name in theories}
    np.testing.assert_array_equal(z["lower"], [0.0, z["theory"][1]])
    np.testing.assert_array_equal(z["upper"], [z["theory"][0], 0.0])
    assert records["theory"]["points_beyond_3"] == 2
    assert [records[kind]["points_beyond_3"] for kind in ("lower", "upper")] == [1, 1]
    resolution = {name: found["error"]["resolution"].sel(theory=name).values for name in theories}
    np.testing.assert_allclose(resolution["lower"], resolution["theory"] / [2.0, 1.0])
    assert "lower (lower bound)" in _printed(found, measured)


def _printed(found, measured):
    console = Console(width=200, file=io.StringIO())
    console.print(*tables("run", found, measured, 200))
    return console.file.getvalue()


def test_a_narrow_terminal_gets_more_tables_and_loses_no_digit():
    theories = {
        f"theory {i}": xr.Dataset({"error": ("n", [2.5, 4.0])}, {"n": [10, 20]}) for i in range(3)
    }
    measured = _measured([[1, 2, 3], [4, 5, 6]])
    table = agreement(theories, measured, ["error"])
    assert len(list(tables("run", table, measured, width=200))) == 1
    for width, expected in ((70, 2), (45, 3)):
        console = Console(width=width, file=io.StringIO())
        found = list(tables("run", table, measured, width))
        assert len(found) == expected
        console.print(*found)
        assert "…" not in console.file.getvalue()
        assert console.file.getvalue().count("5.00(58)") == expected


def test_a_theory_over_other_dimensions_or_points_is_no_comparison():
    wider = xr.Dataset(
        {"error": (("n", "branch"), np.ones((2, 3)))}, {"n": [10, 20], "branch": [0, 1, 2]}
    )
    elsewhere = xr.Dataset({"error": ("n", [1.0])}, {"n": [11.0]})
    good = xr.Dataset({"error": ("n", [1.0, 2.0])}, {"n": [10, 20]})
    table = agreement(
        {"wider": wider, "elsewhere": elsewhere, "good": good},
        _measured([[1, 2], [3, 4]]),
        ["error"],
    )
    assert table["error"]["theory"].values.tolist() == ["good"]
    assert agreement({"wider": wider}, _measured([[1, 2], [3, 4]]), ["error"]) == {}


def test_one_seed_has_no_error_and_no_z():
    good = xr.Dataset({"error": ("n", [1.0, 2.0])}, {"n": [10, 20]})
    table = agreement({"good": good}, _measured([[1], [3]]), ["error"])
    assert np.isnan(table["error"]["z"]).all()
    np.testing.assert_allclose(table["error"]["relative_deviation"].squeeze(), [0.0, 0.5])


def _with_status(status):
    measured = _measured([[1.0, 1.2, 1.4, 9.0, 9.0], [4.0, 4.2, 4.4, 4.6, 4.8]])
    return measured.assign(status=(("n", "seed"), np.asarray(status)))


def test_runs_that_did_not_converge_are_in_no_mean_and_counted():
    measured = _with_status([[1, 1, 1, 2, 2], [1, 1, 1, 1, 1]])
    mean, error = estimate(measured, "error")
    np.testing.assert_allclose(mean, [1.2, 4.4])
    np.testing.assert_allclose(error[0], 0.2 / np.sqrt(3))
    missed, _ = estimate(measured, "error", converged=False)
    np.testing.assert_allclose(missed, [9.0, np.nan])
    found = agreement(
        {"theory": xr.Dataset({"error": ("n", [1.2, 4.4])}, {"n": [10, 20]})}, measured, ["error"]
    )
    row = found["error"].squeeze("theory")
    assert row["runs"].values.tolist() == [3, 5]
    assert row["unconverged"].values.tolist() == [2, 0]
    np.testing.assert_allclose(row["mean_of_all"], [4.32, 4.4])
    assert summary(found, measured)[0]["runs"] == [3, 5]
    assert "(2 unconverged)" in _printed(found, measured)


def test_a_point_at_which_no_run_converged_is_not_compared():
    measured = _with_status([[2] * 5, [1] * 5])
    found = agreement(
        {"theory": xr.Dataset({"error": ("n", [1.2, 4.4])}, {"n": [10, 20]})}, measured, ["error"]
    )
    assert summary(found, measured)[0]["points"] == 1


def test_resolution_is_the_standard_error_over_the_theory():
    theory = xr.Dataset({"error": ("n", [2.0, 5.0])}, {"n": [10, 20]})
    measured = _measured([[1, 2, 3, 2], [4, 5, 6, 5]])
    found = agreement({"theory": theory}, measured, ["error"])
    spread = np.sqrt(2 / 3 / 4)
    np.testing.assert_allclose(found["error"]["resolution"].squeeze(), [spread / 2, spread / 5])
    (record,) = summary(found, measured)
    assert record["resolution"] == pytest.approx(np.median([spread / 2, spread / 5]))


def test_a_theory_that_is_zero_to_rounding_is_compared_with_its_largest_value():
    theory = xr.Dataset({"error": ("n", [1e-17, 5.0])}, {"n": [10, 20]})
    found = agreement(
        {"theory": theory}, _measured([[1e-16, 2e-16, 3e-16, 2e-16], [4, 5, 6, 5]]), ["error"]
    )
    assert np.abs(found["error"]["relative_deviation"].values).max() < 1e-15


def _correlated(points, runs, correlation, seed=0):
    """Runs of points that have all the same correlation with each other: mean 0, variance 1."""
    draw = np.random.default_rng(seed)
    common = draw.normal(size=(1, runs))
    own = draw.normal(size=(points, runs))
    return np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own


def _beside_zero(values):
    n = np.arange(len(values))
    measured = xr.Dataset(
        {"error": (("n", "seed"), values)}, {"n": n, "seed": range(values.shape[1])}
    )
    theory = xr.Dataset({"error": ("n", np.zeros(len(values)))}, {"n": n})
    (record,) = summary(agreement({"theory": theory}, measured, ["error"]), measured)
    return record


def test_a_deviation_from_what_is_zero_everywhere_has_no_relative_size():
    """A mean of 1e-32 is the square of a rounding error, and 0 beside it is not 100 % off."""
    theory = xr.Dataset({"error": ("n", [2e-30, 1e-32])}, {"n": [10, 20]})
    found = agreement({"theory": theory}, _measured(np.zeros((2, 6))), ["error"])["error"]
    assert found["relative_deviation"].isnull().all()
    assert found["z"].isnull().all()


def test_points_of_the_same_runs_are_counted_by_their_correlation():
    """Equal correlations r give K^2 / (K + K (K - 1) r^2) independent points."""
    independent = [
        _beside_zero(_correlated(40, 16, 0.0, i))["independent_points"] for i in range(20)
    ]
    assert np.mean(independent) == pytest.approx(40, rel=0.05)
    half = [_beside_zero(_correlated(40, 200, 0.5, i))["independent_points"] for i in range(20)]
    assert np.mean(half) == pytest.approx(40 / (1 + 39 / 4), rel=0.1)
    same = np.tile(_correlated(1, 16, 0.0), (40, 1))
    assert _beside_zero(same)["independent_points"] == pytest.approx(1)
    assert independent_points([]) == 0
    assert independent_points(np.ones((3, 1))) == 3  # one run says nothing about correlations
    assert probability_by_chance(np.zeros(0), 0) is None


@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.95])
def test_the_probability_of_chance_is_uniform_where_theory_is_right(correlation):
    """Of 400 tables of a right theory about 5 % have a probability below 5 %, and about 1 % below 1
    %, with whatever correlation."""
    found = np.array(
        [_beside_zero(_correlated(20, 32, correlation, i))["probability"] for i in range(400)]
    )
    assert 0.02 < np.mean(found < 0.05) < 0.09
    assert np.mean(found < 0.01) < 0.04


def test_a_small_shift_of_every_point_is_systematic():
    """One and a half standard errors at each of 30 points: none is beyond three."""
    values = _correlated(30, 16, 0.0)
    values = values - values.mean(1, keepdims=True)
    shifted = values + 1.5 * values.std(1, ddof=1, keepdims=True) / 4
    right, wrong = _beside_zero(values), _beside_zero(shifted)
    assert right["points_beyond_3"] == wrong["points_beyond_3"] == 0
    assert right["probability"] == pytest.approx(1)
    assert wrong["probability"] < 0.001
    assert differs(wrong)
    assert not differs(right)
    assert not differs({**wrong, "baseline": True})
    n = np.arange(30)
    measured = xr.Dataset({"error": (("n", "seed"), shifted)}, {"n": n, "seed": range(16)})
    theory = xr.Dataset({"error": ("n", np.zeros(30))}, {"n": n})
    printed = _printed(agreement({"theory": theory}, measured, ["error"]), measured)
    assert f"theory: rms z {wrong['rms_z']:.2f} at 30 points" in printed
    assert "systematic" in printed


def test_a_theory_on_the_training_set_of_each_run_is_compared_run_by_run():
    scatter = np.random.default_rng(0).normal(size=(2, 8))  # of the training sets
    own = 1e-3 * np.random.default_rng(1).normal(size=(2, 8))
    theory = _measured(5 + scatter)
    measured = _measured(5 + scatter + own + [[0.0], [0.01]])
    theory["status"] = (("n", "seed"), np.full((2, 8), DONE))
    theory["status"][0, 0] = UNCONVERGED
    measured["status"] = (("n", "seed"), np.full((2, 8), DONE))
    table = agreement({"theory": theory}, measured, ["error"])["error"].isel(theory=0)
    assert table["runs"].values.tolist() == [7, 8]
    apart = (measured["error"] - theory["error"]).values
    np.testing.assert_allclose(
        table["mean"] - table["theory_value"], [apart[0, 1:].mean(), apart[1].mean()]
    )
    np.testing.assert_allclose(table["standard_error"][1], apart[1].std(ddof=1) / np.sqrt(8))
    np.testing.assert_allclose(table["theory_value"][0], (5 + scatter[0, 1:]).mean())
    assert abs(float(table["z"][0])) < 3 < abs(float(table["z"][1]))


def test_points_are_independent_where_the_differences_from_the_theory_of_each_run_are():
    """The runs at two points scatter together with their training sets, their differences from the
    theory on these do not."""
    sets, own = np.random.default_rng(0).normal(size=20), np.random.default_rng(1)
    theory = _measured([5 + sets, 7 + sets])
    measured = theory + 1e-3 * own.normal(size=(2, 20))
    average = theory.mean("seed")
    records = summary(agreement({"own": theory, "line": average}, measured, ["error"]), measured)
    independent = {record["theory"]: record["independent_points"] for record in records}
    assert independent["own"] > 1.7
    assert independent["line"] < 1.1


def test_a_theory_on_the_data_of_the_runs_is_no_measurement():
    kinds = {"line": ("theory", False), "runs": ("experiment", False), "own": ("experiment", True)}
    curves = {}
    for name, (kind, same_data) in kinds.items():
        data = _measured([[1.0, 2.0, 3.0, 4.0]] * 2)
        if kind == "theory":
            data = data.mean("seed")
        curves[name] = data.assign_attrs(
            kind=kind, same_data=same_data, facets={}, baseline=False, label=name
        )
    found = agreements(curves, ["error"])
    assert list(found) == ["runs"]
    assert found["runs"]["error"]["theory"].values.tolist() == ["line", "own"]


def test_a_bound_is_lower_or_upper():
    with pytest.raises(ValueError, match="curve 'own': bound = 'below': must be 'lower' or 'uppe"):
        Curve("own", len, None, {}, bound="below")


def test_a_theory_on_the_data_of_the_runs_needs_their_seeds():
    with pytest.raises(ValueError, match="same_data needs seeds"):
        Curve("own", len, None, {}, same_data=True)
