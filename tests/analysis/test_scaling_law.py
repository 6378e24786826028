"""The law of training runs: recovered from synthetic runs of published constants, with its
intervals, allocation and bias."""

import numpy as np
import pytest

from orderparam.analysis.scaling_law import Runs, iso_flop, scaling_law
from orderparam.analysis.scaling_law.fit import DELTA, minimise
from orderparam.analysis.scaling_law.forms import FORMS, fitting
from orderparam.analysis.scaling_law.law import _chosen

E, A, B, ALPHA, BETA = 1.69, 406.4, 410.7, 0.34, 0.28  # Hoffmann et al. 2022


def chinchilla(n, d):
    return E + A * n**-ALPHA + B * d**-BETA


@pytest.fixture(scope="module")
def sizes():
    rng = np.random.default_rng(0)
    n, d = 10 ** rng.uniform(7.5, 10.2, 200), 10 ** rng.uniform(9.3, 11.7, 200)
    return n, d, rng.normal(0, 0.005, 200)


@pytest.mark.parametrize(
    "constants",
    [(E, A, B, ALPHA, BETA), (1.8172, 482.01, 2085.43, 0.3478, 0.3658)],
    ids=["Hoffmann et al. 2022", "Besiroglu et al. 2024"],
)
def test_noise_free_runs_give_their_constants(sizes, constants):
    n, d, _ = sizes
    e, a, b, alpha, beta = constants
    form, loss = FORMS["additive"], e + a * n**-alpha + b * d**-beta
    np.testing.assert_allclose(
        form.values(minimise(form, Runs.of(loss, n, d))), constants, rtol=1e-9
    )


def test_the_robust_minimum_of_noisy_runs(sizes):
    """0.5 % log-normal noise; then ten runs of two hundred 20 % too high. Values of an independent
    program."""
    n, d, noise = sizes
    form, loss = FORMS["additive"], chinchilla(n, d) * np.exp(noise)
    found = form.values(minimise(form, Runs.of(loss, n, d)))
    # half of their last digits
    np.testing.assert_allclose(found, (1.697102, 458.32, 389.24, 0.347186, 0.277565), rtol=2e-5)
    loss[:10] *= 1.2
    e, _, _, alpha, beta = form.values(minimise(form, Runs.of(loss, n, d)))
    assert (alpha, beta, e) == (
        pytest.approx(0.34813, abs=6e-6),
        pytest.approx(0.27412, abs=6e-6),
        pytest.approx(1.69212, abs=6e-6),
    )


def test_the_published_allocation(sizes):
    n, d, _ = sizes
    law = scaling_law(chinchilla(n, d), n, d, bootstrap=4)
    assert law.form == "additive"
    assert law.values["a"] == pytest.approx(0.451613, abs=1e-6)
    share = law.allocate(5.76e23)
    ratio = (ALPHA * A / (BETA * B)) ** (1 / (ALPHA + BETA))
    assert share.parameters.value == pytest.approx(
        ratio * (5.76e23 / 6) ** (BETA / (ALPHA + BETA)), rel=1e-7
    )
    assert 6 * share.parameters.value * share.samples.value == pytest.approx(5.76e23)
    assert share.loss.value == pytest.approx(
        chinchilla(share.parameters.value, share.samples.value), rel=1e-9
    )


@pytest.mark.parametrize(("half_width", "bias"), [(0.3, 1.00326), (1, 1.03678), (2, 1.15508)])
def test_parabolas_of_equal_compute_are_biased_in_the_prefactor(half_width, bias):
    """Noise-free, five budgets, fifteen sizes each within so many decades of the optimum."""
    compute = np.repeat(10.0 ** np.arange(17, 22), 15)
    best = (ALPHA * A / (BETA * B)) ** (1 / (ALPHA + BETA)) * (compute / 6) ** (
        BETA / (ALPHA + BETA)
    )
    n = best * 10 ** np.tile(np.linspace(-half_width, half_width, 15), 5)
    d = compute / 6 / n
    found = iso_flop(scaling_law(chinchilla(n, d), n, d, form="additive", bootstrap=2))
    assert found.exponent == pytest.approx(0.4516129, abs=2e-6)
    np.testing.assert_allclose(found.bias, bias, atol=1e-5)


def test_kaplans_form_is_recognised(sizes):
    n, d, noise = sizes
    loss = ((8.8e13 / n) ** (0.076 / 0.095) + 5.4e13 / d) ** 0.095
    law = scaling_law(loss * np.exp(noise / 5), n, d, bootstrap=4)
    assert law.form == "kaplan"
    assert law.values["alpha"] == pytest.approx(0.076, rel=0.02)


def test_repeated_data_count_for_less(sizes):
    """Muennighoff et al. 2023: R = 15.4."""
    n, d, noise = sizes
    unique = d / np.random.default_rng(1).uniform(1, 60, 200)
    seen = unique * (1 + 15.4 * (1 - np.exp(-(d / unique - 1) / 15.4)))
    law = scaling_law(chinchilla(n, seen) * np.exp(noise / 5), n, d, unique=unique, bootstrap=40)
    assert law.form == "repeated"
    interval = law.intervals["R"]
    # twice the half of 95 %: four standard deviations
    assert abs(interval.value - 15.4) < interval.high - interval.low < 1.0


def test_one_size_alone(sizes):
    _, d, noise = sizes
    law = scaling_law((2.0 + 300 * d**-0.3) * np.exp(noise / 5), samples=d, bootstrap=50)
    assert law.form == "offset"
    _, low, high = law.predict(samples=[1e13])
    assert low[0] < 2.0 + 300 * 1e13**-0.3 < high[0]
    with pytest.raises(ValueError, match="one size only"):
        law.allocate(1e20)


def test_a_broken_power_law_is_recognised():
    x = np.geomspace(1e3, 1e9, 60)
    loss = 0.1 + 5 * x**-0.1 * (1 + (x / 1e6) ** (1 / 0.3)) ** (-0.4 * 0.3)
    law = scaling_law(loss, samples=x, form="broken", bootstrap=2)
    assert law.scatter < 1e-5
    assert law.values["x0"] == pytest.approx(1e6, rel=0.02)


def test_outliers_are_told(sizes):
    n, d, noise = sizes
    loss = chinchilla(n, d) * np.exp(noise)
    loss[[3, 17]] *= 1.3
    assert {4, 18} <= set(scaling_law(loss, n, d, form="additive", bootstrap=2).outliers)


@pytest.mark.parametrize(
    ("make", "warning"),
    [
        (lambda n, d: (n, 3000 * n), "grow together"),
        (lambda n, d: (1e9 * (n / n.max()) ** 0.1, d), "less than a decade"),
        (lambda n, d: (n / 1e5, d / 1e5), "may be zero"),
    ],
)
def test_what_the_runs_cannot_tell(sizes, make, warning):
    n, d, noise = sizes
    n, d = make(n[:60], d[:60])
    law = scaling_law(chinchilla(n, d) * np.exp(noise[:60]), n, d, form="additive", bootstrap=100)
    assert any(warning in told for told in law.warnings), law.warnings


@pytest.mark.slow
def test_coverage_of_the_intervals():
    """200 synthetic sets of 60 runs with 1 % noise: the 95 % intervals of the exponents and of the
    best size at 100 times the largest compute hold in 90 to 99 % (three standard deviations of the
    count are 4.6 %)."""
    rng = np.random.default_rng(5)
    best = (ALPHA * A / (BETA * B)) ** (1 / (ALPHA + BETA))
    held = []
    for _ in range(200):
        n, d = 10 ** rng.uniform(7.5, 10.2, 60), 10 ** rng.uniform(9.3, 11.7, 60)
        law = scaling_law(
            chinchilla(n, d) * np.exp(rng.normal(0, 0.01, 60)), n, d, form="additive", bootstrap=100
        )
        compute = 100 * law.runs.compute.max()
        truths = {"alpha": ALPHA, "beta": BETA, "a": BETA / (ALPHA + BETA)}
        told = [
            law.intervals[name].low <= value <= law.intervals[name].high
            for name, value in truths.items()
        ]
        size = law.allocate(compute).parameters
        held.append([*told, size.low <= best * (compute / 6) ** truths["a"] <= size.high])
    assert (np.abs(np.mean(held, axis=0) - 0.945) < 0.05).all(), np.mean(held, axis=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": [1.0, 2.0, np.nan] + [1.0] * 9}, "row 3: loss = nan: must be finite and > 0"),
        ({"loss": [1.0] * 11 + [-2.0]}, "row 12: loss = -2"),
        ({"parameters": [0.0] + [1.0] * 11}, "row 1: parameters = 0"),
        (
            {"parameters": [7.0] * 12, "samples": [5.0] * 12, "loss": [3.0] * 12},
            "rows 1 and 2 are the same run",
        ),
        ({"parameters": None, "samples": None}, "number of parameters, the number of samples"),
        ({"samples": [1.0, 2.0]}, "different lengths: loss 12, parameters 12, samples 2"),
        ({"unique": [1e30] * 12}, "row 1: more unique samples than samples"),
        ({"samples": ["many"] * 12}, "samples: must be numbers"),
        ({"flops": -6.0}, "flops = -6: must be finite and > 0"),
        ({"bootstrap": 0}, "bootstrap = 0: must be at least 1"),
        (
            {"form": "kaplann"},
            "form = 'kaplann': for these runs one of additive, kaplan; did you mean 'kaplan'",
        ),
    ],
)
def test_bad_runs_are_named(change, message):
    n, d = np.geomspace(1e6, 1e9, 12), np.geomspace(1e9, 1e11, 12)[::-1]
    arguments = {"loss": chinchilla(n, d), "parameters": n, "samples": d, **change}
    with pytest.raises(ValueError, match=message):
        scaling_law(**arguments)


def test_too_few_runs():
    n = np.geomspace(1e6, 1e9, 5)
    with pytest.raises(ValueError, match="5 runs: at least 6 are needed"):
        scaling_law(chinchilla(n, n), n, n[::-1])


@pytest.mark.parametrize(("form", "seed"), [("additive", 17), ("kaplan", 15), ("kaplan", 3)])
def test_kaplans_form_is_told_from_the_additive_one_by_all_runs(form, seed):
    """The additive table extrapolates 1.5 times better with Kaplan's form, by chance."""
    rng = np.random.default_rng(seed)
    size = rng.choice([20, 30, 40])
    n, d = 10 ** rng.uniform(7, 9.5, size), 10 ** rng.uniform(8.5, 11, size)
    scatter = rng.choice([0.003, 0.01, 0.02])
    if form == "additive":
        loss = rng.uniform(0.3, 2) + rng.uniform(100, 600) * n ** -rng.uniform(0.25, 0.4)
        loss = loss + rng.uniform(200, 1500) * d ** -rng.uniform(0.22, 0.35)
    else:
        alpha, beta = rng.uniform(0.06, 0.12), rng.uniform(0.08, 0.15)
        loss = ((8.8e13 / n) ** (alpha / beta) + 5.4e13 / d) ** beta
    runs = Runs.of(loss * np.exp(scatter * rng.standard_normal(size)), n, d)
    assert _chosen(fitting(runs), {"additive": 0.04, "kaplan": 0.025}, runs, DELTA).name == form
