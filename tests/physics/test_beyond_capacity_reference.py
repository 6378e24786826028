"""Perceptrons beyond their capacity: numbers computed with other programs, limits, and couplings of
small perceptrons."""

import jax
import numpy as np
import pytest

from orderparam.systems.storage_capacity import (
    BinaryPatterns,
    SphericalPatterns,
    ThermalPatterns,
    binary_capacity,
    binary_minimal_error,
    broken_capacity,
    broken_minimal_error,
    broken_thermal_errors,
    capacity,
    minimal_error,
    thermal_couplings,
    thermal_errors,
)

# load, margin: smallest share of errors in one and in two steps
ERRORS = {
    (2.5, 0.0): (0.01787899, 0.01790748),
    (3.0, 0.0): (0.03909753, 0.03918227),
    (4.0, 0.0): (0.07736790, 0.07760152),
    (6.0, 0.0): (0.13359744, 0.13414547),
    (2.0, 0.5): (0.11608942, 0.11621950),
    (1.0, 1.0): (0.13575841, 0.13582728),
}
# load: gap, first overlap and height of one step without a margin
ONE_STEP = {
    3.0: (np.sqrt(2 * 0.369692), 0.78727, 5.70831),
    4.0: (np.sqrt(2 * 0.162429), 0.77550, 4.48249),
    6.0: (np.sqrt(2 * 0.066390), 0.77586, 3.49221),
}


@pytest.mark.parametrize(("load", "margin"), ERRORS)
def test_fewest_errors_in_one_and_two_steps(load, margin):
    system = SphericalPatterns(load, margin)
    one, two = (broken_minimal_error(system, steps=k) for k in (1, 2))
    assert one.converged
    assert two.converged
    found = np.array([one.error_fraction, two.error_fraction])
    np.testing.assert_allclose(found, ERRORS[load, margin], atol=7e-9)
    # every step raises the bound, and less than the one before
    symmetric = minimal_error(system).error_fraction
    assert 0 < two.error_fraction - one.error_fraction < 0.1 * (one.error_fraction - symmetric)
    assert two.stationarity < one.stationarity


@pytest.mark.parametrize("load", ONE_STEP)
def test_gap_overlap_and_height_of_one_step(load):
    found = broken_minimal_error(SphericalPatterns(load), steps=1)
    numbers = [found.gap, found.overlaps[0], found.heights[0]]
    np.testing.assert_allclose(np.array(numbers), ONE_STEP[load], rtol=4e-6)


def test_three_steps_at_load_four():
    found = broken_minimal_error(SphericalPatterns(4.0), steps=3)
    np.testing.assert_allclose(found.error_fraction, 0.07762912, atol=7e-9)
    np.testing.assert_allclose(found.gap, 0.4727, atol=5e-5)


def test_no_errors_below_the_capacity():
    found = broken_minimal_error(SphericalPatterns(1.5), steps=1)
    assert found.converged
    assert found.error_fraction == 0


def test_fewest_errors_have_a_derivative():
    def errors(load):
        return broken_minimal_error(SphericalPatterns(load), steps=1).error_fraction

    slope = (errors(4.01) - errors(3.99)) / 0.02
    np.testing.assert_allclose(jax.grad(errors)(4.0), slope, rtol=1e-5)


# margin: capacity in one and in two steps
NEGATIVE = {
    -0.5: (4.7001395, 4.6972364),
    -1.0: (12.3196343, 12.2872222),
    -1.5: (36.5667619, 36.3984030),
}


@pytest.mark.parametrize("margin", NEGATIVE)
def test_capacity_at_a_negative_margin(margin):
    system = SphericalPatterns(margin=margin)
    found = [broken_capacity(system, steps=k) for k in (1, 2)]
    assert all(one.converged for one in found)
    np.testing.assert_allclose([one.capacity for one in found], NEGATIVE[margin], rtol=2e-8)
    assert found[1].capacity < found[0].capacity < capacity(system).capacity


# load, margin: beta_c, overlap, error fraction of binary couplings
BINARY = {
    (0.9, 0.0): (6.77773767, 0.55027013, 0.00977693),
    (1.0, 0.0): (5.34470908, 0.54143912, 0.02626768),
    (1.2, 0.0): (4.17167737, 0.53278591, 0.05731396),
    (2.0, 0.0): (2.68538482, 0.52180944, 0.14363158),
    (4.0, 0.0): (1.72872104, 0.51610628, 0.24175368),
    (6.0, 0.0): (1.37449076, 0.51448714, 0.28753819),
    (1.0, 0.5): (3.76699989, 0.54772012, 0.18604187),
}


@pytest.mark.parametrize(("load", "margin"), BINARY)
def test_fewest_errors_of_binary_couplings(load, margin):
    found = binary_minimal_error(BinaryPatterns(load, margin))
    assert found.converged
    numbers = [1 / found.temperature, found.overlap, found.error_fraction]
    np.testing.assert_allclose(np.array(numbers), BINARY[load, margin], atol=1.5e-8)


def test_binary_errors_begin_at_the_capacity():
    limit = float(binary_capacity(BinaryPatterns()).capacity)
    assert binary_minimal_error(BinaryPatterns(0.99 * limit)).error_fraction == 0
    assert 0 < binary_minimal_error(BinaryPatterns(1.01 * limit)).error_fraction < 2e-3


# temperature: error fraction and overlap at load 4, replica symmetric
WARM = {
    1.0: (0.30803680, 0.30195240),
    0.6: (0.24077220, 0.47945395),
    0.5: (0.21686861, 0.54259913),
    0.4: (0.18889591, 0.61531405),
    0.3: (0.15648453, 0.69813378),
}
# load: temperature below which replica symmetry is unstable
UNSTABLE = {2.5: 0.1753522, 3.0: 0.2122859, 4.0: 0.2702372, 6.0: 0.3580127}


@pytest.mark.parametrize("temperature", WARM)
def test_errors_at_a_temperature(temperature):
    found = thermal_errors(ThermalPatterns(4.0, temperature))
    assert found.converged
    numbers = [found.error_fraction, found.overlap]
    np.testing.assert_allclose(np.array(numbers), WARM[temperature], atol=6e-9)
    slope = jax.grad(lambda t: thermal_errors(ThermalPatterns(4.0, t)).free_energy / t, argnums=0)(
        temperature
    )
    np.testing.assert_allclose(-slope * temperature**2 / 4, found.error_fraction, rtol=1e-7)


@pytest.mark.parametrize("load", UNSTABLE)
def test_where_replica_symmetry_is_unstable(load):
    found = thermal_errors(ThermalPatterns(load, UNSTABLE[load]))
    np.testing.assert_allclose(found.stability, 0, atol=1e-6)


def test_a_cold_perceptron_in_two_steps():
    """Three steps have -beta f = -4.49028609 and 0.12335611 errors; fewer steps more free
    energy."""
    found = broken_thermal_errors(ThermalPatterns(4.0, 0.2), steps=2)
    assert found.converged
    exponent = -float(found.free_energy) / 0.2
    assert -4.49028609 < exponent < -4.4899
    np.testing.assert_allclose(found.error_fraction, 0.12335611, atol=3e-5)


def test_chains_at_a_temperature_meet_the_theory():
    system = ThermalPatterns(4.0, 0.75, input_dim=24)
    found = thermal_couplings(system, jax.random.key(1), samples=32, sweeps=600, copies=4)
    assert found.converged
    expected = thermal_errors(system).error_fraction
    assert abs(found.error_fraction - expected) < 3.5 * found.error_fraction_error + 0.003


def test_chains_of_two_inputs_have_their_exact_equilibrium():
    """On a circle the share of errors is a sum over the arcs between the patterns."""
    system = ThermalPatterns(4.0, 0.7, input_dim=2)
    key, samples = jax.random.key(5), 8
    found = thermal_couplings(system, key, samples=samples, sweeps=20_000, copies=2)
    patterns = np.asarray(jax.random.normal(jax.random.split(key, 3)[0], (samples, 8, 2)))
    angle = (np.arange(200_000) + 0.5) * 2 * np.pi / 200_000
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    shares = []
    for sample in patterns:
        errors = np.sum(points @ sample.T < 0, axis=1)
        weight = np.exp(-errors / 0.7)
        shares.append(weight @ errors / weight.sum() / 8)
    np.testing.assert_allclose(found.error_fraction, np.mean(shares), atol=0.004)


@pytest.mark.parametrize(
    "call",
    [
        lambda: broken_minimal_error(SphericalPatterns(3.0), steps=0),
        lambda: broken_minimal_error(SphericalPatterns(3.0, bias=0.2)),
        lambda: broken_capacity(SphericalPatterns(margin=0.0)),
        lambda: broken_thermal_errors(ThermalPatterns(), steps=9),
        lambda: thermal_couplings(ThermalPatterns(margin=0.2), jax.random.key(0)),
        lambda: thermal_couplings(ThermalPatterns(), jax.random.key(0), samples=1),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(ValueError, match="must be"):
        call()
