"""The curvature spectrum against matrices: quadratic losses, linear models, and small networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.observables.curvature import _over_probes, curvature


def quadratic(eigenvalues, key=0):
    rotation = np.linalg.qr(np.random.default_rng(key).normal(size=(len(eigenvalues),) * 2))[0]
    matrix = jnp.asarray(rotation * eigenvalues @ rotation.T)
    return lambda w: w @ matrix @ w / 2, jnp.ones(len(eigenvalues))


def test_a_small_quadratic_loss_is_exact():
    values = np.array([-1.5, 0.0, 0.5, 2.0, 7.0])
    found = curvature(*quadratic(values), probes=4)
    np.testing.assert_allclose(found.nodes, np.tile(values, (4, 1)), atol=1e-12)
    assert found.count(1.0).value == 2
    assert found.trace.value == pytest.approx(8, abs=1e-12)
    assert found.converged
    assert found.largest.high - found.largest.value < 1e-12


def test_gauss_newton_of_a_linear_model_is_its_hessian():
    """J^T J / n; for a network with square loss its eigenvalues are those of the tangent kernel."""
    rng = np.random.default_rng(0)
    x, y = jnp.asarray(rng.normal(size=(6, 10))), jnp.asarray(rng.normal(size=6))
    linear = lambda w: x @ w  # noqa: E731
    loss = lambda f: jnp.mean((f - y) ** 2) / 2  # noqa: E731
    exact = np.linalg.eigvalsh(np.asarray(x @ x.T) / 6)
    for found in (
        curvature(loss, jnp.zeros(10), model=linear, probes=3),
        curvature(lambda w: loss(linear(w)), jnp.zeros(10), probes=3),
    ):
        np.testing.assert_allclose(found.nodes[0][-6:], exact, rtol=1e-10)  # 4 eigenvalues are 0
        np.testing.assert_allclose(found.nodes[0][:-6], 0, atol=1e-10)
        assert found.steps == 7
    parameters = {"a": jnp.asarray(rng.normal(size=(8, 10))), "b": jnp.asarray(rng.normal(size=8))}
    network = lambda p: jnp.tanh(x @ p["a"].T) @ p["b"]  # noqa: E731
    found = curvature(loss, parameters, model=network, probes=3)
    jacobian = jax.jacobian(network)(parameters)
    rows = jnp.concatenate([jacobian["a"].reshape(6, -1), jacobian["b"]], axis=1)
    kernel = np.linalg.eigvalsh(np.asarray(rows @ rows.T) / 6)
    np.testing.assert_allclose(found.nodes[0][-6:], kernel, rtol=1e-9)


def test_a_bulk_with_outliers():
    """The bulk's edge lies within the bound of its Ritz value, outliers are exact and counted, and
    the density has weight 1."""
    rng = np.random.default_rng(1)
    bulk = np.linalg.eigvalsh(np.cov(rng.normal(size=(300, 900))))
    values = np.sort(np.concatenate([bulk, [5.0, 8.0, 12.0]]))
    loss, at = quadratic(values)
    for steps in (10, 40):
        found = curvature(loss, at, steps=steps, probes=4)
        for nodes, bounds in zip(found.nodes, found.residuals):
            distance = np.min(np.abs(values[:, None] - nodes), axis=0)
            assert np.all(distance <= bounds + 1e-12)
        assert found.smallest.low <= values[0] + 1e-12
    outliers = [one.value for one in found.outliers(1e-6)]
    np.testing.assert_allclose(outliers, [12, 8, 5], rtol=1e-6)
    assert found.trace.low < values.sum() < found.trace.high
    assert found.count(4.0).value == pytest.approx(3, abs=1e-9)
    assert (
        found.count(1.0, 4.0).low < np.sum((values > 1) & (values < 4)) < found.count(1.0, 4.0).high
    )
    grid = np.linspace(-3, 16, 2000)
    density, error = found.density(grid, 0.2)
    assert np.sum(density) * (grid[1] - grid[0]) == pytest.approx(1, abs=1e-3)
    exact = np.mean(np.exp(-0.5 * ((grid[:, None] - values) / 0.2) ** 2), axis=1) / (
        0.2 * (2 * np.pi) ** 0.5
    )
    dense = exact > 0.05
    assert np.max(np.abs(density - exact)[dense] / error[dense]) < 6


def test_the_interval_of_the_trace_holds_it():
    """95 % of 200 groups of 6 probes, within the error of 200 groups."""
    values = np.geomspace(0.01, 10, 60)
    found = curvature(*quadratic(values), steps=4, probes=1200)
    traces = 60 * np.sum(found.weights * found.nodes, axis=1).reshape(200, 6)
    groups = [_over_probes("trace", one) for one in traces]
    held = np.mean([one.low <= values.sum() <= one.high for one in groups])
    assert 0.9 <= held <= 0.99


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"probes": 2}, "probes = 2: must be at least 3"),
        ({"steps": 1}, "steps = 1: must be at least 2"),
        ({"parameters": jnp.arange(3)}, "must be real numbers"),
        ({"loss": lambda w: w}, "must be one finite number"),
        ({"loss": lambda w: jnp.sum(w) / 0}, "must be one finite number"),
    ],
)
def test_what_has_no_curvature(words, message):
    given = {"loss": lambda w: jnp.sum(w**2), "parameters": jnp.ones(3)} | words
    with pytest.raises(ValueError, match=message):
        curvature(given.pop("loss"), given.pop("parameters"), **given)
