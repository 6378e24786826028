"""A parity of three directions and a hint at the first: the stair that knowing it in part opens."""

import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.system import System, parameter


class HintedParity(System):
    """Labels y = sign(z1 z2 z3), z_k = w_k.x of orthonormal w_k, of n inputs x ~ N(0, 1_d), and a unit vector u with
    (u.w1)^2 = Q, u.w2 = u.w3 = 0. So omega = sqrt(Q) u.x is known of z1 = omega + sqrt(1 - Q) t.

    Without the hint (Q = 0) no n = O(d) samples show a direction.
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0)
    hint: float = parameter("squared cosine Q of the known vector with the first direction", above=0, maximum=1)
    input_dim: float = parameter("input dimension d of a run", minimum=10, integer=True, default=500)


class HintedOverlaps(Result):
    """overlap: E z_k <z_k> of the two other directions, their mean, up to what no label tells (their order, a common sign).
    hinted_overlap: E z_1 <z_1>, which is Q where the labels add nothing. residual: the last change, of ln(1 + qh / Q^2) in a
    theory, of estimates in a run."""

    overlap: Float[Array, ""]
    hinted_overlap: Float[Array, ""]
    converged: Bool[Array, ""]
    residual: Float[Array, ""]


class HintedSpectrum(Result):
    """overlap: of the two other directions, of the best estimate that the eigenvectors allow: the mean of their squared cosines
    with (w2 + w3)/sqrt(2) and (w2 - w3)/sqrt(2). eigenvalue: the largest, mean of both matrices."""

    overlap: Float[Array, ""]
    eigenvalue: Float[Array, ""]
    converged: Bool[Array, ""]


def correlation(margin: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """E[z2 z3 | y, omega], of which nothing is known, at the margin y omega / sqrt(1 - Q): (2/pi) E[y sign z1 | omega]."""
    return 2 / np.pi * erf(margin / np.sqrt(2))
