"""Random features and other fixed feature maps: the asymptotic errors of convex learners, and
experiments that measure these errors.
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.kernels.feature_equivalent import FeatureEquivalent
    from orderparam.systems.random_features.classes import (
        ClassErrors,
        ClassPool,
        PredictedClasses,
        class_asymptotics,
        learn_classes,
    )
    from orderparam.systems.random_features.experiment import (
        MeasuredCurve,
        learn,
        learn_at_optimal_ridge,
        learn_pool,
    )
    from orderparam.systems.random_features.model import (
        ExplicitSpectrum,
        FeatureRegression,
        FeatureSpectrum,
        GaussianFeatures,
        MarchenkoPastur,
        RandomFeatures,
        gaussian_equivalent,
    )
    from orderparam.systems.random_features.pool import FeaturePool, PoolSpectrum
    from orderparam.systems.random_features.spectral import (
        DecayExponents,
        ScalingPath,
        SpectralFeatures,
        SphereFeatures,
        deterministic_equivalent,
        learn_on_sphere,
        local_exponents,
        polynomial_regime,
        scaling_exponents,
        spectral_learning,
    )
    from orderparam.systems.random_features.theory import (
        FeatureCurve,
        OptimalRidge,
        asymptotics,
        optimal_ridge,
        ridge_response,
        state_evolution,
    )

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "cross_validation": ("cross-validated error", ""),
    "excess_risk": ("excess risk", r"E\,(f-f_*)^2"),
}

__all__ = exported(globals())
