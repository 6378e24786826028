"""Penalised risks: the losses of the examples plus a penalty on the weights, with the convention of
the penalty.

sum_mu l(y_mu, f(x_mu)) + (ridge/2) |a|^2          penalty = "sum"
(1/n) sum_mu l(y_mu, f(x_mu)) + (ridge/2) |a|^2    penalty = "mean"
"""

import abc
from typing import Any, ClassVar, Literal, Self

from orderparam.channels import Labels, RealLabels
from orderparam.core.system import System, parameter, part, structure
from orderparam.losses.base import Loss
from orderparam.losses.catalogue import loss
from orderparam.losses.channel import Channel
from orderparam.losses.classes import ClassChannel, ClassLabels

Penalty = Literal["sum", "mean"]


class PenalisedRisk(System):
    """A convex problem in the weights a: the penalty, the labels and the loss. Subclasses define
    the number of examples."""

    takes_classes: ClassVar[bool] = False

    ridge: float = parameter(
        "penalty on |a|^2 / 2, in the convention of `penalty`", above=0, kw_only=True
    )
    labels: Labels = part(
        "law of the labels given the teacher's field", default=RealLabels(), kw_only=True
    )
    loss: Loss = part(
        "loss of an example: square, logistic or hinge",
        convert=loss,
        default="square",
        kw_only=True,
    )
    penalty: Penalty = structure(
        "whether the ridge stands beside the sum or the mean of the losses",
        default="sum",
        kw_only=True,
    )

    def __check_init__(self) -> None:
        if isinstance(self.labels, ClassLabels) and not self.takes_classes:
            raise ValueError(
                f"{type(self).__name__}.labels: ClassLabels describe pools of real data only"
            )
        _ = self.channel  # refuses a loss and labels that do not fit

    @property
    @abc.abstractmethod
    def examples(self) -> Any:
        """n."""

    @property
    def summed_ridge(self) -> Any:
        """The ridge in the convention of the summed loss."""
        return self.ridge * self.examples if self.penalty == "mean" else self.ridge

    def with_summed_ridge(self, ridge: Any) -> Self:
        """The problem with a ridge given in the convention of the summed loss, converted into the
        convention of the problem."""
        return self.with_(ridge=ridge / self.examples if self.penalty == "mean" else ridge)

    @property
    def channel(self) -> Channel | ClassChannel:
        """The loss and the law of the labels."""
        if isinstance(self.labels, ClassLabels):
            return ClassChannel(self.loss, self.labels)
        return Channel(self.loss, self.labels)
