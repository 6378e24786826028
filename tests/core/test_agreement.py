"""How far theory and measurement are apart."""

import io

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from orderparam.core.agreement import agreement, estimate, summary
from orderparam.core.table import tables


def _measured(values):
    return xr.Dataset({"error": (("n", "seed"), np.asarray(values, float))}, {"n": [10, 20], "seed": range(len(values[0]))})


def test_mean_and_standard_error_leave_out_failed_points():
    mean, error = estimate(_measured([[1, 2, 3, np.nan], [4, 4, 4, 4]]), "error")
    assert mean.values.tolist() == [2.0, 4.0]
    np.testing.assert_allclose(error, [1 / np.sqrt(3), 0.0])


def test_a_dimension_may_have_any_name():
    measured = xr.Dataset({"error": (("point", "seed"), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])}, {"point": [0, 1], "seed": range(3)})
    (table,) = tables("runs", agreement({"theory": measured["error"].mean("seed").to_dataset()}, measured, ["error"]))
    assert table.row_count == 2


def test_z_and_relative_deviation_at_the_measured_points():
    theory = xr.Dataset({"error": ("n", [2.5, 1.0, 4.0])}, {"n": [10.0, 15.0, 20.0]})
    table = agreement({"theory": theory}, _measured([[1, 2, 3], [4, 5, 6]]), ["error", "unknown"])
    row = table.sel(theory="theory", observable="error")
    np.testing.assert_allclose(row["theory_value"], [2.5, 4.0])
    np.testing.assert_allclose(row["z"], [-0.5 * np.sqrt(3), np.sqrt(3)])
    np.testing.assert_allclose(row["relative_deviation"], [-0.2, 0.25])
    (record,) = summary(table)
    assert record["rms_z"] == pytest.approx(np.sqrt((0.75 + 3) / 2))
    assert record["worst_relative_deviation"] == pytest.approx(0.25)
    assert len(list(tables("run", table))) == 1


def test_a_narrow_terminal_gets_more_tables_and_loses_no_digit():
    theories = {f"theory {i}": xr.Dataset({"error": ("n", [2.5, 4.0])}, {"n": [10, 20]}) for i in range(3)}
    table = agreement(theories, _measured([[1, 2, 3], [4, 5, 6]]), ["error"])
    assert len(list(tables("run", table, width=200))) == 1
    for width, expected in ((70, 2), (45, 3)):
        console = Console(width=width, file=io.StringIO())
        found = list(tables("run", table, width))
        assert len(found) == expected
        console.print(*found)
        assert "…" not in console.file.getvalue()
        assert console.file.getvalue().count("5.00(58)") == expected


def test_a_theory_over_other_dimensions_or_points_is_no_comparison():
    wider = xr.Dataset({"error": (("n", "branch"), np.ones((2, 3)))}, {"n": [10, 20], "branch": [0, 1, 2]})
    elsewhere = xr.Dataset({"error": ("n", [1.0])}, {"n": [11.0]})
    good = xr.Dataset({"error": ("n", [1.0, 2.0])}, {"n": [10, 20]})
    table = agreement({"wider": wider, "elsewhere": elsewhere, "good": good}, _measured([[1, 2], [3, 4]]), ["error"])
    assert np.isnan(table.sel(theory="wider")["z"]).all()
    assert np.isnan(table.sel(theory="elsewhere")["z"]).all()
    assert np.isfinite(table.sel(theory="good")["z"]).all()
    assert agreement({"wider": wider}, _measured([[1, 2], [3, 4]]), ["error"]).sizes == {}


def test_one_seed_has_no_error_and_no_z():
    good = xr.Dataset({"error": ("n", [1.0, 2.0])}, {"n": [10, 20]})
    table = agreement({"good": good}, _measured([[1], [3]]), ["error"])
    assert np.isnan(table["z"]).all()
    np.testing.assert_allclose(table["relative_deviation"].squeeze(), [0.0, 0.5])
