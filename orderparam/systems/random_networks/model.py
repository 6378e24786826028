"""Networks with random weights, before any training: what is drawn, and where the random function
is looked at.

The prior over weights is a prior over functions (Neal 1996). Three ways to look at it: the values
of a network with one hidden layer at some inputs (`RandomNetwork`), a deep network at one input
(`DeepNetwork`), and the kernels of networks of finite width (`NetworkKernels`).
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
    """z(x) = sum_c a_c phi(w_c . x), c = 1 .. width, with independent weights of zero mean and

        Var w_ci = weight_variance / input_dim,    Var a_c = readout_variance / width.

    `prior` is the law of the w_ci and `readout_prior` that of the a_c (None: the same). The
    defaults are w_ci ~ Uniform[-d^(-1/2), d^(-1/2)] and a_c ~ Uniform[-N^(-1/2), N^(-1/2)], whose
    variances are 1/(3d) and 1/(3N). Values of the random function at `inputs` are what is observed;
    densities are averaged over `bins` equal bins of [-half_range, half_range].
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
        """The law of the read-out weights."""
        return self.prior if self.readout_prior is None else self.readout_prior

    @property
    def edges(self) -> Float[Array, "edge"]:
        """The edges of the bins."""
        return self.half_range * jnp.linspace(-1, 1, self.bins + 1)


class DeepNetwork(System):
    """A deep network at one input: Gaussian weights of variance weight_variance / fan-in, biases of
    variance bias_variance.

    first_variance is the variance K_0 = bias_variance + weight_variance |x|^2 / d of the first
    pre-activations. After l hidden layers of `width` units, z^(l) is Gaussian given the layer
    before, with the random variance

        Khat_l = bias_variance + weight_variance (1/width) sum_i phi(z_i^(l-1))^2,   l = 1 .. depth.
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
    """The kernels of random networks of finite width at the given inputs, Gaussian weights in the
    "ntk" scaling.

    family "fully connected": inputs (point, dim); "convolutional": inputs (point, *grid, channel),
    windows of `window` pixels with circular padding, the mean over pixels read out, and `width`
    channels. weight_variance is also the read-out's.
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
        """The network itself; `finite` False leaves the width open."""
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
    """Two inputs of length sqrt(d) at an angle, seen by a deep fully connected network.

    K_0 = bias_variance + weight_variance x.x'/d at the first layer; `width` and `input_dim` matter
    to finite networks only.
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
        """The two inputs, in two dimensions."""
        return np.sqrt(2.0) * jnp.array([[1.0, 0.0], [jnp.cos(self.angle), jnp.sin(self.angle)]])
