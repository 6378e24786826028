"""Linear labels, fitted by least squares with two penalties."""

from typing import Any

import jax

from orderparam.core.fields import is_number
from orderparam.core.system import System, parameter, part
from orderparam.priors import Prior, prior


class ElasticNet(System):
    """The minimiser of (1/2) |y - X w|^2 + l1 |w|_1 + (ridge/2) |w|^2, where y = X w0 + sqrt(noise) z.

    n = sample_ratio * d rows x ~ N(0, I/d), and true weights w0 from the prior. Penalties stand beside the sum over examples: in
    scikit-learn Lasso(alpha=l1/n), Ridge(alpha=ridge), ElasticNet(alpha=(l1 + ridge)/n, l1_ratio=l1/(l1 + ridge)), without
    intercept.
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0)
    l1: float = parameter("penalty on the sum of |w_i|", minimum=0, default=0.0)
    ridge: float = parameter("penalty on |w|^2 / 2", minimum=0, default=0.0)
    noise: float = parameter("variance of the label noise", minimum=0, default=0.0)
    prior: Prior = part("law of a true weight", convert=prior, default="sparse")
    input_dim: float = parameter("dimension d of a run", minimum=2, integer=True, default=500)

    def __check_init__(self) -> None:
        penalties: tuple[Any, ...] = (self.l1, self.ridge)
        if any(isinstance(x, jax.core.Tracer) or not is_number(x) for x in penalties):
            return
        if self.l1 == 0 and self.ridge == 0:
            raise ValueError("ElasticNet.l1 = 0: must be > 0 where there is no ridge")
