"""Fixed points: the value, implicit derivatives, damping, and an iteration that does not settle."""

import jax
import jax.numpy as jnp
import pytest

from orderparam.solve.fixed_point import fixed_point


def test_the_magnetisation_of_the_mean_field_ferromagnet():
    found = fixed_point(lambda m, beta: jnp.tanh(beta * m), jnp.array(1.0), 1.5)
    assert found.converged
    assert found.residual < 1e-11
    assert float(jnp.tanh(1.5 * found.value)) == pytest.approx(float(found.value), abs=1e-11)
    assert float(found.value) == pytest.approx(0.8585596, abs=5e-8)


def test_the_susceptibility_is_the_implicit_derivative():
    beta, field = 0.7, 0.2

    def magnetisation(field):
        return fixed_point(lambda m, h: jnp.tanh(beta * m + h), jnp.array(0.0), field).value

    m = magnetisation(field)
    expected = (1 - m**2) / (1 - beta * (1 - m**2))
    assert float(jax.grad(magnetisation)(field)) == pytest.approx(float(expected), rel=1e-9)


def test_derivatives_of_many_coupled_unknowns():
    matrix = jnp.array([[0.2, 0.1, 0.0], [0.3, 0.1, 0.1], [0.0, 0.2, 0.3]])

    def total(source):
        solution = fixed_point(lambda y, b: {"y": matrix @ y["y"] + b}, {"y": jnp.zeros(3)}, source)
        return solution.value["y"].sum()

    source = jnp.array([1.0, 2.0, -1.0])
    exact = jnp.linalg.inv(jnp.eye(3) - matrix)
    assert float(total(source)) == pytest.approx(float((exact @ source).sum()), rel=1e-11)
    assert jax.grad(total)(source).tolist() == pytest.approx(exact.sum(axis=0).tolist(), rel=1e-9)


def test_damping_tames_an_alternating_iteration():
    def flip(y, _):
        return 3.0 - 2.0 * y  # y = 1, slope -2: diverges without damping

    undamped = fixed_point(flip, jnp.array(0.9), max_steps=50)
    assert not undamped.converged
    damped = fixed_point(flip, jnp.array(0.9), damping=0.6)
    assert damped.converged
    assert float(damped.value) == pytest.approx(1.0, abs=1e-11)
    assert 0 < damped.steps < 200


def test_derivatives_that_do_not_exist_are_nan_and_leave_a_batch_alone():
    """y = y + s (b - y): with s = 0 every y is a fixed point and none has a derivative."""

    def total(source, slope):
        return fixed_point(lambda y, b: y + slope * (b - y), jnp.zeros(2), source).value.sum()

    found = jax.vmap(jax.grad(total), (None, 0))(jnp.array([1.0, 2.0]), jnp.array([0.5, 0.0]))
    assert found[0].tolist() == pytest.approx([1.0, 1.0], rel=1e-9)
    assert bool(jnp.all(jnp.isnan(found[1])))
