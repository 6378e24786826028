"""Division of grid points and seeds over the devices of a machine."""

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def rounded_up(count: int) -> int:
    """The next multiple of the number of devices, so that each gets as many; 1 remains 1, because
    one point is computed by one device."""
    devices = jax.device_count()
    return count if count == 1 else -(-count // devices) * devices


def over_devices(count: int) -> NamedSharding | None:
    """The sharding that divides the rows of an array over the devices in equal parts, so that what
    is computed from a row is computed on its device.

    None with one device, or where the number of rows is no multiple of that of the devices.
    """
    devices = jax.devices()
    if len(devices) == 1 or count % len(devices):
        return None
    return NamedSharding(Mesh(np.asarray(devices), ("point",)), PartitionSpec("point"))
