"""Random features and any other fixed feature map: exact errors of convex learners, measured and predicted."""

from orderparam.systems.random_features.model import FeaturePool, FeatureRegression, GaussianFeatures, RandomFeatures
from orderparam.systems.random_features.spectra import ExplicitSpectrum, FeatureSpectrum, MarchenkoPastur
from orderparam.systems.random_features.theory import (
    FeatureCurve,
    OptimalRidge,
    asymptotics,
    optimal_ridge,
    ridge_response,
    state_evolution,
)

__all__ = [
    "ExplicitSpectrum",
    "FeatureCurve",
    "FeaturePool",
    "FeatureRegression",
    "FeatureSpectrum",
    "GaussianFeatures",
    "MarchenkoPastur",
    "OptimalRidge",
    "RandomFeatures",
    "asymptotics",
    "optimal_ridge",
    "ridge_response",
    "state_evolution",
]
