"""The spectrum of a kernel over the input measure, and how the target is spread over it: all that a learning curve depends on.

Mercer's expansion K(x, x') = sum_k lambda_k phi_k(x) phi_k(x') with E[phi_k phi_l] = delta_kl, and y(x) = sum_k y_k phi_k(x).
"""

from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Num

# Eigenvalues of a Gram matrix may come out this far below zero (relative to the largest) by rounding; further is an error.
_NEGATIVE = 1e-8


class Spectrum(eqx.Module):
    """Eigenvalues of a kernel in levels of equal eigenvalue, with the target's power in each.

    eigenvalues:    (level,) lambda >= 0, in any order.
    multiplicities: (level,) m >= 0, the number of modes in the level; need not be an integer (a quadrature weight, for example).
    target_power:   (level,) Y = sum of y_k^2 over the modes of the level (summed over the outputs of a target that has several).
                    A part of the target outside the kernel's range goes into a level with eigenvalue 0.
    tail:           sum of the eigenvalues of all modes that are not resolved. They are too small to be learned one by one and act
                    together as an additional ridge.
    tail_power:     target power on the unresolved modes; it is never learned and acts as label noise.

    Every entry is a leaf. Raises `ValueError` for shapes that differ, and for entries that are negative or not finite.
    """

    eigenvalues: Float[Array, "level"]
    multiplicities: Float[Array, "level"]
    target_power: Float[Array, "level"]
    tail: Float[Array, ""]
    tail_power: Float[Array, ""]

    def __init__(
        self,
        eigenvalues: Num[ArrayLike, "level"],
        target_power: Num[ArrayLike, "level"],
        multiplicities: Num[ArrayLike, "level"] | None = None,
        tail: Num[ArrayLike, ""] = 0.0,
        tail_power: Num[ArrayLike, ""] = 0.0,
    ):
        """Multiplicities are 1 unless given."""
        self.eigenvalues = _as_float("eigenvalues", eigenvalues)
        self.target_power = _as_float("target_power", target_power)
        self.multiplicities = (
            jnp.ones_like(self.eigenvalues) if multiplicities is None else _as_float("multiplicities", multiplicities)
        )
        self.tail = _as_float("tail", tail)
        self.tail_power = _as_float("tail_power", tail_power)

    def __check_init__(self) -> None:
        if self.eigenvalues.ndim != 1 or self.eigenvalues.size == 0:
            raise ValueError(f"Spectrum.eigenvalues has shape {self.eigenvalues.shape}: must be (level,) with at least one level")
        for name in ("target_power", "multiplicities"):
            shape = getattr(self, name).shape
            if shape != self.eigenvalues.shape:
                raise ValueError(f"Spectrum.{name} has shape {shape}: must be that of the eigenvalues, {self.eigenvalues.shape}")
        for name in ("eigenvalues", "multiplicities", "target_power", "tail", "tail_power"):
            _check_range(name, getattr(self, name))

    @property
    def total(self) -> Float[Array, ""]:
        """E_x K(x, x) = sum of all eigenvalues, the unresolved ones included."""
        return self.eigenvalues @ self.multiplicities + self.tail

    @property
    def rank(self) -> Float[Array, ""]:
        """Number of resolved modes with a positive eigenvalue."""
        return jnp.sum(jnp.where(self.eigenvalues > 0, self.multiplicities, 0.0))

    @property
    def total_power(self) -> Float[Array, ""]:
        """E_x y(x)^2 = all power of the target: the error of the predictor that is zero everywhere."""
        return jnp.sum(self.target_power) + self.tail_power

    @classmethod
    def from_pool(cls, kernel: Num[ArrayLike, "pool pool"], targets: Num[ArrayLike, "pool *output"]) -> Self:
        """Spectrum over a finite pool of inputs with equal weights (the empirical measure).

        K / M = U diag(lambda) U^T, phi_k(x_i) = sqrt(M) U_ik, y_k = U_k.y / sqrt(M), so that the power sums to the mean of y^2.
        Eigenvalues that are negative by rounding are set to 0. Cost O(M^3); levels come in decreasing order.

        kernel: (M, M) symmetric positive semi-definite; targets: (M,) or (M, outputs).
        Raises `ValueError` when the kernel is not that, or when the targets do not fit.
        """
        gram, labels = check_pool(kernel, targets)
        size = gram.shape[0]
        eigenvalues, vectors = jnp.linalg.eigh(gram / size)
        if eigenvalues[0] < -_NEGATIVE * max(float(eigenvalues[-1]), 0.0):
            raise ValueError(
                f"kernel has the eigenvalue {size * float(eigenvalues[0]):g} (largest {size * float(eigenvalues[-1]):g}): "
                "must be positive semi-definite"
            )
        power = jnp.sum((vectors.T @ labels.reshape(size, -1)) ** 2, axis=1) / size
        return cls(jnp.maximum(eigenvalues, 0.0)[::-1], power[::-1])


def check_pool(
    kernel: Num[ArrayLike, "pool pool"], targets: Num[ArrayLike, "pool *output"]
) -> tuple[Float[Array, "pool pool"], Float[Array, "pool *output"]]:
    """Kernel matrix and targets of a pool in float64; `ValueError` for shapes, entries that are not finite, or asymmetry."""
    gram, labels = _as_float("kernel", kernel), _as_float("targets", targets)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or gram.shape[0] == 0:
        raise ValueError(f"kernel has shape {gram.shape}: must be (pool, pool)")
    if labels.ndim not in (1, 2) or labels.shape[0] != gram.shape[0]:
        raise ValueError(f"targets has shape {labels.shape}: must be ({gram.shape[0]},) or ({gram.shape[0]}, outputs)")
    for name, value in (("kernel", gram), ("targets", labels)):
        if not bool(jnp.all(jnp.isfinite(value))):
            raise ValueError(f"{name} has entries that are not finite")
    asymmetry = float(jnp.max(jnp.abs(gram - gram.T)))
    if asymmetry > 1e-10 * float(jnp.max(jnp.abs(gram))):
        raise ValueError(f"kernel differs from its transpose by {asymmetry:g}: must be symmetric")
    return gram, labels


def _as_float(name: str, value: Any) -> Array:
    """`value` as a float64 array; `ValueError` where it holds no real numbers."""
    try:
        array = jnp.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} = {value!r}: must be an array of numbers") from error
    if not (jnp.issubdtype(array.dtype, jnp.floating) or jnp.issubdtype(array.dtype, jnp.integer)):
        raise ValueError(f"{name} has entries of type {array.dtype}: must be real numbers")
    return array.astype(jnp.float64)


def _check_range(name: str, value: Array) -> None:
    if isinstance(value, jax.core.Tracer):  # traced values pass: they were checked when they were concrete
        return
    array = np.asarray(value)
    if not np.all(np.isfinite(array)) or np.any(array < 0):
        bad = array[~(np.isfinite(array) & (array >= 0))].ravel()[0]
        raise ValueError(f"Spectrum.{name} has the entry {bad:g}: must be finite and >= 0")
