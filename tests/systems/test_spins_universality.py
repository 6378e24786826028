"""The Potts model and the scalar field near their critical points, and the numbers that they
share."""

import itertools

import jax
import numpy as np
import pytest
import xarray as xr

from orderparam.systems.spins import (
    PottsLattice,
    ScalarField,
    critical_field,
    critical_potts,
    field_clusters,
    ising_universality,
)
from orderparam.systems.spins.universality.studies import exponent

NAMES = (
    "binder",
    "binder_slope",
    "squared_magnetisation",
    "structure_factor",
    "relative_length",
)


def enumerated(system):
    """The same averages as sums over all configurations of 3 x 3 sites."""
    states, length, step = system.states, system.length, 1e-5
    spins = np.array(list(itertools.product(range(states), repeat=length**2)))
    spins = spins.reshape(-1, length, length)
    equal = sum(
        np.sum(spins == np.roll(spins, (-down, -right), (1, 2)), axis=(1, 2))
        for down, right in system.steps
    )
    order = np.exp(2j * np.pi * spins / states)  # corners of a triangle, or two signs
    modulus = np.abs(order.mean((1, 2)))
    wave = np.exp(2j * np.pi * np.arange(length) / length)
    along = [np.abs(np.sum(order * turn, axis=(1, 2))) ** 2 for turn in (wave, wave[:, None])]
    structure = sum(along) / (2 * length**2)
    gaussian = 1 + 2 / (states - 1)

    def averages(coupling):
        weight = np.exp(coupling * (equal - equal.max()))
        weight /= weight.sum()
        second = weight @ modulus**2
        binder = 1 - weight @ modulus**4 / (gaussian * second**2)
        return binder, second, weight @ structure

    binder, second, wavy = averages(system.coupling)
    slope = (averages(system.coupling + step)[0] - averages(system.coupling - step)[0]) / (2 * step)
    relative = np.sqrt(second * length**2 / wavy - 1) / (2 * length * np.sin(np.pi / length))
    return binder, slope, second, wavy, relative


@pytest.mark.parametrize(("states", "diagonals"), [(2, False), (2, True), (3, False)])
def test_clusters_reproduce_the_sum_over_all_configurations(states, diagonals):
    system = PottsLattice(0.6, 3, states, diagonals)
    runs = critical_potts(system, jax.random.key(1), replicas=8, sweeps=8000)
    assert runs.converged
    for name, exact in zip(NAMES, enumerated(system)):
        value, error = float(getattr(runs, name)), float(getattr(runs, f"{name}_error"))
        assert 0 < error < 0.05 * abs(exact) + 0.005, name
        assert abs(value - exact) < 4 * error, name


def test_the_slope_of_the_field_is_that_of_its_binder_ratio():
    """Against runs at two masses, which have an estimator of their own."""
    system, step = ScalarField(-3.6, 1.0, (6, 6)), 0.2
    runs = critical_field(system, jax.random.key(0), replicas=8, sweeps=6000)
    beside = [
        field_clusters(
            system.with_(mass=system.mass + side), jax.random.key(1), replicas=8, sweeps=6000
        )
        for side in (-step, 0.0, step)
    ]
    middle = beside[1]
    error = np.hypot(float(runs.binder_error), float(middle.binder_error))
    assert abs(float(runs.binder - middle.binder)) < 4 * error
    slope = float(beside[2].binder - beside[0].binder) / (2 * step)
    spread = np.hypot(float(beside[0].binder_error), float(beside[2].binder_error)) / (2 * step)
    # the third derivative changes the difference by a few per cent
    assert abs(float(runs.binder_slope) - slope) < 4 * np.hypot(
        spread, float(runs.binder_slope_error)
    ) + 0.05 * abs(slope)
    assert slope < -0.05


def test_the_critical_torus_has_the_universal_correlation_length():
    found = ising_universality(PottsLattice(0.88, 32))
    assert float(found.relative_length) == pytest.approx(0.9050488292, abs=1e-9)  # Salas, Sokal
    assert bool(found.valid)
    assert not bool(ising_universality(PottsLattice(1.0, 32, states=3)).valid)


def test_systems_and_shapes_that_are_refused():
    with pytest.raises(ValueError, match="two equal lengths"):
        critical_field(ScalarField(-1.0, 1.0, (4, 6)), jax.random.key(0))
    with pytest.raises(ValueError, match="two equal lengths"):
        ising_universality(ScalarField(-1.0, 1.0, (4,)))
    with pytest.raises(ValueError, match=r"PottsLattice\.length = 2"):
        PottsLattice(1.0, 2)
    assert np.isnan(PottsLattice(1.0, 8, states=3, diagonals=True).critical_coupling)


def test_the_fit_of_an_exponent_removes_the_leading_correction():
    lengths = np.array([16.0, 32.0, 64.0, 128.0])
    spread = 1e-4 * np.array([-1.0, 0.0, 1.0])[:, None]
    values = lengths**-0.25 * np.exp(5 * lengths**-1.75) * (1 + spread)
    with_correction = exponent(lengths, xr.DataArray(values, dims=("seed", "length")), 1.75)
    without = exponent(lengths[:3], xr.DataArray(values[:, :3], dims=("seed", "length")), 1.75)
    assert with_correction[0] == pytest.approx(-0.25, abs=1e-9)
    assert without[0] < -0.26
    assert without[1] > 0.01  # the points scatter about a straight line by more than their errors


def test_an_exponent_of_one_length_or_one_run():
    one_run = xr.DataArray([[8.0, 4.0]], dims=("seed", "length"))
    power, half = exponent(np.array([16.0, 32.0]), one_run, 1.75)
    assert power == pytest.approx(-1)
    assert 0 < half < 0.01
    assert np.isnan(exponent(np.array([16.0]), one_run[:, :1], 1.75)).all()
