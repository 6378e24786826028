"""Training and test sets drawn from the input distribution of the theory."""

import jax
from jaxtyping import Array, PRNGKeyArray

from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork

TEST_POINTS = 2000


def draw_data(system: TwoLayerNetwork, key: PRNGKeyArray, count: int) -> tuple[Array, Array]:
    """x ~ N(0, 1_d), (count, input), and y without noise; w_* is the first axis."""
    x = jax.random.normal(key, (count, system.size("input_dim")))
    return x, system.hidden.target(x[:, 0])


def training_set(system: TwoLayerNetwork, key: PRNGKeyArray) -> tuple[Array, Array]:
    """The data on which `sampled_network` and `langevin_training` run with this key."""
    return draw_data(system, jax.random.split(key, 3)[0], system.size("n_train"))
