"""Finite networks of a chosen width."""

from typing import Any

import jax

from orderparam.networks.architecture import Architecture
from orderparam.networks.dense import Dense


def of_width(architecture: Architecture, width: int) -> Architecture:
    """The architecture with its open widths filled in."""

    def fill(layer: Any) -> Any:
        return layer.with_(width=width) if isinstance(layer, Dense) and layer.width is None else layer

    return jax.tree.map(fill, architecture, is_leaf=lambda layer: isinstance(layer, Dense))
