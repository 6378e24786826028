"""Reads the arguments of the builders of architectures: one value for all layers, or one for
each."""

from collections.abc import Sequence
from typing import Any

from orderparam.core.system import is_number

PerLayer = Any  # a number, or a sequence with one number for each layer


def each_layer(name: str, value: PerLayer, layers: int) -> list[Any]:
    """The value of every layer. Raises `ValueError` for a sequence of the wrong length."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return [value] * layers
    if len(value) != layers:
        raise ValueError(
            f"{name} = {value!r}: must be one value or {layers} values, one for each layer"
        )
    return list(value)


def bias_variances(value: PerLayer, layers: int) -> list[Any]:
    """The bias variance of every layer, None (no biases) where it is zero."""
    return [
        None if is_number(v) and v == 0 else v for v in each_layer("bias_variance", value, layers)
    ]


def mean_field_scale(chi: Any, scaling: str, last_width: Any) -> Any:
    """chi as given; by default the last width in "mean_field" scaling and 1 otherwise."""
    if chi is not None:
        return chi
    if scaling != "mean_field":
        return 1.0
    if last_width is None:
        raise ValueError(
            "chi = None with an open width: mean-field scaling needs chi, or a width to take it "
            "from"
        )
    return last_width
