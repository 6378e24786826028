"""Differential equations where the operator kernel is known in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.differential_equations import (
    EquationNetwork,
    EquationRegression,
    Operator,
    equation_on_grid,
    wide_equation_network,
)

FINE = (np.arange(20_000) + 0.5) / 20_000


@pytest.mark.parametrize(("target", "points"), [(1, 3), (3, 3), (5, 7)])
def test_the_brownian_bridge_interpolates_by_straight_lines(target, points):
    """-u'' = f on the interval and a prior with eigenvalues (k pi)^-6: the operator kernel is
    min(x, y) - x y, and without a ridge the estimate of f is a polygon through its values."""

    def errors(count):
        wave = np.pi * np.arange(1, count + 1)
        power = np.zeros(count)
        power[target - 1] = 1.0
        operator = Operator(0.0, 0.0, 1.0)
        system = EquationRegression(wave**-6, power, points, operator, domain="interval")
        found = equation_on_grid(system)
        return np.array([found.equation_error, found.solution_error])

    def f(x):
        return np.sqrt(2) * (np.pi * target) ** 2 * np.sin(target * np.pi * x)

    # frequencies that are left out matter as the inverse of their number
    equation, solution = 2 * errors(20_000) - errors(10_000)
    nodes = np.arange(points + 2) / (points + 1)
    values = np.where((nodes > 0) & (nodes < 1), f(nodes), 0.0)
    missed = np.interp(FINE, nodes, values) - f(FINE)
    np.testing.assert_allclose(equation, np.mean(missed**2), rtol=1e-6)
    # the solution of -u'' = missed with u = 0 at both ends
    height = np.cumsum(np.cumsum(missed)) / len(FINE) ** 2
    u = -(height - FINE * height[-1])
    np.testing.assert_allclose(solution, np.mean(u**2), rtol=1e-3)


def test_the_tangent_kernel_of_the_residual_by_derivatives_of_the_arcsine():
    """erf(z/sqrt 2) with weight variance 6 and bias variance 1, the read-out's variance 1: its
    kernels in closed form, the operator applied to both arguments by automatic derivatives."""
    operator = (1.0, 0.5, 0.1)
    cosines, sines = np.array([0.2, 0.4, -0.3]), np.array([0.0, 0.1, 0.5])
    network = fully_connected(
        1, None, "erf_scaled", weight_variance=6.0, bias_variance=(1.0, 0.0), readout_variance=1.0
    )
    system = EquationNetwork(cosines, sines, 4, network, Operator(*operator), ridge=0.05)

    def tangent(x, y):
        inner = 6 * jnp.cos(x - y) + 1
        return (2 / jnp.pi) * (jnp.arcsin(inner / 8) + inner / jnp.sqrt(64 - inner**2))

    def acted(function, place):
        first = jax.grad(function, place)
        second = jax.grad(first, place)
        c, v, d = operator
        return lambda *at: c * function(*at) + v * first(*at) - d * second(*at)

    def solution(x):
        wave = jnp.arange(3)
        return jnp.cos(wave * x) @ cosines + jnp.sin(wave * x) @ sines

    cross = acted(tangent, 1)
    both = acted(cross, 0)
    points = 2 * np.pi * np.arange(4) / 4
    fine = 2 * np.pi * np.arange(256) / 256

    def table(kernel, x):
        return jax.vmap(lambda a: jax.vmap(lambda b: kernel(a, b))(points))(x)

    f = acted(solution, 0)
    dual = jnp.linalg.solve(table(both, points) + 0.05 * jnp.eye(4), jax.vmap(f)(points))
    found = wide_equation_network(system)
    equation = jnp.mean((table(both, fine) @ dual - jax.vmap(f)(fine)) ** 2)
    error = jnp.mean((table(cross, fine) @ dual - jax.vmap(solution)(fine)) ** 2)
    np.testing.assert_allclose(found.equation_error, equation, rtol=1e-8)
    np.testing.assert_allclose(found.solution_error, error, rtol=1e-8)
