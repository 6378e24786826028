"""Kernel regression given by the kernel's spectrum over the inputs: any spectrum, inputs on a
sphere, or a ridge that depends on the input.
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
# Kernel (Gaussian-process) regression on random training sets. The inputs are drawn from a measure
# over which the spectrum of the kernel is known.
#
# The predictor is the posterior mean f(x) = k_x^T (K + T I)^-1 y of a Gaussian process with kernel
# K and the likelihood exp(-L/T), L = 1/2 sum_mu (f(x_mu) - y_mu)^2. The temperature T is therefore
# the ridge that is added to the Gram matrix.


class KernelRegression(System):
    r"""Kernel regression on random training sets, with the kernel and the target given by a
    spectrum.

    The predictor is the posterior mean of a Gaussian process,

    $$ f(x) = k_x^T (K + T)^{-1} y, \qquad K(x, x') = \sum_k \lambda_k \phi_k(x) \phi_k(x'), \qquad
       y(x) = \sum_k y_k \phi_k(x) $$

    with T the `temperature`, $E \phi_k \phi_l = \delta_{kl}$ over the inputs, and P = `n_train`
    independent inputs in a training set. `spectrum` holds the eigenvalues $\lambda_k$, their
    multiplicities $m_k$ and the target power $Y_k = \sum y_k^2$ of each level. Labels carry
    Gaussian noise of variance `noise`.

    f also minimises $\frac12 \sum_\mu (f(x_\mu) - y_\mu)^2 + \frac T2 |f|^2$, with $|f|$ the norm
    of the kernel. If the first sum is divided by P and the penalty is $\frac\lambda2 |f|^2$, T = P
    $\lambda$. For $\sum_\mu (f(x_\mu) - y_\mu)^2 + \lambda |f|^2$, without both factors 1/2, T =
    $\lambda$. A posterior $e^{-\sum_\mu (f(x_\mu) - y_\mu)^2/T'}$ without the factor 1/2 has T =
    T'/2. `alpha` of scikit-learn's KernelRidge is T.

    Source: Canatar, Bordelon, Pehlevan (2021); Simon et al. (2021).

    >>> from orderparam.kernels import finite_rank
    >>> KernelRegression(finite_rank(20, 0.05), n_train=30, temperature=0.1).n_train
    30
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
        """Fraction of the population that is in a training set; 0 for an infinite population."""
        return jnp.zeros_like(jnp.asarray(self.n_train, jnp.float64))


# ------------------------------------------------------------------------------------------------
# Kernel regression on inputs that are uniform on a sphere. The modes of every kernel that depends
# on the angle alone are the spherical harmonics.


class SphereRegression(KernelRegression):
    r"""Kernel regression on inputs that are uniform on the sphere |x|^2 = input_dim, with the
    kernel of an infinitely wide network.

    The kernel depends on the angle between inputs only, so that its modes are spherical harmonics.
    The target is

    $$ y(x) = \sum_l \sqrt{Y_l N_l}\, P_l(u \cdot x / \sqrt d) $$

    for a fixed unit vector u, with $P_l$ the zonal polynomial of degree l ($P_l(1) = 1$), $N_l$ the
    number of spherical harmonics of degree l and $Y_l$ the power of the target in that degree.
    `from_architecture` computes the spectrum.

    Source: Bordelon, Canatar, Pehlevan (2020).

    >>> from orderparam.networks import fully_connected
    >>> network = fully_connected(1, None, "relu")
    >>> sphere = SphereRegression.from_architecture(network, 10, [0, 1], 20, 0.1, max_degree=3)
    >>> np.asarray(sphere.spectrum.multiplicities).tolist()
    [1.0, 10.0, 54.0, 210.0]
    """

    architecture: Architecture = part(
        "network whose infinite-width limit is the kernel", kw_only=True
    )
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
        """The regression problem with the spectrum of the architecture's kernel on the sphere.

        Args:
            architecture: network whose infinite-width limit is the kernel.
            input_dim: input dimension d.
            target_power: power of the target in degree 0, 1, ...
            n_train: number P of training samples.
            temperature: ridge T.
            noise: variance of the label noise. Default 0.
            max_degree: largest degree that is resolved; higher degrees form the tail of the
                spectrum, which acts as a ridge. Default 20.
        """

        def kernel_function(cosines: Float[Array, "node"]) -> Float[Array, "node"]:
            # Two points of a plane at this angle, with |x|^2 = 2: the kernel depends on |x|^2/d,
            # which is 1 on the sphere too, and on the angle alone.
            angles = np.arccos(np.clip(cosines, -1, 1))
            plane = jnp.sqrt(2) * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
            return architecture.nngp(jnp.sqrt(2) * jnp.array([[1.0, 0.0]]), plane)[0]

        spectrum = sphere(input_dim, kernel_function, target_power, max_degree)
        return cls(
            spectrum, n_train, temperature, noise, architecture=architecture, input_dim=input_dim
        )


# ------------------------------------------------------------------------------------------------
# Kernel regression whose ridge and label noise depend on the region of the input.


class HeteroscedasticRegression(System):
    r"""Kernel regression with a ridge and a label noise that depend on the region of the input.

    An input is in region i with probability `weights[i]`, independently of its learnable features.
    The predictor is

    $$ f(x) = k_x^T (K + D)^{-1} y, \qquad D = \mathrm{diag}\, T(x_\mu) $$

    with T(x) = `temperature` + `extra_temperature` of the region of x. Labels carry noise of
    variance s(x) = `noise` + `extra_noise` of the region.

    Raises:
        ValueError: for probabilities that do not sum to 1.

    Source: Howard, Jefferson, Maiti, Ringel (2024), where integrated modes leave such a ridge.

    >>> from orderparam.kernels import finite_rank
    >>> HeteroscedasticRegression(
    ...     finite_rank(20, 0.05), 30, 0.0, weights=[0.5, 0.5], extra_temperature=[0.01, 1.0],
    ...     extra_noise=[0.0, 0.0],
    ... ).extra_temperature.shape
    (2,)
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
                f"HeteroscedasticRegression.weights sum to {np.asarray(self.weights).sum():.12g}: "
                "must sum to 1"
            )
