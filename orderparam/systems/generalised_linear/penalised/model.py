"""Labels fitted by a convex loss with l1 and l2 penalties; the Lasso, ridge regression and the
elastic net.
"""

from typing import Any

import jax

from orderparam.channels import Likelihood, channel
from orderparam.core.fields import is_number
from orderparam.core.system import System, nearest, parameter, part
from orderparam.losses import Channel, Huber, Quantile, loss, loss_names
from orderparam.losses.base import Loss
from orderparam.priors import Prior, prior

# ------------------------------------------------------------------------------------------------
# Labels of any law, fitted by any convex loss with two penalties.

_RESIDUAL = {"huber": Huber, "quantile": Quantile}


def any_loss(which: Any) -> Loss:
    """Of `loss`, or "huber" and "quantile" with their default numbers. Raises `ValueError` for
    anything else.
    """
    if isinstance(which, str) and which in _RESIDUAL:
        return _RESIDUAL[which]()
    if isinstance(which, str) and which not in loss_names():
        names = [*loss_names(), *_RESIDUAL]
        raise ValueError(
            f"there is no loss {which!r}{nearest(which, names)}; must be one of {', '.join(names)}"
        )
    return loss(which)


class PenalisedFit(System):
    """The minimiser of sum_mu l(y_mu, w.x_mu) + l1 |w|_1 + (ridge/2) |w|^2, where y ~ P(y | w0.x).

    n = sample_ratio * d rows x ~ N(0, I/d), true weights w0 from the prior. Penalties stand beside
    the sum over examples, as 1/C in scikit-learn.
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0)
    loss: Loss = part("loss of an example", convert=any_loss, default="logistic")
    labels: Likelihood = part("law of the labels given the field", convert=channel, default="sign")
    l1: float = parameter("penalty on the sum of |w_i|", minimum=0, default=0.0)
    ridge: float = parameter("penalty on |w|^2 / 2", minimum=0, default=1.0)
    prior: Prior = part("law of a true weight", convert=prior, default="gaussian")
    input_dim: float = parameter("dimension d of a run", minimum=2, integer=True, default=500)

    def __check_init__(self) -> None:
        _ = self.channel  # refuses a loss and labels that do not fit
        penalties: tuple[Any, ...] = (self.l1, self.ridge)
        if any(isinstance(x, jax.core.Tracer) or not is_number(x) for x in penalties):
            return
        if self.l1 == 0 and self.ridge == 0:
            raise ValueError("PenalisedFit.ridge = 0: must be > 0 where there is no l1")

    @property
    def channel(self) -> Channel:
        """The loss and the law of the labels."""
        return Channel(self.loss, self.labels)


# ------------------------------------------------------------------------------------------------
# Linear labels, fitted by least squares with two penalties.


class ElasticNet(System):
    """The minimiser of (1/2) |y - X w|^2 + l1 |w|_1 + (ridge/2) |w|^2, where y = X w0 + sqrt(noise)
    z.

    n = sample_ratio * d rows x ~ N(0, I/d), and true weights w0 from the prior. Penalties stand
    beside the sum over examples: in scikit-learn Lasso(alpha=l1/n), Ridge(alpha=ridge),
    ElasticNet(alpha=(l1 + ridge)/n, l1_ratio=l1/(l1 + ridge)), without intercept.
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
