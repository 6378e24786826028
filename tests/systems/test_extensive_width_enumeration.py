"""Intervals that bounds rule out hold no solution: the enumeration against a scan of all levels."""

import itertools

import numpy as np
import pytest

from orderparam.gaussian.activations import activation
from orderparam.systems.extensive_width import (
    TANH_2,
    HierarchicalTeacher,
    WeightedTeacher,
    all_solutions,
    channel,
)

RNG = np.random.default_rng(0)
READOUTS = {
    "gaussian": RNG.standard_normal(40),
    "nearly equal": 1 + 1e-6 * RNG.standard_normal(40),
    "three sizes": RNG.choice([1.0, 0.3, 0.01], 40),
}


def stable_errors(readout, nonlinearity, noise, samples, points=801):
    """Errors of all rising zeros of F, from its values at `points` levels between any two kinks."""
    own = channel(nonlinearity)
    power, total = np.sort(readout**2)[::-1], float(own.total)
    kinks = float(own.bayes.threshold) - np.log(power)
    low, high = np.log(samples / (noise + total * power.sum())), np.log(samples / noise)
    ends = [low - 1e-3, *kinks[(kinks > low - 1e-3) & (kinks < high + 1e-3)], high + 1e-3]
    found = []
    for a, b in itertools.pairwise(ends):
        learned = int(np.sum(kinks < (a + b) / 2))
        level = np.linspace(a, b, points)
        w = own.state(level[:, None] + np.log(power), own.bayes).unexplained[:, :learned]
        rest = np.exp(level) * (noise + total * power[learned:].sum())
        excess = np.asarray(w).sum(axis=1) + rest - samples
        for i in np.flatnonzero((excess[:-1] < 0) & (excess[1:] >= 0)):
            share = -excess[i] / (excess[i + 1] - excess[i])
            found.append(samples * np.exp(-(level[i] + share * (level[i + 1] - level[i]))) - noise)
    return np.sort(found)


@pytest.mark.parametrize("name", READOUTS)
@pytest.mark.parametrize("nonlinearity", [TANH_2, activation("sign")], ids=["tanh", "sign"])
def test_no_solution_is_ruled_out(name, nonlinearity):
    for noise, n_train in ((0.1, 3e3), (0.01, 2e4), (1e-4, 1e4), (1e-3, 1e5)):
        teacher = WeightedTeacher(100, READOUTS[name], noise, n_train, activation=nonlinearity)
        found = all_solutions(teacher)
        errors = np.sort(np.asarray(found.error)[np.asarray(found.stable)])
        expected = stable_errors(READOUTS[name], nonlinearity, noise, n_train / 100)
        np.testing.assert_allclose(errors, expected, rtol=1e-4, atol=1e-7)


def test_twelve_solutions_are_all_found():
    """They are solved in more than one call of a compiled program."""
    teacher = HierarchicalTeacher(100, 60, decay=0.4, noise=1e-3, n_train=8241.22)
    found = all_solutions(teacher)
    assert len(found.error) == 12
    assert np.all(found.converged)
    readout = np.asarray(teacher.readout)
    expected = stable_errors(readout, teacher.activation, 1e-3, 82.4122)
    errors = np.sort(np.asarray(found.error)[np.asarray(found.stable)])
    np.testing.assert_allclose(errors, expected, rtol=1e-4)
