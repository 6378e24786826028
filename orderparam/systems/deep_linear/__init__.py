"""Deep linear networks in time: exact solutions of training from lazy to rich."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.deep_linear.experiment import (
        DeepLayerPath,
        LinearNetworkPath,
        trained_layers,
        trained_linear_network,
        trained_modes,
    )
    from orderparam.systems.deep_linear.model import DeepModes, LinearModes, LinearNetwork
    from orderparam.systems.deep_linear.theory import (
        DeepModePath,
        LinearPath,
        ModePath,
        balanced_flow,
        deep_modes,
        lazy_to_rich_modes,
        moment_flow,
    )

LABELS = {
    "output": ("output of a mode", "o"),
    "kernel": ("tangent kernel of a mode", r"\kappa"),
    "kernel_start": ("tangent kernel at the start", "c"),
    "misalignment": ("random part of the layers", ""),
}

__all__ = exported(globals())
