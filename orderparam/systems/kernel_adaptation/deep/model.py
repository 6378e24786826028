"""Bayesian networks with several hidden layers, on a given training set.

    h_1 = W_0 x,    h_(l+1) = W_l phi(h_l),    f = a . phi(h_L),    L hidden layers of widths N_l = (relative width) * N,

    W_0 ~ N(0, weight_variance/d),  W_l ~ N(0, hidden_variance/N_l),  a ~ N(0, readout_variance/N_L),

sampled at temperature T with the likelihood exp{-(1/(2T)) sum_mu (f(x_mu) - y_mu)^2}.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import is_number, parameter, structure
from orderparam.systems.kernel_adaptation.two_layers.model import NetworkOnData, Number


class DeepNetwork(NetworkOnData):
    """A network of any depth on a given training set; its first input axis is called the teacher's direction w_*.

    inputs, test_inputs: (train, input) and (test, input). targets, test_targets: (train,) and (test,).
    width: N. relative_widths: N_l / N from the input on, one for each hidden layer; (1,) is `NetworkOnData`.

    Raises `ValueError` for relative widths that are not a tuple of positive numbers, and as `NetworkOnData` does.
    """

    hidden_variance: Number = parameter("prior variance of sqrt(N_l) times a weight between hidden layers", above=0, default=1.0)
    relative_widths: tuple[float, ...] = structure("widths of the hidden layers over `width`", default=(1.0, 1.0))

    def __check_init__(self) -> None:
        shape = self.relative_widths
        if not (isinstance(shape, tuple) and shape and all(is_number(x) and x > 0 and np.isfinite(x) for x in shape)):
            raise ValueError(f"DeepNetwork.relative_widths = {shape!r}: must be a tuple of positive numbers, one a hidden layer")

    @property
    def depth(self) -> int:
        """Number of hidden layers."""
        return len(self.relative_widths)

    @property
    def widths(self) -> Float[Array, "layer"]:
        """N_l of the hidden layers."""
        return jnp.asarray(self.width, float) * jnp.asarray(self.relative_widths)
