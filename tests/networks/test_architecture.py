"""One architecture, two objects: the finite network and its infinite-width kernel."""

import contextlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orderparam.networks.architecture import Architecture
from orderparam.networks.composition import Serial
from orderparam.networks.dense import Dense, Nonlinearity
from orderparam.networks.fully_connected import fully_connected, parse
from orderparam.networks.random_kernels import empirical_ntk, random_kernels

X = jnp.array([[1.0, 0.5, -0.3], [0.2, -1.0, 0.7], [0.0, 0.4, 1.1]])
KEY = jax.random.key(0)


def parameters_of(architecture, dim=3):
    return jax.tree.leaves(architecture.draw(KEY, dim))


def test_network_maps_a_batch_to_outputs():
    network = fully_connected(2, 16, "erf", bias_variance=0.1).network(KEY, 3)
    assert network(X).shape == (3, 1)
    assert network(X).dtype == jnp.float64
    np.testing.assert_allclose(jax.jit(network.__call__)(X), network(X), rtol=1e-14)


def test_whitened_parameters_are_standard_normal_in_every_scaling():
    for scaling in ("ntk", "standard", "mean_field"):
        u = parameters_of(fully_connected(2, 16, "relu", 2.0, 0.3, scaling=scaling))
        flat = jnp.concatenate([leaf.ravel() for leaf in u])
        assert abs(flat.mean()) < 4 / np.sqrt(flat.size)
        assert abs(flat.var() - 1) < 4 * np.sqrt(2 / flat.size)


def test_scalings_share_the_function_and_differ_in_the_weights():
    ntk = fully_connected(2, 16, "erf", 1.5, 0.2)
    standard = fully_connected(2, 16, "erf", 1.5, 0.2, scaling="standard")
    mean_field = fully_connected(2, 16, "erf", 1.5, 0.2, scaling="mean_field", chi=9.0)
    u = ntk.draw(KEY, 3)
    f = ntk.network_from_whitened(u)(X)
    np.testing.assert_allclose(standard.network_from_whitened(u)(X), f, rtol=1e-12)
    np.testing.assert_allclose(standard.apply(u, X), f, rtol=1e-12)
    np.testing.assert_allclose(mean_field.network_from_whitened(u)(X), f / 3, rtol=1e-12)
    first = standard.network_from_whitened(u).weights[0]
    np.testing.assert_allclose(first.weight, np.sqrt(1.5 / 3) * u[0].weight, rtol=1e-14)
    np.testing.assert_allclose(first.bias, np.sqrt(0.2) * u[0].bias, rtol=1e-14)


def test_mean_field_leaves_the_posterior_mean_and_divides_its_covariance_by_chi():
    plain = fully_connected(2, None, "erf", 1.5, 0.2)
    scaled = fully_connected(2, None, "erf", 1.5, 0.2, scaling="mean_field", chi=7.0)
    np.testing.assert_allclose(scaled.nngp(X), plain.nngp(X) / 7, rtol=1e-13)
    np.testing.assert_allclose(scaled.kernel(X).ntk, plain.kernel(X).ntk / 7, rtol=1e-13)
    assert scaled.posterior_temperature(0.7) == pytest.approx(0.1)
    assert fully_connected(1, 40, "erf", scaling="mean_field").chi == 40


def test_features_times_the_whitened_readout_is_the_network():
    architecture = fully_connected(2, 16, "erf", 2.0, [0.1, 0.2, 0.3], readout_variance=0.7,
                                   scaling="mean_field", chi=4.0)  # fmt: skip
    u = architecture.draw(KEY, 3)
    readout = jnp.concatenate([u[-1].weight, u[-1].bias[:, None]], axis=1)
    np.testing.assert_allclose(
        architecture.features(u, X) @ readout.T, architecture.apply(u, X), rtol=1e-12
    )


def test_random_wide_networks_have_the_infinite_width_kernels():
    architecture = fully_connected(2, 200, "erf", 1.5, 0.1)
    measured = random_kernels(architecture, jax.random.key(3), X, networks=100)
    theory = architecture.kernel(X)
    # the finite-width bias, O(1/width), is below one standard error of 100 networks
    assert np.abs((measured.nngp - theory.nngp) / measured.nngp_error).max() < 4
    assert np.abs((measured.ntk - theory.ntk) / measured.ntk_error).max() < 4
    assert (measured.ntk_error / jnp.abs(measured.ntk).max()).max() < 0.02


def test_empirical_ntk_is_the_gram_matrix_of_gradients():
    network = fully_connected(2, 7, "gelu", 1.3, 0.2, outputs=3, scaling="standard").network(KEY, 3)
    jacobian = jax.jit(jax.jacobian(lambda w: network.with_weights(w)(X)))(network.weights)
    flat = jnp.concatenate([leaf.reshape(3, 3, -1) for leaf in jax.tree.leaves(jacobian)], axis=-1)
    expected = jnp.einsum("aip,bip->ab", flat, flat) / 3
    np.testing.assert_allclose(
        empirical_ntk(network, X, X[1:], row_batch=2), expected[:, 1:], rtol=1e-12
    )


def test_gradients_reach_the_weights_and_nothing_else():
    network = fully_connected(2, 16, "erf", bias_variance=0.2).network(KEY, 3)
    gradient = eqx.filter_grad(lambda net: jnp.sum(net(X) ** 2))(network)
    assert jax.tree.leaves(gradient.architecture) == []
    assert all(jnp.abs(leaf).max() > 0 for leaf in jax.tree.leaves(gradient.weights))


def test_kernels_are_differentiable_and_batched_over_variances():
    def corner(weight_variance):
        return fully_connected(2, None, "erf", weight_variance, 0.1).nngp(X)[0, 1]

    grid = jnp.array([0.5, 1.0, 2.0])
    np.testing.assert_allclose(jax.vmap(corner)(grid), [corner(v) for v in grid], rtol=1e-13)
    step = 1e-5
    finite = (corner(1.0 + step) - corner(1.0 - step)) / (2 * step)
    np.testing.assert_allclose(jax.grad(corner)(1.0), finite, rtol=1e-8)


def test_per_layer_variances_enter_layer_by_layer():
    layers = (
        Dense(None, weight_variance=0.5, bias_variance=0.1),
        Nonlinearity("erf"),
        Dense(None, weight_variance=2.0),
        Nonlinearity("erf"),
        Dense(1, weight_variance=0.3, bias_variance=0.7),
    )
    built = fully_connected(2, None, "erf", [0.5, 2.0], [0.1, 0.0, 0.7], readout_variance=0.3)
    np.testing.assert_allclose(built.nngp(X), Architecture(Serial(layers)).nngp(X), rtol=1e-15)


def test_text_names_an_architecture():
    assert parse("fc:3x512:erf") == fully_connected(3, 512, "erf")
    assert parse("fc:2:relu", weight_variance=2.0) == fully_connected(2, None, "relu", 2.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fc:3x512", "DEPTHxWIDTH:ACTIVATION"),
        ("cn:3x512:erf", "unknown family 'cn'"),
        ("fc:3y512:erf", "3x512"),
        ("fc:3x512:rellu", "did you mean .relu."),
        ("fc:0x512:erf", "depth = 0"),
        ("fc:1x0:erf", "width = 0"),
    ],
)
def test_bad_text_is_answered_with_what_is_allowed(text, says):
    with pytest.raises(ValueError, match=says):
        parse(text)


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=20))
def test_any_text_is_an_architecture_or_a_value_error(text):
    with contextlib.suppress(ValueError):
        assert isinstance(parse(text), Architecture)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"depth": 0}, "depth = 0"),
        ({"depth": 1.5}, "depth = 1.5"),
        ({"width": 2.5}, "width = 2.5"),
        ({"width": [10, 10, 10]}, "2 values"),
        ({"weight_variance": -1.0}, "weight_variance = -1.0"),
        ({"weight_variance": float("nan")}, "weight_variance = nan"),
        ({"bias_variance": "a"}, "bias_variance = 'a'"),
        ({"bias_variance": [0.1, 0.1]}, "3 values"),
        ({"scaling": "mean-field"}, "did you mean 'mean_field'"),
        ({"chi": 2.0}, "only 'mean_field'"),
        ({"scaling": "mean_field", "chi": 0.0}, "chi = 0.0"),
        ({"scaling": "mean_field", "width": None}, "mean-field scaling needs chi"),
        ({"activation": "rleu"}, "relu"),
    ],
)
def test_bad_architecture_is_refused(options, says):
    with pytest.raises(ValueError, match=says):
        fully_connected(**{"depth": 2, "width": 10, "activation": "erf", **options})


def test_bad_inputs_are_refused():
    infinite, finite = fully_connected(1, None, "erf"), fully_connected(1, 10, "erf")
    with pytest.raises(ValueError, match="needs a number"):
        infinite.network(KEY, 3)
    with pytest.raises(ValueError, match="NaN"):
        finite.kernel(X.at[0, 0].set(jnp.nan))
    with pytest.raises(ValueError, match="different shapes"):
        finite.kernel(X, X[:, :2])
    with pytest.raises(ValueError, match="shape"):
        finite.kernel(X[0])
    with pytest.raises(ValueError, match="row_batch = 0"):
        finite.kernel(X, row_batch=0)
    with pytest.raises(ValueError, match="grows with the widths"):
        fully_connected(1, None, "erf", scaling="standard").kernel(X)
    with pytest.raises(ValueError, match="Flatten"):
        finite.kernel(jnp.ones((2, 4, 3)))
    with pytest.raises(ValueError, match="input_shape"):
        finite.network(KEY, 0)
    with pytest.raises(ValueError, match="not Gaussian"):
        Architecture(Serial((Nonlinearity("erf"), Dense(1)))).nngp(X)
    with pytest.raises(ValueError, match="networks = 1"):
        random_kernels(finite, KEY, X, networks=1)
