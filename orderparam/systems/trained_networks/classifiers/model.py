"""Classifiers of images: networks of four architectures that learn one training set by gradient
descent."""

from typing import Literal

from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, structure
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.networks.architecture import Architecture
from orderparam.networks.composition import Serial
from orderparam.networks.convolution import Convolution, UnsharedConvolution
from orderparam.networks.dense import Dense, Nonlinearity
from orderparam.networks.layer import Layer
from orderparam.networks.pooling import Flatten, GlobalAveragePool

Family = Literal["fully connected", "locally connected", "convolutional", "pooled"]


class ImageArchitecture(System):
    r"""A network with two hidden layers that learns to classify images by gradient descent.

    $f(x) = g_\theta(x) - g_{\theta_0}(x)$ with g in ntk scaling and one output for each class. All
    parameters are trained on $\frac12 \sum_\mu |y_\mu - f_\mu|^2$, from $f = 0$ until the training
    error is `level` times that of the start. The families of architectures:

    - "convolutional": filters of 3 x 3 pixels at every second pixel, then filters of 3 x 3 pixels
      at every pixel, and a read-out of every pixel;
    - "locally connected": the same layers without shared weights, which have the same limit of
      infinite width (Novak et al. 2019);
    - "pooled": the convolutional layers with a read-out of the mean over pixels;
    - "fully connected": two dense layers.

    All hidden layers have N = `channels` channels or units; pixels beyond the edge are 0.

    Raises:
        ValueError: for data whose shapes do not fit.

    Source: Novak et al. (2019).

    >>> import numpy as np
    >>> x, y = np.ones((4, 4, 4, 1)), np.eye(4)
    >>> ImageArchitecture(x, y, x, y, family="pooled").architecture.layers.output_shape((4, 4, 1))
    (4,)
    """

    inputs: Float[Array, "train *input"] = parameter("training images (train, side, side, channel)")
    targets: Float[Array, "train label"] = parameter("their targets, one column for each class")
    test_inputs: Float[Array, "test *input"] = parameter("test images")
    test_targets: Float[Array, "test label"] = parameter("their targets")
    channels: int = parameter(
        "channels or units N of each hidden layer", minimum=1, integer=True, default=16
    )
    weight_variance: float = parameter("variance of the hidden weights", above=0, default=2.0)
    learning_rate: float = parameter(
        "part of the residual that a first step takes away at most", above=0, maximum=1, default=0.5
    )
    level: float = parameter(
        "training error at the end, over that of the start", above=0, below=1, default=0.01
    )
    family: Family = structure("architecture", default="convolutional")
    steps: int = structure("largest number of steps", minimum=1, default=20_000)
    activation: Activation = structure(
        "nonlinearity", convert=activation, choices=activation_names, default="relu", kw_only=True
    )

    def __check_init__(self) -> None:
        name = type(self).__name__
        if self.inputs.ndim != 4 or self.inputs.shape[1] != self.inputs.shape[2]:
            raise ValueError(
                f"{name}.inputs has shape {self.inputs.shape}: must be (examples, side, side, "
                "channel)"
            )
        for inputs, targets in (("inputs", "targets"), ("test_inputs", "test_targets")):
            x, y = getattr(self, inputs), getattr(self, targets)
            if len(x) != len(y) or x.shape[1:] != self.inputs.shape[1:]:
                raise ValueError(
                    f"{name}.{inputs} has shape {x.shape} and {targets} {y.shape}: must be equally "
                    f"many, like {self.inputs.shape}"
                )

    @property
    def architecture(self) -> Architecture:
        """The network g."""
        return architecture(
            self.family,
            self.channels,
            self.targets.shape[1],
            self.weight_variance,
            self.activation,
        )


def architecture(
    family: Family, channels: int, outputs: int, weight_variance: float, phi: Activation
) -> Architecture:
    """The network of two hidden layers of the given family, in ntk scaling."""
    read_out = Dense(outputs, weight_variance=1.0)
    if family == "fully connected":
        units = [Dense(channels, weight_variance=weight_variance) for _ in range(2)]
        start = (Flatten(), units[0], Nonlinearity(phi), units[1], Nonlinearity(phi))
        return Architecture(Serial((*start, read_out)))
    kind = UnsharedConvolution if family == "locally connected" else Convolution
    end = GlobalAveragePool() if family == "pooled" else Flatten()
    hidden: list[Layer] = []
    for strides in (2, 1):
        filters = kind(channels, 3, strides, "same", weight_variance=weight_variance)
        hidden += [filters, Nonlinearity(phi)]
    return Architecture(Serial((*hidden, end, read_out)))
