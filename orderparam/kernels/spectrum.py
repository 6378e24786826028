"""The spectrum of a kernel over the input measure, and the power of the target on its modes: a
learning curve depends on nothing else.

Mercer's expansion K(x, x') = sum_k lambda_k phi_k(x) phi_k(x') with E[phi_k phi_l] = delta_kl, and
y(x) = sum_k y_k phi_k(x).
"""

from typing import Any, Self

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Num

from orderparam.core.fields import declarations, parameter
from orderparam.core.system import Record
from orderparam.kernels.gram import checked_gram

# Rounding may make eigenvalues of a Gram matrix negative by this much (relative to the largest);
# more negative ones are an error.
_NEGATIVE = 1e-8


class Spectrum(Record):
    """Eigenvalues of a kernel in levels of equal eigenvalue, in any order, with the target's power
    in each.

    A multiplicity need not be an integer (a quadrature weight, for example). A part of the target
    outside the kernel's range goes into a level with eigenvalue 0. The modes of the tail are too
    small to be learned: their eigenvalues act together as a further ridge, and the target power on
    them acts as label noise. Target powers are summed over the outputs of a target that has
    several.
    """

    eigenvalues: Float[Array, "level"] = parameter("eigenvalue lambda of every level", minimum=0)
    target_power: Float[Array, "level"] = parameter(
        "sum Y of y_k^2 over the modes of every level", minimum=0
    )
    multiplicities: Float[Array, "level"] = parameter("number m of modes in every level", minimum=0)
    tail: float = parameter(
        "sum of the eigenvalues of all modes that are not resolved", minimum=0, default=0.0
    )
    tail_power: float = parameter(
        "target power on the modes that are not resolved", minimum=0, default=0.0
    )

    def __init__(
        self,
        eigenvalues: Any,
        target_power: Any,
        multiplicities: Any = None,
        tail: Any = 0.0,
        tail_power: Any = 0.0,
    ) -> None:
        """Multiplicities are 1 unless given."""
        self.eigenvalues = declarations(Spectrum)["eigenvalues"](eigenvalues)
        self.target_power = target_power
        self.multiplicities = (
            jnp.ones(self.eigenvalues.shape) if multiplicities is None else multiplicities
        )
        self.tail, self.tail_power = tail, tail_power

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
        """E_x y(x)^2 = the total power of the target, which is the error of the zero predictor."""
        return jnp.sum(self.target_power) + self.tail_power

    @classmethod
    def from_pool(
        cls, kernel: Num[ArrayLike, "pool pool"], targets: Num[ArrayLike, "pool *output"]
    ) -> Self:
        """Spectrum over a finite pool of inputs with equal weights (the empirical measure).

        K / M = U diag(lambda) U^T, phi_k(x_i) = sqrt(M) U_ik, y_k = U_k.y / sqrt(M), so that the
        power sums to the mean of y^2. Eigenvalues that are negative by rounding are set to 0. Cost
        O(M^3); levels come in decreasing order.

        kernel: (M, M) symmetric positive semi-definite; targets: (M,) or (M, outputs).
        Raises `ValueError` when the kernel is not of this form, or when the targets do not fit.
        """
        gram, labels = checked_gram(kernel, targets)
        size = gram.shape[0]
        eigenvalues, vectors = jnp.linalg.eigh(gram / size)
        if eigenvalues[0] < -_NEGATIVE * max(float(eigenvalues[-1]), 0.0):
            raise ValueError(
                f"kernel has the eigenvalue {size * float(eigenvalues[0]):g} (largest "
                f"{size * float(eigenvalues[-1]):g}): must be positive semi-definite"
            )
        power = jnp.sum((vectors.T @ labels.reshape(size, -1)) ** 2, axis=1) / size
        return cls(jnp.maximum(eigenvalues, 0.0)[::-1], power[::-1])
