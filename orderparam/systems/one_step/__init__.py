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
from orderparam.systems.one_step.theory.curve import ReadoutCurve
from orderparam.systems.one_step.theory.first_step import (
    FirstLayer,
    best_linear,
    first_layer,
    no_step_asymptotics,
    one_step_asymptotics,
    spiked,
)
from orderparam.systems.one_step.theory.given_layer import TrainedLayer, given_layer
from orderparam.systems.one_step.theory.isotropic import spiked_asymptotics
from orderparam.systems.one_step.theory.spectrum import BinnedSpectrum, FeatureMatrix, feature_spectrum, spectral_density
