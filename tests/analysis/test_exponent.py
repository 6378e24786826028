"""Exponents of measured values: what was put in lies in the interval as often as that says, and
what the data cannot tell is said not to be determined.
"""

import warnings

import numpy as np
import pytest
import xarray as xr

from orderparam.analysis import exponent

# (exponent, y(x)); other laws than those by which the strengths of corrections were chosen
LAWS = {
    "pure": (-0.35, lambda x: x**-0.35),
    "pure, growing": (2.2, lambda x: x**2.2),
    "pure, slow": (0.125, lambda x: x**0.125),
    "first order": (-0.8, lambda x: x**-0.8 * (1 + 0.7 / x)),
    "first order, below": (-0.8, lambda x: x**-0.8 * (1 - 0.6 / x)),
    "half": (-0.6, lambda x: x**-0.6 * (1 + 0.4 / x**0.5)),
    "half, below": (0.4, lambda x: x**0.4 * (1 - 0.5 / x**0.5)),
    "second order": (-1.0, lambda x: x**-1.0 * (1 + 2 / x**2)),
    "magnet's omega": (-1.96, lambda x: x**-1.96 * (1 + 0.5 / x**0.83)),
    "slow": (0.7, lambda x: x**0.7 * (1 + 0.4 / x**0.4)),
    "two terms": (-0.5, lambda x: x**-0.5 * (1 + 0.6 / x - 0.4 / x**2)),
    "two terms of a kind": (0.3, lambda x: x**0.3 * (1 + 0.5 / x**0.6 + 0.5 / x**1.2)),
    "shifted": (-0.7, lambda x: (x + 0.8) ** -0.7),
    "shifted down": (1.2, lambda x: (x - 0.5) ** 1.2),
    "exponential": (-1.4, lambda x: x**-1.4 * np.exp(-0.8 / x)),
    "saturation": (-0.5, lambda x: np.tanh(x) * x**-0.5),
    "rational": (-1.0, lambda x: (1 + x) / (1 + 2 * x + x**2)),
    "root": (0.5, lambda x: np.sqrt(x + 1.5)),
    "late": (-0.9, lambda x: x**-0.9 * (1 + 5 / x**1.5)),
    "sum of powers": (-0.4, lambda x: x**-0.4 + 0.7 * x**-1.1),
}

# with a power of the logarithm beside; the last has a small x_0, so that it looks like another
# power
LOGARITHMS = {
    "first power": (-1.0, lambda x: np.log(np.e * x) / x),
    "half a power": (-1.0, lambda x: np.log(np.e * x) ** 0.5 / x),
    "below": (-0.5, lambda x: x**-0.5 / np.log(np.e * x)),
    "a third": (1.0, lambda x: x * np.log(np.e * x) ** (1 / 3)),
    "four-state Potts": (-1.875, lambda x: x**-1.875 * np.log(np.e**2 * x) ** -0.125),
    "hidden": (0.5, lambda x: x**0.5 * np.log(10 * x)),
}
# noise, points, decades
SETTINGS = [(0.01, 12, 2), (0.003, 16, 3), (0.05, 10, 2), (0.001, 12, 1.5)]
AT_SETTINGS = pytest.mark.parametrize("setting", SETTINGS, ids=lambda row: "-".join(map(str, row)))


def noisy(shape, noise, points, decades, rng):
    x = np.geomspace(1, 10**decades, points)
    exact = shape(x)
    y = exact * (1 + noise * rng.standard_normal(points))
    return {"x": x, "y": y, "y_error": noise * exact}


def fits(shape, setting, draws, rng, **options):
    """Exponents of as many drawn data sets."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one law in twenty is rejected by chance
        return [exponent(noisy(shape, *setting, rng), "x", "y", **options) for _ in range(draws)]


def coverage(laws, setting, draws, **options):
    """For each law the part of the intervals that hold its exponent."""
    rng = np.random.default_rng(7)
    return {
        law: np.mean(
            [
                fit.interval[0] < truth < fit.interval[1]
                for fit in fits(shape, setting, draws, rng, **options)
            ]
        )
        for law, (truth, shape) in laws.items()
    }


def test_the_interval_holds_the_exponent():
    held = coverage(LAWS, SETTINGS[0], 8)
    assert np.mean(list(held.values())) > 0.93
    # the straight line's interval, which every pure law obeys, does not
    plain = coverage(LAWS, SETTINGS[0], 8, correction=False)
    assert np.mean(list(plain.values())) < 0.5


@AT_SETTINGS
def test_the_interval_holds_the_exponent_of_each_of_twenty_laws(setting):
    held = coverage(LAWS, setting, 100)
    assert np.mean(list(held.values())) > 0.93, held
    assert min(held.values()) > 0.75, held


@AT_SETTINGS
def test_the_interval_of_a_pure_law_is_no_wider_than_it_need_be(setting):
    """Where the noise is below what corrections would do, they are excluded."""
    if setting[0] > 0.01:
        pytest.skip("a noise of 5 % hides corrections")
    pure = {law: row for law, row in LAWS.items() if law.startswith("pure")}
    held = np.mean(list(coverage(pure, setting, 60).values()))
    assert 0.91 < held < 0.995
    noise, points, decades = setting
    straight = noise / np.sqrt(points) / np.std(np.log(np.geomspace(1, 10**decades, points)))
    drawn = fits(LAWS["pure"][1], setting, 20, np.random.default_rng(3))
    assert np.median([np.ptp(fit.interval) for fit in drawn]) < 1.4 * 2 * 1.96 * straight


@AT_SETTINGS
def test_the_interval_allows_for_a_logarithm(setting):
    held = coverage(LOGARITHMS, setting, 40)
    assert np.mean(list(held.values())) > 0.93, held
    assert min(held.values()) > 0.75, held


def test_a_logarithm_that_is_not_excluded_is_named():
    rng = np.random.default_rng(9)
    (found,) = fits(LOGARITHMS["hidden"][1], SETTINGS[0], 1, rng)
    assert "logarithm" in found.possible
    assert "a logarithm is not excluded" in repr(found)
    (pure,) = fits(LAWS["pure"][1], SETTINGS[1], 1, rng)
    assert pure.possible == ("pure",)
    assert "logarithm" not in repr(pure)


def test_a_logarithm_is_told_where_the_data_can_tell_it():
    rng = np.random.default_rng(5)
    (_, shape), (_, pure) = LOGARITHMS["first power"], LAWS["pure"]
    told = [fit.logarithm for fit in fits(shape, SETTINGS[1], 30, rng)]
    assert np.mean(np.array(told) >= 0.9) > 0.6
    assert "beside a logarithm, with probability" in repr(fits(shape, (1e-4, 24, 4), 1, rng)[0])
    for law in (pure, LAWS["first order"][1], LAWS["second order"][1]):
        assert max(fit.logarithm for fit in fits(law, SETTINGS[1], 30, rng)) < 0.9


def test_the_errors_of_few_runs():
    """The scatter of three runs is known to a half; the intervals hold all the same."""
    rng, held = np.random.default_rng(0), []
    x = np.geomspace(1, 100, 9)
    y = 5 * x**-0.5 * (1 + 0.5 / x)
    for _ in range(60):
        runs = y[:, None] * (1 + 0.03 * rng.standard_normal((9, 3)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = exponent(xr.Dataset({"y": (("x", "seed"), runs)}, {"x": x}), "x", "y")
        held.append((fit.interval[0] < -0.5 < fit.interval[1], fit.power_law))
    inside, accepted = np.mean(held, axis=0)
    assert inside > 0.9
    assert accepted > 0.75


def test_a_pure_power_law_and_its_error():
    x, rng = np.geomspace(1, 100, 8), np.random.default_rng(0)
    found = []
    for _ in range(40):
        y = 3 * x**-0.7
        table = {"x": x, "y": y * (1 + 0.01 * rng.standard_normal(8)), "y_error": 0.01 * y}
        found.append(exponent(table, "x", "y", correction=False))
    values = np.array([fit.plain_exponent for fit in found])
    np.testing.assert_allclose(np.std(values, ddof=1), found[0].exponent_error, rtol=0.35)
    assert abs(np.mean(values) + 0.7) < 4 * found[0].exponent_error / np.sqrt(40)


def test_noise_that_is_large_biases_nothing():
    """A tenth of the value: its logarithm is low on average by half of its variance."""
    rng = np.random.default_rng(1)
    x = np.geomspace(1, 100, 40)
    y = x**-0.5
    noise = np.where(x > 10, 0.3, 0.01)
    found = [
        exponent(
            {"x": x, "y": y * (1 + noise * rng.uniform(-1.7, 1.7, 40)), "y_error": noise * y},
            "x",
            "y",
            correction=False,
        )
        for _ in range(100)
    ]
    middle = np.array([np.mean(fit.interval) for fit in found])
    assert abs(np.mean(middle) + 0.5) < 4 * np.std(middle) / 10


def test_small_x_is_large_x_turned_round():
    rng = np.random.default_rng(4)
    table = noisy(LAWS["half"][1], *SETTINGS[1], rng)
    at_large = exponent(table, "x", "y")
    near = exponent({**table, "x": 1 / table["x"]}, "x", "y", towards="small")
    assert near.exponent == pytest.approx(-at_large.exponent)
    assert near.interval == pytest.approx((-at_large.interval[1], -at_large.interval[0]))


def test_local_exponents_approach_the_law():
    x = np.geomspace(1, 1000, 19)
    y = x**1.5 * (1 + 5 / x)
    found = exponent({"x": x, "y": y, "y_error": 1e-3 * y}, "x", "y")
    away = np.abs(found.local_slopes - 1.5)
    assert np.all(np.diff(away) < 0)
    assert away[0] > 0.4
    assert away[-1] < 0.03
    assert found.interval[0] < 1.5 < found.interval[1]
    assert abs(found.plain_exponent - 1.5) > 10 * found.plain_error


def test_what_the_data_cannot_tell_is_not_determined():
    rng = np.random.default_rng(0)
    x = np.geomspace(10, 30, 5)
    y = x**-0.5 * (1 + 0.05 * rng.standard_normal(5))
    found = exponent({"x": x, "y": y, "y_error": 0.05 * x**-0.5}, "x", "y")
    assert not found.determined
    assert np.isnan(found.exponent)
    assert found.interval[0] < -0.5 < found.interval[1]
    assert "not determined: between" in repr(found)


@pytest.mark.parametrize("shape", [lambda x: np.exp(-x), lambda x: 2 + np.sin(3 * np.log(x))])
def test_what_is_no_power_law_is_said_not_to_be(shape):
    x = np.geomspace(1, 10, 12)
    with pytest.warns(UserWarning, match="is not a power law"):
        found = exponent({"x": x, "y": shape(x), "y_error": 1e-4 * shape(x)}, "x", "y")
    assert not found.power_law
    assert not found.determined
    assert "not accepted" in repr(found)


def test_what_has_no_exponent_is_refused():
    data = xr.Dataset({"y": ("x", [-1.0, 1, 2]), "y_error": ("x", [0.1] * 3)}, {"x": [1.0, 2, 3]})
    with pytest.raises(ValueError, match="'y' = -1: must be positive"):
        exponent(data, "x", "y")
    with pytest.raises(ValueError, match="has no errors"):
        exponent(data.drop_vars("y_error"), "x", "y")
    with pytest.raises(ValueError, match="towards = 'up': must be 'large' or 'small'"):
        exponent(data, "x", "y", towards="up")
    with pytest.raises(ValueError, match="has 1 points"):
        exponent(data, "x", "y", window=(2, 2))
    with pytest.raises(ValueError, match="'x' has one value only"):
        exponent({"x": [1.0] * 3, "y": [1.0, 2, 3], "y_error": [0.1] * 3}, "x", "y")
