"""Every theory of generalised linear models."""

from checks import checks

from orderparam.channels import ProbitLabels, RealLabels
from orderparam.priors import SparsePrior
from orderparam.systems.generalised_linear import (
    ElasticNet,
    GeneralisedLinear,
    InvariantDesign,
    PenalisedFit,
)

SYSTEMS = [
    GeneralisedLinear(1.5, ProbitLabels(0.05, 0.2), SparsePrior(0.4, 1.5)),
    GeneralisedLinear(0.5, RealLabels("linear"), SparsePrior(0.3)),
    ElasticNet(0.8, 0.2, 0.1, 0.05, SparsePrior(0.2)),
    PenalisedFit(1.5, "logistic", "sign", 0.1, 0.5),
    InvariantDesign(0.7, 5.0, 0.02, SparsePrior(0.2)),
]
FEWER = {
    "thresholds": 3,
    "state_evolution": 40,
    "amp_fixed_point": 20,
    "solutions": 20,
    "elastic_net": 60,
    "penalised_fit": 20,
    "best_penalty": 2,
    "spectral": 20,
}
globals().update(checks("generalised_linear", SYSTEMS, fewer=FEWER))
