"""The named figures of the room: importing this registers them all."""

from orderparam.systems.kernel_adaptation.deep import studies as deep
from orderparam.systems.kernel_adaptation.dynamics import studies as dynamics
from orderparam.systems.kernel_adaptation.on_data import studies as on_data
from orderparam.systems.kernel_adaptation.patches import studies as patches
from orderparam.systems.kernel_adaptation.two_layers import studies as two_layers

__all__ = ["deep", "dynamics", "on_data", "patches", "two_layers"]
