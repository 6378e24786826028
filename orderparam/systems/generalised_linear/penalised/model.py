"""Labels fitted by a convex loss with l1 and l2 penalties; the Lasso, ridge regression and the
elastic net."""

from typing import Any

import jax

from orderparam.channels import Likelihood, channel
from orderparam.core.fields import is_number
from orderparam.core.names import near
from orderparam.core.system import System, parameter, part
from orderparam.losses import Channel, Huber, Quantile, loss, loss_names
from orderparam.losses.base import Loss
from orderparam.priors import Prior, prior

# ------------------------------------------------------------------------------------------------
# Labels of any law, fitted by any convex loss with two penalties.

_RESIDUAL = {"huber": Huber, "quantile": Quantile}


def any_loss(which: Any) -> Loss:
    """A loss of `orderparam.losses.loss`, or "huber" or "quantile" with their default parameters.

    Raises `ValueError` for any other name.
    """
    if isinstance(which, str) and which in _RESIDUAL:
        return _RESIDUAL[which]()
    if isinstance(which, str) and which not in loss_names():
        names = [*loss_names(), *_RESIDUAL]
        raise ValueError(
            f"there is no loss {which!r}: must be one of {', '.join(names)}{near(which, names)}"
        )
    return loss(which)


class PenalisedFit(System):
    r"""Minimiser of a convex loss with two penalties, for labels $y \sim P(y | w_0 \cdot x)$.

    $$ \min_w\; \sum_\mu \ell(y_\mu, w \cdot x_\mu) + l_1 |w|_1 + \frac\lambda2 |w|^2 $$

    There are $n = \alpha d$ rows $x \sim N(0, I/d)$, $\alpha$ = `sample_ratio`, and true weights
    $w_0$ from the prior; $l_1$ = `l1`, $\lambda$ = `ridge`. Penalties are added to the sum over
    examples, as 1/C in scikit-learn.

    Raises:
        ValueError: for a loss and labels that do not fit, and where both penalties are 0.
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0, default=1.0)
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
    r"""Minimiser of the square loss with two penalties, for linear labels $y = X w_0 + \sqrt\Delta
    z$.

    $$ \min_w\; \tfrac12 |y - X w|^2 + l_1 |w|_1 + \frac\lambda2 |w|^2 $$

    There are $n = \alpha d$ rows $x \sim N(0, I/d)$, $\alpha$ = `sample_ratio`, and true weights
    $w_0$ from the prior; $\Delta$ = `noise`. In scikit-learn this is Lasso(alpha=l1/n),
    Ridge(alpha=ridge) or ElasticNet(alpha=(l1 + ridge)/n, l1_ratio=l1/(l1 + ridge)), without
    intercept.

    Raises:
        ValueError: where both penalties are 0.
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0, default=1.0)
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
