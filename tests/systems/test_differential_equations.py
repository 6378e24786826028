"""Differential equations: theories against each other, drawn points and trained networks."""

import jax
import numpy as np
import pytest

import orderparam as op
from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.differential_equations import (
    EquationNetwork,
    EquationRegression,
    Operator,
    equation_learning_curve,
    equation_on_grid,
    solved_at_points,
    trained_equation_network,
    wide_equation_network,
)
from orderparam.systems.differential_equations.theory import tangent_spectrum

NETWORK = fully_connected(1, None, "erf_scaled", weight_variance=6.0, bias_variance=(1.0, 0.0))
SIZE, PHASE = np.array([0.1, 0.4, 0.3, 0.2]), np.array([0.0, 1.0, 2.5, 4.0])


def network(shift=0.0, size=1.0, **fields):
    phase = PHASE + np.arange(len(SIZE)) * shift
    words = {"n_points": 7, "operator": Operator(1.0, 0.5, 0.1), "ridge": 0.05, **fields}
    cosines, sines = size * SIZE * np.cos(phase), size * SIZE * np.sin(phase)
    return EquationNetwork(cosines, sines, architecture=NETWORK, **words)


def spectrum(count=64, decay=7.0):
    return (1.0 + np.arange(count)) ** -decay


def test_the_place_of_the_points_averages_to_the_grid():
    shifts = 2 * np.pi / 7 * np.arange(16) / 16  # harmonics of the place below 16: exact
    found = [wide_equation_network(network(shift)) for shift in shifts]
    system = network()
    prior = np.asarray(tangent_spectrum(system))
    power = np.zeros(len(prior))
    power[:4] = SIZE**2 * [1, 0.5, 0.5, 0.5]
    exact = equation_on_grid(EquationRegression(prior, power, 7, system.operator, system.ridge))
    for name in ("equation_error", "solution_error"):
        mean = np.mean([float(getattr(one, name)) for one in found])
        np.testing.assert_allclose(mean, float(getattr(exact, name)), rtol=1e-10)


@pytest.mark.parametrize("domain", ["circle", "interval"])
@pytest.mark.parametrize("points", ["grid", "gaussian"])
def test_drawn_solutions_meet_the_theory(domain, points):
    system = EquationRegression(spectrum(), spectrum(), 12, ridge=0.003, noise=0.01, domain=domain)
    theory = (equation_on_grid if points == "grid" else equation_learning_curve)(system)
    runs = [solved_at_points(system, key, points=points) for key in jax.random.split(KEY, 200)]
    for name in ("equation_error", "solution_error"):
        values = np.array([float(getattr(one, name)) for one in runs])
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - float(getattr(theory, name))) < 4 * error


KEY = jax.random.key(0)


def test_the_solution_is_learned_one_power_faster_than_the_equation():
    law = spectrum(2**15)
    system = EquationRegression(law, law, 500)
    here, there = (equation_learning_curve(system.with_(n_points=n)) for n in (500, 1000))
    for name, exponent in (("equation_error", 2), ("solution_error", 3)):
        slope = np.log2(float(getattr(here, name)) / float(getattr(there, name)))
        np.testing.assert_allclose(slope, exponent, atol=0.05)
    direct = system.with_(operator=Operator(1.0, 0.0, 0.0))
    ends = [equation_learning_curve(direct.with_(n_points=n)).solution_error for n in (500, 1000)]
    np.testing.assert_allclose(np.log2(ends[0] / ends[1]), 6, atol=0.05)


def test_values_of_the_solution_are_an_equation_of_order_0():
    system = EquationRegression(spectrum(), spectrum(), 9, Operator(1.0, 0.0, 0.0), 0.01, 0.1)
    for theory in (equation_learning_curve, equation_on_grid):
        found = theory(system)
        np.testing.assert_allclose(found.equation_error, found.solution_error, rtol=1e-12)


@pytest.mark.parametrize("key", range(4))
def test_more_points_than_modes_give_the_solution_exactly(key):
    system = EquationRegression([1.0, 0.1, 0.01], [0.0, 1.0, 0.5], n_points=8)
    found = solved_at_points(system, jax.random.key(key))
    assert float(found.solution_error) < 1e-20
    # with further modes that nothing uses the kernel matrix is solved instead
    errors = []
    for none in ([], [0.0, 0.0, 0.0]):
        system = EquationRegression([1.0, 0.1, 0.01, *none], [0.0, 1.0, 0.5, *none], 8, ridge=0.3)
        found = solved_at_points(system, jax.random.key(key), points="grid")
        errors.append(float(found.solution_error))
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-10)


def test_what_the_operator_removes_stays_unknown():
    blind = EquationRegression(spectrum(8), spectrum(8), 40, Operator(0.0, 0.0, 1.0))
    for theory in (equation_learning_curve, equation_on_grid):
        np.testing.assert_allclose(theory(blind).solution_error, 1.0, rtol=1e-9)
        np.testing.assert_allclose(theory(blind).equation_error, 0.0, atol=1e-12)


def test_speed_changes_the_gain_of_a_wave_but_not_its_kernel():
    """On the circle the direction of the flow does not matter, and its size does."""
    ahead, back, still = (
        equation_on_grid(EquationRegression(spectrum(), spectrum(), 9, Operator(1.0, v, 0.1)))
        for v in (2.0, -2.0, 0.0)
    )
    np.testing.assert_allclose(ahead.solution_error, back.solution_error, rtol=1e-12)
    assert float(ahead.equation_error) > 1.05 * float(still.equation_error)


def test_networks_tend_to_the_operator_kernel():
    """Small targets, which are learned without moving the kernel: what is left is of order 1/N."""
    system = network(size=1e-3)
    exact = wide_equation_network(system)
    runs = op.sweep(
        trained_equation_network, system, {"width": [64, 256]}, seeds=32, batch_seeds=True
    )
    assert bool(runs["converged"].all())
    for name in ("equation_error", "solution_error"):
        ratio = runs[name].transpose("width", "seed").values / float(getattr(exact, name))
        limit = (4 * ratio[1] - ratio[0]) / 3
        assert abs(limit.mean() - 1) < 4 * limit.std(ddof=1) / np.sqrt(32)


def test_a_strong_ridge_leaves_the_network_at_zero():
    system = network(n_points=4, width=16, ridge=1e9)
    found = trained_equation_network(system, KEY)
    power = np.array(SIZE) ** 2 * [np.cos(PHASE[0]) ** 2, 0.5, 0.5, 0.5]
    gain = system.operator.gain(np.arange(4.0))
    np.testing.assert_allclose(found.solution_error, power.sum(), rtol=1e-5)
    np.testing.assert_allclose(found.equation_error, gain @ power, rtol=1e-5)


def test_what_is_refused():
    with pytest.raises(ValueError, match="advection"):
        EquationRegression([1.0], [1.0], 4, Operator(1.0, 0.5, 1.0), domain="interval")
    with pytest.raises(ValueError, match="n_points"):
        EquationRegression([1.0], [1.0], 2.5)
    with pytest.raises(ValueError, match="must be 'ntk'"):
        EquationNetwork([1.0], [0.0], 4, fully_connected(1, 8, "erf", scaling="standard"))
    with pytest.raises(ValueError, match="at most 96"):
        EquationNetwork(np.ones(97), np.ones(97), 4, NETWORK)
