"""Kernel (Gaussian-process) regression on random training sets from a measure over which the kernel has a known spectrum.

The predictor is the posterior mean f(x) = k_x^T (K + T I)^-1 y of a Gaussian process with kernel K whose weights are sampled at
temperature T from exp(-L/T), with L = 1/2 sum_mu (f(x_mu) - y_mu)^2. The temperature is thus the ridge added to the Gram matrix.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, part
from orderparam.kernels.spectrum import Spectrum


class KernelRegression(System):
    """Training sets of n_train independent inputs from a measure over which the kernel and the target have the given spectrum.

    Other conventions: a loss averaged instead of summed over the samples has T = n_train * ridge; a loss without the factor 1/2
    has T = ridge / 2; `alpha` of scikit-learn's KernelRidge is T.
    """

    spectrum: Spectrum = part("spectrum of the kernel over the inputs, with the target's power on it")
    n_train: float = parameter("number of training samples P; need not be an integer", above=0)
    temperature: float = parameter("Langevin temperature T, the ridge added to the Gram matrix", minimum=0)
    noise: float = parameter("variance of the label noise (summed over the outputs, as all errors are)", minimum=0, default=0.0)

    @property
    def sampled_fraction(self) -> Float[Array, ""]:
        """Share of the population that a training set takes up: 0 for an infinite population."""
        return jnp.zeros_like(jnp.asarray(self.n_train, jnp.float64))
