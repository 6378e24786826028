"""The experiments: the posterior of the network sampled."""

from orderparam.systems.kernel_adaptation.experiment.data import draw_data, draw_network
from orderparam.systems.kernel_adaptation.experiment.gaussianity import Gaussianity, gaussianity
from orderparam.systems.kernel_adaptation.experiment.posterior import Posterior
from orderparam.systems.kernel_adaptation.experiment.sampled import SampledNetwork, sampled_network

__all__ = ["Gaussianity", "Posterior", "SampledNetwork", "draw_data", "draw_network", "gaussianity", "sampled_network"]
