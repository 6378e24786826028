"""The mean-field magnet: exact solutions against one another, simulations against them, and
refusals."""

import jax
import numpy as np
import pytest
from deviations import MOMENTS, deviations

from orderparam.systems.spins import (
    MeanFieldMagnet,
    exact_magnet,
    glauber,
    landau,
    mean_field,
    spinodal,
)


@pytest.mark.parametrize("branch", ["stable", "metastable", "unstable"])
def test_branches_are_stationary_points_of_the_landau_function(branch):
    temperature, field = 0.6, -0.1
    found = mean_field(MeanFieldMagnet(temperature, field), branch=branch)
    m = float(found.magnetisation)
    np.testing.assert_allclose(m, np.tanh((m + field) / temperature), atol=1e-13)
    entropy = -sum(p * np.log(p) for p in ((1 + m) / 2, (1 - m) / 2))
    np.testing.assert_allclose(
        found.free_energy, -(m**2) / 2 - field * m - temperature * entropy, rtol=1e-12
    )
    assert (found.susceptibility > 0) == (branch != "unstable")
    assert (m < 0) == (branch == "stable")


def test_branches_have_the_right_derivatives():
    system = MeanFieldMagnet(0.7, 0.05)
    for branch in ("stable", "metastable"):
        found = mean_field(system, branch=branch)
        slope = jax.grad(lambda s, b=branch: mean_field(s, branch=b).free_energy)(system)
        sign = -1 if branch == "metastable" else 1
        np.testing.assert_allclose(slope.field, -found.magnetisation, rtol=1e-10)
        energy = jax.grad(lambda s, b=branch: mean_field(s, branch=b).energy)(system)
        np.testing.assert_allclose(energy.temperature, found.heat_capacity, rtol=1e-10)
        assert sign * found.magnetisation > 0


def test_the_metastable_branch_ends_at_the_spinodal():
    edge = spinodal(MeanFieldMagnet(0.6))
    fields = [factor * float(edge.spinodal_field) for factor in (1 - 1e-9, 1.01)]
    inside, outside = (
        mean_field(MeanFieldMagnet(0.6, field), branch="metastable") for field in fields
    )
    np.testing.assert_allclose(-inside.magnetisation, edge.magnetisation, rtol=1e-4)
    assert inside.valid
    assert not outside.valid
    assert np.isnan(outside.magnetisation)
    assert not spinodal(MeanFieldMagnet(1.2)).valid


def test_the_landau_function_and_its_expansion():
    found = landau(MeanFieldMagnet(0.9, 0.01))
    difference = np.asarray(found.landau_function - found.expansion)
    m = np.asarray(found.order_parameter)
    small = np.abs(m) < 0.25
    # the next orders
    np.testing.assert_allclose(difference[small], 0.9 * (m**6 / 30 + m**8 / 56)[small], atol=1e-7)
    lowest = m[np.argmin(np.asarray(found.landau_function))]
    assert abs(lowest - float(mean_field(MeanFieldMagnet(0.9, 0.01)).magnetisation)) < 0.006


def test_exact_sums_approach_the_limit_and_keep_the_symmetry():
    up, down, limit = (
        exact_magnet(MeanFieldMagnet(0.8, 0.1, 4000)),
        exact_magnet(MeanFieldMagnet(0.8, -0.1, 4000)),
        mean_field(MeanFieldMagnet(0.8, 0.1)),
    )
    np.testing.assert_allclose(up.magnetisation, -down.magnetisation, rtol=1e-10)
    np.testing.assert_allclose(
        [up.magnetisation, up.heat_capacity], [limit.magnetisation, limit.heat_capacity], rtol=2e-3
    )
    np.testing.assert_allclose(up.free_energy, limit.free_energy, atol=5e-4)


@pytest.mark.parametrize(("temperature", "field", "spins"), [(1.0, 0.0, 100), (1.3, 0.2, 40)])
def test_heat_bath_dynamics(temperature, field, spins):
    system = MeanFieldMagnet(temperature, field, spins)
    found = deviations(lambda key: glauber(system, key), exact_magnet(system), MOMENTS)
    assert max(map(abs, found.values())) < 4, found


def test_heat_bath_against_the_field_stays_metastable():
    system = MeanFieldMagnet(0.6, 0.05, 1000)
    found = glauber(system, jax.random.key(0), start="against")
    assert abs(found.magnetisation - mean_field(system, branch="metastable").magnetisation) < 0.01


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: MeanFieldMagnet(1.0, 0.0, 1),
            r"MeanFieldMagnet.spins = 1: must be an integer >= 2",
        ),
        (
            lambda: mean_field(MeanFieldMagnet(1.0), branch="stabel"),
            "branch = 'stabel': must be one of",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
