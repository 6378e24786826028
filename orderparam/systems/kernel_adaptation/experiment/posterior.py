"""The posterior of the hidden weights: the read-out of a two-layer network is Gaussian given them, and integrated exactly."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.kernels.readout import condition_readout, log_evidence
from orderparam.systems.kernel_adaptation.model import NetworkOnData, TwoLayerNetwork


class Posterior(eqx.Module):
    """Log density of whitened hidden weights u, w = sqrt(v/d) u:  -|u|^2/2 + log p(y | Phi), Phi = sqrt(s/N) phi(X w^T)."""

    x: Float[Array, "train input"]
    y: Float[Array, "train"]
    temperature: Float[Array, ""]
    scale: Float[Array, ""]
    amplitude: Float[Array, ""]
    system: TwoLayerNetwork | NetworkOnData

    @classmethod
    def of(cls, system: TwoLayerNetwork | NetworkOnData, x: Array, y: Array) -> "Posterior":
        scale = jnp.sqrt(jnp.asarray(system.weight_variance, float) / x.shape[1])
        amplitude = jnp.sqrt(jnp.asarray(system.readout_variance, float) / system.width)
        return cls(x, y, jnp.asarray(system.temperature, float), scale, amplitude, system)

    def features(self, u: Float[Array, "unit input"], x: Float[Array, "example input"]) -> Float[Array, "example unit"]:
        """Phi at these points."""
        return self.amplitude * self.system.phi(x @ (self.scale * u).T)

    def __call__(self, u: Float[Array, "unit input"]) -> Float[Array, ""]:
        return log_evidence(self.features(u, self.x), self.y[:, None], self.temperature) - jnp.sum(u**2) / 2

    def readout(self, u: Float[Array, "unit input"]) -> Float[Array, "unit"]:
        """Posterior mean of a_c."""
        return self.amplitude * condition_readout(self.features(u, self.x), self.y[:, None], self.temperature).mean[:, 0]


def log_density(posterior: Posterior, u: Float[Array, "unit input"]) -> Float[Array, ""]:
    """The density as a function, for `jax.tree_util.Partial`."""
    return posterior(u)


def starts(posterior: Posterior, chains: int, informed: int, key: PRNGKeyArray) -> Float[Array, "chain unit input"]:
    """Prior draws; in the last `informed` chains every neuron at w = +-w_*, half of them each, plus its prior draw across."""
    draws = jax.random.normal(key, (chains, int(posterior.system.width), posterior.x.shape[1]))
    signs = jnp.where(jnp.arange(draws.shape[1]) % 2 == 0, 1.0, -1.0) / posterior.scale
    planted = draws.at[:, :, 0].set(jnp.broadcast_to(signs, draws.shape[:2]))
    return jnp.where((jnp.arange(chains) >= chains - informed)[:, None, None], planted, draws)
