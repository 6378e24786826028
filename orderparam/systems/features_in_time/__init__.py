"""Features in time: networks of infinite width that learn features on given data, in lazy and rich
training, and their best learning rate."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.features_in_time.experiment import (
        NetworkFeaturePath,
        TrainedLayers,
        trained_features,
        trained_linear_layers,
        trained_quadratic,
        tuned_network,
    )
    from orderparam.systems.features_in_time.linear_layers import (
        LinearLayersPath,
        linear_layers_dynamics,
    )
    from orderparam.systems.features_in_time.model import (
        FeatureDescent,
        LinearLayersDescent,
        QuadraticDescent,
    )
    from orderparam.systems.features_in_time.quadratic import QuadraticPath, quadratic_recursion
    from orderparam.systems.features_in_time.theory import (
        BestRate,
        FeaturePath,
        best_rate,
        linear_recursion,
        particle_dynamics,
    )

LABELS = {
    "richness": ("richness", r"\gamma"),
    "laziness": ("laziness", r"\kappa"),
    "best_rate": ("best learning rate", r"\eta^*"),
    "parametrisation": ("parametrisation", ""),
}

__all__ = exported(globals())
