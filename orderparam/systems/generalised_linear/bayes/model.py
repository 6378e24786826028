"""Weights seen through projections, random or rotationally invariant, and a law of labels."""

from orderparam.channels import Likelihood, channel
from orderparam.core.system import System, parameter, part
from orderparam.priors import Prior, prior

# ------------------------------------------------------------------------------------------------
# Weights seen through random projections and a law of labels.


class GeneralisedLinear(System):
    """Labels y ~ P(y | nu) of fields nu = w.x, with weights w_i from the prior and n = sample_ratio
    * d inputs x ~ N(0, I/d).

    The prior and the law of the labels are known; rho = E w^2 is the variance of the fields.
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0)
    labels: Likelihood = part("law of the labels given the field", convert=channel, default="sign")
    prior: Prior = part("law of a weight", convert=prior, default="gaussian")
    input_dim: float = parameter("dimension d of a run", minimum=2, integer=True, default=1000)


# ------------------------------------------------------------------------------------------------
# Linear measurements by a rotationally invariant matrix.


class InvariantDesign(System):
    """y = X w + sqrt(noise) z, n = sample_ratio * d rows, X = U S V^T with random rotations U and
    V.

    The min(n, d) singular values are spaced evenly in their logarithm from the smallest to
    `condition` times it, with sum s^2 = n, as for rows of Gaussian entries of variance 1/d.
    condition = 1: orthogonal rows (or columns).
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0)
    condition: float = parameter(
        "largest singular value over the smallest", minimum=1, maximum=1e6, default=1.0
    )
    noise: float = parameter("variance of the label noise", above=0, default=0.01)
    prior: Prior = part("law of a weight", convert=prior, default="sparse")
    input_dim: float = parameter("dimension d of a run", minimum=2, integer=True, default=1000)
