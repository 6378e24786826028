"""Weights seen through random projections and a law of labels."""

from orderparam.channels import Likelihood, channel
from orderparam.core.system import System, parameter, part
from orderparam.priors import Prior, prior


class GeneralisedLinear(System):
    """Labels y ~ P(y | nu) of fields nu = w.x, with weights w_i from the prior and n = sample_ratio * d inputs x ~ N(0, I/d).

    The prior and the law of the labels are known; rho = E w^2 is the variance of the fields.
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0)
    labels: Likelihood = part("law of the labels given the field", convert=channel, default="sign")
    prior: Prior = part("law of a weight", convert=prior, default="gaussian")
    input_dim: float = parameter("dimension d of a run", minimum=2, integer=True, default=1000)
