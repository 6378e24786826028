"""Deep linear networks in time: limits, conserved quantities, and trained networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.systems.deep_linear import (
    DeepModes,
    LinearModes,
    LinearNetwork,
    balanced_flow,
    deep_modes,
    lazy_to_rich_modes,
    moment_flow,
    trained_layers,
    trained_linear_network,
    trained_modes,
)

STRENGTHS = np.array([2.0, 1.0, 0.5])


def balanced(imbalance, size=3):
    """Square layers with W_2^T W_2 - W_1 W_1^T = imbalance, and a target."""
    rng = np.random.default_rng(0)
    left, values, right = np.linalg.svd(rng.standard_normal((size, size)))
    turn = np.linalg.qr(rng.standard_normal((size, size)))[0]
    readout = (turn * np.sqrt(values**2 + imbalance)) @ left.T
    return rng.standard_normal((size, size)), (left * values) @ right, readout


def test_a_large_kernel_stays_and_learns_exponentially():
    found = lazy_to_rich_modes(LinearModes(STRENGTHS, 1e4, 2e-4, records=5))
    exact = STRENGTHS * -np.expm1(-1e4 * np.asarray(found.time))[:, None]
    np.testing.assert_allclose(found.output, exact, rtol=1e-6)
    np.testing.assert_allclose(found.kernel, 1e4, rtol=1e-6)


def test_two_aligned_layers_are_modes_without_a_scale():
    modes = lazy_to_rich_modes(LinearModes(STRENGTHS, 0.0, 4.0, 0.03, records=5))
    layers = deep_modes(DeepModes(STRENGTHS, 0.03, 4.0, depth=2, records=5))
    np.testing.assert_allclose(layers.output, modes.output, rtol=1e-9)
    np.testing.assert_allclose(layers.loss, modes.loss, rtol=1e-8)


def test_a_mode_with_a_scale_is_a_network_of_one_unit():
    """One hidden unit with read-out^2 - weight^2 = c."""
    c, first = 0.7, 0.2
    weight = np.sqrt((np.sqrt(c**2 + 4 * first**2) - c) / 2)
    network = LinearNetwork([[1.5]], [[weight]], [[first / weight]], 2.0, records=4)
    modes = lazy_to_rich_modes(LinearModes([1.5], c, 2.0, first, records=4))
    np.testing.assert_allclose(balanced_flow(network).product[:, 0], modes.output, rtol=1e-11)


def test_a_long_time_does_not_overflow():
    found = lazy_to_rich_modes(LinearModes(STRENGTHS, 0.1, 1e5, records=2))
    np.testing.assert_allclose(found.output[-1], STRENGTHS, rtol=1e-12)
    target, first, readout = balanced(0.0)
    far = balanced_flow(LinearNetwork(target, first, readout, 300.0, records=100))
    assert far.converged
    np.testing.assert_allclose(far.product[-1], target, atol=1e-8)
    assert not balanced_flow(LinearNetwork(target, first, readout, 1e4, records=1)).converged


@pytest.mark.parametrize("imbalance", [0.0, 0.7])
def test_balanced_matrices_three_ways(imbalance):
    network = LinearNetwork(*balanced(imbalance), 2.0, records=4)
    exact = balanced_flow(network)
    assert exact.converged
    np.testing.assert_allclose(moment_flow(network).product, exact.product, atol=1e-9)
    trained = trained_linear_network(network, jax.random.key(0))
    np.testing.assert_allclose(trained.product, exact.product, atol=1e-6)
    np.testing.assert_allclose(trained.loss, exact.loss, atol=1e-6)


def test_what_is_not_balanced_is_said_and_integrated():
    target, first, readout = balanced(0.0)
    network = LinearNetwork(target[:, :2], first[:, :2], 0.5 * readout, 1.0, records=2)
    assert not balanced_flow(network).converged
    trained = trained_linear_network(network, jax.random.key(0))
    np.testing.assert_allclose(trained.product, moment_flow(network).product, atol=1e-6)


def test_wide_random_layers_from_lazy_to_rich():
    """Sixteen networks of 1,000 units, with the read-outs' share at both ends."""
    for start, share in ((2.0, 0.2), (0.05, 0.8)):
        system = LinearModes(STRENGTHS, start, 3.0, readout_share=share, width=1000, records=4)
        exact = lazy_to_rich_modes(system)
        drawn = jax.vmap(lambda key, system=system: trained_modes(system, key))(
            jax.random.split(jax.random.key(1), 16)
        )
        for name in ("output", "kernel"):
            values, theory = np.asarray(getattr(drawn, name)), np.asarray(getattr(exact, name))
            error = values.std(axis=0, ddof=1) / 4
            # the bias of finite width is of order modes / width
            allowed = 4 * error + 3e-3 * theory
            assert np.all(np.abs(values.mean(axis=0) - theory) < allowed), (start, name)
            assert np.median(error / theory) < 0.03


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_aligned_layers_follow_their_modes(depth):
    system = DeepModes(STRENGTHS, 0.05, 3.0, depth=depth, records=3)
    drawn = trained_layers(system, jax.random.key(0))
    exact = deep_modes(system)
    np.testing.assert_allclose(drawn.output, exact.output, atol=1e-6)
    np.testing.assert_allclose(drawn.loss, exact.loss, atol=1e-5)


def test_gradients_are_those_of_differences():
    def loss(start):
        return jnp.sum(lazy_to_rich_modes(LinearModes(STRENGTHS, start, 2.0, records=2)).loss)

    difference = (loss(0.1 + 1e-6) - loss(0.1 - 1e-6)) / 2e-6
    np.testing.assert_allclose(jax.grad(loss)(0.1), difference, rtol=1e-7)


def test_what_is_refused():
    with pytest.raises(ValueError, match="never moves"):
        LinearModes(STRENGTHS, 0.0, 1.0)
    with pytest.raises(ValueError, match="must be 0 for random layers"):
        trained_modes(LinearModes(STRENGTHS, 1.0, 1.0, 0.1), jax.random.key(0))
    with pytest.raises(ValueError, match="must have unit = 3"):
        LinearNetwork(np.eye(2), np.ones((3, 2)), np.eye(2), 1.0)
    with pytest.raises(ValueError, match="must have input = 3"):
        LinearNetwork(np.eye(3), np.eye(2), np.eye(2), 1.0)
