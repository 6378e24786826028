"""Random features and any other fixed feature map: exact errors of convex learners, measured and predicted."""

from orderparam.kernels.feature_equivalent import FeatureEquivalent
from orderparam.systems.random_features.experiment import MeasuredCurve, learn, learn_at_optimal_ridge, learn_pool
from orderparam.systems.random_features.model import (
    FeaturePool,
    FeatureRegression,
    GaussianFeatures,
    RandomFeatures,
    gaussian_equivalent,
)
from orderparam.systems.random_features.polynomial import SphereFeatures, learn_on_sphere, polynomial_regime
from orderparam.systems.random_features.scaling import DecayExponents, ScalingPath, local_exponents, scaling_exponents
from orderparam.systems.random_features.spectra import ExplicitSpectrum, FeatureSpectrum, MarchenkoPastur
from orderparam.systems.random_features.spectral import SpectralFeatures, deterministic_equivalent, spectral_learning
from orderparam.systems.random_features.theory.curve import FeatureCurve
from orderparam.systems.random_features.theory.optimal import OptimalRidge, optimal_ridge
from orderparam.systems.random_features.theory.state_evolution import asymptotics, ridge_response, state_evolution
