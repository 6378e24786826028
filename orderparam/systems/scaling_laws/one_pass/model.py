"""The systems of least squares with power-law random features, in which every sample is used once.

Inputs have v coordinates x_j = sqrt(lambda_j) z_j with z standard normal, the target is y = sum_j
b_j x_j, and the features are phi = W^T x with W of shape (v, d) and independent entries N(0, 1/d).
SGD starts at theta = 0, and each step takes B fresh samples,

    theta <- theta - learning_rate sum_(i <= B) phi_i (phi_i.theta - y_i),

and the risk is R = E (phi.theta - y)^2, without a factor 1/2. In the power-law model of Paquette,
Paquette, Xiao, Pennington (2024) lambda_j = j^(-2 alpha), b_j = j^(-beta), learning_rate = gamma.
Their code reports R/2 in places.
"""

import abc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, part, structure
from orderparam.kernels.spectra import power_law_levels
from orderparam.kernels.spectrum import Spectrum

_LARGEST = 20000  # largest number of modes of an experiment


class OnePassFeatures(System):
    """Parameters of one-pass SGD other than the spectrum: width d, learning rate, batch size, and
    the steps at which the risk is recorded.
    """

    width: float = parameter("number of features d", minimum=1, kw_only=True)
    learning_rate: float = parameter(
        "learning rate gamma beside the summed gradient of a batch", above=0, kw_only=True
    )
    batch_size: float = parameter(
        "samples B of a step", minimum=1, integer=True, default=1, kw_only=True
    )
    horizon: float = parameter("number of the last step", minimum=1, default=1e4, kw_only=True)
    records: int = structure(
        "recorded steps, evenly spaced in log t from the first on",
        minimum=1,
        default=25,
        kw_only=True,
    )

    @property
    @abc.abstractmethod
    def spectrum(self) -> Spectrum:
        """Eigenvalues lambda of the inputs' covariance, and the target's power lambda b^2 on
        each.
        """

    @property
    def steps(self) -> Float[Array, "time"]:
        """The recorded steps: whole numbers from 1 to the horizon, spaced geometrically."""
        last = jnp.floor(jnp.asarray(self.horizon, jnp.float64))
        return (
            jnp.round(last ** jnp.linspace(0.0, 1.0, self.records))
            if self.records > 1
            else last[None]
        )

    def modes(self) -> tuple[Float[Array, "mode"], Float[Array, "mode"]]:
        """Eigenvalue lambda and target power lambda b^2 of every mode, for an experiment.

        Raises `ValueError` if the modes are not resolved one by one, or if there are too many.
        """
        spectrum = self.spectrum
        if np.any(np.asarray(spectrum.multiplicities) != 1) or float(spectrum.tail) != 0:
            raise ValueError(
                f"{type(self).__name__}: an experiment needs a spectrum of single modes without a "
                "tail"
            )
        return spectrum.eigenvalues, spectrum.target_power


class PowerLawFeatures(OnePassFeatures):
    r"""Inputs with eigenvalues $\lambda_j = j^{-2\alpha}$ and target coefficients $b_j =
    j^{-\beta}$.

    $\alpha$ = `spectral_exponent`, $\beta$ = `target_exponent`, and $j$ runs to $v$ = `input_dim`,
    which may be infinite for a theory where $\alpha > 1/2$.

    Raises:
        ValueError: unless 2 (alpha + beta) > 1, so that the target's power stays finite for
            infinite v; for infinite v with alpha <= 1/2; and for a finite v that is not whole.
    """

    spectral_exponent: float = parameter(
        "alpha: eigenvalue j of the inputs is j^(-2 alpha)", above=0
    )
    target_exponent: float = parameter("beta: coefficient j of the target is j^(-beta)")
    input_dim: float = parameter(
        "number of input coordinates v", minimum=1, infinite=True, default=jnp.inf
    )

    def __check_init__(self) -> None:
        numbers = (self.spectral_exponent, self.target_exponent, self.input_dim)
        if any(isinstance(number, jax.core.Tracer) for number in numbers):
            return
        alpha, beta, dim = (np.asarray(number) for number in numbers)
        if np.any(2 * (alpha + beta) <= 1):
            raise ValueError(
                f"PowerLawFeatures.target_exponent = {beta}: must be > 1/2 - spectral_exponent"
            )
        if np.any(np.isinf(dim) & (alpha <= 0.5)):
            raise ValueError(
                f"PowerLawFeatures.input_dim = {dim}: must be finite where spectral_exponent <= 1/2"
            )
        if np.any(np.isfinite(dim) & (dim != np.floor(dim))):
            raise ValueError(
                f"PowerLawFeatures.input_dim = {dim}: must be a whole number or infinite"
            )

    @property
    def spectrum(self) -> Spectrum:
        return power_law_levels(
            2 * self.spectral_exponent,
            2 * (self.spectral_exponent + self.target_exponent),
            self.input_dim,
        )

    def modes(self) -> tuple[Float[Array, "mode"], Float[Array, "mode"]]:
        if not np.isfinite(float(self.input_dim)):
            raise ValueError(
                "PowerLawFeatures.input_dim = inf: an experiment needs a finite number of inputs"
            )
        count = self.size("input_dim")
        if count > _LARGEST:
            raise ValueError(
                f"PowerLawFeatures.input_dim = {count}: an experiment takes at most {_LARGEST}"
            )
        j: Any = jnp.arange(1.0, count + 1)
        return j ** (-2 * self.spectral_exponent), j ** (
            -2 * (self.spectral_exponent + self.target_exponent)
        )


class SpectralStream(OnePassFeatures):
    """Inputs with any spectrum, for example that of real data: `Spectrum.from_pool(inputs @
    inputs.T, targets)`.
    """

    input_spectrum: Spectrum = part(
        "eigenvalues of the inputs' covariance and the target's power on each"
    )

    @property
    def spectrum(self) -> Spectrum:
        return self.input_spectrum
