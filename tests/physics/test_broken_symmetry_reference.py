"""The spin glass of Sherrington and Kirkpatrick against published numbers, and numbers computed
with other programs."""

import numpy as np
import pytest

from orderparam.systems.broken_symmetry import (
    SpinGlass,
    at_line,
    equilibrium,
    ground_state,
    symmetric,
)

GROUND = -0.763166726  # Oppermann, Schmidt 2008
# ground-state energies with symmetry broken in so many steps
STEPS = {0: -0.797884561, 1: -0.765259435, 2: -0.763608011, 3: -0.763313481}


@pytest.mark.parametrize("steps", STEPS)
def test_ground_state_in_so_many_steps(steps):
    found = ground_state(SpinGlass(), steps=steps)
    assert found.converged
    np.testing.assert_allclose(found.ground_energy, STEPS[steps], atol=1e-9)
    assert found.ground_energy < GROUND  # a lower bound


def test_one_and_two_steps_have_the_known_overlaps_and_heights():
    one, two = (ground_state(SpinGlass(), steps=k) for k in (1, 2))
    np.testing.assert_allclose(one.overlaps, [0.47678], atol=5e-6)
    np.testing.assert_allclose(one.heights, [1.36082], atol=5e-6)
    np.testing.assert_allclose(two.overlaps, [0.3214, 0.8495], atol=5e-5)
    np.testing.assert_allclose(two.heights, [0.83504, 2.74041], atol=5e-5)
    assert two.stationarity < one.stationarity


def test_parisis_equation_has_the_published_ground_state():
    found = ground_state(SpinGlass(), steps=16)
    assert found.converged
    np.testing.assert_allclose(found.ground_energy, GROUND, atol=2.5e-6)
    assert found.ground_energy < GROUND


# temperature: free energy, energy, entropy, <q^2> with four steps (three at 0.8)
AT = {
    0.8: (-0.86511451, -0.59744992, 0.334581, 0.044080),
    0.5: (-0.79117804, -0.71146459, 0.159427, 0.288535),
    0.3: (-0.76951886, -0.75080809, 0.062369, 0.549515),
}


@pytest.mark.parametrize("temperature", AT)
def test_equilibrium_below_the_transition(temperature):
    found = equilibrium(SpinGlass(temperature), steps=3)
    assert found.converged
    free, energy, entropy, square = AT[temperature]
    # three steps are a lower bound of four, by less than 1e-5
    assert free - 1e-5 < found.free_energy < free + 1e-8
    np.testing.assert_allclose(found.energy, energy, atol=6e-5)
    np.testing.assert_allclose(found.entropy, entropy, atol=2e-4)
    np.testing.assert_allclose(found.overlap_square, square, atol=4e-5)
    # Parisi, Toulouse
    np.testing.assert_allclose(found.mean_overlap, 1 - temperature, rtol=4e-3)
    assert found.free_energy > symmetric(SpinGlass(temperature)).free_energy


def test_above_the_transition_all_theories_are_the_paramagnet():
    temperature = 1.25
    exact = -temperature * np.log(2) - 1 / (4 * temperature)
    for found in (equilibrium(SpinGlass(temperature)), symmetric(SpinGlass(temperature))):
        assert found.converged
        np.testing.assert_allclose(found.free_energy, exact, rtol=1e-8)
        np.testing.assert_allclose(found.energy, -1 / (2 * temperature), rtol=1e-7)


def test_the_symmetric_entropy_at_low_temperature_is_the_known_negative_one():
    # Sherrington, Kirkpatrick 1975: -1/(2 pi) at T = 0
    np.testing.assert_allclose(symmetric(SpinGlass(0.05)).entropy, -1 / (2 * np.pi), atol=0.06)
    assert equilibrium(SpinGlass(0.2)).entropy > 0


def test_the_line_of_de_almeida_and_thouless():
    np.testing.assert_allclose(at_line(SpinGlass()).temperature, 1.0)
    # 1 - T = (3/4)^(1/3) h^(2/3) for small fields
    for field in (1e-3, 1e-2):
        found = at_line(SpinGlass(field=field))
        assert found.converged
        expected = (3 / 4) ** (1 / 3) * field ** (2 / 3)
        np.testing.assert_allclose(1 - found.temperature, expected, rtol=0.05)
    # the symmetric solution is marginal there, and below it Parisi's free energy is higher
    line = float(at_line(SpinGlass(field=0.5)).temperature)
    np.testing.assert_allclose(symmetric(SpinGlass(line, 0.5)).stability, 0, atol=1e-9)
    below, above = (
        equilibrium(SpinGlass(factor * line, 0.5)).free_energy
        - symmetric(SpinGlass(factor * line, 0.5)).free_energy
        for factor in (0.7, 1.2)
    )
    assert below > 1e-5
    assert abs(above) < 1e-8
