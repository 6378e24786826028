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
from orderparam.systems.kernel_adaptation.modes.network import HOMOGENEOUS, HiddenLayer
from orderparam.systems.kernel_adaptation.modes.overlaps import overlaps


class TwoLayerWeights(NamedTuple):
    """In units of the prior: w = sqrt(weight_variance / d) hidden, a = sqrt(readout_variance / N) readout."""

    hidden: Float[Array, "unit input"]
    readout: Float[Array, "unit"]


class Recorded(eqx.Module):
    """What each draw contributes, averaged over the read-out. w_* is the first axis."""

    output: Float[Array, "mode"]  # E_x f h_k
    directions: Float[Array, "direction unit"]  # w along w_*, and along the second axis
    moment: Float[Array, "input input"]  # sum_c w_c w_c^T / N


class TwoLayerPosterior(eqx.Module):
    """Log density of the weights u, v in units of their prior, -|u|^2/2 - |v|^2/2 - |f - y|^2/(2T), f = Phi v.

    Phi = sqrt(readout_variance/N) phi(X w^T). The loss is computed in single precision: its rounding, 1e-7 of itself, changes
    acceptance probabilities by 1e-3 at most and costs a quarter of the time.
    """

    layer: HiddenLayer
    x: Float[Array, "train input"]
    y: Float[Array, "train"]

    def output(self, weights: TwoLayerWeights, x: Float[Array, "example input"]) -> Float[Array, "example"]:
        """f, in single precision."""
        parts = x, self.layer.scale * weights.hidden, self.layer.amplitude * weights.readout
        x, w, a = (part.astype(jnp.float32) for part in parts)
        return in_single(self.layer.phi)(x @ w.T) @ a

    def __call__(self, weights: TwoLayerWeights) -> Float[Array, ""]:
        loss = jnp.sum((self.output(weights, self.x) - self.y.astype(jnp.float32)) ** 2) / 2
        prior = (jnp.sum(weights.hidden**2) + jnp.sum(weights.readout**2)) / 2
        return -prior - loss.astype(float) / self.layer.temperature

    def readout(self, u: Float[Array, "unit input"]) -> Float[Array, "unit"]:
        """Posterior mean of a_c given the hidden weights."""
        phi = self.layer.amplitude * self.layer.phi(self.x @ (self.layer.scale * u).T)
        count, units = phi.shape
        if count <= units:
            return self.layer.amplitude * condition_readout(phi, self.y[:, None], self.layer.temperature).mean[:, 0]
        precision = phi.T @ phi + self.layer.temperature * jnp.eye(units)
        return self.layer.amplitude * jsl.cho_solve(jsl.cho_factor(precision), phi.T @ self.y)

    def mode_outputs(self, u: Float[Array, "unit input"], a: Float[Array, "unit"]) -> Float[Array, "mode"]:
        """E_x f h_k on the modes of the theory."""
        w = self.layer.scale * u
        q = jnp.sum(w**2, axis=1)
        m = overlaps(self.layer.phi, self.layer.degrees, jnp.min(q), jnp.max(q))(w[:, 0], q)
        return jnp.stack([a @ one for one in m])

    def record(self, weights: TwoLayerWeights) -> Recorded:
        """One draw."""
        u = weights.hidden
        w = self.layer.scale * u
        return Recorded(self.mode_outputs(u, self.readout(u)), w[:, :2].T, w.T @ w / w.shape[0])

    def starts(self, chains: int, informed: int, key: PRNGKeyArray) -> TwoLayerWeights:
        """Prior draws; in the last `informed` chains every neuron at w = +-w_*, half of them each, plus its prior draw across."""
        hidden_key, readout_key = jax.random.split(key)
        draws = jax.random.normal(hidden_key, (chains, int(self.layer.width), self.x.shape[1]))
        signs = jnp.where(jnp.arange(draws.shape[1]) % 2 == 0, 1.0, -1.0) / self.layer.scale
        planted = draws.at[:, :, 0].set(jnp.broadcast_to(signs, draws.shape[:2]))
        hidden = jnp.where((jnp.arange(chains) >= chains - informed)[:, None, None], planted, draws)
        return TwoLayerWeights(hidden, jax.random.normal(readout_key, hidden.shape[:2]))


def in_single(phi: Activation) -> Callable[[Array], Array]:
    """phi from float32 to float32; the erf and the homogeneous activations without the detour over float64."""
    if isinstance(phi, Erf):
        return lambda z: jax.lax.erf(phi.gain * z)
    if isinstance(phi, HOMOGENEOUS):
        right, left = (jnp.asarray(sign * phi(sign), jnp.float32) for sign in (1.0, -1.0))
        return lambda z: jnp.where(z > 0, right, left) * z
    return lambda z: phi(z).astype(z.dtype)
