"""Networks with random weights, before any training: the law of the weights, and the inputs at
which the random function is observed.

A prior over weights is a prior over functions (Neal 1996). Three systems describe it: the values of
a network with one hidden layer at some inputs (`RandomNetwork`), a deep network at one input
(`DeepNetwork`), and the kernels of networks of finite width (`NetworkKernels`). `AngledPair` is a
deep network at two inputs.
"""

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, structure
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.networks import Architecture, convolutional, fully_connected

Prior = Literal["uniform", "gaussian"]
ReadoutPrior = Literal["uniform", "gaussian", "rademacher"]
Family = Literal["fully connected", "convolutional"]


class RandomNetwork(System):
    r"""A network with one hidden layer of independent random weights, evaluated at given inputs.

    $$ z(x) = \sum_{c=1}^{N} a_c\, \varphi(w_c \cdot x), \qquad
       \mathrm{Var}\, w_{ci} = \sigma_w^2 / d, \qquad \mathrm{Var}\, a_c = \sigma_a^2 / N $$

    with N the `width`, d the input dimension, $\varphi$ the `activation`, $\sigma_w^2$ the
    `weight_variance`, $\sigma_a^2$ the `readout_variance`; all weights have mean zero and there are
    no biases. `prior` is the law of the hidden weights and `readout_prior` that of the read-out
    weights; None means the law of the hidden weights. The defaults are uniform weights on $\pm
    d^{-1/2}$ and $\pm N^{-1/2}$, whose variances are 1/(3d) and 1/(3N). A density is averaged over
    each of `bins` equal bins of [-`half_range`, `half_range`].

    Source: Neal (1996).

    >>> system = RandomNetwork([[1.0, 0.5]], width=5, bins=4)
    >>> system.readout_law, system.edges.tolist()
    ('uniform', [-1.0, -0.5, 0.0, 0.5, 1.0])
    """

    inputs: Float[Array, "point dim"] = parameter("inputs x, one in each row")
    width: int = parameter("number N of hidden units", minimum=1, integer=True, default=100)
    weight_variance: float = parameter(
        "variance of a hidden weight times the input dimension", above=0, default=1 / 3
    )
    readout_variance: float = parameter(
        "variance of a read-out weight times the width", above=0, default=1 / 3
    )
    half_range: float = parameter("densities cover [-half_range, half_range]", above=0, default=1.0)
    prior: Prior = structure("law of the hidden weights", default="uniform")
    readout_prior: ReadoutPrior | None = structure(
        "law of the read-out weights; None: that of the hidden weights", default=None
    )
    activation: Activation = structure(
        "activation phi", convert=activation, choices=activation_names, default="erf"
    )
    bins: int = structure("number of bins of a density", minimum=1, default=40)

    @property
    def readout_law(self) -> ReadoutPrior:
        """The law of the read-out weights: `readout_prior`, or `prior` where that is None."""
        return self.prior if self.readout_prior is None else self.readout_prior

    @property
    def edges(self) -> Float[Array, "edge"]:
        """The edges of the bins of a density, in increasing order."""
        return self.half_range * jnp.linspace(-1, 1, self.bins + 1)


class DeepNetwork(System):
    r"""A deep network with Gaussian weights and biases, observed at one input.

    Weights have variance `weight_variance` / fan-in ($\sigma_w^2$) and biases have variance
    `bias_variance` ($\sigma_b^2$). After l hidden layers of n units (`width`) the pre-activation
    $z^{(l)}$ is Gaussian given the layer before, with the random variance

    $$ \hat K_l = \sigma_b^2 + \sigma_w^2 \frac1n \sum_{i=1}^{n} \varphi(z_i^{(l-1)})^2,
       \qquad l = 1 \dots \mathrm{depth} $$

    The pre-activations of the first layer have the variance `first_variance`, $K_0 = \sigma_b^2 +
    \sigma_w^2 |x|^2 / d$, so that the input itself is not needed.

    Source: Yaida (2020); Roberts, Yaida, Hanin (2021), chapter 4.

    >>> DeepNetwork(width=50, depth=2).activation.name
    'relu'
    """

    width: int = parameter(
        "number n of units in every hidden layer", minimum=1, integer=True, default=100
    )
    weight_variance: float = parameter(
        "variance of a weight times its fan-in", above=0, default=2.0
    )
    bias_variance: float = parameter("variance of a bias", minimum=0, default=0.0)
    first_variance: float = parameter("variance of the first pre-activations", above=0, default=2.0)
    depth: int = structure("number of hidden layers", minimum=1, default=3)
    activation: Activation = structure(
        "activation phi", convert=activation, choices=activation_names, default="relu"
    )


class NetworkKernels(System):
    r"""The kernels of random networks of finite width at given inputs.

    Weights are Gaussian, in the "ntk" parametrisation (unit variance, with a factor
    $\sqrt{\sigma_w^2 / \mathrm{fan\,in}}$ beside them); the read-out has the same
    `weight_variance`. With `family` "fully connected" the inputs have the shape (point, dim). With
    "convolutional" they have the shape (point, *grid, channel); a unit sees a window of `window`
    pixels with circular padding, a hidden layer has `width` channels, and the mean over pixels is
    read out.

    Raises:
        ValueError: for inputs of another shape.

    Source: Lee et al. (2018); Jacot, Gabriel, Hongler (2018); Novak et al. (2019).

    >>> network = NetworkKernels([[1.0, 0.5]], width=8).architecture(finite=False)
    >>> network.kernel([[1.0, 0.5]]).nngp.shape
    (1, 1)
    """

    inputs: Float[Array, "point *shape"] = parameter("inputs x, one in each row")
    width: int = parameter(
        "units in every hidden layer (channels)", minimum=1, integer=True, default=100
    )
    weight_variance: float = parameter(
        "variance of a weight times its fan-in", above=0, default=2.0
    )
    bias_variance: float = parameter("variance of a bias", minimum=0, default=0.0)
    depth: int = structure("number of hidden layers", minimum=1, default=1)
    activation: Activation = structure(
        "activation phi", convert=activation, choices=activation_names, default="relu"
    )
    family: Family = structure("fully connected or convolutional", default="fully connected")
    window: int = structure("pixels seen by one unit of a convolution", minimum=1, default=3)

    def __check_init__(self) -> None:
        ranks = len(self.inputs.shape)
        if ranks != 2 if self.family == "fully connected" else ranks < 3:
            wanted = (
                "(point, dim)" if self.family == "fully connected" else "(point, *grid, channel)"
            )
            raise ValueError(
                f"{type(self).__name__}.inputs has shape {self.inputs.shape}: must be {wanted}"
            )

    def architecture(self, finite: bool = True) -> Architecture:
        """The architecture of the network, with the hidden layers `width` units wide.

        Args:
            finite: False leaves the width unspecified, which the kernels of infinite width require.
        """
        width = self.size("width") if finite else None
        if self.family == "fully connected":
            return fully_connected(
                self.depth, width, self.activation, self.weight_variance, self.bias_variance
            )
        return convolutional(
            self.depth,
            width,
            self.window,
            self.activation,
            padding="circular",
            readout="global_average",
            weight_variance=self.weight_variance,
            bias_variance=self.bias_variance,
        )


class AngledPair(System):
    r"""A deep fully connected network at two inputs of length sqrt(d) with an angle between them.

    The kernel of the first layer is $K_0 = \sigma_b^2 + \sigma_w^2\, x \cdot x' / d$, with
    $\sigma_b^2$ the `bias_variance`, $\sigma_w^2$ the `weight_variance` and $x \cdot x' / d$ the
    cosine of `angle`. Only experiments depend on `width`.

    Source: Poole et al. (2016).

    >>> AngledPair(angle=0.0).inputs.shape
    (2, 2)
    """

    angle: float = parameter(
        "angle between the inputs, in radians", minimum=0, maximum=np.pi, default=np.pi / 2
    )
    weight_variance: float = parameter(
        "variance of a weight times its fan-in", above=0, default=2.0
    )
    bias_variance: float = parameter("variance of a bias", minimum=0, default=0.0)
    width: int = parameter("units in every hidden layer", minimum=1, integer=True, default=200)
    depth: int = structure("number of hidden layers", minimum=1, default=3)
    activation: Activation = structure(
        "activation phi", convert=activation, choices=activation_names, default="relu"
    )

    @property
    def inputs(self) -> Float[Array, "point dim"]:
        """The two inputs, one in each row, in two dimensions."""
        return np.sqrt(2.0) * jnp.array([[1.0, 0.0], [jnp.cos(self.angle), jnp.sin(self.angle)]])
