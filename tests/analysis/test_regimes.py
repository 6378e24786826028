"""One power law or two: exponents and crossovers that were put in, intervals that hold them,
refusals."""

import numpy as np
import pytest

from orderparam.analysis.scaling_law import regimes

X = np.geomspace(1, 1e4, 40)


def bent(first, second, at):
    return np.where(at > X, (X / at) ** -first, (X / at) ** -second)


def test_one_law_is_one():
    found = regimes(X, 3 * X**-0.7)
    assert found.crossover is None
    (only,) = found.exponents
    assert only.value == pytest.approx(0.7, abs=1e-10)
    assert found.deviation < 1e-10


def test_two_laws_are_two():
    found = regimes(X, bent(0.3, 1.1, 80.0))
    assert [exponent.value for exponent in found.exponents] == pytest.approx([0.3, 1.1], abs=5e-3)
    assert found.crossover.value == pytest.approx(80.0, rel=0.03)


def test_noise_does_not_make_a_crossover():
    rng = np.random.default_rng(0)
    alone = [
        regimes(X, X**-0.5 * np.exp(0.05 * rng.standard_normal(40)), 0.05 * X**-0.5).crossover
        is None
        for _ in range(40)
    ]
    assert sum(alone) >= 39


def test_intervals_hold_what_was_put_in():
    """Of 100 noisy curves, for each of three numbers: 95 expected."""
    rng, held, truth = np.random.default_rng(1), np.zeros(3), bent(0.4, 1.0, 100.0)
    for _ in range(100):
        found = regimes(X, truth * np.exp(0.03 * rng.standard_normal(40)), 0.03 * truth, number=2)
        numbers = zip((*found.exponents, found.crossover), (0.4, 1.0, 100.0))
        held += [interval.low <= value <= interval.high for interval, value in numbers]
    assert (held >= 87).all(), held


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: regimes(X, -X), "y = -1: must be finite and > 0"),
        (lambda: regimes(X, X[:-1]), "40, 39 entries"),
        (lambda: regimes(X, X, number=3), "number = 3: must be 1, 2 or None"),
        (lambda: regimes(X[:4], X[:4], number=2), "x has 4 different values: at least 6"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
