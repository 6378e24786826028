"""Bayesian networks with several hidden layers, on a given training set.

    h_1 = W_0 x,    h_(l+1) = W_l phi(h_l),    f = a . phi(h_L),
    L hidden layers of widths N_l = (relative width) * N,
    W_0 ~ N(0, weight_variance/d),  W_l ~ N(0, hidden_variance/N_l),
    a ~ N(0, readout_variance/N_L),

sampled at temperature T with the likelihood exp{-(1/(2T)) sum_mu (f(x_mu) - y_mu)^2}.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.fields import parameter, structure
from orderparam.systems.kernel_adaptation.on_data.model import NetworkOnData


class DeepNetworkOnData(NetworkOnData):
    r"""A Bayesian network of any depth on a given training set, with test points.

    $$ h_1 = W_0 x, \qquad h_{l+1} = W_l\, \phi(h_l), \qquad f = a \cdot \phi(h_L) $$

    with L hidden layers of widths $N_l$ = `relative_widths`$_l$ * `width`; weights have variance
    `weight_variance`/d in the first layer, `hidden_variance`/$N_l$ between hidden layers and
    `readout_variance`/$N_L$ in the read-out. With (1,) for `relative_widths` the network is a
    `NetworkOnData`. The first input axis is called the teacher's direction $w_*$.

    Raises:
        ValueError: for relative widths that are not positive.

    Source: Seroussi, Naveh, Ringel (2023).

    >>> x = np.eye(3)
    >>> network = DeepNetworkOnData(x, x[:, 0], x, x[:, 0], 8, 0.1, relative_widths=(1.0, 0.5))
    >>> network.depth, network.widths.tolist()
    (2, [8.0, 4.0])
    """

    hidden_variance: float = parameter(
        "prior variance of sqrt(N_l) times a weight between hidden layers", above=0, default=1.0
    )
    relative_widths: tuple[float, ...] = structure(
        "widths of the hidden layers over `width`", default=(1.0, 1.0)
    )

    def __check_init__(self) -> None:
        if not self.relative_widths or min(self.relative_widths) <= 0:
            own = f"DeepNetworkOnData.relative_widths = {self.relative_widths}"
            raise ValueError(f"{own}: must be positive, one for each hidden layer")

    @property
    def depth(self) -> int:
        """Number of hidden layers."""
        return len(self.relative_widths)

    @property
    def widths(self) -> Float[Array, "layer"]:
        """Widths N_l of the hidden layers."""
        return self.width * jnp.asarray(self.relative_widths)
