"""What all flows ask of a spectrum of modes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from orderparam.kernels.decimation import largest


def check_positive(system: Any) -> None:
    """`ValueError` unless all modes of the system's spectrum are there (positive eigenvalues) and its cut lies among them."""
    spectrum, name = system.spectrum, type(system).__name__
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((spectrum, system.cut))):
        return
    eigenvalues, multiplicities = np.asarray(spectrum.eigenvalues), np.asarray(spectrum.multiplicities)
    if np.any(eigenvalues <= 0):
        raise ValueError(
            f"{name}.spectrum.eigenvalues = {eigenvalues[eigenvalues <= 0][0]:g}: must be > 0 in every entry (a mode without "
            "variance cannot be integrated out; put the target on it into tail_power)"
        )
    cut, modes = np.asarray(system.cut), multiplicities.sum(axis=-1)
    if np.any(np.isfinite(cut) & (cut > modes)):
        raise ValueError(f"{name}.cut = {system.cut}: must be at most {modes:g}, the number of modes, or inf for all of them")


def kept_levels(system: Any) -> Bool[Array, "level"]:
    """The levels of a system's spectrum that its cut keeps."""
    return jnp.isinf(system.cut) | largest(system.spectrum, system.cut)
