"""Degrees of random networks as functions of signs."""

import itertools
import math
from functools import partial

import jax
import numpy as np
import pytest

import orderparam as op
from orderparam.networks import fully_connected
from orderparam.systems.random_networks import CubeNetwork, degree_shares, measured_degrees

NETWORKS = {
    "relu": CubeNetwork(input_dim=5, depth=2),
    "erf": CubeNetwork(5, weight_variance=3.0, bias_variance=0.2, depth=3, activation="erf"),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_shares_are_projections_of_the_kernel_on_parities(name):
    """The kernel at all 32 inputs, projected on every parity: no polynomial of Krawtchouk."""
    system = NETWORKS[name]
    inputs = np.array(list(itertools.product([1.0, -1.0], repeat=5)))
    network = fully_connected(
        system.depth, None, system.activation, system.weight_variance, system.bias_variance
    )
    kernel = np.asarray(network.nngp(inputs))
    expected = np.zeros(6)
    for chosen in itertools.product([False, True], repeat=5):
        parity = inputs[:, list(chosen)].prod(axis=1)
        expected[sum(chosen)] += parity @ kernel @ parity / 32**2
    expected /= kernel[0, 0]
    found = degree_shares(system)
    np.testing.assert_allclose(found.share, expected, atol=1e-12)
    assert float(found.share.sum()) == pytest.approx(1, abs=1e-12)
    degrees = np.arange(6)
    mean = degrees @ expected / expected[1:].sum()
    assert float(found.mean_degree) == pytest.approx(mean, abs=1e-10)


def test_linear_networks_are_of_degree_one():
    found = degree_shares(CubeNetwork(7, depth=2, activation="linear"))
    np.testing.assert_allclose(found.share, np.eye(8)[1], atol=1e-12)
    assert float(found.mean_degree) == pytest.approx(1)


def test_one_hidden_layer_of_relu_has_one_odd_degree():
    share = np.asarray(degree_shares(CubeNetwork(9, depth=1)).share)
    assert share[1] == pytest.approx(0.5)  # relu(z) = (z + |z|) / 2
    np.testing.assert_allclose(share[3::2], 0, atol=1e-13)


def test_deep_in_the_chaotic_phase_values_are_independent():
    """E K(x, x') = c for all x != x': every parity has the same power, but for the constant."""
    chaotic = CubeNetwork(6, weight_variance=400.0, depth=60, activation="erf")
    share = np.asarray(degree_shares(chaotic).share)
    odd = np.array([math.comb(6, k) for k in (1, 3, 5)]) / 2**5
    np.testing.assert_allclose(share[1::2], odd, rtol=0.1)
    np.testing.assert_allclose(share[0::2], 0, atol=1e-12)  # erf without biases is odd


def test_drawn_networks_follow_the_theory():
    """One hidden layer: the mean powers are exact at any width."""
    system = CubeNetwork(
        6, bias_variance=0.5, weight_variance=2.0, width=3, depth=1, activation="erf"
    )
    many = partial(measured_degrees, networks=400)
    share = op.sweep(many, system, {}, seeds=8, progress=False)["share"]
    mean, error = share.mean("seed").values, share.std("seed", ddof=1).values / math.sqrt(8)
    z = (mean - np.asarray(degree_shares(system).share)) / error
    assert np.all(np.abs(z) < 5)
    assert np.all(error[:4] < 0.02)


def test_a_parity_is_recognised(monkeypatch):
    """The transform and the count of bits, on a function that is known."""
    import orderparam.systems.random_networks.degrees as module

    class Parity:
        """x_0 x_2 + 2 x_1."""

        def draw(self, key, shape):
            return None

        def apply(self, weights, x):
            return (x[:, 0] * x[:, 2] + 2 * x[:, 1])[:, None]

    monkeypatch.setattr(module, "fully_connected", lambda *_: Parity())
    found = measured_degrees.fn(CubeNetwork(4), jax.random.key(0), networks=1)
    np.testing.assert_allclose(found.share, [0, 0.8, 0.2, 0, 0], atol=1e-12)
    assert float(found.mean_degree) == pytest.approx(1.2)


def test_too_many_inputs_are_refused():
    with pytest.raises(ValueError, match="input_dim = 17: must be at most 16"):
        measured_degrees(CubeNetwork(17), jax.random.key(0))


def test_a_thousand_signs_and_no_more():
    assert 1.3 < float(degree_shares(CubeNetwork(1000, depth=1)).mean_degree) < 1.4
    with pytest.raises(ValueError, match=r"CubeNetwork\.input_dim = 1001: must be <= 1000"):
        degree_shares(CubeNetwork(1001, depth=1))
