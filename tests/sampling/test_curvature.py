"""The largest curvature of a potential, and the Langevin bias that follows from it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.sampling import largest_curvature, variance_inflation


def minus_quadratic(hessian, u):
    return -0.5 * u @ hessian @ u


@pytest.mark.parametrize(
    "spectrum",
    [
        [3.0],
        [-2.0],
        [5.0, -7.0, 1.0],
        [2.0] * 6,
        [-3.0, -1.0, -2.0],
        [*np.linspace(0.1, 1.0, 60).tolist(), 40.0],
    ],
)
def test_the_largest_eigenvalue_of_a_quadratic_potential(spectrum):
    size = len(spectrum)
    basis, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((size, size)))
    log_density = jax.tree_util.Partial(minus_quadratic, jnp.asarray(basis * spectrum @ basis.T))
    found = largest_curvature(log_density, jnp.ones(size), jax.random.key(0))
    assert found == pytest.approx(max(spectrum), rel=1e-9)


def test_curvature_of_a_network_over_a_pytree():
    rng = np.random.default_rng(1)
    x = jnp.asarray(rng.standard_normal((30, 3)))

    def log_density(u):
        return -10 * jnp.sum((jnp.tanh(x @ u["hidden"].T) @ u["readout"] - x[:, 0]) ** 2)

    position = {"hidden": jnp.asarray(rng.standard_normal((4, 3))), "readout": jnp.ones(4)}
    flat, unravel = jax.flatten_util.ravel_pytree(position)
    hessian = jax.jit(jax.hessian(lambda v: -log_density(unravel(v))))(flat)
    exact = np.linalg.eigvalsh(hessian)[-1]
    assert largest_curvature(log_density, position, jax.random.key(3)) == pytest.approx(
        exact, rel=1e-8
    )


def test_inflation_is_the_stationary_variance_of_the_langevin_recursion():
    curvature, step_size = 3.0, 0.4
    variance = 0.0
    for _ in range(200):
        variance = (1 - step_size * curvature) ** 2 * variance + 2 * step_size
    assert variance_inflation(step_size, curvature) == pytest.approx(
        variance * curvature, rel=1e-12
    )
    assert variance_inflation(0.5, 4.0) == np.inf
    assert variance_inflation(1.0, 4.0) == np.inf
    assert np.isnan(variance_inflation(0.5, np.nan))
