"""Priors of the weights, with their posterior means, variances and free entropies under Gaussian
observations."""

from orderparam.priors.base import Posterior, Prior, PriorAverages
from orderparam.priors.catalogue import (
    GaussianPrior,
    MixturePrior,
    Rademacher,
    SamplePrior,
    SparsePrior,
    prior,
    prior_names,
)
