"""One giant gradient step on the first layer: the spike it makes, and what a read-out then learns, exactly and measured."""

from orderparam.systems.one_step.experiment import (
    FirstLayerWeights,
    MeasuredReadout,
    learn_after_step,
    learn_spiked,
    plant_first_layer,
    train_first_layer,
)
from orderparam.systems.one_step.experiment_spectrum import measured_spectrum
from orderparam.systems.one_step.model import OneStep, SpikedFeatures, effective_step
from orderparam.systems.one_step.prediction import predict_read_out
from orderparam.systems.one_step.theory import (
    BinnedSpectrum,
    FeatureMatrix,
    FirstLayer,
    ReadoutCurve,
    TrainedLayer,
    best_linear,
    feature_spectrum,
    first_layer,
    given_layer,
    no_step_asymptotics,
    one_step_asymptotics,
    spectral_density,
    spiked,
    spiked_asymptotics,
)
