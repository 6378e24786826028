"""Checks of a system's spectrum, and the modes of a kernel over a pool, which all flows use."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Num

from orderparam.kernels.decimation import largest
from orderparam.kernels.gram import checked_gram
from orderparam.kernels.spectrum import Spectrum


def check_positive(system: Any) -> None:
    """Raise `ValueError` unless all eigenvalues of the system's spectrum are positive and its cut
    is at most the number of modes.
    """
    spectrum, name = system.spectrum, type(system).__name__
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((spectrum, system.cut))):
        return
    eigenvalues, multiplicities = (
        np.asarray(spectrum.eigenvalues),
        np.asarray(spectrum.multiplicities),
    )
    if np.any(eigenvalues <= 0):
        raise ValueError(
            f"{name}.spectrum.eigenvalues = {eigenvalues[eigenvalues <= 0][0]:g}: must be > 0 in "
            "every entry (a mode without variance cannot be integrated out; put the target on it "
            "into tail_power)"
        )
    cut, modes = np.asarray(system.cut), multiplicities.sum(axis=-1)
    if np.any(np.isfinite(cut) & (cut > modes)):
        raise ValueError(
            f"{name}.cut = {system.cut}: must be at most {modes:g}, the number of modes, or inf "
            "for all of them"
        )


def kept_levels(system: Any) -> Bool[Array, "level"]:
    """Mask of the levels of a system's spectrum that its cut keeps."""
    return jnp.isinf(system.cut) | largest(system.spectrum, system.cut)


def pool_modes(
    kernel: Num[ArrayLike, "pool pool"], targets: Num[ArrayLike, "pool"], modes: int | None = None
) -> tuple[Spectrum, Float[Array, "pool mode"]]:
    """Spectrum and modes of a kernel over a pool of N points, restricted to the largest `modes`
    (None: all).

    K / N = U diag(lambda) U^T, and the modes are phi_k(x_i) = sqrt(N) U_ik. Eigenvalues below
    rounding (1e-14 of the largest) are dropped. The target's power outside of the remaining modes
    becomes `tail_power`. Raises `ValueError` for a matrix that is not positive semi-definite, and
    for targets that do not fit it.
    """
    gram, labels = checked_gram(kernel, targets)
    size = gram.shape[0]
    eigenvalues, vectors = np.linalg.eigh(np.asarray(gram) / size)
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    if eigenvalues[0] <= 0 or eigenvalues[-1] < -1e-8 * eigenvalues[0]:
        raise ValueError(
            f"kernel has the eigenvalue {size * eigenvalues[-1]:g}: must be positive semi-definite"
        )
    count = min(modes or size, int(np.count_nonzero(eigenvalues > 1e-14 * eigenvalues[0])))
    power = (vectors.T @ np.asarray(labels)) ** 2 / size
    spectrum = Spectrum(eigenvalues[:count], power[:count], tail_power=power[count:].sum())
    return spectrum, jnp.asarray(np.sqrt(size) * vectors[:, :count])


def single_modes(system: Any, **_: Any) -> None:
    """Raise `ValueError` unless every level is one mode, because experiments draw modes one by
    one."""
    if np.any(np.asarray(system.spectrum.multiplicities) != 1):
        raise ValueError(
            f"{type(system).__name__}.spectrum.multiplicities: must be 1 in every entry (modes are "
            "drawn one by one)"
        )


def check_pool(system: Any) -> None:
    """Raise `ValueError` unless the pool has one feature for each mode and at least n_train
    points.
    """
    name, modes, pool = (
        type(system).__name__,
        system.spectrum.eigenvalues.shape[-1],
        system.targets.shape[-1],
    )
    if system.features.shape[-1] != modes:
        raise ValueError(
            f"{name}.features has {system.features.shape[-1]} columns: must have {modes}, one for "
            "each mode"
        )
    if not isinstance(system.n_train, jax.core.Tracer) and np.any(
        np.asarray(system.n_train) > pool
    ):
        raise ValueError(
            f"{name}.n_train = {system.n_train}: must be <= {pool}, the size of the pool"
        )
