"""Random-feature ridge regression from a kernel's spectrum, without a dimension (`orderparam.kernels.feature_equivalent`)."""

import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.system import System, parameter, part
from orderparam.core.verb import experiment, theory
from orderparam.kernels.feature_equivalent import FeatureEquivalent, feature_equivalent, gaussian_features
from orderparam.kernels.spectrum import Spectrum


class SpectralFeatures(System):
    """min over a of sum_mu (y_mu - a.phi(x_mu)/sqrt(p))^2 + ridge |a|^2 with p = width features and n_train noisy labels."""

    spectrum: Spectrum = part("spectrum of the kernel that the features have in the mean")
    n_train: float = parameter("number of training examples n", above=0)
    width: float = parameter("number of features p", above=0)
    ridge: float = parameter("penalty beside the summed loss", above=0)
    noise: float = parameter("variance of the label noise", minimum=0, default=0.0)


class MeasuredRisk(Result):
    """Of one training set and one draw of the features, exact over inputs."""

    excess_risk: Float[Array, ""]
    effective_dimension: Float[Array, ""]


@theory
def deterministic_equivalent(system: SpectralFeatures) -> FeatureEquivalent:
    """`orderparam.kernels.feature_equivalent`: Defilippis, Loureiro, Misiakiewicz 2024 (arXiv:2405.15699)."""
    return feature_equivalent(system.spectrum, system.n_train, system.width, system.ridge, system.noise)


@experiment
def spectral_learning(system: SpectralFeatures, key: PRNGKeyArray) -> MeasuredRisk:
    """Independent Gaussian psi_k and chi_k, ridge regression, and the exact error |b - weights of f|^2.

    Levels must be single modes without a tail. Raises `ValueError` when they are not, or when a matrix would be too large.
    """
    spectrum = system.spectrum
    if np.any(np.asarray(spectrum.multiplicities) != 1) or float(spectrum.tail) != 0:
        raise ValueError("spectral_learning needs a spectrum of single modes without a tail")
    sizes = system.size("n_train"), system.size("width")
    return MeasuredRisk(*gaussian_features(spectrum.eigenvalues, spectrum.target_power, *sizes, system.ridge, system.noise, key))
