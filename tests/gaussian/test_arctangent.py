import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.gaussian.arctangent import arctan2


def test_the_angle_is_that_of_numpy_to_rounding_in_all_directions_and_at_all_scales():
    rng = np.random.default_rng(0)
    y, x = rng.normal(size=(2, 100_000)) * 10 ** rng.uniform(-9, 9, size=(2, 100_000))
    np.testing.assert_allclose(arctan2(y, x), np.arctan2(y, x), rtol=1.5e-15)


@pytest.mark.parametrize(
    ("y", "x"),
    [(0.0, 0.0), (0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0), (1.0, 1.0), (-1.0, -1.0)],
)
def test_the_axes_and_diagonals_have_their_exact_angles(y, x):
    np.testing.assert_allclose(float(arctan2(y, x)), np.arctan2(y, x), rtol=1e-15)


def test_nan_stays_nan():
    assert np.isnan(float(arctan2(np.nan, 1.0)))
    assert np.isnan(float(arctan2(1.0, np.nan)))


def test_derivatives_are_those_of_the_angle():
    for order in (jax.grad, jax.hessian):
        ours = order(lambda p: arctan2(p[0], p[1]))(jnp.asarray([0.3, -0.7]))
        exact = order(lambda p: jnp.arctan2(p[0], p[1]))(jnp.asarray([0.3, -0.7]))
        np.testing.assert_allclose(ours, exact, rtol=1e-14)


def test_single_precision_stays_single():
    assert arctan2(jnp.float32(1.0), jnp.float32(2.0)).dtype == jnp.float32
