"""Finite-size scaling: what was put in comes out, with the right errors; what does not collapse is
said not to.
"""

import warnings

import numpy as np
import pytest
import xarray as xr

import orderparam as op
from orderparam.analysis import collapse
from orderparam.systems.spins import MeanFieldMagnet, exact_magnet

SIZES, X = np.array([8.0, 16.0, 32.0, 64.0]), np.linspace(1.9, 2.1, 9)


def made(seed, power=-0.125, inverse_nu=0.8, correction=0.0, error=2e-3, omega=1.0, seeds=0):
    """y = L^power (1 + correction L^-omega) (1 - u + u^2/2), with noise of the given relative
    size."""
    u = (X - 2.0) * SIZES[:, None] ** inverse_nu
    exact = (
        SIZES[:, None] ** power
        * (1 + correction * SIZES[:, None] ** -omega)
        * (1 - 0.3 * u + 0.05 * u**2)
    )
    rng = np.random.default_rng(seed)
    if seeds:
        y = exact[..., None] * (
            1 + error * np.sqrt(seeds) * rng.standard_normal((*exact.shape, seeds))
        )
        return xr.Dataset({"y": (("size", "x", "seed"), y)}, {"size": SIZES, "x": X})
    y = exact * (1 + error * rng.standard_normal(exact.shape))
    return xr.Dataset(
        {"y": (("size", "x"), y), "y_error": (("size", "x"), error * exact)},
        {"size": SIZES, "x": X},
    )


def test_errors_of_a_collapse_are_those_of_the_scatter():
    found = [collapse(made(seed), "x", "y", "size", order=2, bootstrap=60) for seed in range(16)]
    for name, wanted in (("critical", 2.0), ("inverse_nu", 0.8), ("power", -0.125)):
        values = np.array([getattr(fit, name) for fit in found])
        errors = np.array([getattr(fit, f"{name}_error") for fit in found])
        assert abs(np.mean(values) - wanted) < 4 * np.mean(errors) / 4
        assert 0.6 < np.std(values, ddof=1) / np.mean(errors) < 1.5, name
    chi = [fit.chi_squared / fit.freedom for fit in found]
    assert abs(np.mean(chi) - 1) < 0.2
    assert all(fit.freedom == 36 - 3 - 3 for fit in found)


def test_errors_from_the_scatter_over_seeds():
    fit = collapse(made(0, seeds=16), "x", "y", "size", order=2, bootstrap=60)
    assert abs(fit.critical - 2.0) < 4 * fit.critical_error
    assert abs(fit.power + 0.125) < 4 * fit.power_error


def test_what_is_given_is_kept():
    fit = collapse(
        made(1, power=0.0), "x", "y", "size", critical=2.0, inverse_nu=0.8, power=0, order=2
    )
    assert (fit.critical, fit.inverse_nu, fit.power) == (2.0, 0.8, 0.0)
    assert (fit.critical_error, fit.inverse_nu_error, fit.power_error) == (0, 0, 0)
    np.testing.assert_allclose(fit.curve(np.array([0.0, 1.0])), [1, 0.75], atol=5e-3)
    np.testing.assert_allclose(
        fit.scaled_y, fit.curve(fit.scaled_x), atol=5 * np.max(fit.scaled_error)
    )


def test_small_sizes_that_do_not_scale_are_left_out():
    data = made(2, correction=20.0, omega=3.0, error=1e-3)
    fit = collapse(data, "x", "y", "size", order=2, bootstrap=20)
    assert fit.sizes[0] > 8
    assert fit.accepted
    assert abs(fit.critical - 2.0) < 4 * fit.critical_error


def test_a_correction_to_scaling_is_fitted():
    data = made(3, correction=1.0, error=2e-4)
    with pytest.warns(UserWarning, match=r"'y' does not collapse: chi\^2 .* omega= may help"):
        plain = collapse(data, "x", "y", "size", order=2, bootstrap=20, least_sizes=4)
    assert "not accepted" in repr(plain)
    corrected = collapse(data, "x", "y", "size", order=2, bootstrap=40, omega=1.0)
    assert not plain.accepted
    assert corrected.accepted
    assert corrected.sizes == tuple(SIZES)
    assert abs(corrected.correction - 1.0) < 4 * corrected.correction_error
    assert abs(corrected.power + 0.125) < 4 * corrected.power_error


def curie_weiss(low, high, sizes, error):
    """Binder's ratio of exact magnets of these numbers of spins, with noise of standard deviation
    `error`."""
    temperatures = np.linspace(low, high, 9)
    exact = [
        op.sweep(exact_magnet, MeanFieldMagnet(1.0, spins=n), {"temperature": temperatures})[
            "binder"
        ].values
        for n in sizes
    ]
    noisy = np.array(exact) + error * np.random.default_rng(0).standard_normal((len(sizes), 9))
    columns = {
        "binder": (("spins", "x"), noisy),
        "binder_error": (("spins", "x"), np.full(noisy.shape, error)),
    }
    return xr.Dataset(columns, {"spins": np.array(sizes, float), "x": temperatures})


def test_exact_magnets_in_a_narrow_and_a_wide_window():
    """T_c = 1 and 1/nu = 1/2; in the wide window no polynomial of degree 4 is the scaling function,
    and that is said."""
    narrow = curie_weiss(0.98, 1.02, (400, 800, 1600, 3200), 2e-3)
    found = collapse(narrow, "x", "binder", "spins", power=0, bootstrap=40)
    assert found.accepted
    assert abs(found.critical - 1) < 2 * found.critical_error
    assert abs(found.inverse_nu - 0.5) < 2 * found.inverse_nu_error < 0.05
    with pytest.warns(UserWarning, match="'binder' does not collapse"):
        wide = collapse(
            curie_weiss(0.8, 1.2, (100, 200, 400, 800), 1e-4),
            "x",
            "binder",
            "spins",
            power=0,
            bootstrap=10,
        )
    assert not wide.accepted
    assert abs(wide.inverse_nu - 0.5) < 2 * wide.inverse_nu_error


@pytest.mark.parametrize("error", [1e-3, 1e-4])
def test_the_interval_of_a_corrected_collapse_holds_the_truth(error):
    """Sizes from 50 on do not collapse without a correction, whose exponent is 1/2. It is a
    function of the scaled temperature: a mere factor leads to 1/nu = .538(3)."""
    held = {"critical": 0, "inverse_nu": 0}
    rng = np.random.default_rng(1)
    exact = curie_weiss(0.97, 1.03, (50, 100, 200, 400, 800, 1600), 0.0)
    for _ in range(10):
        noise = error * rng.standard_normal(exact["binder"].shape)
        data = exact.assign(
            binder=exact["binder"] + noise, binder_error=exact["binder_error"] + error
        )
        found = collapse(data, "x", "binder", "spins", power=0, omega="search", bootstrap=30)
        assert found.accepted or error < 1e-3
        held["critical"] += abs(found.critical - 1) < 2 * found.critical_error
        held["inverse_nu"] += abs(found.inverse_nu - 0.5) < 2 * found.inverse_nu_error
        assert found.inverse_nu_error < 0.05 or not found.accepted
    assert min(held.values()) >= 7


def test_omega_is_searched():
    """With its error where the data determine it, and otherwise without a number."""
    data = made(3, correction=2.0, error=1e-4, omega=1.3)
    places = {"x": "x", "y": "y", "size": "size", "order": 2, "critical": 2.0, "inverse_nu": 0.8}
    found = collapse(data, omega="search", bootstrap=30, **places)
    assert found.accepted
    assert abs(found.omega - 1.3) < 4 * found.omega_error < 0.4
    assert abs(found.power + 0.125) < 4 * found.power_error
    fixed = collapse(data, omega=1.3, bootstrap=30, **places)
    assert fixed.omega == 1.3
    assert fixed.omega_error == 0
    assert fixed.power_error < found.power_error
    vague = collapse(made(3, error=1e-2), omega="search", bootstrap=10, **places)
    assert np.isinf(vague.omega_error)
    assert "omega not determined" in repr(vague)
    assert np.isnan(collapse(data, bootstrap=2, **places).omega)


def test_a_rejected_fit_says_so_wherever_it_is_shown():
    """Its errors are those of an accepted fit times the root of chi squared per degree of freedom,
    at least.
    """
    places = {"x": "x", "y": "y", "size": "size", "order": 2, "bootstrap": 40, "least_sizes": 4}
    with pytest.warns(UserWarning, match="does not collapse"):
        found = collapse(made(3, correction=1.0, error=2e-4), **places)
    alike = collapse(made(3, error=2e-4), **places)
    assert alike.accepted
    excess = (found.chi_squared / found.freedom) ** 0.5
    assert excess > 2
    for name in ("critical", "inverse_nu", "power"):
        assert getattr(found, f"{name}_error") > 0.6 * excess * getattr(alike, f"{name}_error")
    assert all(not row["accepted"] for row in found.table())
    assert [row["name"] for row in alike.table()] == ["critical", "inverse_nu", "power"]
    assert all(row["accepted"] and row["error"] > 0 for row in alike.table())


@pytest.mark.parametrize("seed", [0, 1])
def test_noise_leads_the_search_nowhere(seed):
    """Exponents to which noise alone leads are bounded; no power of a size overflows."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        found = collapse(made(seed, error=1.0), "x", "y", "size", bootstrap=3, order=2)
    assert -10 <= found.inverse_nu <= 10
    assert 1.7 <= found.critical <= 2.3


def test_a_window_leaves_points_out():
    fit = collapse(made(4), "x", "y", "size", order=2, window=1.0, bootstrap=10)
    assert np.max(np.abs(fit.scaled_x)) < 1.05
    assert len(fit.scaled_x) < 36


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": "z"}, "'z' is not in the data"),
        ({"omega": -1.0}, "omega = -1.0: must be positive and finite"),
        ({"omega": "best"}, "omega = 'best': must be positive and finite"),
        ({"order": 40}, "'y' has 36 points: a fit of 44 numbers needs more"),
    ],
)
def test_a_collapse_that_cannot_be_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        collapse(made(0), **{"x": "x", "y": "y", "size": "size", **change})


def test_one_size_is_not_enough():
    with pytest.raises(ValueError, match="'size' has the values 8: at least two"):
        collapse(made(0).isel(size=[0]), "x", "y", "size")
