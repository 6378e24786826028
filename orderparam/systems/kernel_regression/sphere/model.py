"""Kernel regression of inputs that are uniform on a sphere, where the modes of every kernel are known: spherical harmonics."""

from typing import Self

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from orderparam.core.system import parameter, part
from orderparam.kernels.spectra import sphere
from orderparam.networks.architecture import Architecture
from orderparam.systems.kernel_regression.spectrum.model import KernelRegression


class SphereRegression(KernelRegression):
    """Inputs x uniform on |x|^2 = input_dim, and the kernel of an infinitely wide network, which depends on their angle alone.

    The target is y(x) = sum_l sqrt(Y_l N_l) P_l(u.x / sqrt(d)) for a fixed unit vector u, with P_l(1) = 1 the zonal polynomial
    and N_l the number of spherical harmonics of degree l: power Y_l in degree l. `from_architecture` computes the spectrum.
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
        """target_power: power of the target in degree 0, 1, ...; degrees above max_degree are the spectrum's tail, a ridge."""

        def kernel_function(cosines: Float[Array, "node"]) -> Float[Array, "node"]:
            # Any two points of the plane at that angle: the kernel knows |x|^2/d and the angle only.
            angles = np.arccos(np.clip(cosines, -1, 1))
            plane = jnp.sqrt(2) * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
            return architecture.nngp(jnp.sqrt(2) * jnp.array([[1.0, 0.0]]), plane)[0]

        spectrum = sphere(input_dim, kernel_function, target_power, max_degree)
        return cls(spectrum, n_train, temperature, noise, architecture=architecture, input_dim=input_dim)
