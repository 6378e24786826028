"""Kernel regression whose ridge and label noise depend on where an input falls."""

import jax
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, part
from orderparam.kernels.spectrum import Spectrum


class HeteroscedasticRegression(System):
    """Inputs fall into region i with probability `weights[i]`, independently of the features that can be learned there.

    The predictor is f(x) = k_x^T (K + D)^-1 y with D = diag(T(x_mu)), T = temperature + extra_temperature of the region of x_mu;
    labels carry noise of variance s2 = noise + extra_noise. Raises `ValueError` for probabilities that do not sum to 1.
    """

    spectrum: Spectrum = part("spectrum of the kernel over the inputs, with the target's power on it")
    n_train: float = parameter("number of training samples P; need not be an integer", above=0)
    temperature: float = parameter("ridge that all inputs have", minimum=0)
    noise: float = parameter("variance of the label noise that all inputs have", minimum=0, default=0.0)
    weights: Float[Array, "region"] = parameter("probability of every region", minimum=0, kw_only=True)
    extra_temperature: Float[Array, "region"] = parameter("ridge added in every region", minimum=0, kw_only=True)
    extra_noise: Float[Array, "region"] = parameter("label noise added in every region", minimum=0, kw_only=True)

    def __check_init__(self) -> None:
        if not isinstance(self.weights, jax.core.Tracer) and abs(np.asarray(self.weights).sum() - 1) > 1e-9:
            raise ValueError(f"HeteroscedasticRegression.weights sum to {np.asarray(self.weights).sum():.12g}: must sum to 1")
