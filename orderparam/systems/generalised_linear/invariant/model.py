"""Linear measurements by a rotationally invariant matrix."""

from orderparam.core.system import System, parameter, part
from orderparam.priors import Prior, prior


class InvariantDesign(System):
    """y = X w + sqrt(noise) z, n = sample_ratio * d rows, X = U S V^T with random rotations U and V.

    The min(n, d) singular values are spaced evenly in their logarithm from the smallest to `condition` times it, with
    sum s^2 = n, as for rows of Gaussian entries of variance 1/d. condition = 1: orthogonal rows (or columns).
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0)
    condition: float = parameter("largest singular value over the smallest", minimum=1, maximum=1e6, default=1.0)
    noise: float = parameter("variance of the label noise", above=0, default=0.01)
    prior: Prior = part("law of a weight", convert=prior, default="sparse")
    input_dim: float = parameter("dimension d of a run", minimum=2, integer=True, default=1000)
