"""Parisi's recursion: functions whose averages are known, and the identity of its derivatives."""

import jax
import jax.numpy as jnp
import numpy as np

from orderparam.solve.parisi import (
    OverlapSteps,
    cascade,
    dense_overlaps,
    field_grid,
    increasing,
    overlaps_of,
    slope_squares,
)

GRID = field_grid(9.0)
STEPS = OverlapSteps(jnp.asarray([0.2, 0.45, 0.8]), jnp.asarray([0.6, 1.4]))


def test_a_linear_function_keeps_its_slope_and_gains_the_heights():
    found = cascade(0.7 * GRID, GRID, STEPS, 0.3)
    gained = 0.5 * 0.7**2 * (0.6 * 0.25 + 1.4 * 0.35)
    np.testing.assert_allclose(found, 0.7 * 0.3 + gained, rtol=1e-9)
    squares = slope_squares(0.7 * GRID, jnp.full(GRID.size, 0.7), GRID, STEPS, 0.3)
    np.testing.assert_allclose(squares, 0.49, rtol=1e-9)


def test_a_parabola_stays_one():
    strength, constant = 0.5, 0.0
    for width, height in ((0.35, 1.4), (0.25, 0.6)):
        softer = 1 + height * strength * width
        constant -= np.log(softer) / (2 * height)
        strength /= softer
    expected = constant - strength * (0.3**2 + 0.2) / 2
    np.testing.assert_allclose(cascade(-(GRID**2) / 4, GRID, STEPS, 0.3), expected, rtol=1e-9)


def test_without_heights_it_is_the_average():
    flat = OverlapSteps(STEPS.overlaps, jnp.asarray([1e-5, 2e-5]))
    expected = np.exp(-0.8 / 2) * np.cos(0.3)
    np.testing.assert_allclose(cascade(jnp.cos(GRID), GRID, flat, 0.3), expected, atol=1e-5)


def test_derivatives_in_the_overlaps_are_mean_squared_slopes():
    """Shifting an overlap trades one height for the next: d phi/dq_i = -(y_(i+1) - y_i) E
    phi'^2/2."""

    def value(overlaps):
        return cascade(jnp.tanh(GRID), GRID, OverlapSteps(overlaps, STEPS.heights), 0.3)

    slopes = 1 / jnp.cosh(GRID) ** 2
    squares = slope_squares(jnp.tanh(GRID), slopes, GRID, STEPS, 0.3)
    rises = jnp.diff(STEPS.heights, prepend=0.0)
    found = jax.grad(value)(STEPS.overlaps)[:-1]
    np.testing.assert_allclose(found, -rises * squares[:-1] / 2, rtol=1e-8)


def test_steps_cut_in_halves_are_the_same_function():
    fine = STEPS.halved()
    np.testing.assert_allclose(fine.overlaps, [0.2, 0.325, 0.45, 0.625, 0.8])
    for steps in (STEPS, fine):
        np.testing.assert_allclose(
            cascade(jnp.tanh(GRID), GRID, steps), cascade(jnp.tanh(GRID), GRID, STEPS), atol=1e-12
        )
    whole = slope_squares(jnp.tanh(GRID), 1 / jnp.cosh(GRID) ** 2, GRID, STEPS)
    cut = slope_squares(jnp.tanh(GRID), 1 / jnp.cosh(GRID) ** 2, GRID, fine)
    np.testing.assert_allclose(cut[::2], whole, rtol=1e-10)


def test_any_numbers_make_increasing_overlaps_and_heights():
    numbers = jnp.asarray([-30.0, 20.0, 0.3])
    for found in (overlaps_of(numbers), increasing(numbers), dense_overlaps(3)):
        assert (np.diff(np.append(0.0, found)) > 0).all()
    assert overlaps_of(numbers)[-1] < 1
