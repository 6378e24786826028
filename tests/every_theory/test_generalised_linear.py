"""Every theory of generalised linear models."""

from checks import checks

from orderparam.channels import ProbitLabels, RealLabels
from orderparam.priors import SparsePrior
from orderparam.systems.generalised_linear import GeneralisedLinear

SYSTEMS = [
    GeneralisedLinear(1.5, ProbitLabels(0.05, 0.2), SparsePrior(0.4, 1.5)),
    GeneralisedLinear(0.5, RealLabels("linear"), SparsePrior(0.3)),
]
globals().update(checks("generalised_linear", SYSTEMS, fewer={"thresholds": 3, "state_evolution": 40, "solutions": 20}))
