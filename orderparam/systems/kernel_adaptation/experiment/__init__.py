"""The experiments on two-layer networks: the posterior sampled, training with noise, and pruning of what was trained."""

from orderparam.systems.kernel_adaptation.experiment.data import draw_data, draw_network
from orderparam.systems.kernel_adaptation.experiment.gaussianity import Gaussianity, gaussianity
from orderparam.systems.kernel_adaptation.experiment.posterior import Posterior
from orderparam.systems.kernel_adaptation.experiment.pruning import Classifier, Pruned, pruned_classifier
from orderparam.systems.kernel_adaptation.experiment.sampled import SampledNetwork, sampled_network
from orderparam.systems.kernel_adaptation.experiment.training import TrainedNetwork, langevin_training

__all__ = [
    "Classifier",
    "Gaussianity",
    "Posterior",
    "Pruned",
    "SampledNetwork",
    "TrainedNetwork",
    "draw_data",
    "draw_network",
    "gaussianity",
    "langevin_training",
    "pruned_classifier",
    "sampled_network",
]
