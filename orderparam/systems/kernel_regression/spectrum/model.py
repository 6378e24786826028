"""Kernel regression by its spectrum over the inputs: any spectrum, inputs on a sphere, a ridge that
depends on the input.
"""

from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, part
from orderparam.kernels.spectra import sphere
from orderparam.kernels.spectrum import Spectrum
from orderparam.networks.architecture import Architecture

# ------------------------------------------------------------------------------------------------
# Kernel (Gaussian-process) regression on random training sets from a measure over which the kernel has a known spectrum.
#
# The predictor is the posterior mean f(x) = k_x^T (K + T I)^-1 y of a Gaussian process with kernel
# K whose weights are sampled at temperature T from exp(-L/T), with L = 1/2 sum_mu (f(x_mu) -
# y_mu)^2. The temperature is thus the ridge added to the Gram matrix.


class KernelRegression(System):
    """Training sets of n_train independent inputs from a measure over which the kernel and the
    target have the given spectrum.

    Other conventions: a loss averaged instead of summed over the samples has T = n_train * ridge; a
    loss without the factor 1/2 has T = ridge / 2; `alpha` of scikit-learn's KernelRidge is T.
    """

    spectrum: Spectrum = part(
        "spectrum of the kernel over the inputs, with the target's power on it"
    )
    n_train: float = parameter("number of training samples P; need not be an integer", above=0)
    temperature: float = parameter(
        "Langevin temperature T, the ridge added to the Gram matrix", minimum=0
    )
    noise: float = parameter(
        "variance of the label noise (summed over the outputs, as all errors are)",
        minimum=0,
        default=0.0,
    )

    @property
    def sampled_fraction(self) -> Float[Array, ""]:
        """Share of the population that a training set takes up: 0 for an infinite population."""
        return jnp.zeros_like(jnp.asarray(self.n_train, jnp.float64))


# ------------------------------------------------------------------------------------------------
# Kernel regression of inputs that are uniform on a sphere, where the modes of every kernel are known: spherical harmonics.


class SphereRegression(KernelRegression):
    """Inputs x uniform on |x|^2 = input_dim, and the kernel of an infinitely wide network, which
    depends on their angle alone.

    The target is y(x) = sum_l sqrt(Y_l N_l) P_l(u.x / sqrt(d)) for a fixed unit vector u, with
    P_l(1) = 1 the zonal polynomial and N_l the number of spherical harmonics of degree l: power Y_l
    in degree l. `from_architecture` computes the spectrum.
    """

    architecture: Architecture = part("whose infinite-width limit is the kernel", kw_only=True)
    input_dim: int = parameter("input dimension d", minimum=2, integer=True, default=20)

    @classmethod
    def from_architecture(
        cls,
        architecture: Architecture,
        input_dim: int,
        target_power: ArrayLike,
        n_train: float,
        temperature: float,
        noise: float = 0.0,
        max_degree: int = 20,
    ) -> Self:
        """target_power: power of the target in degree 0, 1, ...; degrees above max_degree are the
        spectrum's tail, a ridge.
        """

        def kernel_function(cosines: Float[Array, "node"]) -> Float[Array, "node"]:
            # Any two points of the plane at that angle: the kernel knows |x|^2/d and the angle
            # only.
            angles = np.arccos(np.clip(cosines, -1, 1))
            plane = jnp.sqrt(2) * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
            return architecture.nngp(jnp.sqrt(2) * jnp.array([[1.0, 0.0]]), plane)[0]

        spectrum = sphere(input_dim, kernel_function, target_power, max_degree)
        return cls(
            spectrum, n_train, temperature, noise, architecture=architecture, input_dim=input_dim
        )


# ------------------------------------------------------------------------------------------------
# Kernel regression whose ridge and label noise depend on where an input falls.


class HeteroscedasticRegression(System):
    """Inputs fall into region i with probability `weights[i]`, independently of the features that
    can be learned there.

    The predictor is f(x) = k_x^T (K + D)^-1 y with D = diag(T(x_mu)), T = temperature +
    extra_temperature of the region of x_mu; labels carry noise of variance s2 = noise +
    extra_noise. Raises `ValueError` for probabilities that do not sum to 1.
    """

    spectrum: Spectrum = part(
        "spectrum of the kernel over the inputs, with the target's power on it"
    )
    n_train: float = parameter("number of training samples P; need not be an integer", above=0)
    temperature: float = parameter("ridge that all inputs have", minimum=0)
    noise: float = parameter(
        "variance of the label noise that all inputs have", minimum=0, default=0.0
    )
    weights: Float[Array, "region"] = parameter(
        "probability of every region", minimum=0, kw_only=True
    )
    extra_temperature: Float[Array, "region"] = parameter(
        "ridge added in every region", minimum=0, kw_only=True
    )
    extra_noise: Float[Array, "region"] = parameter(
        "label noise added in every region", minimum=0, kw_only=True
    )

    def __check_init__(self) -> None:
        if (
            not isinstance(self.weights, jax.core.Tracer)
            and abs(np.asarray(self.weights).sum() - 1) > 1e-9
        ):
            raise ValueError(
                f"HeteroscedasticRegression.weights sum to {np.asarray(self.weights).sum():.12g}: must sum to 1"
            )
