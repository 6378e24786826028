"""The posterior of a real network, sampled at equilibrium: Hamiltonian Monte Carlo and the papers' noisy gradient descent."""

from orderparam.systems.proportional.experiment.measured import (
    SampledNetwork,
    SampledOutputs,
    SampledPatches,
    SampledPatchOutputs,
    SampledSimilarity,
)
from orderparam.systems.proportional.experiment.runs import langevin, posterior, sampled_similarity

__all__ = [
    "SampledNetwork",
    "SampledOutputs",
    "SampledPatchOutputs",
    "SampledPatches",
    "SampledSimilarity",
    "langevin",
    "posterior",
    "sampled_similarity",
]
