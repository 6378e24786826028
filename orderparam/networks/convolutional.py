"""Convolutional and locally connected architectures with a flattened or a pooled read-out."""

from typing import Any, Literal

from orderparam.core.fields import check_integer
from orderparam.core.system import nearest
from orderparam.gaussian.activations import Activation
from orderparam.gaussian.activations import activation as find_activation
from orderparam.kernels.window import Padding
from orderparam.networks.architecture import Architecture, Scaling
from orderparam.networks.composition import Serial
from orderparam.networks.convolution import Convolution, UnsharedConvolution
from orderparam.networks.dense import Dense, Nonlinearity
from orderparam.networks.layer import Layer
from orderparam.networks.options import PerLayer, bias_variances, each_layer, mean_field_scale
from orderparam.networks.pooling import Flatten, GlobalAveragePool

Readout = Literal["flatten", "global_average"]
_READOUTS: dict[str, Layer] = {"flatten": Flatten(), "global_average": GlobalAveragePool()}


def convolutional(
    depth: int,
    channels: PerLayer,
    window: int | tuple[int, ...],
    activation: str | Activation,
    *,
    strides: int | tuple[int, ...] = 1,
    padding: Padding = "same",
    readout: Readout = "flatten",
    shared: bool = True,
    weight_variance: PerLayer = 1.0,
    bias_variance: PerLayer = 0.0,
    readout_variance: Any = None,
    outputs: int = 1,
    scaling: Scaling = "ntk",
    chi: Any = None,
) -> Architecture:
    """`depth` convolutional layers of equal window, strides and padding, then a read-out of all
    pixels or of their mean.

    Inputs have shape (examples, *grid, channels). shared=False gives every output pixel its own
    weights (`UnsharedConvolution`). readout: "flatten" (one weight for each pixel and channel) or
    "global_average" (one for each channel). The read-out weights have variance readout_variance /
    fan_in; the other arguments are those of `fully_connected`, with `channels` for its width, and
    the errors are the same.
    """
    check_integer("depth", depth, 1, " (the number of hidden layers)")
    if readout not in _READOUTS:
        raise ValueError(f"readout = {readout!r}{nearest(str(readout), list(_READOUTS))}")
    numbers = each_layer("channels", channels, depth)
    variances = each_layer("weight_variance", weight_variance, depth)
    biases = bias_variances(bias_variance, depth + 1)
    phi = find_activation(activation)
    kind = Convolution if shared else UnsharedConvolution
    layers: list[Layer] = []
    for number, variance, bias in zip(numbers, variances, biases):
        layers.append(
            kind(number, window, strides, padding, weight_variance=variance, bias_variance=bias)
        )
        layers.append(Nonlinearity(phi))
    final = variances[-1] if readout_variance is None else readout_variance
    layers += [_READOUTS[readout], Dense(outputs, weight_variance=final, bias_variance=biases[-1])]
    return Architecture(Serial(tuple(layers)), scaling, mean_field_scale(chi, scaling, numbers[-1]))
