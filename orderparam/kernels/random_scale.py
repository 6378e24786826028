"""Gaussian processes whose kernel is multiplied by a random number: exactly the outputs of a linear
network of any depth.

The outputs of a linear network are a Gaussian process with kernel K, multiplied by sqrt(p) with p =
q_1 q_2 .. q_L. The q_l are independent and have the law Gamma(N_l / 2) with mean one. The prior
density of log p is the convolution of the densities of log q_l (Li and Sompolinsky 2021 at the
saddle point; Hanin and Zlokapa 2023 for the exact evidence).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from orderparam.kernels.common_scale import Eigenbasis, minima

_NODES = 1025
# Half width of the grid in standard deviations of log p. The left tail of the density of t = log p,
# exp(N t / 2), is longer than that of a normal law.
_REACH = 16.0


class ScaleDensity(eqx.Module):
    """The prior densities of log q_1 .. log q_L on grids around the saddle point, each multiplied
    by exp(-shift log q_l), so that it peaks in the middle of its grid."""

    offsets: Float[Array, "node"]
    log_parameters: Float[Array, "layer"]
    shift: Float[Array, ""]
    logs: Float[Array, "layer node"]

    @classmethod
    def of(
        cls, basis: Eigenbasis, temperature: Float[Array, ""], widths: Float[Array, "layer"]
    ) -> "ScaleDensity":
        """The densities around the saddle point of a network on its data."""
        centre = jax.tree.map(
            lambda x: x[0], minima(basis.eigenvalues, basis.power, temperature, widths)
        )
        at = jax.lax.stop_gradient(centre.order_parameters)
        shift = (
            jnp.min(widths) * (1 - jax.lax.stop_gradient(jnp.exp(centre.log_scale[None])[0])) / 2
        )
        deviation = jnp.sqrt(jnp.sum(2 / (widths * at)))
        x = _REACH * deviation * jnp.linspace(-1.0, 1.0, _NODES)

        def tilted(width: Float[Array, ""], parameter: Float[Array, ""]) -> Float[Array, "node"]:
            t = jnp.log(parameter) + x
            return (
                width / 2 * (t - jnp.exp(t))
                - shift * t
                + width / 2 * jnp.log(width / 2)
                - gammaln(width / 2)
            )

        return cls(x, jnp.log(at), shift, jax.vmap(tilted)(widths, at))

    @property
    def step(self) -> Float[Array, ""]:
        """Distance between two neighbouring nodes of the grid."""
        return self.offsets[1] - self.offsets[0]

    @property
    def log_scale(self) -> Float[Array, "node"]:
        """Values of log p at the nodes."""
        return jnp.sum(self.log_parameters) + self.offsets

    def log_prior(self, exponents: Float[Array, "layer"]) -> Float[Array, "node"]:
        """The logarithm of the density of log p times E[ prod_l q_l^(exponent l) | p ]."""
        logs = self.logs + exponents[:, None] * (self.log_parameters[:, None] + self.offsets)
        peaks = jnp.max(logs, axis=1)
        density = jnp.exp(logs[0] - peaks[0])
        for one, peak in zip(logs[1:], peaks[1:]):
            density = jnp.convolve(density, jnp.exp(one - peak), mode="same") * self.step
        return jnp.log(jnp.maximum(density, 1e-300)) + jnp.sum(peaks) + self.shift * self.log_scale


class AtScale(eqx.Module):
    """Averages over the Gaussian process of kernel p K given the data, at every node p."""

    scales: Float[Array, "node"]
    spectrum: Float[Array, "node train"]
    basis: Eigenbasis
    temperature: Float[Array, ""]

    @classmethod
    def of(
        cls, scales: Float[Array, "node"], basis: Eigenbasis, temperature: Float[Array, ""]
    ) -> "AtScale":
        spectrum = temperature + scales[:, None] * basis.eigenvalues
        return cls(scales, spectrum, basis, temperature)

    @property
    def targets(self) -> Float[Array, "train"]:
        return self.basis.targets[:, 0]

    @property
    def log_likelihood(self) -> Float[Array, "node"]:
        """The log likelihood log N(y; 0, T + p K) without the power of 2 pi."""
        return -jnp.sum(jnp.log(self.spectrum) + self.basis.power / self.spectrum, axis=1) / 2

    @property
    def means(self) -> Float[Array, "node test"]:
        """Mean of f at the test points."""
        return (self.scales[:, None] * self.targets / self.spectrum) @ self.basis.rows.T

    @property
    def variances(self) -> Float[Array, "node test"]:
        """Variance of f at the test points."""
        explained = (self.scales[:, None] ** 2 / self.spectrum) @ (self.basis.rows**2).T
        return jnp.maximum(self.scales[:, None] * self.basis.diagonal - explained, 0.0)

    @property
    def train_variances(self) -> Float[Array, "node train"]:
        """Variances T pK / (T + pK) of f along the eigenvectors of K."""
        return self.temperature * self.scales[:, None] * self.basis.eigenvalues / self.spectrum

    @property
    def train_squares(self) -> tuple[Float[Array, "node"], Float[Array, "node"]]:
        """<(y . f)^2> and <|f|^2> over the training set."""
        means = self.scales[:, None] * self.basis.eigenvalues * self.targets / self.spectrum
        own = self.train_variances
        return (
            (means @ self.targets) ** 2 + own @ self.basis.power,
            jnp.sum(means**2 + own, axis=1),
        )
