"""What the label tells about the hidden fields: E[h_a(z) | y], the quantities that no transformation of the labels can hide."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LabelMoments:
    """Averages over the label of products of zeta_a(y) = E[h_a(z) | y], r hidden indices.

    grams[k - 1], of shape (r, r): sum over |b| = k - 1 of sqrt((b_i + 1) (b_j + 1)) E_y[zeta_{b + e_i} zeta_{b + e_j}]; its range
    are the directions that order k shows. For k = 1 it is E[m m^T], m = E[z | y]; for k = 2 it is E[G^2], G = E[z z^T - 1 | y].
    operator: X -> E_y[G X G] on symmetric X (Troiani et al. 2024), in the orthonormal basis of `symmetric_pairs`.
    powers[k - 1]: sum over |a| = k of E_y[zeta_a^2], for one index lambda_k^2 <= 1 (Damian et al. 2024).
    tolerance: absolute accuracy of all of them. method: how they were computed.
    """

    grams: tuple[np.ndarray, ...]
    operator: np.ndarray
    powers: tuple[float, ...]
    tolerance: float
    method: str

    @property
    def signal(self) -> tuple[float, ...]:
        """The powers, 0 below the tolerance."""
        return tuple(power if abs(power) > self.tolerance else 0.0 for power in self.powers)

    @property
    def eigenvalues(self) -> tuple[float, float]:
        """The largest eigenvalues of E[m m^T] and of the operator, 0 below the tolerance; for one index lambda_1^2 and
        2 lambda_2^2. The best algorithm sees order 2 from n / d = 1 / the second."""
        first, second = (float(np.linalg.eigvalsh(matrix)[-1]) for matrix in (self.grams[0], self.operator))
        return first if first > self.tolerance else 0.0, second if second > self.tolerance else 0.0

    @classmethod
    def average(cls, weights: np.ndarray, parts: "list[LabelMoments]") -> "LabelMoments":
        """The average over values of what is known already."""
        share = np.asarray(weights) / np.sum(weights)
        orders = min(len(part.powers) for part in parts)
        return cls(
            tuple(sum(w * part.grams[k] for w, part in zip(share, parts)) for k in range(orders)),
            sum(w * part.operator for w, part in zip(share, parts)),
            tuple(float(sum(w * part.powers[k] for w, part in zip(share, parts))) for k in range(orders)),
            float(sum(w * part.tolerance for w, part in zip(share, parts))),
            parts[0].method,
        )
