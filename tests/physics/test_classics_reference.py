"""Classics of associative memory: parallel dynamics in equilibrium, and couplings of neurons to
themselves, against numbers computed with other programs.
"""

import numpy as np
import pytest

from orderparam.systems.associative_memory import (
    Hopfield,
    OptimalStability,
    overlaps,
    replica_symmetric,
    self_coupled_step,
    synchronous_state,
    zero_temperature,
)

# load, temperature: m, q and t_0 without and with the diagonal of Hebb's rule
PARALLEL = {
    (0.05, 0.5): ((0.90798381, 0.83915197, 0.83981849), (0.93145735, 0.87599501, 0.88020361)),
    (0.1, 0.3): ((0.95560266, 0.93623149, 0.93671742), (0.97910198, 0.96839656, 0.97335801)),
    (0.02, 0.6): ((0.88106839, 0.78220757, 0.78253086), (0.89155260, 0.79969092, 0.80180601)),
    (0.08, 0.2): ((0.99545374, 0.99239898, 0.99240030), (0.99747754, 0.99595490, 0.99655174)),
}
# simulation of 1,500 spins, three samples, 190 sweeps: m and its standard error
SIMULATED = {
    (0.05, 0.5): ((0.9122, 0.0015), (0.9366, 0.0053)),
    (0.1, 0.3): ((0.9539, 0.0023), (0.9745, 0.0020)),
    (0.02, 0.6): ((0.8836, 0.0034), (0.8940, 0.0022)),
}


@pytest.mark.parametrize(("load", "temperature"), PARALLEL)
@pytest.mark.parametrize("diagonal", [False, True])
def test_parallel_dynamics_in_equilibrium(load, temperature, diagonal):
    found = synchronous_state(Hopfield(load, temperature), diagonal=diagonal)
    assert found.converged
    numbers = [found.overlap, found.self_overlap, found.return_overlap]
    expected = PARALLEL[load, temperature][diagonal]
    np.testing.assert_allclose(np.array(numbers), expected, atol=6e-9)
    if (load, temperature) in SIMULATED:
        mean, error = SIMULATED[load, temperature][diagonal]
        assert abs(float(found.overlap) - mean) < 4 * error


def test_the_pressure_of_parallel_dynamics():
    found = synchronous_state(Hopfield(0.05, 0.5)).pressure
    np.testing.assert_allclose(found, 2.0674342238, atol=1e-9)
    found = synchronous_state(Hopfield(0.1, 0.3), diagonal=True).pressure
    np.testing.assert_allclose(found, 3.6824119864, atol=1e-9)


def test_parallel_and_sequential_dynamics_agree_where_there_is_one_pattern_or_no_temperature():
    # few patterns: m = tanh(m/T) both ways
    found = synchronous_state(Hopfield(1e-7, 0.5)).overlap
    np.testing.assert_allclose(found, replica_symmetric(Hopfield(1e-7, 0.5)).overlap, atol=1e-6)
    cold = synchronous_state(Hopfield(0.1, 0.05)).overlap
    np.testing.assert_allclose(cold, zero_temperature(Hopfield(0.1)).overlap, atol=1e-3)
    assert not synchronous_state(Hopfield(0.3, 0.5)).valid


def test_parallel_dynamics_is_refused_too_cold():
    with pytest.raises(ValueError, match="temperature"):
        synchronous_state(Hopfield(0.1, 0.0))


# load, m: overlap after a step with couplings 0, 0.5 and 1 of a neuron to itself
OWN = {
    (0.5, 0.3): (0.27249411, 0.35224326, 0.36399458),
    (0.5, 0.5): (0.47446462, 0.59220758, 0.59665258),
    (0.5, 0.8): (0.84769359, 0.92431701, 0.88277636),
    (1.0, 0.5): (0.29337789, 0.45334691, 0.51558227),
    (1.0, 0.8): (0.57193785, 0.80053964, 0.83278281),
}
# simulation of 200 neurons at load 0.5, with standard errors
MEASURED = {
    0.3: ((0.2722, 0.3536, 0.3626), 0.0013),
    0.5: ((0.4747, 0.5919, 0.5940), 0.0016),
    0.8: ((0.8441, 0.9220, 0.8825), 0.0007),
}


@pytest.mark.parametrize(("load", "start"), OWN)
def test_a_step_of_neurons_that_feel_themselves(load, start):
    system = OptimalStability(load, start)
    found = [self_coupled_step(system, coupling=j).overlap for j in (0.0, 0.5, 1.0)]
    np.testing.assert_allclose(found, OWN[load, start], atol=6e-9)
    np.testing.assert_allclose(found[0], overlaps(system, steps=1).overlap[1], rtol=1e-12)
    if load == 0.5:
        # 200 neurons differ from the limit by half a per cent
        measured, error = MEASURED[start]
        np.testing.assert_allclose(found, measured, atol=4 * error + 0.005 * start)
