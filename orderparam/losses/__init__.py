"""Losses with their proximal maps, their averages over labelled Gaussian fields, the minimiser of
penalised losses, and its errors on fresh examples."""

from orderparam.channels import Fields, Labels, RealLabels, SignLabels
from orderparam.losses.base import Loss
from orderparam.losses.catalogue import loss, loss_names
from orderparam.losses.channel import Channel, ChannelAverages, ChannelErrors
from orderparam.losses.classes import ClassChannel, ClassLabels
from orderparam.losses.fresh import field_means, fresh_means
from orderparam.losses.hinge import Hinge, SmoothHinge
from orderparam.losses.logistic import Logistic
from orderparam.losses.minimise import FittedWeights, minimise
from orderparam.losses.residual import Huber, Quantile
from orderparam.losses.risk import PenalisedRisk, Penalty
from orderparam.losses.square import Square
