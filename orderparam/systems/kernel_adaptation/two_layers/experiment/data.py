"""Training and test sets drawn from the input distribution of the theory."""

import jax
from jaxtyping import Array, PRNGKeyArray

from orderparam.systems.kernel_adaptation.two_layers.model import NetworkOnData, TwoLayerNetwork

TEST_POINTS = 2000


def draw_data(system: TwoLayerNetwork, key: PRNGKeyArray, count: int) -> tuple[Array, Array]:
    """x ~ N(0, 1_d), (count, input), and y without noise; w_* is the first axis."""
    x = jax.random.normal(key, (count, int(system.input_dim)))
    return x, system.label(x[:, 0])


def training_set(system: TwoLayerNetwork, key: PRNGKeyArray) -> tuple[Array, Array]:
    """The data on which `sampled_network` and `langevin_training` run with this key."""
    return draw_data(system, jax.random.split(key, 3)[0], int(system.n_train))


def network_on(system: TwoLayerNetwork, x: Array, y: Array, x_test: Array, y_test: Array) -> NetworkOnData:
    """The same network on these data."""
    return NetworkOnData(
        x,
        y,
        x_test,
        y_test,
        width=system.width,
        temperature=system.temperature,
        readout_variance=system.readout_variance,
        weight_variance=system.weight_variance,
        activation=system.activation,
    )


def draw_network(system: TwoLayerNetwork, key: PRNGKeyArray, n_test: int = TEST_POINTS) -> NetworkOnData:
    """The same network on a training set of its size drawn at random, w_* the first axis."""
    train, test = jax.random.split(key)
    return network_on(system, *draw_data(system, train, int(system.n_train)), *draw_data(system, test, n_test))
