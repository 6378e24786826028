"""Fixed points by Broyden's method: values, steps, implicit derivatives, batches, and failure."""

import jax
import jax.numpy as jnp
import pytest

from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.secant import secant_fixed_point


def slow(y, strength):
    """A map of two unknowns whose plain iteration gains a tenth in a step."""
    one, two = y
    return jnp.tanh(strength * (0.7 * one + 0.3 * two)), 0.9 * two + 0.1 * one**2


def test_the_same_value_in_fewer_steps():
    start = (jnp.asarray(0.5), jnp.asarray(0.5))
    plain = fixed_point(slow, start, jnp.asarray(1.2), tolerance=1e-13)
    found = secant_fixed_point(slow, start, jnp.asarray(1.2), tolerance=1e-13)
    assert found.converged
    assert float(found.value[0]) == pytest.approx(float(plain.value[0]), abs=1e-11)
    assert found.steps < plain.steps / 4


def test_derivatives_and_batches_with_points_apart():
    start = (jnp.asarray(0.5), jnp.asarray(0.5))

    def value(strength):
        # the number is closed over, not an argument
        found = secant_fixed_point(
            lambda y, _: slow(y, strength), start, damping=0.1, tolerance=1e-13, sequential=True
        )
        return found.value[0]

    strengths = jnp.asarray([1.1, 1.4, 2.0])
    batch = jax.jit(jax.vmap(value))(strengths)
    assert batch.tolist() == pytest.approx([float(value(x)) for x in strengths], abs=1e-12)
    slope = (value(1.4 + 1e-5) - value(1.4 - 1e-5)) / 2e-5
    assert float(jax.grad(value)(1.4)) == pytest.approx(float(slope), rel=1e-7)


def test_a_map_without_a_fixed_point_is_told():
    found = secant_fixed_point(lambda y, _: y + 1.0, jnp.asarray(0.0), max_steps=40)
    assert not found.converged
