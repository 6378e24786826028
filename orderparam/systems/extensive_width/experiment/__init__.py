"""The experiments: the posterior sampled, and students trained."""

from orderparam.systems.extensive_width.experiment.posterior import Posterior, posterior_hmc
from orderparam.systems.extensive_width.experiment.student import TrainedStudent, adam_student

__all__ = ["Posterior", "TrainedStudent", "adam_student", "posterior_hmc"]
