"""The theories: what the step makes of the first layer, the read-out on it, and the spectrum of its features."""

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
