"""The iteration of message passing."""

import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.solve.passing import growing_damping, pass_messages


def swing(state):
    """x <- 1 - 2 x, whose fixed point 1/3 is unstable without damping."""
    return 1 - 2 * state[0], state[0]


def test_damping_keeps_the_fixed_point_and_stops_oscillations():
    start = (jnp.zeros(2), jnp.zeros(2))
    plain = pass_messages(swing, start, tolerance=jnp.asarray(1e-9), max_steps=50)
    damped = pass_messages(
        swing, start, tolerance=jnp.asarray(1e-9), max_steps=50, damping=lambda _: jnp.asarray(0.5)
    )
    assert plain.steps == 50
    assert plain.residual > 1e9
    np.testing.assert_allclose(damped.state[0], 1 / 3, atol=1e-9)


def test_the_residual_is_that_of_the_step_before_damping():
    found = pass_messages(
        swing,
        (jnp.zeros(1), jnp.zeros(1)),
        tolerance=jnp.asarray(0.0),
        max_steps=1,
        damping=lambda _: jnp.asarray(0.75),
    )
    assert float(found.residual) == 1.0
    assert float(found.state[0][0]) == 0.25


@pytest.mark.parametrize(("words", "steps"), [
    ({}, 1),
    ({"least_steps": 3}, 3),
    ({"is_uncertain": lambda state: state[1] > 0}, 0),
])  # fmt: skip
def test_where_the_iteration_ends(words, steps):
    start = (jnp.ones(1), jnp.asarray(0.0))
    found = pass_messages(lambda s: s, start, tolerance=jnp.asarray(0.1), max_steps=9, **words)
    assert int(found.steps) == steps


def test_damping_grows_by_quarters():
    kept = growing_damping(jnp.asarray(0.5), 8)
    powers = [float(jnp.log(kept(jnp.asarray(n))) / jnp.log(0.5)) for n in range(8)]
    np.testing.assert_allclose(powers, np.repeat([1, 1 / 2, 1 / 3, 1 / 4], 2))
