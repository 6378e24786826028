"""Random networks: kernels, cumulants and depth corrections computed independently (quadrature in
numpy), to the digits given."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf

from orderparam.gaussian import activation
from orderparam.systems.random_networks import (
    DeepNetwork,
    RandomNetwork,
    cumulants,
    deep_cumulants,
    homogeneous_cumulants,
    marginals,
)

PROBES = jnp.array([[1.0, 0.5], [-0.3, 2.0]])


def test_uniform_weights_in_two_dimensions():
    found = cumulants(RandomNetwork(PROBES, width=1))
    kernel = [[0.067584290997, 0.031508984196], [0.031508984196, 0.151383335351]]
    np.testing.assert_allclose(found.kernel, kernel, atol=6e-13)
    np.testing.assert_allclose(found.fourth_cumulant[0, 0, 0, 0], 0.0016347707217, atol=6e-14)
    np.testing.assert_allclose(found.fourth_cumulant[0, 0, 1, 1], 0.0057512101938, atol=6e-14)
    at_each = marginals(RandomNetwork(PROBES, width=7))
    np.testing.assert_allclose(at_each.width_kurtosis, [0.3579029901, -0.3536515057], atol=6e-11)


@pytest.mark.parametrize(
    ("q", "second", "kurtosis"),
    [
        (0.5, 1 / 3, 2.4),
        (1.0, 0.464559054398, 1.679515632782),
        (2.0, 0.590334470602, 1.147209167337),
        (10.0, 0.802746775978, 3 * 0.745389955990 / 0.802746775978**2 - 3),
    ],
)
def test_gaussian_weights_and_erf(q, second, kurtosis):
    unit = {"weight_variance": q, "readout_variance": 1.0, "prior": "gaussian"}
    found = marginals(RandomNetwork(jnp.ones((1, 5)), width=3, **unit))
    np.testing.assert_allclose(found.variance, second, atol=6e-13)
    np.testing.assert_allclose(found.width_kurtosis, kurtosis, rtol=2e-11)


def test_deep_relu_to_first_order():
    found = deep_cumulants(DeepNetwork(depth=3))
    np.testing.assert_allclose(found.kernel, [2, 2, 2], rtol=1e-12)
    np.testing.assert_allclose(found.vertex, [20, 40, 60], rtol=1e-11)
    np.testing.assert_allclose(found.width_kurtosis, [15, 30, 45], rtol=1e-11)


def test_deep_erf_to_first_order():
    system = DeepNetwork(
        depth=3,
        weight_variance=1.5,
        bias_variance=0.05,
        first_variance=1.0,
        activation=activation("erf"),
    )
    found = deep_cumulants(system)
    np.testing.assert_allclose(
        found.kernel, [0.746838581596, 0.663288234044, 0.629384189507], atol=6e-13
    )
    np.testing.assert_allclose(
        found.vertex, [0.271848644603, 0.285781785099, 0.285935323822], atol=6e-13
    )
    np.testing.assert_allclose(
        found.width_kurtosis, [1.462160124523, 1.948727942167, 2.165496106439], atol=6e-13
    )


def moments_of_two_layers(system, nodes=80):
    """E Khat_2 and E Khat_2^2 of erf at width 1 with two hidden layers: two nested one-dimensional
    integrals."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()
    first = (
        system.bias_variance + system.weight_variance * erf(np.sqrt(system.first_variance) * z) ** 2
    )
    inner = erf(np.sqrt(first)[:, None] * z) ** 2
    second = system.bias_variance + system.weight_variance * inner
    return w @ second @ w, w @ second**2 @ w


def test_first_order_becomes_exact_as_the_layers_grow_linear():
    """At small variance erf is 2z/sqrt(pi) up to cubic terms, where Khat has exact moments at every
    width (here 1)."""
    small = DeepNetwork(1, 1.0, 0.0, 1e-4, depth=2, activation=activation("erf"))
    mean, square = moments_of_two_layers(small)
    assert mean == pytest.approx(1e-4 * (4 / np.pi) ** 2, rel=5e-3)
    linear = homogeneous_cumulants(small.with_(activation=activation("linear")))
    assert 3 * (square / mean**2 - 1) == pytest.approx(float(linear.kurtosis[1]), rel=2e-2)


def test_relu_at_every_width():
    """E Khat_l^2 / (E Khat_l)^2 = (1 + 5/n)^l."""
    for width in (1, 32):
        found = homogeneous_cumulants(DeepNetwork(width=width, depth=4))
        np.testing.assert_allclose(
            found.kurtosis, 3 * ((1 + 5 / width) ** np.arange(1, 5) - 1), rtol=1e-11
        )
    np.testing.assert_allclose(
        homogeneous_cumulants(DeepNetwork(width=32)).width_kurtosis[2], 52.39746094, rtol=1e-9
    )
    assert np.all(
        np.isnan(homogeneous_cumulants(DeepNetwork(activation=activation("erf"))).kurtosis)
    )
    limit = jax.vmap(lambda n: homogeneous_cumulants(DeepNetwork(width=n)).width_kurtosis)(
        jnp.array([1e7])
    )
    np.testing.assert_allclose(limit[0], deep_cumulants(DeepNetwork()).width_kurtosis, rtol=2e-6)
