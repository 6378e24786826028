"""Reference values of infinite-width kernels and of the Gaussian-process posterior, computed
independently."""

import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.kernels.gp import condition, gp_posterior
from orderparam.networks import convolutional, fully_connected

X = jnp.array([[1.0, 0.5, -0.3], [0.2, -1.0, 0.7], [0.0, 0.4, 1.1]])

# depth, activation, weight_variance, bias_variance, then K and Theta at (x1,x1), (x1,x3), (x2,x1),
# (x2,x3)
DEEP = [
    (1, "relu", 2.0, 0.1, [1.0933333333, 0.4260499248, 0.3244721720, 0.6305568264],
     [2.0866666667, 0.4327729964, 0.2220084267, 0.8404639468]),
    (3, "relu", 2.0, 0.1, [1.2933333333, 0.8934308639, 0.8756657721, 1.0168409644],
     [4.5733333333, 1.5614800274, 1.3965943595, 2.0523423568]),
    (2, "erf", 1.5, 0.05, [0.6248507793, 0.0816757084, -0.0359771031, 0.2359926451],
     [1.9825384313, 0.1037153076, -0.2504894449, 0.5729881548]),
    (2, "gelu", 2.0, 0.1, [0.8960422725, 0.3947876353, 0.3457911041, 0.5362257447],
     [2.5683014513, 0.5588563753, 0.3803826305, 0.9941950996]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("depth", "activation", "weight_variance", "bias_variance", "nngp", "ntk"), DEEP
)
def test_deep_kernels(depth, activation, weight_variance, bias_variance, nngp, ntk):
    kernels = fully_connected(depth, None, activation, weight_variance, bias_variance).kernel(X)
    entries = (jnp.array([0, 0, 1, 1]), jnp.array([0, 2, 0, 2]))
    np.testing.assert_allclose(kernels.nngp[entries], nngp, rtol=0, atol=6e-11)
    np.testing.assert_allclose(kernels.ntk[entries], ntk, rtol=0, atol=6e-11)


def test_posterior_of_a_relu_network():
    kernel = fully_connected(1, None, "relu", 2.0, 0.1)
    train, test, y = X[:2], X[2:], jnp.array([1.0, -1.0])
    cross = kernel.kernel(test, train)
    posterior = gp_posterior(kernel.nngp(train), cross.nngp, cross.nngp_diagonal, y, 0.1)
    np.testing.assert_allclose(posterior.mean, [-0.17445558906762], rtol=1e-12)
    np.testing.assert_allclose(posterior.variance, [0.7461440697362], rtol=1e-12)
    np.testing.assert_allclose(posterior.log_evidence, -3.106145104652, rtol=1e-12)
    np.testing.assert_allclose(posterior.fitted, [0.888124889619, -0.896742151471], rtol=1e-11)
    np.testing.assert_allclose(posterior.discrepancy, (y - posterior.fitted) / 0.1, rtol=1e-12)
    conditioned = condition(kernel.nngp(train), y, 0.1)
    np.testing.assert_allclose(
        conditioned.covariance(cross.nngp, kernel.nngp(test))[0, 0],
        posterior.variance[0],
        rtol=1e-12,
    )


SIGNAL_1 = (
    0.1257302210933933,
    -0.1321048632913019,
    0.6404226504432821,
    0.10490011715303971,
    -0.535669373161111,
    0.36159505490948474,
    1.3040000451301372,
    0.9470809631292422,
)
SIGNAL_2 = (
    -0.7037352358069926,
    -1.2654214710460525,
    -0.6232744625373522,
    0.0413259793472436,
    -2.3250307746388343,
    -0.21879166393254573,
    -1.2459109472530652,
    -0.7322673547034516,
)


@pytest.mark.parametrize(
    ("depth", "readout", "shared", "value"),
    [
        (1, "flatten", True, -0.0642451835975372),
        (1, "flatten", False, -0.0642451835975372),
        (1, "global_average", True, -0.12205047363232172),
        (1, "global_average", False, -0.00803064794969215),
        (2, "flatten", True, 0.005458967134919373),
        (2, "global_average", True, -0.03819893707828244),
        (2, "global_average", False, 0.005458967134919373 / 8),
    ],
)
def test_circular_convolution_of_signals(depth, readout, shared, value):
    """Covariance of the pooled or flattened features before the read-out (filters of 3 pixels,
    biases in the filters only)."""
    network = convolutional(depth, None, 3, "erf", padding="circular", readout=readout,
    shared=shared, weight_variance=1.5,
                            bias_variance=[0.1] * depth + [0.0], readout_variance=1.0)  # fmt: skip
    x1, x2 = (np.array(signal)[None, :, None] for signal in (SIGNAL_1, SIGNAL_2))
    np.testing.assert_allclose(network.nngp(x1, x2)[0, 0], value, rtol=0, atol=1e-15)
