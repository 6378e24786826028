"""Tables of runs at several widths: laws that were put in come out, and what is known to fail
does."""

import numpy as np
import pandas as pd
import pytest

import orderparam as op
from orderparam.observables.width_parametrisation import NAMES, growth
from orderparam.observables.width_rate import rate_shift
from orderparam.observables.width_runs import width_runs
from orderparam.observables.width_theory import linear_first_step, two_layer_first_step

WIDTHS = np.array([64, 128, 256, 512, 1024])


def sizes(exponents, seeds=3, noise=0.05, correction=0.2, key=0):
    rng = np.random.default_rng(key)
    n = np.repeat(WIDTHS, seeds)
    table = {
        "width": n,
        "learning_rate": np.full(len(n), 0.1),
        "seed": np.tile(range(seeds), len(WIDTHS)),
    }
    for k, e in enumerate(exponents):
        law = n**e * (1 + correction * WIDTHS[0] / n)
        table[f"d{k}"] = law * np.exp(noise * rng.normal(size=len(n)))
    return pd.DataFrame(table)


def losses(exponent, seeds=3, noise=0.003, step=1.0, skew=0.05, key=0, widths=WIDTHS, jump=None):
    """ln L = (x - x*)^2 / 8 + skew (x - x*)^3 / 8 + a seed's offset + noise."""
    rng = np.random.default_rng(key)
    rows = []
    for n in widths:
        best = exponent * np.log2(n / 256) + 0.37 + (jump or {}).get(n, 0.0)
        offsets = 0.02 * rng.normal(size=seeds)
        for x in np.arange(-6, 6.01, step) + np.round(exponent * np.log2(n / 256)):
            for s in range(seeds):
                d = x - best
                log = (d**2 + skew * d**3) / 8 + offsets[s] + noise * rng.normal()
                rows.append((n, 2.0**x, s, 0.1 * np.exp(log)))
    return pd.DataFrame(rows, columns=["width", "learning_rate", "seed", "loss"])


@pytest.mark.parametrize("key", list(NAMES))
def test_every_parametrisation_is_recognised(key):
    """NTK and muP share no exponents; one that fits must be the one that was put in."""
    update = growth(NAMES[key], key[1], 3).update
    found = op.width(sizes(update), updates=["d0", "d1", "d2"])
    same = {other for other in NAMES if growth(NAMES[other], other[1], 3).update == update}
    assert set(found.consistent) == same
    for one, exponent in zip(found.update.values(), update):
        assert one.low < exponent < one.high


def test_a_correction_as_large_as_the_value():
    """A hidden layer's own update beside the one that it hands on: N + 64 in a layer of N inputs.
    Its slope is 0.73 from 64 to 1024, and a straight line's interval excludes 1."""
    found = op.width(sizes((1.0, 1.5), correction=1.0, seeds=4), updates=["d0", "d1"])
    for one, exponent in zip(found.update.values(), (1.0, 1.5)):
        assert one.low < exponent < one.high


def test_a_broken_layer_is_named():
    found = op.width(sizes((0, 0.5, 0)), updates=["d0", "d1", "d2"], optimiser="sgd")
    assert not found.consistent
    assert found.nearest == ("muP", "sgd")
    assert list(found.broken) == ["d1"]
    assert "none of standard, NTK, muP" in found.parametrisation
    assert found.broken["d1"] == pytest.approx(0.5, abs=0.1)
    assert f"d1 is off by N^{found.broken['d1']:+.2f}" in found.parametrisation


@pytest.mark.parametrize("layers", [2, 3, 5])
def test_growth_of_published_parametrisations(layers):
    """Standard: a rate 1/N is needed with gradient descent. NTK: hidden layers stand still. muP:
    every layer moves, the output is small at first (Yang and Hu 2021)."""
    standard, ntk, mup = (
        growth(NAMES[name, "sgd"], "sgd", layers) for name in ("standard", "NTK", "muP")
    )
    assert standard.best_rate == -1
    assert ntk.update == (-0.5,) * (layers - 1) + (0.0,)
    assert mup.update == (0.0,) * layers
    assert mup.activation == (0.0,) * (layers - 1) + (-0.5,)
    assert growth(NAMES["muP", "adam"], "adam", layers).update == (0.0,) * layers
    assert standard.activation == (0.0,) * layers


@pytest.mark.parametrize(
    ("exponent", "verdict"), [(0.0, "transfers"), (-1.0, "moves"), (-0.5, "moves")]
)
def test_the_exponent_of_the_best_rate(exponent, verdict):
    found = rate_shift(width_runs(losses(exponent)))
    low, high = found.interval
    assert low < exponent < high
    assert high - low < 0.2
    assert found.verdict == verdict


def test_a_jump_of_one_grid_cell_is_told_from_noise():
    """The case of a reviewer: the largest width has its best rate one cell up."""
    worrying = rate_shift(width_runs(losses(0.0, noise=0.3, key=4)))
    assert worrying.verdict != "moves"
    assert min(one.p_value for one in worrying.far.values()) > 0.05
    signal = rate_shift(width_runs(losses(0.0, jump={1024: 1.0})))
    assert signal.far[1024].p_value < 0.05
    assert signal.far[1024].low < 1.0 < signal.far[1024].high
    assert all(one.p_value > 0.05 for n, one in signal.far.items() if n != 1024)


def test_the_cost_of_the_small_widths_rate():
    found = rate_shift(width_runs(losses(-1.0, skew=0.0, noise=1e-4)))
    value, low, high = found.excess
    assert value == pytest.approx(np.exp(4**2 / 8), rel=0.01)  # four octaves off
    assert low < value < high


def test_a_table_of_best_rates_alone():
    """The table of a merged change: standard parametrisation moves, a jump of one cell does not."""
    standard = {"width": 128 * 2 ** np.arange(5), "learning_rate": 9.77e-4 / 2 ** np.arange(5)}
    found = op.width(standard).shift
    np.testing.assert_allclose(found.interval, (-1.25, -0.75), atol=1e-6)
    assert found.verdict == "moves"
    mup = {"width": 128 * 2 ** np.arange(5), "learning_rate": 9.77e-4 * np.array([1, 1, 1, 1, 2])}
    found = op.width(mup).shift
    np.testing.assert_allclose(found.interval, (0, 1 / 3), atol=1e-6)
    assert found.verdict == "not resolved"
    assert "0.00138" in found.notes[-1]
    broken = {
        "width": 128 * 2 ** np.arange(5),
        "learning_rate": 1e-3 * 2.0 ** np.array([0, 0, 3, 2, 0]),
    }
    found = op.width(broken).shift
    assert np.isnan(found.exponent)
    assert "width 512 breaks it" in found.notes[-1]


def test_optima_that_the_grid_does_not_hold_are_refused_and_divergence_is_no_gap():
    table = losses(-1.0)
    cut = table[table["learning_rate"] <= 2.0]
    found = rate_shift(width_runs(cut))
    assert any("is the largest that was tried" in note for note in found.notes)
    with pytest.raises(ValueError, match="fewer than 3 widths have their best rate inside"):
        rate_shift(width_runs(table[table["learning_rate"] <= 0.5]))
    diverging = losses(0.0)
    diverging.loc[diverging["learning_rate"] >= 2, "loss"] = np.nan
    found = rate_shift(width_runs(diverging))
    assert all("runs diverge at the rate beside the best" in o.fault for o in found.optima)
    assert found.interval[0] <= 0 <= found.interval[1]


def test_the_first_step_of_linear_networks_is_exact():
    """Against draws of networks of 20 units, where 1/N matters."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 4)), rng.normal(size=5)
    n, draws, chosen = 20, 20_000, NAMES["muP", "sgd"]
    first = rng.normal(size=(draws, n, 4)) * 0.5
    middle = rng.normal(size=(draws, n, n)) / n**0.5
    last = rng.normal(size=(draws, 1, n)) / n
    for layers, above in ((2, last), (3, last @ middle)):
        f = (above @ first @ x.T)[:, 0]
        step = -n / 5 * above[:, 0, :, None] * ((f - y) @ (x @ x.T))[:, None]
        square = np.mean(step**2, axis=(1, 2))
        theory = linear_first_step(x, y, chosen, n, layers)
        z = (square.mean() - theory.first_layer**2) / (square.std() / draws**0.5)
        assert abs(z) < 4
    output = linear_first_step(x, y, chosen, n, 2)
    other = two_layer_first_step(x, y, chosen, n, "linear")
    np.testing.assert_allclose(output.output, other.output, rtol=1e-10)
    assert output.largest_rate == pytest.approx(other.largest_rate, rel=1e-10)


@pytest.mark.parametrize("name", ["standard", "NTK", "muP"])
def test_theory_at_finite_width_has_the_exponents(name):
    x, y = np.random.default_rng(1).normal(size=(2, 6, 6))
    steps = [linear_first_step(x, y[0], NAMES[name, "sgd"], n, 3) for n in (1e7, 1e8)]
    predicted = growth(NAMES[name, "sgd"], "sgd", 3)
    slopes = [
        np.log10(steps[1].first_layer / steps[0].first_layer),
        np.log10(steps[1].largest_rate / steps[0].largest_rate),
    ]
    np.testing.assert_allclose(slopes, [predicted.update[0], predicted.best_rate], atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": [64, 64, -1, 128]}, "row 3: width = -1: must be finite and > 0"),
        ({"width": [64, 64, 128, 128]}, "the widths 64, 128: at least 3 are needed"),
        ({"learning_rate": [0.1, 0.1, np.inf, 0.1]}, "row 3: learning rate = inf"),
        ({"seed": [0, 0, 0, 0], "width": [64, 64, 128, 256]}, "rows 1 and 2 have one width"),
        ({"loss": [1, 1, -2, 1]}, "row 3: loss = -2: must be > 0, and inf where the run diverged"),
        ({"width": [64, "wide", 128, 256]}, "row 2: width = 'wide': must be a number"),
    ],
)
def test_rows_that_are_no_runs(change, message):
    table = {
        "width": [64, 128, 256, 512],
        "learning_rate": [0.1] * 4,
        "seed": [0, 1, 2, 3],
    } | change
    with pytest.raises(ValueError, match=message):
        width_runs(table)
