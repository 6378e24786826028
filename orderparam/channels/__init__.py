"""Laws of labels P(y | nu) given a teacher's field nu, the posterior of the field given its label,
and averages over labelled fields."""

from orderparam.channels.average import Fields, labelled_nodes
from orderparam.channels.base import LabelAverages, Labels, Likelihood, LikelihoodAverages
from orderparam.channels.density import DensityLabels
from orderparam.channels.logistic import LogisticLabels
from orderparam.channels.names import channel, channel_names
from orderparam.channels.real import RealLabels
from orderparam.channels.sign import ProbitLabels, SignLabels
