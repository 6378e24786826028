"""Checks Gram matrices and targets of a person: they are converted to float64, and refused by name
when they do not fit."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Num


def checked_gram(
    kernel: Num[ArrayLike, "example example"],
    targets: Num[ArrayLike, "example *output"],
    name: str = "kernel",
    outputs: bool = True,
) -> tuple[Float[Array, "example example"], Float[Array, "example *output"]]:
    """Kernel matrix and targets, (example,) or with `outputs` also (example, outputs), in float64.

    name: that of the matrix in messages. Raises `ValueError` for shapes that do not fit, for
    entries that are not real numbers or are too large for their type, for NaN or infinity, and for
    a matrix that is not symmetric.
    Traced values are not checked.
    """
    gram, labels = _real(name, kernel), _real("targets", targets)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or gram.shape[0] == 0:
        raise ValueError(f"{name} has shape {gram.shape}: must be square")
    count = gram.shape[0]
    if labels.ndim not in ((1, 2) if outputs else (1,)) or labels.shape[0] != count:
        raise ValueError(
            f"targets has shape {labels.shape}: must be "
            f"({count},){f' or ({count}, outputs)' if outputs else ''}"
        )
    for what, array in ((name, gram), ("targets", labels)):
        if not isinstance(array, jax.core.Tracer) and not np.isfinite(_largest(array)):
            raise ValueError(f"{what} contains NaN or infinity")
    if not isinstance(gram, jax.core.Tracer):
        host = np.asarray(gram)
        if not np.array_equal(host, host.T):
            asymmetry = float(np.max(np.abs(host - host.T)))
            if asymmetry > 1e-10 * _largest(gram):
                raise ValueError(
                    f"{name} differs from its transpose by {asymmetry:.3g}: must be symmetric"
                )
    return gram, labels


def _largest(array: Array) -> float:
    """The largest modulus, NaN where an entry is NaN: on the host, where it needs no other array of
    that size."""
    host = np.asarray(array)
    return max(float(host.max()), -float(host.min())) if host.size else 0.0


def _real(name: str, value: ArrayLike) -> Array:
    try:
        array = jnp.asarray(value)
    except OverflowError as error:
        raise ValueError(
            f"{name} has an entry that is too large: integers must be below 2^63, and larger "
            "numbers must be floats"
        ) from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} = {value!r}: must be an array of numbers") from error
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} has entries of type {array.dtype}: must be real numbers")
    return array.astype(jnp.float64)
