"""Where flows come to rest, against solutions in closed form: slow directions, saddles,
derivatives, failures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.solve.relaxation import rest_point


def valley(state, force):
    """A fast direction that follows a slow one: dx/dt = force - x^3, dy/dt = x^2 - y, with rest at
    x = force^(1/3)."""
    return {"x": force - state["x"] ** 3, "y": state["x"] ** 2 - state["y"]}


def test_relaxation_along_a_direction_with_next_to_no_slope():
    """Next to its rest the slow direction relaxes in a time 1/(3 x^2), up to 3e5 here; with no
    force at all, algebraically."""
    forces = jnp.asarray([1e-9, 1e-3, 1.0])

    def rest(force):
        return rest_point(
            valley,
            {"x": jnp.asarray(0.5), "y": jnp.asarray(0.0)},
            force,
            first_step=2.0,
            tolerance=1e-15,
        )

    found = jax.jit(jax.vmap(rest))(forces)
    assert bool(jnp.all(found.converged))
    np.testing.assert_allclose(found.value["x"], np.cbrt(forces), rtol=1e-6)
    np.testing.assert_allclose(found.value["y"], np.cbrt(forces) ** 2, rtol=1e-6, atol=1e-12)
    slope = jax.vmap(jax.grad(lambda force: rest(force).value["y"]))(forces)
    np.testing.assert_allclose(slope, 2 / 3 / np.cbrt(forces), rtol=1e-6)
    flat = rest(0.0)
    assert float(flat.residual) < 1e-10
    assert 0 <= float(flat.value["x"]) < 1e-3


def test_saddles_and_fields_without_rest():
    """dx/dt = x - x^3 rests at 1, and from close to it at the saddle 0; dx/dt = 1 never rests."""
    saddle = rest_point(lambda x, _: x - x**3, jnp.asarray([1e-3]), first_step=50.0)
    assert bool(saddle.converged)
    assert float(saddle.value[0]) == pytest.approx(0.0, abs=1e-14)
    stable = rest_point(lambda x, _: x - x**3, jnp.asarray([0.7]), first_step=0.1)
    assert float(stable.value[0]) == pytest.approx(1.0, rel=1e-12)
    never = rest_point(lambda x, _: jnp.ones_like(x), jnp.asarray([0.0]))
    assert not bool(never.converged)
    assert float(never.residual) == 1.0
    broken = rest_point(lambda x, _: jnp.log(x - 1), jnp.asarray([0.0]))
    assert not bool(broken.converged)
