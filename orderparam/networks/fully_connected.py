"""Fully connected architectures, and the short text that names one: "fc:3x512:erf"."""

import re
from typing import Any

from orderparam.core.fields import check_integer
from orderparam.gaussian.activations import Activation
from orderparam.gaussian.activations import activation as find_activation
from orderparam.networks.architecture import Architecture, Scaling
from orderparam.networks.composition import Serial
from orderparam.networks.dense import Dense, Nonlinearity
from orderparam.networks.layer import Layer
from orderparam.networks.options import PerLayer, bias_variances, each_layer, mean_field_scale


def fully_connected(
    depth: int,
    width: PerLayer,
    activation: str | Activation,
    weight_variance: PerLayer = 1.0,
    bias_variance: PerLayer = 0.0,
    readout_variance: Any = None,
    outputs: int = 1,
    scaling: Scaling = "ntk",
    chi: Any = None,
) -> Architecture:
    """f = W^{L+1} phi(W^L ... phi(W^1 x + b^1) ...) + b^{L+1} with L = `depth` hidden layers.

    W^l_ij ~ N(0, weight_variance_l / fan_in), b^l_i ~ N(0, bias_variance_l), W^{L+1}_ij ~ N(0,
    readout_variance / width_L). At infinite width K^0 = bias_variance + weight_variance x.x'/d and
    K^l = bias_variance + weight_variance F(K^{l-1}); the output has K^L.

    width: one width, `depth` widths, or None for the infinitely wide network only. weight_variance:
    one number, or `depth` numbers for the hidden layers. readout_variance: None means the last
    hidden layer's. bias_variance: one number, or depth + 1 numbers, the last for the read-out. Zero
    means no biases. scaling, chi: see `Architecture`; in "mean_field" scaling chi is the last width
    unless it is given.

    Raises `ValueError` for a depth below one, a wrong number of widths or variances, and values out
    of range.
    """
    check_integer("depth", depth, 1, " (the number of hidden layers)")
    widths = each_layer("width", width, depth)
    variances = each_layer("weight_variance", weight_variance, depth)
    biases = bias_variances(bias_variance, depth + 1)
    phi = find_activation(activation)
    layers: list[Layer] = []
    for one_width, variance, bias in zip(widths, variances, biases):
        layers += [
            Dense(one_width, weight_variance=variance, bias_variance=bias),
            Nonlinearity(phi),
        ]
    readout = variances[-1] if readout_variance is None else readout_variance
    layers.append(Dense(outputs, weight_variance=readout, bias_variance=biases[-1]))
    return Architecture(Serial(tuple(layers)), scaling, mean_field_scale(chi, scaling, widths[-1]))


def parse(text: str, **options: Any) -> Architecture:
    """The architecture named by "fc:DEPTHxWIDTH:ACTIVATION", or "fc:DEPTH:ACTIVATION" for the
    infinitely wide network only.

    `parse("fc:3x512:erf", weight_variance=2.0)`; `options` are those of `fully_connected`.
    Raises `ValueError` that says which part of the text is wrong.
    """
    parts = text.split(":")
    if len(parts) != 3:
        raise ValueError(
            f"architecture {text!r}: must read fc:DEPTHxWIDTH:ACTIVATION, such as fc:3x512:erf or "
            "fc:3:erf"
        )
    family, size, name = parts
    if family != "fc":
        raise ValueError(
            f"architecture {text!r}: unknown family {family!r}; there is: fc (fully connected)"
        )
    match = re.fullmatch(r"(\d+)(?:x(\d+))?", size)
    if match is None:
        raise ValueError(
            f"architecture {text!r}: {size!r} must be DEPTHxWIDTH or DEPTH, such as 3x512"
        )
    depth, width = int(match[1]), None if match[2] is None else int(match[2])
    return fully_connected(depth, width, name, **options)
