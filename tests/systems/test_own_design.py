"""A design matrix of one's own: predictions against held-out rows, its spectrum, and what is
refused."""

import numpy as np
import pytest

from orderparam.systems.generalised_linear import assess_design
from orderparam.systems.generalised_linear.own_design import _noise, spectrum_distance


def drawn(rows=400, columns=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns))
    weights = rng.standard_normal(columns) * (rng.random(columns) < 0.2) * np.sqrt(5 / columns)
    return x, x @ weights + 0.3 * rng.standard_normal(rows), rng


def test_what_is_predicted_is_measured_on_gaussian_rows():
    x, y, _ = drawn()
    found = assess_design(7 + 3 * x, 100 + 5 * y, weights="sparse")
    assert found.is_gaussian
    assert 0.03 < found.noise < 0.2
    for name, (mean, error) in found.measured.items():
        assert abs(mean - found.predicted[name]) < 4 * error + 0.05, name
    assert (
        found.predicted["message passing"]
        <= found.predicted["Lasso"]
        <= found.predicted["ridge regression"]
    )
    assert "as of Gaussian entries" in str(found)


def test_signs_in_any_two_numbers():
    x, y, _ = drawn()
    found = assess_design(x, np.where(y > 0, 1, 0))
    assert found.kind == "signs"
    mean, error = found.measured["logistic regression"]
    assert abs(mean - found.predicted["logistic regression"]) < 4 * error + 0.05


def test_correlated_columns_are_said():
    x, _, rng = drawn()
    turned = (
        x @ np.diag(np.arange(1, 201) ** -0.5) @ np.linalg.qr(rng.standard_normal((200, 200)))[0]
    )
    found = assess_design(turned, kind="signs", weights="rademacher", noise=0.0)
    assert not found.is_gaussian
    assert "NOT" in str(found)
    assert found.optimal == 0.0
    assert found.measured == {}
    assert spectrum_distance(x / np.sqrt(200)) < 0.05


def test_what_does_not_converge_is_said_and_never_nan():
    """Embeddings: a few strong directions and a mean that all rows share."""
    rng = np.random.default_rng(1)
    x = (
        rng.standard_normal((300, 8)) @ rng.standard_normal((8, 60))
        + 0.05 * rng.standard_normal((300, 60))
        + 2.0
    )
    found = assess_design(np.maximum(x, 0.0), np.where(x[:, 0] + x[:, 1] > 4, 1, 0))
    assert "nan" not in str(found)
    assert "of the signal (estimated, " in str(found)
    assert found.unconverged["message passing"] == 5
    assert (
        "message passing did not converge on 5 of 5 splits of these rows: nothing is measured"
        in str(found)
    )
    assert np.isfinite(found.measured["logistic regression"]).all()


def test_the_interval_of_the_noise_holds_the_truth_as_often_as_it_says():
    inside, known = 0, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((100, 40)) / np.sqrt(40)
        y = x @ rng.standard_normal(40) + np.sqrt(0.5) * rng.standard_normal(100)
        noise, low, high = _noise(x - x.mean(axis=0), (y - y.mean()) / y.std(), "linear")
        assert low < noise < high
        inside += low < 0.5 < high
        known.append(np.log(noise))
    assert 34 <= inside <= 40
    assert abs(np.mean(known) - np.log(0.5)) < 0.15


def test_bad_designs_are_refused_in_one_line():
    x, y, _ = drawn(60, 10)
    constant, missing = x.copy(), x.copy()
    constant[:, 3] = 2.0
    missing[5, 1] = np.nan
    for design, labels, options, said in (
        (x[:5], None, {}, "5 rows"),
        (x[0], None, {}, "shape"),
        (constant, None, {}, "column 3 is constant"),
        (missing, None, {}, r"design\[5, 1\] = nan"),
        (x, y[:-1], {}, "one for each of the 60 rows"),
        (x, np.ones(60), {}, "all the same"),
        (x, y, {"kind": "signs"}, "signs must take two"),
        (x, None, {"kind": "sign"}, "did you mean|one of linear, signs"),
        (x, y, {"weights": "gausian"}, "no prior"),
        (x, y, {"noise": -1.0}, "noise = -1"),
    ):
        with pytest.raises(ValueError, match=said) as error:
            assess_design(design, labels, **options)
        assert "\n" not in str(error.value)
