"""The experiments: the posterior sampled, and students trained."""

from orderparam.systems.extensive_width.experiment.posterior import PosteriorAverages, posterior_hmc
from orderparam.systems.extensive_width.experiment.quadratic import CollectivePosterior, quadratic_posterior_hmc
from orderparam.systems.extensive_width.experiment.student import TrainedStudent, adam_at_effective_width, adam_student
