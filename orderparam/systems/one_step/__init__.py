"""One giant gradient step on the first layer: the spike that the step creates, and the predicted
and measured errors of a read-out trained afterwards.
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.one_step.experiment import (
        FirstLayerWeights,
        MeasuredReadout,
        learn_after_step,
        learn_spiked,
        measured_spectrum,
        plant_first_layer,
        train_first_layer,
    )
    from orderparam.systems.one_step.model import OneStep, SpikedFeatures, effective_step
    from orderparam.systems.one_step.prediction import predict_read_out
    from orderparam.systems.one_step.single_layer import TrainedLayer, given_layer
    from orderparam.systems.one_step.spectrum import (
        BinnedSpectrum,
        FeatureMatrix,
        feature_spectrum,
        spectral_density,
    )
    from orderparam.systems.one_step.theory import (
        FirstLayer,
        ReadoutCurve,
        best_linear,
        first_layer,
        no_step_asymptotics,
        one_step_asymptotics,
        spiked,
        spiked_asymptotics,
    )

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "batch_ratio": ("batch per dimension", "n_B/d"),
}

__all__ = exported(globals())
