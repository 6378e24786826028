"""Bayesian networks of finite width on a fixed training set: kernel renormalisation at P ~ N, theory beside sampling.

    import orderparam as op
    from orderparam.systems.proportional import FullyConnected, finite_width, infinite_width, posterior

    system = FullyConnected(x, y, x_test, y_test, width=200, temperature=0.1)
    finite_width(system).test_error, infinite_width(system).test_error
    op.sweep(finite_width, system, {"width": [20, 50, 100, 200, 500], "temperature": [0.01, 0.1]})
    op.sweep(posterior, system, {"width": [20, 100]}, seeds=2)
"""

from orderparam.systems.proportional.experiment import (
    SampledNetwork,
    SampledOutputs,
    SampledPatches,
    SampledPatchOutputs,
    SampledSimilarity,
    langevin,
    posterior,
    sampled_similarity,
)
from orderparam.systems.proportional.model import Convolutional, FullyConnected, LocallyConnected
from orderparam.systems.proportional.predict import predict_width
from orderparam.systems.proportional.theory import (
    Branches,
    IntegratedNetwork,
    Prediction,
    PredictionOfSeveral,
    RenormalisedKernel,
    RenormalisedNetwork,
    RenormalisedOutputs,
    RenormalisedPatches,
    RenormalisedPatchOutputs,
    Similarity,
    branches,
    finite_width,
    infinite_width,
    integrated_width,
    kernel_corrected,
    renormalised_kernel,
    similarity,
)

__all__ = [
    "Branches", "Convolutional", "FullyConnected", "IntegratedNetwork", "LocallyConnected", "Prediction",
    "PredictionOfSeveral", "RenormalisedKernel", "RenormalisedNetwork", "RenormalisedOutputs", "RenormalisedPatchOutputs",
    "RenormalisedPatches", "SampledNetwork", "SampledOutputs", "SampledPatchOutputs", "SampledPatches", "SampledSimilarity",
    "Similarity", "branches", "finite_width", "infinite_width", "integrated_width", "kernel_corrected", "langevin",
    "posterior", "predict_width", "renormalised_kernel", "sampled_similarity", "similarity",
]  # fmt: skip
