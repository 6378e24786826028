"""Spins: exact numbers of the mean-field magnet and of the square-lattice Ising model, finite and
infinite."""

import jax
import numpy as np
import pytest

from orderparam.systems.spins import (
    CRITICAL_BINDER,
    CRITICAL_TEMPERATURE,
    IsingLattice,
    MeanFieldMagnet,
    critical_correlation,
    enumerated,
    exact_magnet,
    kaufman,
    mean_field,
    metropolis,
    onsager,
    swendsen_wang,
)

MEAN_FIELD = {  # beta, h -> m, ln Z / N
    (0.8, 0.1): (0.3336196158, 0.7076252927),
    (1.2, 0.0): (0.6585696604, 0.7172467939),
    (1.5, 0.0): (0.8585596366, 0.8083413494),
    (2.0, 0.0): (0.9575040241, 1.0196710680),
}
INFINITE = {  # T -> m, u, c, f
    1.5: (0.98649960, -1.95111657, 0.19727454, -2.00844319),
    2.0: (0.91131938, -1.74556458, 0.72487145, -2.05158563),
    2.2: (0.78475513, -1.54648914, 1.41427769, -2.09074610),
    2.26: (0.61337081, -1.44096860, 2.41803802, -2.10689494),
    2.3: (0.0, -1.34286639, 1.82236869, -2.11962890),
    2.5: (0.0, -1.10607920, 0.86169836, -2.19840955),
    3.0: (0.0, -0.81730959, 0.40137958, -2.44764820),
}
TORUS = {  # L, T -> ln Z / N, u: Kaufman's formula and its derivative in 50-digit arithmetic
    (8, 2.0): (1.03663409186, -1.74568317029),
    (8, CRITICAL_TEMPERATURE): (0.939715324829, -1.49158910744),
    (8, 2.5): (0.884365449382, -1.22232064325),
    (16, 2.0): (1.02850082201, -1.74553066899),
    (16, CRITICAL_TEMPERATURE): (0.932196314981, -1.45306485281),
    (16, 2.5): (0.87980018264, -1.13131798441),
    (32, CRITICAL_TEMPERATURE): (0.930320390184, -1.43365846615),
    (32, 2.5): (0.879373347425, -1.10729166098),
    (64, CRITICAL_TEMPERATURE): (0.929851631694, -1.42393838983),
    (64, 2.5): (0.879363835298, -1.10608299247),
}
FOUR = {  # T -> ln Z, u, <|m|>, <m^2>, U4, c of the 4 x 4 torus
    2.0: (17.1053671187, -1.75538029, 0.91894327, 0.86892168, 0.64481079, 0.60553266),
    CRITICAL_TEMPERATURE: (
        15.5219154588,
        -1.56562379,
        0.84386044,
        0.76135891,
        0.61719932,
        0.78326683,
    ),
    3.0: (13.2810334556, -1.01706963, 0.60129133, 0.45098814, 0.48054066, 0.60313471),
}


def digits(found, wanted, decimals):
    """Equal to so many printed decimals."""
    np.testing.assert_allclose(
        np.asarray(found, float), wanted, rtol=0, atol=0.51 * 10.0**-decimals
    )


@pytest.mark.parametrize(("beta", "field"), MEAN_FIELD)
def test_mean_field_magnetisation_and_free_entropy(beta, field):
    found = mean_field(MeanFieldMagnet(1 / beta, field))
    digits([found.magnetisation, -beta * found.free_energy], MEAN_FIELD[beta, field], 10)
    assert found.converged


def test_exact_sums_over_magnetisations():
    cold, critical, tilted = (
        exact_magnet(MeanFieldMagnet(1 / b, h, 100))
        for b, h in ((1.2, 0.0), (1.0, 0.0), (0.8, 0.1))
    )
    names = ("absolute_magnetisation", "squared_magnetisation", "binder")
    digits(-1.2 * cold.free_energy, 0.73080482, 8)
    digits([getattr(cold, name) for name in names], (0.59219801, 0.38223046, 0.58881299), 8)
    digits(-critical.free_energy, 0.70786277, 8)
    digits([getattr(critical, name) for name in names], (0.28679641, 0.11448105, 0.30558465), 8)
    digits([-0.8 * tilted.free_energy, tilted.magnetisation], (0.71384703, 0.30768485), 8)
    large = exact_magnet(MeanFieldMagnet(1 / 1.2, 0.0, 1000))
    digits([large.absolute_magnetisation, large.binder], (0.65401872, 0.66103380), 8)


def test_critical_moments_of_the_mean_field_magnet():
    """Corrections fall as N^(-1/2): the rest of the correction is of order 1/N once two sizes are
    combined."""
    digits(CRITICAL_BINDER, 0.270520128, 9)
    found = {n: exact_magnet(MeanFieldMagnet(1.0, 0.0, n)) for n in (10_000, 1_000_000)}
    assert abs(found[1_000_000].binder - CRITICAL_BINDER) < 0.11 * abs(
        found[10_000].binder - CRITICAL_BINDER
    )
    scaled = {n: np.sqrt(n) * float(r.squared_magnetisation) for n, r in found.items()}
    np.testing.assert_allclose(
        (10 * scaled[1_000_000] - scaled[10_000]) / 9, 1.170828657, rtol=1e-5
    )


@pytest.mark.parametrize("temperature", INFINITE)
def test_the_infinite_square_lattice(temperature):
    found = onsager(IsingLattice(temperature))
    values = [found.absolute_magnetisation, found.energy, found.heat_capacity, found.free_energy]
    digits(values, INFINITE[temperature], 8)


def test_the_critical_point():
    digits(CRITICAL_TEMPERATURE, 2.269185314213022, 15)
    digits(onsager(IsingLattice(CRITICAL_TEMPERATURE)).energy, -np.sqrt(2), 12)


@pytest.mark.parametrize(("length", "temperature"), TORUS)
def test_the_torus(length, temperature):
    found = kaufman(IsingLattice(temperature, (length, length)))
    digits([-found.free_energy / temperature, found.energy], TORUS[length, temperature], 11)


@pytest.mark.parametrize("temperature", FOUR)
def test_all_configurations_of_the_smallest_torus(temperature):
    found = enumerated(IsingLattice(temperature, (4, 4)))
    log_sum, *rest = FOUR[temperature]
    digits(-16 * found.free_energy / temperature, log_sum, 10)
    names = ("energy", "absolute_magnetisation", "squared_magnetisation", "binder", "heat_capacity")
    digits([getattr(found, name) for name in names], rest, 8)


def test_diagonal_correlations_at_the_critical_point():
    found = critical_correlation(IsingLattice(CRITICAL_TEMPERATURE), reach=1000)
    chosen = found.correlation[np.array([1, 2, 5, 10, 100, 1000]) - 1]
    digits(
        chosen,
        (0.6366197724, 0.5403796461, 0.4310722531, 0.3626550031, 0.2039673647, 0.1146994556),
        10,
    )
    digits(chosen[-1] * (1000 * np.sqrt(2)) ** 0.25, 0.703380, 6)


def test_the_heat_capacity_is_the_slope_of_the_energy():
    infinite = IsingLattice(2.2)
    slope = jax.grad(lambda t: onsager(infinite.with_(temperature=t)).energy)(2.2)
    np.testing.assert_allclose(slope, onsager(infinite).heat_capacity, rtol=1e-11)


def within(value, error, wanted, wanted_error):
    assert abs(float(value) - wanted) < 4 * np.hypot(float(error), wanted_error)


def test_critical_moments_of_a_large_torus():
    """<|m|> L^(1/8) = 1.0092, <m^2> L^(1/4) = 1.0928 and U4 = 0.61069 for L to infinity
    (Kamieniarz, Bloete 1993)."""
    found = swendsen_wang(
        IsingLattice(CRITICAL_TEMPERATURE, (48, 48)), jax.random.key(0), replicas=8, sweeps=4000
    )
    assert found.converged
    power = 48**0.125
    within(
        power * found.absolute_magnetisation,
        power * found.absolute_magnetisation_error,
        1.0092,
        2e-4,
    )
    within(
        power**2 * found.squared_magnetisation,
        power**2 * found.squared_magnetisation_error,
        1.0928,
        2e-4,
    )
    within(found.binder, found.binder_error, 0.61069, 2e-4)


def test_metropolis_against_another_program():
    """32 x 32, 16 replicas of 2000 sweeps there."""
    cold, hot = (
        metropolis(IsingLattice(t, (32, 32)), jax.random.key(1), sweeps=1000) for t in (2.0, 2.5)
    )
    within(cold.absolute_magnetisation, cold.absolute_magnetisation_error, 0.9113, 4e-4)
    within(cold.energy, cold.energy_error, -1.7456, 6e-4)
    within(hot.energy, hot.energy_error, -1.1083, 1e-3)
