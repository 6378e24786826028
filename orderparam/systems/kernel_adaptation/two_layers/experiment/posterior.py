"""The posterior of a two-layer network: both layers for a sampler, and the read-out given the hidden weights exactly."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.gaussian import Activation
from orderparam.gaussian.arcsine import Erf
from orderparam.kernels.readout import condition_readout
from orderparam.systems.kernel_adaptation.two_layers.model import HOMOGENEOUS, NetworkOnData, TwoLayerNetwork


class Weights(NamedTuple):
    """In units of the prior: w = sqrt(weight_variance / d) hidden, a = sqrt(readout_variance / N) readout."""

    hidden: Float[Array, "unit input"]
    readout: Float[Array, "unit"]


class Posterior(eqx.Module):
    """Log density of the weights u, v in units of their prior, -|u|^2/2 - |v|^2/2 - |f - y|^2/(2T), f = Phi v.

    Phi = sqrt(readout_variance/N) phi(X w^T). The loss is computed in single precision: its rounding, 1e-7 of itself, changes
    acceptance probabilities by 1e-3 at most and costs a quarter of the time.
    """

    x: Float[Array, "train input"]
    y: Float[Array, "train"]
    temperature: Float[Array, ""]
    scale: Float[Array, ""]
    amplitude: Float[Array, ""]
    system: TwoLayerNetwork | NetworkOnData

    @classmethod
    def of(cls, system: TwoLayerNetwork | NetworkOnData, x: Array, y: Array) -> "Posterior":
        """On this training set."""
        scale = jnp.sqrt(jnp.asarray(system.weight_variance, float) / x.shape[1])
        amplitude = jnp.sqrt(jnp.asarray(system.readout_variance, float) / system.width)
        return cls(x, y, jnp.asarray(system.temperature, float), scale, amplitude, system)

    def features(self, u: Float[Array, "unit input"], x: Float[Array, "example input"]) -> Float[Array, "example unit"]:
        """Phi at these points."""
        return self.amplitude * self.system.phi(x @ (self.scale * u).T)

    def loss(self, weights: Weights) -> Float[Array, ""]:
        """|f - y|^2 / 2 on the training set."""
        x, y, w, a = (
            array.astype(jnp.float32) for array in (self.x, self.y, self.scale * weights.hidden, self.amplitude * weights.readout)
        )
        return (jnp.sum((in_single(self.system.phi)(x @ w.T) @ a - y) ** 2) / 2).astype(float)

    def __call__(self, weights: Weights) -> Float[Array, ""]:
        prior = (jnp.sum(weights.hidden**2) + jnp.sum(weights.readout**2)) / 2
        return -prior - self.loss(weights) / self.temperature

    def readout(self, u: Float[Array, "unit input"]) -> Float[Array, "unit"]:
        """Posterior mean of a_c given the hidden weights."""
        phi = self.features(u, self.x)
        count, units = phi.shape
        if count <= units:
            return self.amplitude * condition_readout(phi, self.y[:, None], self.temperature).mean[:, 0]
        precision = phi.T @ phi + self.temperature * jnp.eye(units)
        return self.amplitude * jsl.cho_solve(jsl.cho_factor(precision), phi.T @ self.y)


def in_single(phi: Activation) -> Callable[[Array], Array]:
    """phi from float32 to float32; the erf and the homogeneous activations without the detour over float64."""
    if isinstance(phi, Erf):
        return lambda z: jax.lax.erf(phi.gain * z)
    if isinstance(phi, HOMOGENEOUS):
        right, left = (jnp.asarray(sign * phi(sign), jnp.float32) for sign in (1.0, -1.0))
        return lambda z: jnp.where(z > 0, right, left) * z
    return lambda z: phi(z).astype(z.dtype)


def log_density(posterior: Posterior, weights: Weights) -> Float[Array, ""]:
    """The density as a function, for `jax.tree_util.Partial`."""
    return posterior(weights)


def starts(posterior: Posterior, chains: int, informed: int, key: PRNGKeyArray) -> Weights:
    """Prior draws; in the last `informed` chains every neuron at w = +-w_*, half of them each, plus its prior draw across."""
    hidden_key, readout_key = jax.random.split(key)
    draws = jax.random.normal(hidden_key, (chains, int(posterior.system.width), posterior.x.shape[1]))
    signs = jnp.where(jnp.arange(draws.shape[1]) % 2 == 0, 1.0, -1.0) / posterior.scale
    planted = draws.at[:, :, 0].set(jnp.broadcast_to(signs, draws.shape[:2]))
    hidden = jnp.where((jnp.arange(chains) >= chains - informed)[:, None, None], planted, draws)
    return Weights(hidden, jax.random.normal(readout_key, hidden.shape[:2]))
